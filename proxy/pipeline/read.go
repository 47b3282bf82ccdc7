package pipeline

import (
	"context"
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms"
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

// reader reads the leaves of a plan from saved releases, and the answer from them.
type reader struct {
	releases  *releases
	outside   *outside
	estimates estimateCache
}

// rows are an answer's, made of what was released: the tables of the leaves, and the outer query over them.
func (r *reader) rows(ctx context.Context, s *Session, p compiled, ids []int64, answers runAnswers) (rows privacy.Released[sandbox.Rows], off []string, err error) {
	err = r.run(ctx, s, p.quick, func(ctx context.Context) error {
		readings, err := r.readings(ctx, s, p.plan, ids)
		if err != nil {
			return err
		}
		climbed := clampsOf(p.plan, readings)
		leaves, err := leafTables(ctx, p.plan, readings, answers, climbed)
		if err != nil {
			return err
		}
		if rows, err = r.outside.query(ctx, s, p, leaves); err == nil && looksAtErrors(p.plan) && len(p.plan.Leaves) > 0 {
			rows, off, err = r.withErrors(ctx, s, p, ids, rows, climbed)
		}
		return err
	})
	return rows, off, err
}

// run does a part of a statement's work in one of its user's slots, or at once where it takes no longer than waiting
// for one.
func (r *reader) run(ctx context.Context, s *Session, quick bool, do func(context.Context) error) error {
	if quick {
		return do(ctx)
	}
	return r.outside.workers.Run(ctx, s.User, s.Policy.Server.Limits, do)
}

// readings are the saved releases of a plan's measures.
func (r *reader) readings(ctx context.Context, s *Session, plan *plans.Plan, ids []int64) ([]reading, error) {
	readings := make([]reading, len(plan.Measures))
	for i := range readings {
		var err error
		if readings[i], err = r.estimate(ctx, s, ids[i], plan.Measures[i].Through()); err != nil {
			return nil, err
		}
	}
	return readings, r.readSynthetic(ctx, s, plan, ids, readings)
}

// leafTables makes the released table of each leaf. It ends early when ctx does, and then says so.
func leafTables(ctx context.Context, plan *plans.Plan, readings []reading, answers runAnswers,
	climbed clamps) ([]sandbox.Table, error) {
	tables := make([]sandbox.Table, len(plan.Leaves))
	for i, leaf := range plan.Leaves {
		if leaf.Synthetic != nil {
			tables[i] = syntheticTable(leaf, readings[leaf.Synthetic.Measure].rows)
			continue
		}
		if measures := leaf.Measures(); len(measures) == 0 {
			tables[i] = publicLeaf(ctx, leaf)
		} else {
			tables[i] = leafTable(ctx, plan, leaf, readings, answers, climbed, readings[measures[0]].noisy)
		}
	}
	return tables, context.Cause(ctx)
}

// publicLeaf is a leaf that the policy alone answers: keys of a declared domain, counts of rows that cannot exist.
func publicLeaf(ctx context.Context, leaf *plans.Leaf) sandbox.Table {
	none := func(c *plans.CountColumn, row int) policy.Value {
		if run, _ := c.At(row); run != nil && run.Threshold != nil {
			return false
		}
		if c.Type != 0 {
			return nil
		}
		return int64(0)
	}
	return sandbox.Table{Name: leaf.Name, Rows: privacy.Published(leafRows(ctx, leaf, none))}
}

// leafTable sums the cells of each row. Estimates are themselves computed from releases, so all of it is
// post-processing.
func leafTable(ctx context.Context, plan *plans.Plan, leaf *plans.Leaf, readings []reading, answers runAnswers,
	climbed clamps, noisy privacy.Released[mechanisms.Noisy]) sandbox.Table {
	value := func(c *plans.CountColumn, row int) policy.Value {
		run, spans := c.At(row)
		switch {
		case run != nil && run.Ladder != nil:
			return climbedValue(run, c.In(run, row), climbed[run], readings)
		case run != nil && run.Threshold != nil:
			if answers[run] == nil || answers[run][0].Guessed {
				return nil
			}
			return answers[run][0].Value != 0
		case c.Type != 0 || run != nil && run.Selected != nil:
			return picked(c, row, readings, answers)
		case run == nil:
			return int64(0)
		case run.Off != nil:
			return climbed[run.Off].Width(run.Known)
		case run.Measure < 0:
			return run.Known
		case answers[run] != nil:
			return answers[run][c.In(run, row)].Value
		}
		if run.Mix != nil {
			return mixedValue(run.Mix[c.In(run, row)], readings)
		}
		n := readings[run.Measure].estimate.Sum(run.Counter, spans).Value()
		if run.Most > 0 {
			n = min(max(n, 0), run.Most)
		}
		return n
	}
	rows := privacy.PostProcess(noisy, func(mechanisms.Noisy) sandbox.Rows { return leafRows(ctx, leaf, value) })
	return sandbox.Table{Name: leaf.Name, Rows: rows}
}

// leafRows stops where ctx ends: its caller looks.
func leafRows(ctx context.Context, leaf *plans.Leaf, value func(c *plans.CountColumn, row int) policy.Value) sandbox.Rows {
	columns := leafColumns(leaf)
	data := make([][]policy.Value, leaf.Rows)
	cells := make([]policy.Value, leaf.Rows*len(columns))
	for r := range data {
		if ctx.Err() != nil {
			return sandbox.Rows{Columns: columns}
		}
		row := cells[r*len(columns) : (r+1)*len(columns) : (r+1)*len(columns)]
		for k := range leaf.Keys {
			row[k] = leaf.Keys[k].Values[r]
		}
		for c := range leaf.Counts {
			row[len(leaf.Keys)+c] = value(&leaf.Counts[c], r)
		}
		data[r] = row
	}
	return sandbox.Rows{Columns: columns, Data: data}
}

func leafColumns(leaf *plans.Leaf) []sandbox.Column {
	columns := make([]sandbox.Column, 0, len(leaf.Keys)+len(leaf.Counts))
	for _, k := range leaf.Keys {
		columns = append(columns, sandbox.Column{Name: k.Name, Type: k.Type, Typmod: k.Typmod})
	}
	for _, c := range leaf.Counts {
		column := sandbox.Column{Name: c.Name, Type: policy.Int8, Typmod: -1}
		if c.Type != 0 {
			column.Type = c.Type
			if c.Type == policy.Bpchar {
				column.Typmod = c.Typmod
			}
		}
		columns = append(columns, column)
	}
	return columns
}

// reading is a saved release as it is read; a choice has none.
type reading struct {
	estimate *mechanisms.Estimate
	noisy    privacy.Released[mechanisms.Noisy]
	rows     privacy.Released[[]int32] // of made-up rows: their cells
	asOf     int64                     // of the rows that it was drawn from; 0 means they were read live
}

// estimateCache keeps the readings of releases; the least-squares step of a large range release takes a millisecond.
type estimateCache struct {
	mu    sync.RWMutex
	byID  map[readingKey]reading
	cells int
}

// readingKey names a reading: of a release that grows, as it was when so many cells were closed; of others 0.
type readingKey struct {
	id      int64
	through int
}

// maxCachedCells bounds the cache: eight bytes a cell, some 100 MB.
const maxCachedCells = 1 << 23

// kept reports whether a release is read already.
func (c *estimateCache) kept(id int64) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, ok := c.byID[readingKey{id: id}]
	return ok
}

