package ranges

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/internal/memo"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
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

// Kind names a family of strategies.
type Kind uint8

// The kinds. The zero value is invalid. Identity is also the Tree of one level; it has a kind because it needs no
// strategy at all.
const (
	KindIdentity      Kind = 1 + iota // each cell once
	KindTree                          // the nodes of a mixed-radix tree, weighted by level: Radices, Weights
	KindPIdentity                     // the shipped p-identity strategy of so many cells: Version
	KindSine                          // square root of the all-ranges Gram matrix, columns normalised: Bits, Version
	KindCosine                        // square root of the prefix Gram matrix, columns normalised: Bits, Version
	_                                 // was a square-root Toeplitz matrix, columns normalised: nothing was released by it
	KindMatrix                        // a given integer matrix: Matrix
	KindMarginals                     // marginals of a cube, weighted: Radices, Marginals; see package marginals
	KindProduct                       // the Kronecker product of strategies: Factors; see package marginals
	KindContinualTree                 // the complete nodes of a tree over cells that come one by one: Radices
	KindContinualRoot                 // square-root Toeplitz matrix within a band, for the same: Radices, Bits
)

func (k Kind) String() string {
	names := []string{"", "identity", "tree", "p-identity", "sine", "cosine", "", "matrix", "marginals", "product",
		"continual tree", "continual square root"}
	if int(k) < len(names) && k > 0 {
		return names[k]
	}
	return "unknown strategy"
}

// Description determines a strategy for ever: two that are equal open as the same integer matrix, whatever the machine
// and the release of this package. Fields that a kind does not name are zero.
type Description struct {
	Kind    Kind
	Cells   int
	Radices []int   // Tree: the branching factors from the root down; ContinualTree: from the top level down, none but cells if empty; ContinualRoot: the band
	Weights []int64 // Tree: what each level's counts are multiplied by; nil means all 1
	Bits    int     // Sine, Cosine: the longest column of the integer matrix is about 2^Bits long; ContinualRoot: its largest entry
	Version int     // PIdentity, Sine, Cosine: of the recipe or the shipped data, from 1
	Matrix  []int64 // Matrix: row by row

	// Marginals: the cells are those of a cube whose attributes have Radices cells each, the last one's fastest.
	Marginals []Marginal
	Factors   []Description // Product: of consecutive attributes, the last factor's cells fastest
}

// Marginal is what is observed of one marginal of a cube: its cells, or the rows of its residual, times a weight.
type Marginal struct {
	Attributes uint64 // bit i is attribute i; none means the total
	Residual   bool
	Weight     int64
}

// Open returns the strategy that d describes, but those of cubes, which package marginals opens. Those that take long
// to make are remembered for the process.
func Open(d Description) (Strategy, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	switch d.Kind {
	case KindIdentity:
		if d.Cells == 1 {
			return single, nil
		}
		return known(NewTree(d.Cells, []int{d.Cells}))
	case KindTree:
		return known(NewWeightedTree(d.Cells, d.Radices, d.Weights))
	case KindSine, KindCosine:
		if d.Version != 1 {
			return nil, fmt.Errorf("version of strategy %s is %d, must be 1", d.Kind, d.Version)
		}
		return known(opened.Try(convolutionKey{d.Kind, d.Cells, d.Bits}, d.Cells, func() (*convolution, error) { return newConvolution(d.Kind, d.Cells, d.Bits) }))
	case KindPIdentity:
		return known(pIdentityOf(d.Cells, d.Version))
	case KindMatrix:
		return known(newMatrix(d.Cells, d.Matrix))
	case KindContinualTree:
		return known(newClosedTree(d.Cells, d.Radices))
	case KindContinualRoot:
		return known(newBand(d.Cells, d.Radices, d.Bits))
	}
	return nil, fmt.Errorf("strategy is %d, must be one that this version knows", d.Kind)
}

// single observes one cell.
var single = Tree{cells: 1, levels: []level{{
	block: 1, count: 1, weight: 1, full: node{own: 1, variance: 1}, last: node{own: 1, variance: 1},
}}, root: children{full: 1, sum: 1}}

