package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/backend"
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
	var verbose bool
	cmd := &cobra.Command{
		Use:   "check --policy policy.yaml",
		Short: "Check a policy against the database's schema, and say what it means",
		Long: `Reads the policy, connects to the database and compares the declared types and constraints with its schema, never
with private rows; copies the public tables, and asks the ledger, where there is one, whether it would take the policy,
as serve does. Then says what typical questions to tables would cost, and how exact their answers would be, for one who
has spent nothing. Of many lines of one kind the first is printed, and their number; --verbose prints all. Exits with 0
when serve would start, with 3 when it would refuse to.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return check(cmd, path, verbose) },
	}
	policyFlag(cmd, &path)
	cmd.Flags().BoolVar(&verbose, "verbose", false, "print every line, also where hundreds are of one kind")
	return cmd
}

// page prints what check says of a policy.
type page struct {
	out io.Writer
	of  *policy.Policy
	all bool // every line is printed
}

// say prints lines behind a mark, by kind.
func (to page) say(mark string, lines []string) {
	if !to.all {
		lines = to.of.Summary(lines)
	}
	for _, line := range lines {
		fmt.Fprintln(to.out, mark+line)
	}
}

func check(cmd *cobra.Command, path string, verbose bool) error {
	p, err := service.ReadPolicy(path)
	if err != nil {
		return exitCode{3, err}
	}
	to := page{cmd.OutOrStdout(), p, verbose}
	to.describe()
	b, err := engines.Open(cmd.Context(), p, logger(cmd))
	if err != nil {
		return exitCode{3, fmt.Errorf("database: %w", err)}
	}
	defer b.Close()
	copies := service.NewCopies(b)
	if p, err = service.ReadLists(cmd.Context(), copies, p); err != nil {
		return exitCode{3, err}
	}
	to.of = p
	var found findings
	for _, d := range p.Datasets {
		list, err := b.Inspect(cmd.Context(), p, d)
		if err != nil {
			return exitCode{3, fmt.Errorf("database: %w", err)}
		}
		found.add(d, list)
	}
	if len(found.fatal) == 0 {
		if err := service.Try(cmd.Context(), p, copies, quiet(cmd)); err != nil {
			found.fatal = append(found.fatal, err.Error())
		}
	}
	to.say("error: ", found.fatal)
	to.say("warning: ", append(found.warnings, p.Warnings()...))
	to.say("note: ", slices.Concat(found.notes, found.slow(p), p.Notes(), choose.LevelNotes(p)))
	for _, d := range p.Datasets {
		if err := to.typical(cmd.Context(), d, logger(cmd)); err != nil {
			return err
		}
	}
	if len(found.fatal) > 0 {
		return exitCode{3, fmt.Errorf("%s: serve would refuse to start", counted(len(found.fatal), "error"))}
	}
	fmt.Fprintln(to.out, "ok: serve would start")
	return nil
}

// quiet is a logger for what tries and lets go again: what it says of being done is no news.
func quiet(cmd *cobra.Command) *slog.Logger {
	level, _ := logLevel(cmd)
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: max(level, slog.LevelWarn)}))
}

// findings are what the database's schema was found to be, by how grave it is.
type findings struct {
	fatal, warnings, notes []string
	numbered               []string // tables of which each live query numbers all rows
}

func (f *findings) add(d *policy.Dataset, list []backend.Finding) {
	for _, one := range list {
		into := &f.warnings
		switch {
		case one.Fatal:
			into = &f.fatal
		case one.Note:
			into = &f.notes
		}
		*into = append(*into, "dataset "+d.ID+": "+one.Text)
		if one.Numbered != "" {
			f.numbered = append(f.numbered, one.Numbered)
		}
	}
}

// mostNamed is how many tables a line names.
const mostNamed = 6

// slow says which tables take long where they are large.
func (f *findings) slow(p *policy.Policy) []string {
	if len(f.numbered) == 0 || p.Backend.Snapshot != nil {
		return nil
	}
	names := strings.Join(f.numbered, ", ")
	if more := len(f.numbered) - mostNamed; more > 0 {
		names = fmt.Sprintf("%s and %s", strings.Join(f.numbered[:mostNamed], ", "), counted(more, "more table"))
	}
	return []string{"slow where there are many rows: " + names +
		": each question numbers all of them; backend.snapshot copies them once, and row_rank (dpproxy prepare) has them " +
		"numbered"}
}

// describe says in plain words what a policy grants.
func (to page) describe() {
	p := to.of
	fmt.Fprintf(to.out, "%s: %s, %s, listening on %s\n", p.Path, counted(len(p.Datasets), "dataset"),
		counted(len(p.Users), "user"), p.Server.Listen)
	for _, d := range p.Datasets {
		unit := "each row by itself"
		if !d.Unit.Row {
			unit = fmt.Sprintf("each %s (%s.%s)", d.Unit.Name, d.Unit.Table, d.Unit.Column)
		}
		fmt.Fprintf(to.out, "dataset %s protects %s; %s neighbours; %s accountant; cap (ε %s, δ %s)\n", d.ID, unit,
			d.Neighbors, d.Accountant, d.Cap.Epsilon, d.Cap.Delta)
		lines := tableLines(d)
		if len(lines) > manyTables && !to.all {
			fmt.Fprintf(to.out, "  %s:\n", counted(len(lines), "table"))
			lines = p.Summary(lines)
		}
		for _, line := range lines {
			fmt.Fprintln(to.out, "  "+line)
		}
	}
}

// manyTables is of how many tables each has a line, and its questions; of more than these mostAsked have questions.
const manyTables, mostAsked = 12, 3

// tableLines say what each table is.
func tableLines(d *policy.Dataset) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, t := range d.Tables {
		if t.Public {
			say("table %s: public, exact and free", t.Name)
			continue
		}
		if t.Analysed() {
			say("table %s: %s of a SELECT over other tables, which is analysed where it is used", t.Name,
				counted(len(t.Columns), "column"))
			continue
		}
		of := "unit"
		if !d.Unit.Row {
			of = d.Unit.Name
		}
		most := "at most " + counted(t.MaxRowsPerUnit, "row") + " a " + of
		if t.AnyRows {
			most = "any number of rows a " + of
		}
		if t.MaxGroups > 0 {
			most = fmt.Sprintf("at most %s of an answer a %s with %s in each", counted(t.MaxGroups, "group"), of,
				counted(t.MaxPerGroup, "row"))
		}
		if f, _ := t.MinFrequency(); f.Units > 0 {
			most += fmt.Sprintf(", groups of at least %d units are shown", f.Units)
		}
		say("table %s: %s, %s, %s", t.Name, counted(len(t.Columns), "column"), counted(len(t.All()), "release"),
			most)
	}
	return lines
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
	if t.MaxRowsPerUnit > 1 && !t.AnyRows && !t.DeclaresTotal() { // without the bound
		ask(nil, "SET dp.contribution = ladder; SELECT count(*) FROM %s")
	}
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
		if a.Domain.Regular <= maxRanked && !t.AnyRows {
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

// typical prints what the typical questions of a dataset's private tables, the first of many, cost one who has spent
// nothing, and how exact their answers are: each by itself, at dp.epsilon as the policy gives it to the first user who
// has a budget, or to anybody.
func (to page) typical(ctx context.Context, d *policy.Dataset, log *slog.Logger) error {
	p, user := to.of, "anybody"
	if i := slices.IndexFunc(p.Users, func(u policy.User) bool { _, ok := d.Budget(u.Name); return ok && !u.Admin }); i >= 0 {
		user = p.Users[i].Name
	}
	if _, ok := d.Budget(user); !ok {
		return nil
	}
	asked := slices.DeleteFunc(slices.Clone(d.Tables), func(t *policy.Table) bool { return t.Public || t.Analysed() })
	more := 0
	if len(asked) > manyTables && !to.all {
		asked, more = asked[:mostAsked], len(asked)-mostAsked
	}
	w := tabwriter.NewWriter(to.out, 0, 0, 2, ' ', 0)
	for _, t := range asked {
		fmt.Fprintf(w, "typical questions to table %s in %s, asked by %s:\n", t.Name, d.ID, user)
		for _, q := range typicalQuestions(t) {
			priced, err := newPricer(p.For(user), d, user, log).Script(ctx, q.sql)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "  %s\t%s\n", q.sql, q.priced(priced[len(priced)-1]))
		}
	}
	if more > 0 {
		fmt.Fprintf(w, "typical questions to %s: --verbose\n", counted(more, "more table"))
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
		text += "error " + strings.TrimPrefix(strings.Join(one.Leaves[0].Errors, "; "), "n1: ")
	}
	if one.HalfWidth != nil && q.answer != nil && q.answer.Sign() > 0 {
		share, _ := new(big.Rat).Quo(one.HalfWidth, q.answer).Float64()
		digits := 0
		if q.answer.Cmp(big.NewRat(10, 1)) < 0 { // rows in each of very many groups: 0.49, and not 0
			digits = 2
		}
		text += fmt.Sprintf(", %s %% of %s", privacy.Percent(share, 2), q.answer.FloatString(digits))
	}
	return text
}
