package planner

import (
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/policy"
)

// A key like date_trunc('month', t) is constant on long runs of cells, and rises from run to run. Where it does, the ends of
// the runs are looked for, and two years of hours take some hundred evaluations instead of 17,520.

// byRuns classifies the regular cells of a part over one ordered column whose keys are all monotone, and returns how many
// it has done: none where that is not so, or where a key fails or varies within a cell, which the walk over all cells finds.
func (v *solver) byRuns(p *part, seen map[string]int32) (done int) {
	if len(p.columns) != 1 || len(p.keys) == 0 || len(p.filters)+len(p.only) > 0 {
		return 0
	}
	c := v.table.Columns[p.columns[0]]
	if c.Open != nil || !c.Domain.Ordered() || c.Domain.Regular <= 16 {
		return 0
	}
	for _, k := range p.keys {
		if e := v.s.keys[k]; e.form == formColumn || !e.monotone || !v.box.calm(e, p.columns[0]) {
			return 0
		}
	}
	admitted, ok := p.admits(c)
	if !ok {
		return 0
	}
	f := &runFinder{v: v, p: p}
	if !f.between(f.at(0), f.at(c.Domain.Regular-1)) {
		return 0
	}
	for i, r := range f.found {
		to := c.Domain.Regular
		if i+1 < len(f.found) {
			to = f.found[i+1].cell
		}
		p.place(r.cell, to, r.values, seen, admitted)
	}
	return c.Domain.Regular
}

// admits tells which cells the part's conditions leave in sight; false where they are more than sets of cells.
func (p *part) admits(c *policy.Column) (admitted func(cell int) bool, ok bool) {
	in := []mechanisms.Span{{From: 0, To: c.Domain.Size()}}
	for _, q := range p.within {
		cells, ok := q.(InCells)
		if !ok {
			return nil, false
		}
		in = intersect(in, cells.Spans)
	}
	at := 0 // cells come in order
	return func(cell int) bool {
		for at < len(in) && in[at].To <= cell {
			at++
		}
		return at < len(in) && in[at].From <= cell
	}, true
}

// runStart is a cell, and the keys there.
type runStart struct {
	cell   int
	values []policy.Value
}

// runFinder finds the first cell of each run.
type runFinder struct {
	v      *solver
	p      *part
	found  []runStart
	failed bool
}

// at evaluates the keys in a cell, in which they must not vary.
func (f *runFinder) at(cell int) runStart {
	f.v.box.set(f.p.columns[0], cell)
	values, refusal := f.v.keysOf(f.p)
	f.failed = f.failed || refusal != nil
	return runStart{cell, values}
}

// between finds the runs from one cell to another, both of which have been evaluated. Keys that are equal at both ends are
// so in between.
func (f *runFinder) between(first, last runStart) bool {
	if f.failed {
		return false
	}
	equal := f.equal(first, last)
	if n := len(f.found); n == 0 || !f.equal(f.found[n-1], first) {
		f.found = append(f.found, first)
	}
	if equal || last.cell == first.cell+1 {
		if !equal {
			f.found = append(f.found, last)
		}
		return true
	}
	middle := f.at((first.cell + last.cell) / 2)
	return f.between(first, middle) && f.between(middle, last)
}

func (f *runFinder) equal(a, b runStart) bool {
	for i, k := range f.p.keys {
		if !same(f.v.s.keys[k].Type(), a.values[i], b.values[i]) {
			return false
		}
	}
	return true
}
