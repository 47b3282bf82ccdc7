package ranges

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// coarse is the share of the variance that Coarsen lets each group add to it.
const coarse = 4e-4

// Coarsen groups the terms of a reading into few, so that half-widths are quick to find.
//
// Claim: with X the sum of the terms and Y that of the coarse ones, over independent integer noise that is symmetric and
// not more likely the further from 0 (discrete Laplace and Gaussian), P(|X| ≥ a+extra) ≤ P(|Y| ≥ a) for every a. The
// variance of Y is above that of X by a share of at most 4e-4 for each coarse term, of which there are some tens.
// Proof: Y has the greatest weight of a group in place of each. Let U be uniform on ±½, for each noise N its own. N+U has
// a density that is symmetric and falls from 0, and so have w(N+U) and sums of such (Wintner 1938). For symmetric
// falling densities, P(|V+W| ≥ a) grows when V is scaled up (Birnbaum 1948, Theorem 1). And X differs from the sum of
// the w(N+U) by at most Σ|w|/2, Y likewise by half of its sum of weights: extra is both together.
func Coarsen(terms []noise.Term) (few []noise.Term, extra float64) {
	sorted := slices.Clone(terms)
	total := 0.0
	for i, t := range sorted {
		sorted[i].Weight = math.Abs(t.Weight)
		total += t.Weight * t.Weight * float64(t.Count)
		extra += sorted[i].Weight * float64(t.Count) / 2
	}
	slices.SortFunc(sorted, func(a, b noise.Term) int { return cmp.Compare(b.Weight, a.Weight) })
	gained := 0.0
	for _, t := range sorted {
		if n := len(few); n > 0 {
			w := few[n-1].Weight
			more := (w*w - t.Weight*t.Weight) * float64(t.Count)
			if gained += more; gained <= coarse*total {
				few[n-1].Count += t.Count
				continue
			}
		}
		few, gained = append(few, t), 0
	}
	for _, t := range few {
		extra += t.Weight * float64(t.Count) / 2
	}
	return few, extra
}
