package ranges

import (
	"math"
	"slices"
)

// Norm names the sensitivity that a noise is calibrated to.
type Norm uint8

// The norms. The zero value is invalid.
const (
	L1 Norm = 1 + iota // Laplace noise: its variance is in proportion to the L1 sensitivity squared
	L2                 // Gaussian noise: in proportion to the L2 sensitivity squared
)

// BestWeighted returns the radices and weights of the tree with the least expected error of a workload, noise of
// variance in proportion to the squared sensitivity, among those that it looks at: for L2 trees of even radices, for L1
// the best trees without weights of each depth, each with its best weights; and from the best every improvement by
// changing a radix. It needs at least 2 cells.
//
// For L2 deeper trees lose nothing, as the weights of levels that say little may be small, and binary trees have all of
// the levels that trees of radices 4, 8, … have. A weighted binary tree is also the Haar wavelet with weighted levels,
// except that the wavelet may weigh the total apart: both have as A'A a sum of projections on the levels' block means.
func BestWeighted(cells int, workload Workload, norm Norm) ([]int, []int64) {
	var starts []weighted
	if norm == L2 {
		for base := 2; base <= min(8, cells); base++ {
			starts = append(starts, newWeighted(cells, workload, norm, evenRadices(cells, base)))
		}
	} else {
		s := search{cells: cells, workload: workload, seen: map[string]bool{}}
		for _, c := range s.run(func(levels int) float64 { return float64(levels * levels) }).depths {
			starts = append(starts, newWeighted(cells, workload, norm, c.radices()))
		}
	}
	for i := range starts {
		starts[i].descend(rough)
	}
	slices.SortFunc(starts, func(a, b weighted) int { return compare(a.error, b.error) })
	best := starts[0]
	for _, w := range starts[:min(3, len(starts))] {
		w.move()
		if w.error < best.error {
			best = w
		}
	}
	best.descend(fine)
	best.prune()
	return best.radices, best.integers()
}

// prune leaves out levels whose weights are next to nothing.
func (w *weighted) prune() {
	for l := len(w.weights) - 2; l >= 0; l-- {
		if w.weights[l] > 1e-3*slices.Max(w.weights) {
			continue
		}
		below := slices.Delete(slices.Clone(w.radices), l, l+1)
		below[l] *= w.radices[l]
		next := *w
		next.radices = candidate{cells: w.cells, below: below[1:]}.radices()
		next.weights = slices.Delete(slices.Clone(w.weights), l, l+1)
		next.error = next.of(next.weights)
		next.descend(fine)
		if next.error < w.error*(1+1e-5) {
			*w = next
		}
	}
}

func compare(a, b float64) int {
	if a < b {
		return -1
	}
	return 1
}

// evenRadices returns the radices of a tree in which each node but the root has base children.
func evenRadices(cells, base int) []int {
	below := []int{}
	for block := base; block < cells; block *= base {
		below = append(below, base)
	}
	return candidate{cells: cells, below: below}.radices()
}

// weighted is a tree whose weights are being searched: real ones, in the tree in units of 1/scale.
type weighted struct {
	cells    int
	workload Workload
	norm     Norm
	radices  []int
	weights  []float64
	error    float64 // squared sensitivity times mean variance
}

func newWeighted(cells int, workload Workload, norm Norm, radices []int) weighted {
	w := weighted{cells: cells, workload: workload, norm: norm, radices: radices, weights: make([]float64, len(radices))}
	for l := range w.weights {
		w.weights[l] = 1
	}
	w.error = w.of(w.weights)
	return w
}

// scaled returns the weights as integers up to most.
func scaled(weights []float64, most float64) []int64 {
	top := slices.Max(weights)
	integers := make([]int64, len(weights))
	for l, x := range weights {
		integers[l] = max(1, int64(math.Round(x/top*most)))
	}
	return integers
}

// of returns the error with other weights.
func (w *weighted) of(weights []float64) float64 { return w.ofIntegers(scaled(weights, MaxWeight)) }

func (w *weighted) ofIntegers(weights []int64) float64 {
	t, err := NewWeightedTree(w.cells, w.radices, weights)
	if err != nil {
		return math.Inf(1)
	}
	return t.weightedError(w.workload, w.norm)
}

// weightedError returns the mean variance with noise of variance sensitivity².
func (t Tree) weightedError(workload Workload, norm Norm) float64 {
	l1, l2 := 0.0, 0.0
	for _, l := range t.levels {
		l1 += float64(l.weight)
		l2 += float64(l.weight) * float64(l.weight)
	}
	if norm == L1 {
		l2 = l1 * l1
	}
	return l2 * t.MeanVariance(workload)
}

// The factors that descend tries, each until it no longer helps.
var (
	rough = []float64{2, 1.3, 1.1, 1.03}
	fine  = []float64{1.2, 1.05, 1.02, 1.005, 1.002, 1.0005}
)

// descend changes one weight at a time by a factor, as long as the error falls. The error, as a function of the squared
// weights and of the sensitivity held at 1, is convex for L2 (it is the trace of an inverse), and near its minimum for
// L1.
func (w *weighted) descend(factors []float64) {
	for _, f := range factors {
		for better := true; better; {
			better = false
			for l := range w.weights {
				before := w.weights[l]
				for _, x := range []float64{before * f, before / f} {
					w.weights[l] = x
					if e := w.of(w.weights); e < w.error*(1-1e-12) {
						w.error, before, better = e, x, true
						break
					}
				}
				w.weights[l] = before
			}
		}
	}
}

// move changes one radix at a time, as long as the error falls, the weights following.
func (w *weighted) move() {
	for better := true; better; {
		better = false
		for i := 1; i < len(w.radices) && !better; i++ {
			for _, r := range []int{w.radices[i] - 1, w.radices[i] + 1} {
				below := slices.Clone(w.radices[1:])
				below[i-1] = r
				next := *w
				next.radices = candidate{cells: w.cells, below: below}.radices()
				next.weights = slices.Clone(w.weights)
				next.error = next.of(next.weights)
				if next.error < 1.01*w.error {
					next.descend(rough[2:])
				}
				if next.error < w.error*(1-1e-9) {
					*w, better = next, true
					break
				}
			}
		}
	}
}

// integers returns the smallest integer weights that lose less than a hundred-thousandth.
func (w *weighted) integers() []int64 {
	for most := 1.0; ; most *= 2 {
		if weights := scaled(w.weights, most); most >= MaxWeight || w.ofIntegers(weights) < w.error*(1+1e-5) {
			return weights
		}
	}
}
