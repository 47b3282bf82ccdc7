package main

// solve finds the secrets x in [0, 1] for which the counts of the sets come nearest to what was answered, in the sense
// of least squares, by projected gradient with momentum, and rounds them.
func solve(sets [][]bool, counts []float64) []bool {
	x, y := make([]float64, beds), make([]float64, beds)
	for i := range x {
		x[i], y[i] = 0.5, 0.5
	}
	// The gradient's Lipschitz constant is the largest eigenvalue of AᵀA, about m·n/4 + m/4 for random sets; twice that
	// is safe.
	step := 1 / (float64(len(sets)+1) * (beds + 1) / 2)
	const rounds = 3000
	for round := range rounds {
		gradient := make([]float64, beds)
		for j, set := range sets {
			miss := -counts[j]
			for i, in := range set {
				if in {
					miss += y[i]
				}
			}
			for i, in := range set {
				if in {
					gradient[i] += miss
				}
			}
		}
		momentum := float64(round) / float64(round+3)
		for i := range x {
			next := min(max(y[i]-step*gradient[i], 0), 1)
			y[i] = next + momentum*(next-x[i])
			x[i] = next
		}
	}
	guess := make([]bool, beds)
	for i := range guess {
		guess[i] = x[i] > 0.5
	}
	return guess
}
