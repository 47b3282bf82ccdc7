package linear

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Measured reports whether anything has to be counted: a question without counts, or whose condition no row can
// satisfy, is answered from public facts.
func (s *Query) Measured() bool { return !s.Empty && len(s.Counts) > 0 }

// RowOrder lists the question's cells in the order of their keys.
func (s *Query) RowOrder() []int {
	if s.Empty && len(s.Keys) > 0 {
		return nil
	}
	if s.Empty {
		return []int{0}
	}
	order := semantics.IdentityOf(s.Cells)
	if len(s.Keys) == 0 {
		return order
	}
	ranks := make([][]int, len(s.Keys))
	for k := range s.Keys {
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

// Concealed are the columns because of which some groups of the question are not shown: see Solver.concealed.
func (s *Query) Concealed() (columns []*policy.Column) {
	for _, p := range s.Factors {
		if !slices.Contains(p.shown, false) {
			continue
		}
		for _, at := range p.Columns {
			if c := s.Table.Columns[at]; c.HiddenCell() >= 0 {
				columns = append(columns, c)
			}
		}
	}
	return columns
}

// ShownRows is RowOrder without the groups that the policy hides.
func (s *Query) ShownRows() []int {
	order := s.RowOrder()
	if len(s.Concealed()) == 0 {
		return order
	}
	return slices.DeleteFunc(order, func(cell int) bool {
		for i := len(s.Factors) - 1; i >= 0; i-- {
			p := s.Factors[i]
			if len(p.shown) > 0 && !p.shown[cell%p.Classes] {
				return true
			}
			cell /= p.Classes
		}
		return false
	})
}

// factorOf is the factor that decides key k, nil for a constant key.
func (s *Query) factorOf(k int) (p *Factor, at int) {
	for _, p := range s.Factors {
		if at := slices.Index(p.Keys, k); at >= 0 {
			return p, at
		}
	}
	return nil, -1
}

// classOf is the class of key k's factor in a cell of the question.
func (s *Query) classOf(k, cell int) int {
	for i := len(s.Factors) - 1; i >= 0; i-- {
		p := s.Factors[i]
		if slices.Contains(p.Keys, k) {
			return cell % p.Classes
		}
		cell /= p.Classes
	}
	return 0
}

// KeyValue is key k's value in a cell of the question.
func (s *Query) KeyValue(k, cell int) policy.Value {
	p, at := s.factorOf(k)
	if p == nil {
		v, _ := s.Keys[k].Eval(nil)
		return v
	}
	return p.Values[s.classOf(k, cell)][at]
}

// ranks orders the classes of key k: a bare column by its cells, so that 'other' and NULL come last, any other key by
// value, NULL last.
func (s *Query) ranks(k int) []int {
	p, at := s.factorOf(k)
	if p == nil {
		return nil
	}
	e, ranks := s.Keys[k], make([]int, p.Classes)
	if e.Form == semantics.FormColumn {
		for i := range ranks {
			ranks[i], _ = s.Table.Columns[e.Cols[0]].Domain.Cell(p.Values[i][at])
		}
		return ranks
	}
	byClass := semantics.IdentityOf(p.Classes)
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
	slices.SortStableFunc(byClass, func(a, b int) int { return compare(p.Values[a][at], p.Values[b][at]) })
	for i, class := range byClass {
		ranks[class] = i
		if i > 0 && compare(p.Values[byClass[i-1]][at], p.Values[class][at]) == 0 {
			ranks[class] = ranks[byClass[i-1]]
		}
	}
	return ranks
}
