package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/backend/engines"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/sandbox/catalog"
	"github.com/dpproxy/dpproxy/service"
)

func checkCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "check --policy policy.yaml",
		Short: "Check a policy against the database's schema, and say what it means",
		Long: `Reads the policy, connects to the database and compares the declared types and constraints with its schema, never with
its rows. Then says what typical questions to each table would cost, and how exact their answers would be, for one who has spent nothing. Exits with 0 when serve would start, with 3 when it would refuse to.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return check(cmd, path) },
	}
	policyFlag(cmd, &path)
	return cmd
}

func check(cmd *cobra.Command, path string) error {
	out := cmd.OutOrStdout()
	p, err := service.ReadPolicy(path)
	if err != nil {
		return exitCode{3, err}
	}
	describePolicy(out, p)
	b, err := engines.Open(cmd.Context(), p, logger(cmd))
	if err != nil {
		return exitCode{3, fmt.Errorf("database: %w", err)}
	}
	defer b.Close()
	if p, err = service.ReadLists(cmd.Context(), b, p); err != nil {
		return exitCode{3, err}
	}
	fatal, slow := 0, []string{}
	for _, d := range p.Datasets {
		findings, err := b.Inspect(cmd.Context(), p, d)
		if err != nil {
			return exitCode{3, fmt.Errorf("database: %w", err)}
		}
		for _, f := range findings {
			mark := "warning"
			switch {
			case f.Fatal:
				mark, fatal = "error", fatal+1
			case f.Note:
				mark = "note"
			}
			fmt.Fprintf(out, "%s: dataset %s: %s\n", mark, d.ID, f.Text)
			if f.Numbered != "" && p.Backend.Snapshot == nil {
				slow = append(slow, f.Numbered)
			}
		}
	}
	if len(slow) > 0 {
		fmt.Fprintf(out, "note: slow where there are many rows: %s: each question numbers all of them; backend.snapshot copies them once, and row_rank (dpproxy prepare) has them numbered\n",
			strings.Join(slow, ", "))
	}
	for _, w := range p.Warnings() {
		fmt.Fprintln(out, "warning:", w)
	}
	for _, n := range append(p.Notes(), choose.LevelNotes(p)...) {
		fmt.Fprintln(out, "note:", n)
	}
	for _, d := range p.Datasets {
		if err := writeTypical(cmd.Context(), p, d, out, logger(cmd)); err != nil {
			return err
		}
	}
	if fatal > 0 {
		return exitCode{3, fmt.Errorf("%s: serve would refuse to start", counted(fatal, "error"))}
	}
	fmt.Fprintln(out, "ok: serve would start")
	return nil
}

// describePolicy says in plain words what a policy grants.
func describePolicy(out io.Writer, p *policy.Policy) {
	fmt.Fprintf(out, "%s: %s, %s, listening on %s\n", p.Path, counted(len(p.Datasets), "dataset"), counted(len(p.Users), "user"), p.Server.Listen)
	for _, d := range p.Datasets {
		unit := "each row by itself"
		if !d.Unit.Row {
			unit = fmt.Sprintf("each %s (%s.%s)", d.Unit.Name, d.Unit.Table, d.Unit.Column)
		}
		fmt.Fprintf(out, "dataset %s protects %s; %s neighbours; %s accountant; cap (ε %s, δ %s)\n", d.ID, unit, d.Neighbors, d.Accountant, d.Cap.Epsilon, d.Cap.Delta)
		for _, t := range d.Tables {
			if t.Public {
				fmt.Fprintf(out, "  table %s: public, exact and free\n", t.Name)
				continue
			}
			if t.Analysed() {
				fmt.Fprintf(out, "  table %s: %s of a SELECT over other tables, which is analysed where it is used\n", t.Name, counted(len(t.Columns), "column"))
				continue
			}
			of := "unit"
			if !d.Unit.Row {
				of = d.Unit.Name
			}
			most := counted(t.MaxRowsPerUnit, "row") + " a " + of
			if t.MaxGroups > 0 {
				most = fmt.Sprintf("%s of an answer a %s with %s in each", counted(t.MaxGroups, "group"), of, counted(t.MaxPerGroup, "row"))
			}
			fmt.Fprintf(out, "  table %s: %s, %s, at most %s\n", t.Name, counted(len(t.Columns), "column"), counted(len(t.All()), "release"), most)
		}
	}
}

// counted is a number with its noun, in the plural where it is not one.
func counted[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the policy file, for editors",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(policy.Schema())
			return err
		},
	}
}

// typical is a question that most tables are asked, SELECT ward, count(*) FROM visits GROUP BY 1, and what a value of
// its answer would be if rows were spread evenly over the cells; nil means the policy does not say.
type typical struct {
	sql    string
	answer *big.Rat
}

// maxRanked is of how many cells a median is priced here: of more the best strategy is sought for seconds, once a
// proxy's life.
const maxRanked = 1 << 14

// typicalQuestions are those of a private table, as far as it has columns for them. They and their answers are made of
// the policy alone.
func typicalQuestions(t *policy.Table) []typical {
	var list []typical
	rows := big.NewRat(t.ExpectedRows, 1)
	ask := func(answer *big.Rat, form string, names ...string) {
		quoted := make([]any, len(names), len(names)+1)
		for i, n := range names {
			quoted[i] = catalog.QuoteIdentifier(n)
		}
		from := catalog.QuoteIdentifier(t.Name)
		if t.Schema != "public" {
			from = catalog.QuoteIdentifier(t.Schema) + "." + from
		}
		quoted = append(quoted, from)
		list = append(list, typical{fmt.Sprintf(form, quoted...), answer})
	}
	ask(rows, "SELECT count(*) FROM %s")
	groups, days, amounts, found := columnsByUse(t)
	if len(groups) > 0 {
		g := groups[0]
		ask(over(rows, g), "SELECT %s, count(*) FROM %s GROUP BY 1", g.Name)
		ask(over(rows, g), "SELECT %s, count(*) FROM %s GROUP BY 1 ORDER BY 2 DESC LIMIT 10", g.Name)
		if len(groups) > 1 {
			ask(over(over(rows, g), groups[1]), "SELECT %s, %s, count(*) FROM %s GROUP BY 1, 2", g.Name, groups[1].Name)
		}
	}
	if len(found) > 0 {
		ask(nil, "SELECT %s, count(*) FROM %s GROUP BY 1 ORDER BY 2 DESC LIMIT 10", found[0].Name)
	}
	if len(days) > 0 {
		ask(new(big.Rat).Quo(rows, months(days[0])), "SELECT date_trunc('month', %s), count(*) FROM %s GROUP BY 1 ORDER BY 1", days[0].Name)
	}
	if len(amounts) > 0 {
		a := amounts[len(amounts)-1] // money, where there is any: it is mostly behind numbers of things
		text, value := middle(a)
		ask(new(big.Rat).Quo(rows, big.NewRat(2, 1)), "SELECT count(*) FROM %[2]s WHERE %[1]s >= "+text, a.Name)
		ask(new(big.Rat).Mul(rows, value), "SELECT sum(%s) FROM %s", a.Name)
		ask(value, "SELECT avg(%s) FROM %s", a.Name)
		if a.Domain.Regular <= maxRanked {
			ask(value, "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY %s) FROM %s", a.Name)
		}
		if len(groups) > 0 {
			ask(over(new(big.Rat).Mul(rows, value), groups[0]), "SELECT %s, sum(%s) FROM %s GROUP BY 1", groups[0].Name, a.Name)
		}
	}
	return list
}

// columnsByUse parts a table's columns: such as rows are grouped by, moments, numbers, and those of which the values
// are found.
func columnsByUse(t *policy.Table) (groups, days, amounts, found []*policy.Column) {
	for _, c := range t.Shown() {
		switch {
		case c.Any: // what is asked of it is hers to say
		case c.Open != nil:
			found = append(found, c)
		case c.Domain == nil:
		case !c.Domain.Ordered():
			groups = append(groups, c)
		case slices.Contains([]policy.Type{policy.DateType, policy.TimestampT, policy.TimestampTZ}, c.Type):
			days = append(days, c)
		case !strings.HasSuffix(strings.ToLower(c.Source), "id"): // which numbers nobody adds up
			amounts = append(amounts, c)
		}
	}
	slices.SortStableFunc(amounts, func(a, b *policy.Column) int { return cmp.Compare(decimals(a), decimals(b)) })
	return
}

// decimals tells numbers of whole things, 0, from others, 1.
func decimals(c *policy.Column) int {
	if c.Type.Integer() {
		return 0
	}
	return 1
}

// over is a number spread over the declared cells of a column.
func over(n *big.Rat, c *policy.Column) *big.Rat {
	return new(big.Rat).Quo(n, big.NewRat(int64(max(c.Domain.Regular, 1)), 1))
}

// middle is the value amid a number's domain.
func middle(c *policy.Column) (string, *big.Rat) {
	text := policy.FormatValue(c.Type, c.Domain.Low(c.Domain.Regular/2))
	value, ok := new(big.Rat).SetString(text)
	if !ok {
		value = new(big.Rat)
	}
	return text, value
}

// months is how many months a moment's domain reaches into.
func months(c *policy.Column) *big.Rat {
	var at [2]time.Time
	for i, v := range []policy.Value{c.Domain.Min, c.Domain.Max} {
		text := policy.FormatValue(c.Type, v)
		at[i], _ = time.Parse("2006-01", text[:min(len(text), 7)])
	}
	return big.NewRat(int64(max(1, (at[1].Year()-at[0].Year())*12+int(at[1].Month()-at[0].Month())+1)), 1)
}

// writeTypical prints what the typical questions of a dataset's private tables cost one who has spent nothing, and how
// exact their answers are: each by itself, at dp.epsilon as the policy gives it to the first user who has a budget, or
// to anybody.
func writeTypical(ctx context.Context, p *policy.Policy, d *policy.Dataset, out io.Writer, log *slog.Logger) error {
	user := "anybody"
	if i := slices.IndexFunc(p.Users, func(u policy.User) bool { _, ok := d.Budget(u.Name); return ok && !u.Admin }); i >= 0 {
		user = p.Users[i].Name
	}
	if _, ok := d.Budget(user); !ok {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, t := range d.Tables {
		if t.Public || t.Analysed() {
			continue
		}
		fmt.Fprintf(w, "typical questions to table %s in %s, asked by %s:\n", t.Name, d.ID, user)
		for _, q := range typicalQuestions(t) {
			priced, err := newPricer(p.For(user), d, user, log).Script(ctx, q.sql)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "  %s\t%s\n", q.sql, q.priced(priced[0]))
		}
	}
	return w.Flush()
}

// priced says what a question costs and how exact it is, beside what its answer may be where that is known.
func (q typical) priced(one proxy.Priced) string {
	if one.Failure != nil {
		return string(one.Status) + ": " + one.Failure.Message
	}
	text := one.Cost.String() + "; " + one.Error
	if one.Error == "" && len(one.Leaves) > 0 {
		text += "error " + strings.Join(one.Leaves[0].Errors, "; ")
	}
	if one.HalfWidth != nil && q.answer != nil && q.answer.Sign() > 0 {
		share, _ := new(big.Rat).Quo(one.HalfWidth, q.answer).Float64()
		text += fmt.Sprintf(", %s %% of %s", privacy.Percent(share, 2), q.answer.FloatString(0))
	}
	return text
}
