package planner

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// mostWidened bounds the combinations of cells that a widened measure is made of, so that planning stays quick. They are no more
// than a measure that is read back may have.
const mostWidened = 1 << 14

// widens tells whether the question is a count of rows by cells of columns whose values are all known.
func (s *solved) widens() bool {
	if s.summed() != nil || len(s.counts) != 1 || s.counts[0] != nil || s.first > 0 || s.perGroup > 0 || s.empty || s.marginals != nil {
		return false
	}
	for _, p := range s.parts {
		if p.masks[0] != nil {
			return false
		}
	}
	columns, onGrid := s.columns()
	return onGrid && !slices.ContainsFunc(columns, func(c *policy.Column) bool { return c.Open != nil })
}

// around makes the measure of all rows in which the question's cells are cells: the parts of its keys take in what their
// conditions leave out, and conditions that are not keys' become parts, of the finest cells that there is room for.
func (s *solved) around(most int) *solved {
	wide := &solved{question: &question{table: s.table}, counts: []predicate.Pred{nil}, sums: []*summand{nil}, values: []*values{nil}, cells: 1}
	conditions, ok := s.conditionsApart()
	if !ok {
		return nil
	}
	if slices.ContainsFunc(s.parts, func(p *part) bool { return p.told }) {
		return nil // of more cells than are widened
	}
	combinations := 1
	for _, p := range s.parts {
		combinations *= p.combinations()
		wide.parts = append(wide.parts, p.whole())
	}
	for _, c := range conditions {
		if combinations *= len(c.class); combinations > min(mostWidened, maxCells) {
			return nil
		}
		wide.parts = append(wide.parts, c)
	}
	if len(conditions) == 0 && !slices.ContainsFunc(s.parts, func(p *part) bool { return slices.Contains(p.class, -1) }) {
		return nil
	}
	sortParts(s.table, wide.parts)
	// Room goes to the parts with the fewest cells first: they are the likeliest to be asked for again.
	order := identityOf(len(wide.parts))
	slices.SortStableFunc(order, func(a, b int) int { return wide.parts[a].finest() - wide.parts[b].finest() })
	for _, p := range wide.parts {
		wide.cells *= p.classes + p.coarse()
		if wide.cells > most {
			return nil
		}
	}
	for _, i := range order {
		p := wide.parts[i]
		if room := wide.cells / (p.classes + p.coarse()) * p.finest(); room <= most {
			wide.cells = room
			p.fill(true)
		} else {
			p.fill(false)
		}
	}
	for _, p := range wide.parts {
		wide.grain = append(wide.grain, p.columns...)
	}
	return wide
}

// whole copies a part of keys, without what only the question's answer needs. What is left out is told apart by the keys
// that it would have.
func (p *part) whole() *part {
	return &part{columns: p.columns, sizes: p.sizes, cuts: p.cuts, ends: p.ends, class: slices.Clone(p.class), classes: p.classes, beyond: p.beyond, masks: make([][]bool, 1)}
}

// coarse is the number of cells that one more cell for all that is left out takes.
func (p *part) coarse() int {
	if slices.Contains(p.class, -1) {
		return 1
	}
	return 0
}

// finest is the number of cells with one for each number of what is left out.
func (p *part) finest() int {
	seen := map[int32]bool{}
	for i, class := range p.class {
		if class < 0 {
			seen[p.beyond[i]] = true
		}
	}
	return p.classes + len(seen)
}

// fill gives cells to the combinations that are left out: one for each number, or one for all.
func (p *part) fill(each bool) {
	first, seen := int32(p.classes), map[int32]int32{}
	for i, class := range p.class {
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
		p.class[i] = cell
	}
	p.classes += len(seen)
}

// conditionsApart makes parts of the conjuncts of the filter that the question's own parts do not decide; false where one
// reads a column of theirs and another.
func (s *solved) conditionsApart() (parts []*part, ok bool) {
	type group struct {
		columns []int
		preds   []predicate.Pred
	}
	var groups []group
	for _, q := range conjunctsOf(s.filter) {
		var at []int
		columns, _ := predicate.Columns(q, nil)
		for _, c := range columns {
			at = union(at, []int{columnIndex(s.table, c)})
		}
		if slices.ContainsFunc(s.parts, func(p *part) bool { return len(union(p.columns, at)) == len(p.columns) }) {
			continue // the part leaves these combinations out itself
		}
		if shares(s.grain, at) || len(at) == 0 {
			return nil, false
		}
		joined := group{at, []predicate.Pred{q}}
		rest := groups[:0:0]
		for _, g := range groups {
			if shares(g.columns, joined.columns) {
				joined = group{union(g.columns, joined.columns), append(g.preds, joined.preds...)}
			} else {
				rest = append(rest, g)
			}
		}
		groups = append(rest, joined)
	}
	for _, g := range groups {
		p := &part{columns: g.columns, classes: 1, masks: make([][]bool, 1)}
		sortParts(s.table, []*part{p})
		if !p.decide(s.table, g.preds) {
			return nil, false
		}
		parts = append(parts, p)
	}
	return parts, true
}

// decide puts the combinations that satisfy all conditions into cell 0, and the others nowhere yet; false where there are
// too many of them.
func (p *part) decide(t *policy.Table, conditions []predicate.Pred) bool {
	combinations := 1
	for _, c := range p.columns {
		p.sizes = append(p.sizes, t.Columns[c].Domain.Size())
		if combinations *= t.Columns[c].Domain.Size(); combinations > min(mostWidened, maxCells) {
			return false
		}
	}
	p.class = make([]int32, combinations)
	cells := make([]int, len(p.columns))
	for at := range p.class {
		decode(at, p.sizes, cells)
		for _, q := range conditions {
			if !predicate.Satisfied(q, func(c *policy.Column) int { return cells[slices.Index(p.columns, columnIndex(t, c))] }) {
				p.class[at] = -1
			}
		}
	}
	p.beyond = make([]int32, combinations)
	for i := range p.beyond {
		p.beyond[i] = int32(i)
	}
	if len(p.columns) == 1 {
		tile(t.Columns[p.columns[0]].Domain, p.class, p.beyond)
	}
	return slices.Contains(p.class, 0)
}
