package pipeline

import (
	"context"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// outside runs what stands above the released tables: in Go where it is trivial, else in the sandbox.
type outside struct {
	engine  sandbox.Engine // nil: there is none
	workers *admission.Workers
	account *account
}

// try has the sandbox bind the outer query before anything is charged, so that what cannot run is refused for free, and
// run it over leaves of made-up numbers (probe.go), so that what fails whatever is released is refused for free too.
func (o *outside) try(ctx context.Context, s *Session, plan *plans.Plan, above outer.Query) *refuse.Refusal {
	if plan.Outer.Direct != nil || plan.Cost.IsZero() {
		return nil
	}
	if _, refusal := o.bound(ctx, s, plan, above); refusal != nil {
		return refusal
	}
	return o.probe(ctx, s, plan, above)
}

// bound has the sandbox bind an outer query, over leaves without rows.
func (o *outside) bound(ctx context.Context, s *Session, plan *plans.Plan, above outer.Query) (d sandbox.Description, refusal *refuse.Refusal) {
	tables := make([]sandbox.Table, 0, len(plan.Leaves))
	for _, leaf := range plan.Leaves {
		tables = append(tables, sandbox.Table{Name: leaf.Name, Rows: privacy.Published(sandbox.Rows{Columns: leafColumns(leaf)})})
	}
	err := o.workers.Ask(ctx, s.Policy.Server.Limits, sandboxSession(s, plan), func(session sandbox.Session) (err error) {
		session.Unreleased = true
		d, err = o.engine.Describe(ctx, session, above, tables)
		return err
	})
	if err != nil {
		f := pgerror.Describe(err)
		return d, refuse.Invalid(f.SQLState, f.Message, f.Hint)
	}
	return d, nil
}

// query runs the outer query over the released tables: in Go where it is trivial, else in the sandbox.
func (o *outside) query(ctx context.Context, s *Session, p compiled, leaves []sandbox.Table) (privacy.Released[sandbox.Rows], error) {
	plan := p.plan
	if d := plan.Outer.Direct; d != nil {
		input := privacy.Published(sandbox.Rows{Data: [][]policy.Value{nil}})
		if d.Leaf >= 0 {
			input = leaves[d.Leaf].Rows
		}
		return sandbox.Direct(ctx, d, outColumns(plan), input)
	}
	awaitGrid(ctx) // the sandbox has a clock
	own, err := o.account.ownTables(ctx, s, plan)
	if err != nil {
		return privacy.Released[sandbox.Rows]{}, err
	}
	var rows privacy.Released[sandbox.Rows]
	err = o.workers.Ask(ctx, s.Policy.Server.Limits, sandboxSession(s, plan), func(session sandbox.Session) (err error) {
		rows, err = o.engine.Query(ctx, session, p.outer, slices.Concat(own, p.copies, leaves))
		return err
	})
	return rows, err
}

func outColumns(plan *plans.Plan) []sandbox.Column {
	columns := make([]sandbox.Column, len(plan.Columns))
	for i, c := range plan.Columns {
		columns[i] = sandbox.Column{Name: c.Name, Type: c.Type, Typmod: c.Typmod}
	}
	return columns
}

func sandboxSession(s *Session, plan *plans.Plan) sandbox.Session {
	return sandbox.Session{Zone: s.Settings.Zone, Literals: plan.Outer.Literals, User: s.User, Database: s.Database, PID: s.PID, Settings: s.Settings.Variables, Listed: s.Listed, Cursors: s.Cursors, Prepared: s.Prepared, Clients: s.Clients}
}

// The numbers of an answer's columns: SELECT sex, count(*) FROM people GROUP BY sex tells a client that the first one
// is the column of pg_attribute that has people's attrelid and sex's attnum, and that the second is of no table.

// numbersOf are the numbers of so many columns; the zero ones where not all of the statement's columns are known by
// their names. Columns of errors stand between them.
func (o *outside) numbersOf(s *Session, outputs []plans.Output, columns int, name func(i int) string) []pgcatalog.Number {
	numbers := make([]pgcatalog.Number, columns)
	between := len(outputs) < columns
	if o.engine == nil || len(outputs) > columns || between && !s.Settings.Settings.ErrorColumns {
		return numbers
	}
	known := o.engine.Numbers(s.Database)
	for i := range numbers {
		if len(outputs) > 0 && (!between || name(i) == outputs[0].Name) {
			numbers[i], outputs = known[outputs[0].Of], outputs[1:]
		}
	}
	return numbers
}

// described are described columns with their numbers.
func (o *outside) described(s *Session, outputs []plans.Output, columns []plans.OutColumn) []plans.OutColumn {
	columns = slices.Clone(columns)
	for i, n := range o.numbersOf(s, outputs, len(columns), func(i int) string { return columns[i].Name }) {
		columns[i].Number = n
	}
	return columns
}

// numbered are an answer's columns with their numbers.
func (o *outside) numbered(s *Session, outputs []plans.Output, columns []sandbox.Column) []sandbox.Column {
	columns = slices.Clone(columns)
	for i, n := range o.numbersOf(s, outputs, len(columns), func(i int) string { return columns[i].Name }) {
		columns[i].Number = n
	}
	return columns
}