// known drops a strategy that came with an error.
func known[S Strategy](s S, err error) (Strategy, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// opened remembers convolutions by the number of their cells, each of which takes some 150 bytes.
var opened = memo.Map[convolutionKey, *convolution]{Most: 1 << 18}

type convolutionKey struct {
	kind        Kind
	cells, bits int
}

// Check refuses fields that the kind does not use: they would make two names of one strategy.
func (d Description) Check() error {
	uses := func(used bool, name string, kinds ...Kind) error {
		if !used {
			return nil
		}
		for _, k := range kinds {
			if d.Kind == k {
				return nil
			}
		}
		return fmt.Errorf("%s of strategy %s is given, must be absent", name, d.Kind)
	}
	return errors.Join(
		uses(d.Radices != nil, "radices", KindTree, KindMarginals, KindContinualTree, KindContinualRoot),
		uses(d.Weights != nil, "weights", KindTree),
		uses(d.Bits != 0, "bits", KindSine, KindCosine, KindContinualRoot),
		uses(d.Version != 0, "version", KindPIdentity, KindSine, KindCosine),
		uses(d.Matrix != nil, "matrix", KindMatrix),
		uses(d.Marginals != nil, "marginals", KindMarginals),
		uses(d.Factors != nil, "factors", KindProduct),
	)
}

// Strategy is a linear strategy made exact: an integer matrix B with a row for each observation and a column for each
// cell. Released are the exact integers B·x plus independent integer noise on each; everything else is post-processing.
// Implementations are immutable and safe for concurrent use.
//
// Claim: with one unit's rows changing the cells by a vector d of integers, B·x changes by B·d, and Sensitivity bounds
// |B·d|₁ and |B·d|₂² for a unit of one row. For a unit of up to R rows, |B·d| is a convex function on the polytope whose
// corners are R times the changes of one row, hence at most R times (L2²: R² times) as large. Real-valued matrices that
// B was rounded from play no part: the norms are computed from the integers of B, in integers.
type Strategy interface {
	// Cells returns the number of columns of B.
	Cells() int
	// Observations returns the number of rows of B.
	Observations() int
	// Sensitivity returns the largest norms of the change of B·x by one row: of a column of B (add-remove), and of a
	// column and of a difference of two columns (replace-one). They are exact, or bounds from above.
	Sensitivity(neighbors privacy.Neighbors) privacy.Sensitivity
	// Observe returns B·x for the cells x, each taken into [0, MaxObserved] first and each result into ±MaxObserved at
	// last. Neither step brings two vectors further apart, so that Sensitivity holds for all inputs. Its result is as
	// private as the cells.
	Observe(cells []int64) []int64
	// Fit returns the least-squares reading of the cells from noisy observations.
	Fit(observations []int64) []float64
	// Variance returns the variance of the least-squares reading of the sum of the cells in spans (disjoint, sorted,
	// within the cells), in units of the variance of one observation's noise.
	Variance(spans []Span) float64
	// Terms returns that reading as a weighted sum of observations' noise: Σ Count·Weight² is Variance. There are as
	// many as observations at most.
	Terms(spans []Span) []noise.Term
	// MeanVariance returns the mean of Variance over the workload's queries.
	MeanVariance(workload Workload) float64
}

// MaxObserved bounds what a strategy observes before noise.
const MaxObserved = 1 << 61

// Workload is a set of sums of consecutive cells whose mean error is to be small.
type Workload uint8

// The workloads. The zero value is invalid.
const (
	AllRanges   Workload = 1 + iota // the D·(D+1)/2 ranges
	AllPrefixes                     // the D prefixes, from one cell to all of them: the cumulative distribution
)

func (w Workload) String() string {
	switch w {
	case AllRanges:
		return "all ranges"
	case AllPrefixes:
		return "prefixes"
	}
	return "unknown workload"
}

// queries returns the number of queries over so many cells.
func (w Workload) queries(cells int) float64 {
	if w == AllPrefixes {
		return float64(cells)
	}
	return float64(cells) * float64(cells+1) / 2
}
