package planner

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// measured tells whether anything has to be counted: a question without counts, or whose condition no row can satisfy, is
// answered from public facts.
func (s *solved) measured() bool { return !s.empty && len(s.counts) > 0 }

// rowOrder lists the question's cells in the order of their keys.
func (s *solved) rowOrder() []int {
	if s.empty && len(s.keys) > 0 {
		return nil
	}
	if s.empty {
		return []int{0}
	}
	order := make([]int, s.cells)
	for i := range order {
		order[i] = i
	}
	if len(s.keys) == 0 {
		return order
	}
	ranks := make([][]int, len(s.keys))
	for k := range s.keys {
		ranks[k] = s.ranks(k)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		for k := range ranks {
			if ranks[k] == nil {
				continue
			}
			if d := ranks[k][s.classOf(k, a)] - ranks[k][s.classOf(k, b)]; d != 0 {
				return d
			}
		}
		return 0
	})
	return order
}

// partOf is the part that decides key k, nil for a constant key.
func (s *solved) partOf(k int) (p *part, at int) {
	for _, p := range s.parts {
		if at := slices.Index(p.keys, k); at >= 0 {
			return p, at
		}
	}
	return nil, -1
}

// classOf is the class of key k's part in a cell of the question.
func (s *solved) classOf(k, cell int) int {
	for i := len(s.parts) - 1; i >= 0; i-- {
		p := s.parts[i]
		if slices.Contains(p.keys, k) {
			return cell % p.classes
		}
		cell /= p.classes
	}
	return 0
}

// keyValue is key k's value in a cell of the question.
func (s *solved) keyValue(k, cell int) policy.Value {
	p, at := s.partOf(k)
	if p == nil {
		v, _ := s.keys[k].Eval(nil)
		return v
	}
	return p.values[s.classOf(k, cell)][at]
}

// ranks orders the classes of key k: a bare column by its cells, so that 'other' and NULL come last, any other key by
// value, NULL last.
func (s *solved) ranks(k int) []int {
	p, at := s.partOf(k)
	if p == nil {
		return nil
	}
	e := s.keys[k]
	byClass := make([]int, p.classes)
	for i := range byClass {
		byClass[i] = i
	}
	compare := func(a, b policy.Value) int {
		switch {
		case a == nil && b == nil:
			return 0
		case a == nil:
			return 1
		case b == nil:
			return -1
		}
		return scalar.Compare(e.Type(), a, b)
	}
	if e.form == formColumn {
		d := s.table.Columns[e.cols[0]].Domain
		compare = func(a, b policy.Value) int {
			x, _ := d.Cell(a)
			y, _ := d.Cell(b)
			return x - y
		}
	}
	slices.SortStableFunc(byClass, func(a, b int) int { return compare(p.values[a][at], p.values[b][at]) })
	ranks := make([]int, p.classes)
	for i, class := range byClass {
		ranks[class] = i
		if i > 0 && compare(p.values[byClass[i-1]][at], p.values[class][at]) == 0 {
			ranks[class] = ranks[byClass[i-1]]
		}
	}
	return ranks
}
