package reuse

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// combines reports whether a measure's cells can stand in sums and differences: each of its columns is put into classes
// by itself, and what is counted of a unit does not depend on how the rows are grouped.
func (m *HeldMeasure) combines() bool {
	if m.Continual || m.Table.MaxGroups > 0 || m.Cells > maxStockedCells {
		return false
	}
	return !slices.ContainsFunc(m.Factors, func(p *linear.Factor) bool { return len(p.Columns) != 1 })
}

// maxStockedCells bounds the cells of a release that stands in sums and differences.
const maxStockedCells = 1 << 17

// maxConjuncts bounds the conditions of which each combination is looked up.
const maxConjuncts = 4

// Near lists the releases that the rows of a condition may be combined from, oldest first: those whose conditions are
// some of its own, or its own with the cells of one column changed, or its own turned about by the rules of AND, OR and
// NOT.
func (s *Views) Near(wanted predicate.Pred) []*View {
	s.mu.RLock()
	defer s.mu.RUnlock()
	parts := predicate.Conjuncts(wanted)
	columns, _ := predicate.Columns(wanted, nil)
	f := &finder{s: s, columns: ColumnsKey(PositionsOf(s.table, columns))}
	f.turned(parts)
	for _, some := range subsets(parts) {
		f.filter(predicate.All(some...))
		f.lines(some)
	}
	slices.SortFunc(f.found, func(a, b *View) int { return a.Order - b.Order })
	return f.found
}

// finder collects releases, each once.
type finder struct {
	s       *Views
	columns string
	found   []*View
	seen    map[*View]bool
}

func (f *finder) add(list []*View) {
	if f.seen == nil {
		f.seen = map[*View]bool{}
	}
	for _, s := range list {
		if !f.seen[s] {
			f.seen[s] = true
			f.found = append(f.found, s)
		}
	}
}

// lines adds the neighbours on the lines of conditions: with the cells of one of them changed, or one more.
func (f *finder) lines(parts []predicate.Pred) {
	rest := predicate.Encode(nil, predicate.All(parts...))
	var columns []*policy.Column
	for i, p := range parts {
		columns, _ = predicate.Columns(p, columns)
		if in, ok := p.(predicate.InCells); ok {
			if l := f.s.lines[lineKey(without(parts, i), in.Column)]; l != nil {
				f.add(l.near(in.Spans, in.Column.Domain.Size()))
			}
		}
	}
	for _, c := range f.s.table.Columns {
		if l := f.s.lines[string(append(predicate.EncodeText(nil, c.Name), rest...))]; l != nil && !slices.Contains(columns, c) {
			f.add(l.near(nil, c.Domain.Size()))
		}
	}
}

// maxColumnSets is how many sets of columns are looked at of one condition: those with the fewest columns that do not
// matter.
const maxColumnSets = 6

// filter adds the releases with a condition.
func (f *finder) filter(p predicate.Pred) {
	byColumns := f.s.byFilter[string(predicate.Encode(nil, p))]
	sets := make([]string, 0, len(byColumns))
	for set := range byColumns {
		sets = append(sets, set)
	}
	slices.SortFunc(sets, func(a, b string) int {
		if d := beside(a, f.columns) - beside(b, f.columns); d != 0 {
			return d
		}
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return slices.Compare([]byte(a), []byte(b))
	})
	for _, set := range sets[:min(len(sets), maxColumnSets)] {
		f.add(byColumns[set].all())
	}
}

// beside is how many columns of a set are not in another.
func beside(set, other string) (n int) {
	for i := 0; i < len(set); i += 2 {
		if !hasColumns(other, set[i:i+2]) {
			n++
		}
	}
	return n
}

// turned looks up NOT of the conditions and of each, and both sides of each OR, and the OR of each two.
func (f *finder) turned(parts []predicate.Pred) {
	f.filter(predicate.Not(predicate.All(parts...)))
	if len(parts) > maxConjuncts {
		return
	}
	for i, p := range parts {
		rest := without(parts, i)
		f.filter(predicate.All(append(slices.Clone(rest), predicate.Not(p))...))
		if or, ok := p.(predicate.AnyOf); ok && len(or) <= maxConjuncts {
			for _, some := range subsets(or) {
				f.filter(predicate.All(append(slices.Clone(rest), some...)...))
			}
		}
		for j := range i {
			others := without(rest, j)
			f.filter(predicate.All(append(others, predicate.Any(p, parts[j]))...))
		}
	}
}

// subsets are all subsets of a few conditions; of many those of none, one, all but one, and all.
func subsets(parts []predicate.Pred) (out [][]predicate.Pred) {
	if n := len(parts); n > maxConjuncts {
		out = append(out, nil, parts)
		for i := range parts {
			out = append(out, parts[i:i+1], without(parts, i))
		}
		return out
	}
	for bits := range 1 << len(parts) {
		var some []predicate.Pred
		for i, p := range parts {
			if bits>>i&1 == 1 {
				some = append(some, p)
			}
		}
		out = append(out, some)
	}
	return out
}
