package ranges

import (
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// EachCell is the workload of the cells themselves. Only Choose knows it: no strategy is better than the identity, for
// which both bounds of Optimise are attained.
const EachCell = AllPrefixes + 1

// Norm names the sensitivity that a noise is calibrated to.
type Norm uint8

// The norms. The zero value is invalid.
const (
	L1 Norm = 1 + iota // Laplace noise: its variance is in proportion to the L1 sensitivity squared
	L2                 // Gaussian noise: in proportion to the L2 sensitivity squared
)

// Goal is what a strategy is chosen for.
type Goal struct {
	Cells     int
	Workload  Workload
	Norm      Norm // what the noise is calibrated to
	Neighbors privacy.Neighbors
}

// Choose returns the description of the strategy with the least expected error of a goal, and that error, the mean
// variance over the workload. Variance tells the variance of an observation's noise when it is calibrated to the
// sensitivity of one row, or 0 if it cannot be. All candidates are compared by exact algebra:
//
//	the identity; the best tree of equally many children a node, weighted by a formula (docs/adr/0221 and 0222);
//	L1: the shipped p-identity strategy, if there is one for so many cells;
//	L2: sine for all ranges or cosine for prefixes, up to MaxConvolved cells, with as many bits as the noise allows.
//
// It returns the zero Description where no noise can be calibrated, and for a goal that is none.
func Choose(g Goal, variance func(privacy.Sensitivity) float64) (Description, float64) {
	if g.Workload < AllRanges || g.Workload > EachCell || g.Norm != L1 && g.Norm != L2 {
		return Description{}, 0
	}
	c := choice{goal: g, variance: variance}
	c.consider(Description{Kind: KindIdentity, Cells: g.Cells})
	if g.Workload == EachCell || g.Cells < 2 {
		return c.best, c.error
	}
	c.trees()
	if g.Norm == L1 {
		for _, d := range shipped(g.Cells, g.Workload) {
			c.consider(d)
		}
		return c.best, c.error
	}
	kind := KindSine
	if g.Workload == AllPrefixes {
		kind = KindCosine
	}
	for bits := maxBits; bits >= 16; bits -= 4 {
		if c.consider(Description{Kind: kind, Cells: g.Cells, Bits: bits, Version: 1}) {
			break
		}
	}
	return c.best, c.error
}

type choice struct {
	goal     Goal
	variance func(privacy.Sensitivity) float64
	best     Description
	error    float64
}

// consider compares a strategy with the best so far and reports whether its noise can be calibrated.
func (c *choice) consider(d Description) bool {
	s, err := Open(d)
	if err != nil {
		return false
	}
	v := c.variance(s.Sensitivity(c.goal.Neighbors))
	if !(v > 0) || math.IsInf(v, 1) {
		return false
	}
	mean := 1.0
	if c.goal.Workload != EachCell {
		mean = s.MeanVariance(c.goal.Workload)
	}
	if e := v * mean; c.best.Kind == 0 || e < c.error {
		c.best, c.error = d, e
	}
	return true
}

// trees considers the trees in which each node but the root has equally many children, up to four times as many as the
// root, with weights by level and without.
func (c *choice) trees() {
	for children := 2; (children-1)*(children-1) < 4*c.goal.Cells; children++ {
		d := Description{Kind: KindTree, Cells: c.goal.Cells, Radices: evenRadices(c.goal.Cells, children)}
		c.consider(d)
		d.Weights = levelWeights(d.Cells, d.Radices, c.goal.Workload)
		c.consider(d)
	}
}

// evenRadices returns the radices of the tree in which each node but the root has so many children.
func evenRadices(cells, children int) []int {
	below, block := []int{}, 1
	for block*children < cells {
		below, block = append(below, children), block*children
	}
	return append([]int{(cells + block - 1) / block}, below...)
}

// heaviest is the largest weight of a level that is chosen: rounding to 1/128 of it adds less than 1e-4 to the error.
const heaviest = 128

// levelWeights returns the weights by level, top first, with which a tree of these radices has the least mean variance
// over a workload in proportion to its L2 sensitivity squared, rounded to integers up to heaviest. Pure noise is in
// proportion to the L1 sensitivity; the same weights serve it to a tenth of a percent (docs/adr/0222).
//
// Derivation: let b(l) be the cells of a node of level l, from the top l = 1, and P(l) project a query to its means
// within these nodes, P(0) = 0. All nodes complete, the Gram matrix is Σ w(l)²·b(l)·P(l), which multiplies what P(k) −
// P(k−1) projects to by λ(k) = Σ w(l)²·b(l) over l ≥ k. So the variances of all queries q add up to Σ T(k)/λ(k), T(k) =
// Σ |(P(k) − P(k−1))q|². As w(l)² = (λ(l) − λ(l+1))/b(l), the squared sensitivity Σ w(l)² is Σ c(k)·λ(k), c(k) = 1/b(k)
// − 1/b(k−1), 1/b(0) = 0, and by Cauchy and Schwarz λ(k) is best in proportion to √(T(k)/c(k)). kept is Σ |Pq|² over
// all q for nodes of b cells, up to a factor: an end of a query i cells into a node loses i − i²/b. Where a last node
// is shorter the weights are near the best, and a level that should have none gets 1.
func levelWeights(cells int, radices []int, workload Workload) []int64 {
	d := float64(cells)
	kept := func(b float64) float64 {
		if workload == AllPrefixes {
			return 3*(d+1) - (b - 1/b)
		}
		return 2*(d+1)*(d+2) - (b-1/b)*(2*(d+1)-b)
	}
	exact, block, below := make([]float64, len(radices)), 1.0, 0.0
	for l := len(radices) - 1; l >= 0; l-- {
		above := block * float64(radices[l])
		t, c := kept(block), 1/block
		if l > 0 {
			t, c = t-kept(above), c-1/above
		}
		eigenvalue := math.Sqrt(t / c)
		exact[l] = math.Sqrt(max(0, eigenvalue-below) / block)
		block, below = above, eigenvalue
	}
	weights, most := make([]int64, len(radices)), slices.Max(exact)
	for l, w := range exact {
		weights[l] = max(1, int64(math.Round(w/most*heaviest)))
	}
	return weights
}

// shipped returns the strategy for pure accounting that is made of data of this package, if there is one.
func shipped(cells int, workload Workload) []Description {
	if cells < leastPIdentity || cells > MaxPIdentity {
		return nil
	}
	return []Description{{Kind: KindPIdentity, Cells: cells, Version: PIdentityVersion(workload)}}
}
