package linear

import (
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// maxWidened bounds the combinations of cells that a widened measure is made of, so that planning stays quick. They are
// no more than a measure that is read back may have.
const maxWidened = 1 << 14

// Widens reports whether the question is a count of rows by cells of columns whose values are all known.
func (s *Query) Widens() bool {
	if s.Summed() != nil || len(s.Counts) != 1 || s.Counts[0] != nil || s.Asked.(Counted).First > 0 || s.PerGroup > 0 || s.Empty || s.Marginals != nil {
		return false
	}
	for _, p := range s.Factors {
		if p.Masks[0] != nil {
			return false
		}
	}
	columns, onGrid := s.Columns()
	return onGrid && !slices.ContainsFunc(columns, func(c *policy.Column) bool { return c.Open != nil })
}

// Around makes the measure of all rows in which the question's cells are cells: the factors of its keys take in what
// their conditions leave out, and conditions that are not keys' become factors, of the finest cells that there is room
// for.
func (s *Query) Around(most int) *Query {
	wide := Identity(s.Table, nil)
	conditions, ok := s.conditionsApart()
	if !ok {
		return nil
	}
	if slices.ContainsFunc(s.Factors, func(p *Factor) bool { return p.PiecesInSQL }) {
		return nil // of more cells than are widened
	}
	combinations := 1
	for _, p := range s.Factors {
		combinations *= p.combinations()
		wide.Factors = append(wide.Factors, p.whole())
	}
	for _, c := range conditions {
		if combinations *= len(c.Class); combinations > min(maxWidened, plans.MaxCells) {
			return nil
		}
		wide.Factors = append(wide.Factors, c)
	}
	if len(conditions) == 0 && !slices.ContainsFunc(s.Factors, func(p *Factor) bool { return slices.Contains(p.Class, -1) }) {
		return nil
	}
	sortFactors(s.Table, wide.Factors)
	// Room goes to the factors with the fewest cells first: they are the likeliest to be asked for again.
	order := semantics.IdentityOf(len(wide.Factors))
	slices.SortStableFunc(order, func(a, b int) int { return wide.Factors[a].finestCells() - wide.Factors[b].finestCells() })
	for _, p := range wide.Factors {
		wide.Cells *= p.Classes + p.coarse()
		if wide.Cells > most {
			return nil
		}
	}
	for _, i := range order {
		p := wide.Factors[i]
		if room := wide.Cells / (p.Classes + p.coarse()) * p.finestCells(); room <= most {
			wide.Cells = room
			p.fill(true)
		} else {
			p.fill(false)
		}
	}
	for _, p := range wide.Factors {
		p.renumber()
		wide.Grain = append(wide.Grain, p.Columns...)
	}
	return wide
}

// whole copies a factor of keys, without what only the question's answer needs. What is left out is distinguished by
// the keys that it would have.
func (p *Factor) whole() *Factor {
	return &Factor{Columns: p.Columns, Sizes: p.Sizes, Cuts: p.Cuts, Ends: p.Ends, Class: slices.Clone(p.Class), Classes: p.Classes, beyond: p.beyond, Masks: make([][]bool, 1)}
}

// coarse is the number of cells that one more cell for all that is left out takes.
func (p *Factor) coarse() int {
	if slices.Contains(p.Class, -1) {
		return 1
	}
	return 0
}

// finestCells is the number of cells with one for each number of what is left out.
func (p *Factor) finestCells() int {
	seen := map[int32]bool{}
	for i, class := range p.Class {
		if class < 0 {
			seen[p.beyond[i]] = true
		}
	}
	return p.Classes + len(seen)
}

// fill gives cells to the combinations that are left out: one for each number, or one for all.
func (p *Factor) fill(each bool) {
	first, seen := int32(p.Classes), map[int32]int32{}
	for i, class := range p.Class {
		if class >= 0 {
			continue
		}
		number := p.beyond[i]
		if !each {
			number = 0
		}
		cell, known := seen[number]
		if !known {
			cell = first + int32(len(seen))
			seen[number] = cell
		}
		p.Class[i] = cell
	}
	p.Classes += len(seen)
}

// renumber numbers cells in the order in which they first come, whichever of them was asked for: `a = 0` and `a = 7`
// make one measure, so that a dashboard's panels that are asked at one moment are one charge.
func (p *Factor) renumber() {
	numbers := map[int32]int32{}
	for i, class := range p.Class {
		number, known := numbers[class]
		if !known {
			number = int32(len(numbers))
			numbers[class] = number
		}
		p.Class[i] = number
	}
}

// conditionsApart makes factors of the conjuncts of the filter that the question's own factors do not decide; false
// where one reads a column of theirs and another.
func (s *Query) conditionsApart() (parts []*Factor, ok bool) {
	type group struct {
		columns []int
		preds   []predicate.Pred
	}
	var groups []group
	for _, q := range predicate.Conjuncts(s.Filter) {
		var at []int
		columns, _ := predicate.Columns(q, nil)
		for _, c := range columns {
			at = semantics.Union(at, []int{plans.ColumnIndex(s.Table, c)})
		}
		if slices.ContainsFunc(s.Factors, func(p *Factor) bool { return len(semantics.Union(p.Columns, at)) == len(p.Columns) }) {
			continue // the factor leaves these combinations out itself
		}
		if shares(s.Grain, at) || len(at) == 0 {
			return nil, false
		}
		joined := group{at, []predicate.Pred{q}}
		rest := groups[:0:0]
		for _, g := range groups {
			if shares(g.columns, joined.columns) {
				joined = group{semantics.Union(g.columns, joined.columns), append(g.preds, joined.preds...)}
			} else {
				rest = append(rest, g)
			}
		}
		groups = append(rest, joined)
	}
	for _, g := range groups {
		p := &Factor{Columns: g.columns, Classes: 1, Masks: make([][]bool, 1)}
		sortFactors(s.Table, []*Factor{p})
		if !p.decide(s.Table, g.preds) {
			return nil, false
		}
		parts = append(parts, p)
	}
	return parts, true
}

// decide puts the combinations that satisfy all conditions into cell 0, and the others nowhere yet; false where there
// are too many of them.
func (p *Factor) decide(t *policy.Table, conditions []predicate.Pred) bool {
	combinations := 1
	for _, c := range p.Columns {
		p.Sizes = append(p.Sizes, t.Columns[c].Domain.Size())
		if combinations *= t.Columns[c].Domain.Size(); combinations > min(maxWidened, plans.MaxCells) {
			return false
		}
	}
	p.Class = make([]int32, combinations)
	cells := make([]int, len(p.Columns))
	for at := range p.Class {
		Decode(at, p.Sizes, cells)
		for _, q := range conditions {
			if !predicate.Satisfied(q, func(c *policy.Column) int { return cells[slices.Index(p.Columns, plans.ColumnIndex(t, c))] }) {
				p.Class[at] = -1
			}
		}
	}
	p.beyond = make([]int32, combinations)
	for i := range p.beyond {
		p.beyond[i] = int32(i)
	}
	if len(p.Columns) == 1 {
		tile(t.Columns[p.Columns[0]].Domain, p.Class, p.beyond)
	}
	return slices.Contains(p.Class, 0)
}

// Queries whose cells are closed one by one: SELECT day, count(*) FROM visits GROUP BY day over a table to which rows
// are only added is read from a continual release up to the last day that is closed.

// Seen is the Spec of what can be read of a release of such a measure.
func (s *Query) Seen(spec mechanisms.Spec) mechanisms.Spec {
	if s.Continual {
		return spec.Through(s.Closed)
	}
	return spec
}

// Sold gives a measure the Spec of its release.
func (s *Query) Sold(m *plans.Measure, spec mechanisms.Spec) {
	if m.Spec = s.Seen(spec); s.Continual {
		m.Continual = &plans.Continual{Spec: spec, Through: s.Closed}
	}
}

// Unclosed is the note of days that a reading leaves out.
func (s *Query) Unclosed() string {
	a := s.Table.Appends
	c := a.Column
	return "rows of which " + c.Name + " is " + policy.FormatValue(c.Type, c.Domain.Low(s.Closed)) + " or later are left out: a day closes " + closesText(a.Closes) + " after its end (UTC)"
}

func closesText(d time.Duration) string {
	if d%(24*time.Hour) == 0 {
		return predicate.Text(int64(d/(24*time.Hour))) + " d"
	}
	if d%time.Hour == 0 {
		return predicate.Text(int64(d/time.Hour)) + " h"
	}
	return d.String()
}
