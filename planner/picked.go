package planner

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// choices makes a sheet for each choice of each grouping set: what is asked are the argument's cells in each group.
func (v *sheeter) choices(sheets []*sheet) ([]*sheet, *refuse.Refusal) {
	var out []*sheet
	for i, sh := range sheets {
		for at, keys := range sh.sets {
			for n, from := range sh.question.choices {
				own := sh.on(keys, nil, nil)
				own.where = append(slices.Clone(own.where), from.where...)
				own.keys = append(own.keys, from.arg)
				own.counterFor(nil)
				s, refusal := solve(own, v.b.env, v.notes)
				if refusal != nil && refusal.ID == tooManyCells.ID && len(own.keys) == 1 {
					refusal = refusal.Hinting("Order by coarser values: floor(x / 100) for numbers, date_trunc('hour', t) for times.")
				}
				if refusal != nil {
					return nil, refusal
				}
				s.chosen = &chosen{sheet: i, set: at, of: n, kind: from.kind, shares: ascending(from.shares)}
				a := &ask{solved: s, set: keys, fills: []fill{{0, 0, -1}}}
				if a.wanted() {
					s.group()
					s.tellRules(v.notes)
				}
				out = append(out, &sheet{question: own, asks: []*ask{a}})
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
