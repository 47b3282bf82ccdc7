package choose

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// choices makes a leaf plan for each choice of each grouping set: what is asked are the argument's cells in each group.
func (v *LeafPlanner) choices(leaves []*LeafPlan) ([]*LeafPlan, *refuse.Refusal) {
	var out []*LeafPlan
	for i, lp := range leaves {
		for at, keys := range lp.Sets {
			for n, from := range lp.Question.Choices {
				own := lp.On(keys, nil, nil)
				own.Where = append(slices.Clone(own.Where), from.Where...)
				own.Keys = append(own.Keys, from.Arg)
				own.CounterFor(nil)
				s, refusal := linear.Solve(own, v.Binder.Env, v.Notes)
				if refusal != nil && refusal.ID == linear.TooManyCells.ID && len(own.Keys) == 1 {
					refusal = refusal.Hinting("Order by coarser values: floor(x / 100) for numbers, date_trunc('hour', t) for times.")
				}
				if refusal != nil {
					return nil, refusal
				}
				s.Asked = &linear.Chosen{Leaf: i, Set: at, Of: n, Kind: from.Kind, Shares: ascending(from.Shares)}
				a := &Request{Query: s, set: keys, Projections: []Projection{{0, 0, -1}}}
				if a.Wanted() {
					s.Group()
				}
				s.NoteBounds(v.Notes)
				out = append(out, &LeafPlan{Question: own, Requests: []*Request{a}})
			}
		}
	}
	return out, nil
}

// ascending sorts shares.
func ascending(shares []mechanisms.Share) []mechanisms.Share {
	out := slices.Clone(shares)
	slices.SortFunc(out, func(a, b mechanisms.Share) int { return int(a.Num*b.Den - b.Num*a.Den) })
	return out
}
