package choose

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// maxMarginalCells bounds the cells that all keys of a statement's sets make up together where marginals are
// considered.
const maxMarginalCells = 1 << 15

// cube asks for all cells of a leaf plan's keys; nil where they have no marginals.
func (v *LeafPlanner) cube(lp *LeafPlan, counters []int) *Request {
	a, refusal := v.plain(lp.Question, linear.UnitedAll(slices.Clone(lp.Sets)), counters)
	if refusal != nil || !a.Wanted() || a.Cells > maxMarginalCells || len(a.Factors) < 2 || v.Optimizer.Open != nil && len(v.Optimizer.Open.Wanted) > 0 ||
		slices.ContainsFunc(a.Factors, func(p *linear.Factor) bool { return p.Classes < 2 || len(p.Keys) == 0 }) {
		return nil
	}
	return a
}

// marginal asks for all sets of a leaf plan at once, by marginals of the cells of all their keys; nil where they cannot
// be measured so, or where what is asked for set by set is held, or has no larger error.
func (v *LeafPlanner) marginal(lp *LeafPlan, counters []int, best []*Request) (*Request, *refuse.Refusal) {
	if v.SetBySet || v.Optimizer.Context.Settings.MaxError > 0 || len(lp.Sets) < 2 {
		return nil, nil
	}
	quiet := LeafPlanner{Binder: v.Binder, Notes: new(semantics.Notes), Optimizer: v.Optimizer}
	a := quiet.cube(lp, counters)
	if a == nil {
		return nil, nil
	}
	m := a.marginalsOf(lp.Sets)
	if m == nil || !v.strategy(a, m) {
		return nil, nil
	}
	for s := range lp.Sets {
		a.Reads = append(a.Reads, s)
	}
	switch m.Gain = v.error(best) / a.weight; {
	case v.Optimizer.holds(a):
		return a, nil
	case m.Gain <= 1 || v.Optimizer.holdsAll(best):
		return nil, nil
	}
	v.Notes.AddAll(*quiet.Notes)
	return a, nil
}

// marginalsOf finds the rows of sets of keys among a request's cells.
func (a *Request) marginalsOf(sets []linear.Set) *linear.Marginals {
	m := &linear.Marginals{}
	sizes, at := make([]int, len(a.Factors)), make([]int, len(a.Factors))
	for i, p := range a.Factors {
		sizes[i] = p.Classes
	}
	for n, keys := range sets {
		if slices.ContainsFunc(sets[:n], func(other linear.Set) bool { return slices.Equal(other, keys) }) {
			continue
		}
		var own []int
		classes := make([][]int, len(a.Factors)) // by factor: the number of the values of the set's keys, by class
		for i, p := range a.Factors {
			var shown []int
			for place, k := range p.Keys {
				if slices.Contains(keys, a.set[k]) {
					shown = append(shown, place)
				}
			}
			if len(shown) == 0 {
				continue
			}
			own = append(own, i)
			classes[i] = make([]int, p.Classes)
			seen := map[string]int{}
			for class := range p.Classes {
				text := ""
				for _, place := range shown {
					text += semantics.KeyText(p.Values[class][place:place+1]) + "\x00"
				}
				if _, known := seen[text]; !known {
					seen[text] = len(seen)
				}
				classes[i][class] = seen[text]
			}
		}
		rows, order := map[int]*semantics.SpansOf{}, []int{}
		for cell := range a.Cells {
			linear.Decode(cell, sizes, at)
			row := 0
			for i, class := range at {
				if classes[i] != nil {
					row = row*sizes[i] + classes[i][class]
				}
			}
			if rows[row] == nil {
				rows[row], order = new(semantics.SpansOf), append(order, row)
			}
			rows[row].Add(cell)
		}
		for _, row := range order {
			m.Rows, m.Of = append(m.Rows, *rows[row]), append(m.Of, len(m.Sets))
		}
		m.Sets = append(m.Sets, own)
	}
	return m
}

// strategy finds the marginals with the least expected error; false where the cells themselves are better.
func (v *LeafPlanner) strategy(a *Request, m *linear.Marginals) bool {
	q := mechanisms.Cube{}
	for _, p := range a.Factors {
		q.Shape = append(q.Shape, p.Classes)
	}
	for i, rows := range m.Rows {
		q.Asked = append(q.Asked, mechanisms.Asked{Spans: rows, Attributes: m.Sets[m.Of[i]], Weight: 1})
	}
	list, err := q.Quick(a.Contribution(), v.Optimizer.Share(1))
	if err != nil {
		return false
	}
	best := slices.MinFunc(list, func(x, y mechanisms.Candidate) int { return cmp.Compare(x.Error, y.Error) })
	if best.Spec.Counts().Strategy.Kind != mechanisms.Marginals {
		return false
	}
	m.Strategy = best.Spec.Counts().Strategy
	a.Marginals = m
	spec, err := a.Fresh(v.Optimizer.Share(1))
	if err != nil {
		a.Marginals = nil
		return false
	}
	a.weight = 0
	for _, f := range a.Projections {
		if c := a.Counting[f.Counter]; c >= 0 {
			a.weight += a.WeightOf(c) * q.Error(spec.Only(c))
		}
	}
	return a.weight > 0 && !math.IsInf(a.weight, 1)
}

// holdsAll reports whether all requests are answered by what she has paid for.
func (ch *Optimizer) holdsAll(asks []*Request) bool {
	return ch.Context.Holdings != nil && !slices.ContainsFunc(asks, func(a *Request) bool { return a.Wanted() && !ch.holds(a) })
}

// holds reports whether a request is answered by what she has paid for.
func (ch *Optimizer) holds(a *Request) bool {
	quiet := *ch
	q := quiet.goalOf(a.Query, ch.Share(1))
	return q.refusal == nil && (least(quiet.again(q)) != nil || least(quiet.reuse(q)) != nil)
}
