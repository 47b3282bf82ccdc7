package marginals

import "math"

// constraints returns, for each way in which neighbours can differ, the load of one unit of precision (1/σ²) of each
// residual of the closure, for a unit of one row. The observed residuals together are ρ-zCDP if for each of them
// Σ load·precision ≤ 2ρ/rows².
//
// Proof. Let δ be the difference of the neighbours' full cubes, and Q = Σ_a precision_a·(⊗P_i over a) ⊗ (1·1ᵀ outside
// of a), a positive semi-definite form. The rows B of residual a, of frame scale f, get discrete Gaussian noise of
// variance f·σ_a², and |B δ_a|² = f·δ_aᵀ(⊗P)δ_a. So the independent observations lose Σ |Bδ_a|²/(2fσ_a²) = δᵀQδ/2
// (Canonne, Kamath, Steinke 2020, Theorem 4, and composition).
//
// Add-remove: ±δ is in rows times the convex hull of 0 and the unit vectors. A convex function has its maximum at a
// vertex: rows²·Q_jj = rows²·Σ precision·Π(1 − 1/d_i), the same for every cell j.
// Replace-one: δ = x − y with x and y in that hull; at the vertices δ is 0, ±rows·e_j, as before, or rows·(e_j − e_k).
// Then δᵀQδ = 2·rows²·(Q_jj − Q_jk), and Q_jk depends on which attributes D of j and k differ: Σ precision·Π(1 − 1/d_i)
// over a, times Π −1/(d_i − 1) over a ∩ D. That product may be negative: twice the add-remove loss is not enough.
func (w Workload) constraints(replaceOne bool) [][]float64 {
	alone := make([]float64, len(w.closure))
	for i, a := range w.closure {
		alone[i] = w.domain.trace(a)
	}
	if !replaceOne {
		return [][]float64{alone}
	}
	all := [][]float64{alone}
	for differ := range w.union().subsets { // of MaxCubeAttributes at most
		if differ == 0 {
			continue
		}
		load := make([]float64, len(w.closure))
		for i, a := range w.closure {
			if a&differ != 0 {
				load[i] = 2 * alone[i] * (1 - w.domain.product(a&differ, func(n float64) float64 { return -1 / (n - 1) }))
			}
		}
		all = append(all, load)
	}
	return all
}

// margin covers the rounding of the loads: sums of at most 2^16 terms, none negative, each of at most 64 factors, with
// a relative error below 2^-36 altogether.
const margin = 1 + 0x1p-30

// worst returns the largest Σ load·precision, rounded up.
func worst(constraints [][]float64, precision []float64) float64 {
	most := 0.0
	for _, load := range constraints {
		sum := 0.0
		for i, p := range precision {
			sum += load[i] * p
		}
		most = math.Max(most, sum)
	}
	return most * margin
}
