package marginals

import "math"

// precisions returns precisions of the residuals with the least Σ loss/precision, up to a common factor.
//
// Claim: under add-remove no Gaussian matrix mechanism of that ρ has a smaller weighted sum of variances (Xiao, He,
// Zhang, Kifer 2023, ResidualPlanner). With v the loss and c the load of a residual, the least Σ v·σ² subject to Σ c/σ²
// ≤ 2ρ/rows² has σ² = √(c/v)·Σ√(v·c)·rows²/(2ρ), by Cauchy and Schwarz: (Σ√(v·c))² ≤ Σ v·σ²·Σ c/σ².
// TestResidualsAttainTheLowerBound. Under replace-one the loads of several patterns of differing attributes bind at
// once; multiplicative weights on the patterns find the least sum, and what they find is scaled to keep them all.
func (w Workload) precisions(constraints [][]float64) []float64 {
	duals := make([]float64, len(constraints))
	for i := range duals {
		duals[i] = 1 / float64(len(duals))
	}
	precision := make([]float64, len(w.closure))
	best, least := []float64(nil), math.Inf(1)
	rounds := 1
	if len(constraints) > 1 {
		rounds = 400
	}
	for range rounds {
		for i, a := range w.closure {
			price := 0.0
			for k, load := range constraints {
				price += duals[k] * load[i]
			}
			precision[i] = math.Sqrt(w.loss[a] / price)
		}
		most, sum := worst(constraints, precision), 0.0
		for i, a := range w.closure {
			sum += w.loss[a] / precision[i]
		}
		if sum*most < least {
			best, least = append(best[:0], precision...), sum*most
		}
		total := 0.0
		for k, load := range constraints {
			used := 0.0
			for i, p := range precision {
				used += load[i] * p
			}
			duals[k] = math.Max(duals[k]*used/most, 1e-9/float64(len(duals)))
			total += duals[k]
		}
		for k := range duals {
			duals[k] /= total
		}
	}
	return best
}
