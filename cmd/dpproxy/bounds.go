package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/bounds"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/service"
)

// bounding is what the command line asks of `dpproxy bounds`.
type bounding struct {
	path, user, dataset, table string
	columns                    []string
	rows, rowsAsked            bool // whether rows are asked, and whether the flag says so
	epsilon, rho               string
	confidence                 float64
	dry                        bool
	trust                      ledger.Options
}

func boundsCommand() *cobra.Command {
	var o bounding
	cmd := &cobra.Command{
		Use:   "bounds --policy policy.yaml --user NAME --table TABLE --epsilon E",
		Short: "Find bounds of columns and of rows per unit, at a price",
		Long: `Finds the ends of the columns of a table whose policy says domain: private, numbers, dates and times, and how many rows a unit is best
counted with, and prints them as the policy has them, with how far they may be off. Text has no ends.

It costs --epsilon (or --rho, of an accountant that takes it), which the named user's budget and the dataset's cap pay at once before any row is read,
and an even part of which goes to each question. Everything is planned and written for the database before that: what cannot be asked costs nothing. Asked
again, it is free, and says the same. The answer is differentially private, so that bounds in a policy tell no more of anybody than was paid for.

The embedded ledger serves one program at a time: stop the proxy first; a ledger in PostgreSQL serves both.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.rowsAsked = cmd.Flags().Changed("rows")
			return findBounds(cmd.Context(), o, cmd.OutOrStdout(), logger(cmd))
		},
	}
	policyFlag(cmd, &o.path)
	rollbackFlags(cmd, &o.trust)
	flags := cmd.Flags()
	flags.StringVar(&o.user, "user", "", "whose budget pays")
	flags.StringVar(&o.dataset, "dataset", "", "the dataset; needed where she has budgets in several")
	flags.StringVar(&o.table, "table", "", "the table, as analysts know it")
	flags.StringArrayVar(&o.columns, "column", nil, "a column with domain: private; may be repeated (default: all of the table)")
	flags.BoolVar(&o.rows, "rows", false, "ask how many rows a unit has (default: without --column, where max_rows_per_unit is there and above 1)")
	flags.StringVar(&o.epsilon, "epsilon", "", "what all of it costs (under zcdp it buys e²/2 of ρ)")
	flags.StringVar(&o.rho, "rho", "", "what all of it costs, in ρ, where the dataset's accountant is zcdp or either")
	flags.Float64Var(&o.confidence, "confidence", 0.95, "with what probability a column's ends and limits hold together, and each ± by itself")
	flags.BoolVar(&o.dry, "dry-run", false, "say what would be asked, and what it costs, and charge nothing")
	return cmd
}

func findBounds(ctx context.Context, o bounding, out io.Writer, log *slog.Logger) error {
	p, err := service.ReadPolicy(o.path)
	if err != nil {
		return err
	}
	request, _, err := o.request(p)
	if err != nil {
		return err
	}
	if o.dry {
		for _, q := range request.Questions {
			fmt.Fprintf(out, "%s: %s, %s; nothing was charged\n", q.Name(), q.Measure.Cost, pipeline.MechanismText(q.Measure))
		}
		return nil
	}
	opened, err := service.Open(ctx, o.path, o.trust, log)
	if err != nil {
		return err
	}
	defer opened.Close()
	p = opened.Policy()
	request, confidence, err := o.request(p)
	if err != nil {
		return err
	}
	var held []bounds.Held
	for _, r := range opened.Ledger.Holdings(o.user, request.Table.Dataset.ID) {
		held = append(held, bounds.Held{ID: r.ID, Digest: plans.Digest(r.Item.Digest), Spec: r.Item.Spec})
	}
	request.Know(held)
	answers := pipeline.NewAnswerer(opened.Backend, opened.Ledger, opened.Engine, rand.Reader, log, proxy.NewMetrics())
	answers.UsePublic(&opened.Public)
	defer answers.Drain()
	drawn, charged, err := answers.Measured(ctx, p, o.user, request.Plan(confidence))
	var f *pgerror.Failure
	if errors.As(err, &f) {
		err = exitCode{3, fmt.Errorf("%s. %s", f.Message, f.Detail)}
	}
	found, failed := o.write(out, request, drawn, charged, confidence)
	switch {
	case err != nil:
		return err
	case failed != nil:
		return failed
	case found < len(request.Questions):
		return exitCode{code: 3}
	}
	return nil
}

// request is what is asked, planned and priced.
func (o bounding) request(p *policy.Policy) (r *bounds.Request, c mechanisms.Confidence, err error) {
	if o.user == "" {
		return nil, c, exitCode{2, errors.New("--user is missing: who pays?")}
	}
	d, err := pricing{path: o.path, user: o.user, dataset: o.dataset}.chosen(p.For(o.user))
	if err != nil {
		return nil, c, err
	}
	if c, err = mechanisms.NewConfidence(o.confidence); err != nil {
		return nil, c, exitCode{2, fmt.Errorf("--confidence: %w", err)}
	}
	cost, err := o.cost(d)
	if err != nil {
		return nil, c, exitCode{2, err}
	}
	if o.table == "" {
		return nil, c, exitCode{2, errors.New("--table is missing: which one?")}
	}
	t := tableNamed(d, o.table)
	if t == nil {
		return nil, c, exitCode{2, fmt.Errorf("there is no table %s in dataset %s", o.table, d.ID)}
	}
	columns, err := o.chosenColumns(t)
	if err != nil {
		return nil, c, exitCode{2, err}
	}
	if r, err = bounds.Ask(t, columns, o.asksRows(t), p.Backend.Snapshot != nil, cost); err != nil {
		return nil, c, exitCode{2, err}
	}
	return r, c, nil
}

// asksRows reports whether the number of a unit's rows is asked: unless the flag says otherwise, of a whole table of
// whose units the policy allows several, up to a bound.
func (o bounding) asksRows(t *policy.Table) bool {
	if o.rowsAsked {
		return o.rows
	}
	return len(o.columns) == 0 && t.MaxRowsPerUnit > 1 && !t.AnyRows
}

// chosenColumns are those that are named, or all without bounds.
func (o bounding) chosenColumns(t *policy.Table) ([]*policy.Column, error) {
	var list []*policy.Column
	for _, c := range t.Columns {
		if c.Private && len(o.columns) == 0 {
			list = append(list, c)
		}
	}
	for _, name := range o.columns {
		c := t.Column(name)
		if c == nil {
			return nil, fmt.Errorf("table %s has no column %s", t.Name, name)
		}
		if !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list, nil
}

// cost reads what may be spent, in a unit that the dataset's account adds up.
func (o bounding) cost(d *policy.Dataset) (privacy.Cost, error) {
	pure, concentrated := d.Accountant.Takes()
	switch {
	case o.epsilon == "" && o.rho == "":
		return privacy.Cost{}, errors.New("--epsilon is missing: what may it cost?")
	case o.epsilon != "" && o.rho != "":
		return privacy.Cost{}, errors.New("--epsilon and --rho are both given: one of them is the price")
	case o.rho != "":
		if !concentrated {
			return privacy.Cost{}, fmt.Errorf("--rho is given, but dataset %s adds up ε: --epsilon", d.ID)
		}
		rho, err := privacy.ParseRho(o.rho)
		if err == nil && rho.Pico() == 0 {
			err = errors.New("is 0, must be greater")
		}
		if err != nil {
			err = fmt.Errorf("--rho: %w", err)
		}
		return privacy.Cost{Rho: rho}, err
	}
	e, err := privacy.ParseEpsilon(o.epsilon)
	if err == nil && e.Micro() == 0 {
		err = errors.New("is 0, must be greater")
	}
	if err != nil {
		return privacy.Cost{}, fmt.Errorf("--epsilon: %w", err)
	}
	if !pure {
		return privacy.Cost{Rho: e.Rho()}, nil
	}
	return privacy.Cost{Epsilon: e}, nil
}

// tableNamed finds a table by its name or its schema and name.
func tableNamed(d *policy.Dataset, name string) *policy.Table {
	for _, t := range d.Tables {
		if t.Name == name || t.Schema+"."+t.Name == name {
			return t
		}
	}
	return nil
}

// write prints what was found, as lines of the policy with the rest in comments. What was paid for is printed whatever
// has failed beside it.
func (o bounding) write(out io.Writer, r *bounds.Request, drawn []pipeline.Drawn, charged privacy.Cost, confidence mechanisms.Confidence) (found int, failed error) {
	if !slices.ContainsFunc(drawn, func(d pipeline.Drawn) bool { return d.Noisy.Valid() }) {
		return 0, nil
	}
	var text bytes.Buffer
	paid := "charged " + charged.String() + " to " + o.user
	if charged.IsZero() {
		paid = o.user + " has paid for it already"
	}
	fmt.Fprintf(&text, "# table %s of dataset %s: %s\n", r.Table.Name, r.Table.Dataset.ID, paid)
	if i := slices.IndexFunc(drawn, func(d pipeline.Drawn) bool { return !d.AsOf.IsZero() }); i >= 0 {
		fmt.Fprintf(&text, "# as of %s\n", drawn[i].AsOf.Format(time.RFC3339))
	}
	unit := "row"
	if !r.Table.Dataset.Unit.Row {
		unit = r.Table.Dataset.Unit.Name
	}
	var rows, columns []string
	for i, q := range r.Questions {
		if !drawn[i].Noisy.Valid() {
			failed = errors.Join(failed, fmt.Errorf("%s was paid for, and not drawn", q.Name()))
			continue
		}
		ends, err := drawn[i].Spec.ReadEnds(drawn[i].Noisy, q.Values(), bounds.Ignored(r.Table.Dataset), confidence)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", q.Name(), err))
			continue
		}
		a := q.Answer(ends.Value(), confidence)
		if a.Found() {
			found++
		}
		var lines []string
		for _, line := range a.Says(unit) {
			lines = append(lines, "# "+line)
		}
		switch {
		case q.Column != nil:
			columns = append(columns, append(lines, a.YAML())...)
		case a.Found():
			rows = append(lines, a.YAML())
		default:
			rows = lines
		}
	}
	for _, line := range rows {
		fmt.Fprintf(&text, "        %s\n", line)
	}
	if len(columns) > 0 {
		fmt.Fprintln(&text, "        columns:")
	}
	for _, line := range columns {
		fmt.Fprintf(&text, "          %s\n", line)
	}
	if _, err := out.Write(text.Bytes()); err != nil {
		failed = errors.Join(failed, err)
	}
	return found, failed
}