// estimate returns the reading of a release that the user has paid for.
func (r *reader) estimate(ctx context.Context, s *Session, id int64, through int) (reading, error) {
	c, key := &r.estimates, readingKey{id, through}
	c.mu.RLock()
	hit, ok := c.byID[key]
	c.mu.RUnlock()
	if ok {
		return hit, nil
	}
	release, err := r.releases.load(context.WithoutCancel(ctx), s, id)
	if err != nil {
		return reading{}, err
	}
	var e *mechanisms.Estimate
	seen, noisy := asOf(release, through)
	if spec := release.Item.Spec; mechanisms.Is[*mechanisms.Counts](spec) { // others are asked, or have rows
		e, err = mechanisms.NewEstimate(seen, noisy)
	} else if mechanisms.Is[*mechanisms.Choice](spec) {
		_, err = spec.Chosen(release.Noisy)
	}
	if err != nil {
		r.releases.log.ErrorContext(ctx, "saved release does not fit its description", "release", id, "error", err)
		return reading{}, errLedger
	}
	hit = reading{estimate: e, noisy: noisy, asOf: release.Item.AsOf}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cells > maxCachedCells || c.byID == nil {
		c.byID, c.cells = map[readingKey]reading{}, 0
	}
	c.byID[key] = hit
	c.cells += len(release.Noisy.Value().Observations)
	return hit, nil
}

// readSynthetic reads the cells of the made-up rows that a plan shows: those that a synthetic release drew, or those
// that the steps of an online release amount to.
func (r *reader) readSynthetic(ctx context.Context, s *Session, plan *plans.Plan, ids []int64, readings []reading) error {
	for _, leaf := range plan.Leaves {
		if leaf.Synthetic == nil {
			continue
		}
		i := leaf.Synthetic.Measure
		if !mechanisms.Is[*mechanisms.Online](plan.Measures[i].Spec) {
			readings[i].rows = privacy.PostProcess(readings[i].noisy, func(n mechanisms.Noisy) []int32 {
				cells := make([]int32, len(n.Observations))
				for k, c := range n.Observations {
					cells[k] = int32(c)
				}
				return cells
			})
			continue
		}
		release, err := r.releases.load(context.WithoutCancel(ctx), s, ids[i])
		if err != nil {
			return err
		}
		belief, err := release.Item.Spec.Believe(release.Steps)
		if err != nil {
			r.releases.log.ErrorContext(ctx, "steps of an online release cannot be read", "release", ids[i], "error", err)
			return errLedger
		}
		readings[i].rows = belief.Rows(leaf.Rows)
	}
	return nil
}

// syntheticTable is the released table of made-up rows.
func syntheticTable(leaf *plans.Leaf, cells privacy.Released[[]int32]) sandbox.Table {
	return sandbox.Table{Name: leaf.Name, Rows: privacy.PostProcess(cells, func(cells []int32) sandbox.Rows {
		data := make([][]policy.Value, 0, len(cells))
		for i, c := range cells {
			if values := leaf.Synthetic.Values(i, c); values != nil {
				data = append(data, values)
			}
		}
		return sandbox.Rows{Columns: leafColumns(leaf), Data: data}
	})}
}

// outside runs what is above the released tables: in Go where it is trivial, else in the sandbox.
type outside struct {
	engine  sandbox.Engine // nil: there is none
	workers *admission.Workers
	account *account
}

// try has the sandbox bind the outer query before anything is charged, so that what cannot run is refused for free, and
// run it over leaves of made-up numbers (describe.go), so that what fails whatever is released is refused for free too.
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
// their names. Columns of errors are between them.
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
