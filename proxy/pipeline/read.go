package pipeline

import (
	"context"
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// leafInputs is what the leaves of a plan are made of beside saved releases, and what the statement's notice is to tell of it.
type leafInputs struct {
	answers runAnswers
	told    []string
}

// read asks the releases of a plan that are asked.
func (a *Answerer) read(ctx context.Context, x *execution, plan *plans.Plan, ids []int64) (leafInputs, error) {
	answers, err := a.askSessions(ctx, x, plan, ids)
	if err != nil {
		return leafInputs{}, err
	}
	alarms, told, err := a.askAlarms(ctx, x, plan, ids)
	if err != nil {
		return leafInputs{}, err
	}
	if answers == nil {
		answers = alarms
	} else {
		answers.add(alarms)
	}
	return leafInputs{answers, append(a.onlineParts(ctx, x.Session, plan, ids, answers), told...)}, nil
}

// rows are an answer's, made of what was released: the tables of the leaves, and the outer query over them.
func (a *Answerer) rows(ctx context.Context, s *Session, p compiled, ids []int64, in leafInputs) (rows privacy.Released[sandbox.Rows], err error) {
	err = a.run(ctx, s, p.quick, func(ctx context.Context) error {
		readings, err := a.readings(ctx, s, p.plan, ids)
		if err != nil {
			return err
		}
		leaves, err := leafTables(ctx, p.plan, readings, in.answers)
		if err != nil {
			return err
		}
		if rows, err = a.postProcess(ctx, s, p, leaves); err == nil && p.plan.WantsErrors() && len(p.plan.Leaves) > 0 {
			rows, err = a.withErrors(ctx, s, p, ids, rows)
		}
		return err
	})
	return rows, err
}

// run does a part of a statement's work in one of its user's slots, or at once where it takes no longer than waiting for one.
func (a *Answerer) run(ctx context.Context, s *Session, quick bool, do func(context.Context) error) error {
	if quick {
		return do(ctx)
	}
	return a.workers.Run(ctx, s.User, s.Policy.Server.Limits, do)
}

// readings are the saved releases of a plan's measures.
func (a *Answerer) readings(ctx context.Context, s *Session, plan *plans.Plan, ids []int64) ([]reading, error) {
	readings := make([]reading, len(plan.Measures))
	for i := range readings {
		var err error
		through := 0
		if g := plan.Measures[i].Continual; g != nil {
			through = g.Through
		}
		if readings[i], err = a.estimate(ctx, s, ids[i], through); err != nil {
			return nil, err
		}
	}
	return readings, a.readSynthetic(ctx, s, plan, ids, readings)
}

// leafTables makes the released table of each leaf. It ends early when ctx does, and then says so.
func leafTables(ctx context.Context, plan *plans.Plan, readings []reading, answers runAnswers) ([]sandbox.Table, error) {
	tables := make([]sandbox.Table, len(plan.Leaves))
	for i, leaf := range plan.Leaves {
		if leaf.Synthetic != nil {
			tables[i] = syntheticTable(leaf, readings[leaf.Synthetic.Measure].rows)
			continue
		}
		if measures := leaf.Measures(); len(measures) == 0 {
			tables[i] = publicLeaf(ctx, leaf)
		} else {
			tables[i] = leafTable(ctx, leaf, readings, answers, readings[measures[0]].noisy)
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

// leafTable sums the cells of each row. Estimates are themselves computed from releases, so all of it is post-processing.
func leafTable(ctx context.Context, leaf *plans.Leaf, readings []reading, answers runAnswers, noisy privacy.Released[mechanisms.Noisy]) sandbox.Table {
	value := func(c *plans.CountColumn, row int) policy.Value {
		run, spans := c.At(row)
		switch {
		case run != nil && run.Threshold != nil:
			if answers[run] == nil || answers[run][0].Guessed {
				return nil
			}
			return answers[run][0].Value != 0
		case c.Type != 0 || run != nil && run.Selected != nil:
			return picked(c, row, readings)
		case run == nil:
			return int64(0)
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

// postProcess runs the outer query over the released tables: in Go where it is trivial, else in the sandbox.
func (a *Answerer) postProcess(ctx context.Context, s *Session, p compiled, leaves []sandbox.Table) (privacy.Released[sandbox.Rows], error) {
	plan := p.plan
	if d := plan.Outer.Direct; d != nil {
		input := privacy.Published(sandbox.Rows{Data: [][]policy.Value{nil}})
		if d.Leaf >= 0 {
			input = leaves[d.Leaf].Rows
		}
		return sandbox.Direct(ctx, d, outColumns(plan), input)
	}
	awaitGrid(ctx) // the sandbox has a clock
	own, err := a.ownTables(ctx, s, plan)
	if err != nil {
		return privacy.Released[sandbox.Rows]{}, err
	}
	var rows privacy.Released[sandbox.Rows]
	err = a.workers.Ask(ctx, s.Policy.Server.Limits, sandboxSession(s, plan), func(session sandbox.Session) (err error) {
		rows, err = a.engine.Query(ctx, session, p.outer, slices.Concat(own, p.copies, leaves))
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
	return sandbox.Session{Zone: s.Settings.Zone, Literals: plan.Outer.Literals, User: s.User, Database: s.Database, PID: s.PID, Settings: s.Settings.Variables, Cursors: s.Cursors, Prepared: s.Prepared, Clients: s.Clients}
}

// reading is a saved release as it is read; a choice has none.
type reading struct {
	estimate *mechanisms.Estimate
	noisy    privacy.Released[mechanisms.Noisy]
	rows     privacy.Released[[]int32] // of made-up rows: their cells
	asOf     int64                     // of the rows that it was drawn from; 0: they were read live
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

// kept tells whether a release is read already.
func (c *estimateCache) kept(id int64) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, ok := c.byID[readingKey{id: id}]
	return ok
}

// estimate returns the reading of a release that the user has paid for.
func (a *Answerer) estimate(ctx context.Context, s *Session, id int64, through int) (reading, error) {
	c, key := &a.estimates, readingKey{id, through}
	c.mu.RLock()
	hit, ok := c.byID[key]
	c.mu.RUnlock()
	if ok {
		return hit, nil
	}
	release, err := a.load(context.WithoutCancel(ctx), s, id)
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
		a.log.ErrorContext(ctx, "saved release does not fit its description", "release", id, "error", err)
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
