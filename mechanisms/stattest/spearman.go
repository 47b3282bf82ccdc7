package stattest

import (
	"cmp"
	"math"
	"slices"
)

// Spearman is the rank correlation of two lists of one length, -1 to 1. With no relation its standard error is about
// 1/√n.
func Spearman(a, b []float64) float64 {
	x, y := ranks(a), ranks(b)
	mean := float64(len(a)-1) / 2
	cross, one, other := 0.0, 0.0, 0.0
	for i := range x {
		cross += (x[i] - mean) * (y[i] - mean)
		one += (x[i] - mean) * (x[i] - mean)
		other += (y[i] - mean) * (y[i] - mean)
	}
	return cross / math.Sqrt(one*other)
}

// ranks are the places in order; equal ones share the middle of theirs.
func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	out := make([]float64, len(values))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && values[order[j]] == values[order[i]] {
			j++
		}
		for k := i; k < j; k++ {
			out[order[k]] = float64(i+j-1) / 2
		}
		i = j
	}
	return out
}
