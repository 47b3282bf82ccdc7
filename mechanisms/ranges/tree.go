// Package ranges knows the strategies by which ordered cells are observed: integer matrices with their exact
// sensitivity, the least-squares reading of their noisy observations, the exact error of any sum of cells read so, and
// which strategy has the least. It works with unit noise and sees no privacy parameter; true counts pass through
// Observe alone.
package ranges

import (
	"fmt"
	"math/bits"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Tree observes every node of a tree over the cells 0 to Cells−1 except for its root. A node of level l covers a block
// of as many cells as the radices after l multiply to; the last node of a level covers what is left, and nodes beyond
// the last cell do not exist. So on each level at most one node, called the last below, differs in shape from the
// others. What is observed of a node of level l is its sum times the level's integer weight: a larger weight is a
// smaller noise. A Tree is immutable; the zero value is invalid.
type Tree struct {
	cells  int
	levels []level
	root   children // not observed
}

// level describes the nodes of one level, top first.
type level struct {
	block, count, offset int
	weight               int64
	full, last           node
}

// node is what least squares needs to know of a node: its children, and how its own observation y and their sum are
// weighed into z = own·y + below·Σz(children), the best reading of the node from its sub-tree. The variance is z's,
// with observations of variance 1.
type node struct {
	children
	own, below, variance float64
}

// children counts the children that have the next level's full shape, says whether a last one of other shape follows,
// and sums the variances of their z.
type children struct {
	full int
	last bool
	sum  float64
}

// MaxWeight is the largest weight of a level.
const MaxWeight = 1 << 20

// NewTree returns the tree of the radices with all weights 1.
func NewTree(cells int, radices []int) (Tree, error) { return NewWeightedTree(cells, radices, nil) }

// NewWeightedTree checks the radices, from the root down: each at least 2, together at least the cells, none
// superfluous; and the weights, one for each radix, from 1 to MaxWeight. No weights at all mean all 1.
func NewWeightedTree(cells int, radices []int, weights []int64) (Tree, error) {
	if cells < 2 || len(radices) == 0 {
		return Tree{}, fmt.Errorf("tree of %d cells with %d radices, must have at least 2 cells and 1 radix", cells, len(radices))
	}
	if weights != nil && len(weights) != len(radices) {
		return Tree{}, fmt.Errorf("number of weights is %d, must be that of the radices, %d", len(weights), len(radices))
	}
	t := Tree{cells: cells, levels: make([]level, len(radices))}
	block := 1
	for l := len(radices) - 1; l >= 0; l-- {
		if radices[l] < 2 {
			return Tree{}, fmt.Errorf("radix %d is %d, must be at least 2", l+1, radices[l])
		}
		if block >= cells {
			return Tree{}, fmt.Errorf("radices are %v, must not cover %d cells without the first", radices, cells)
		}
		w := int64(1)
		if weights != nil {
			w = weights[l]
		}
		if w < 1 || w > MaxWeight {
			return Tree{}, fmt.Errorf("weight %d is %d, must be from 1 to %d", l+1, w, MaxWeight)
		}
		t.levels[l] = level{block: block, count: (cells + block - 1) / block, weight: w}
		if radices[l] >= cells {
			block = cells
		} else {
			block *= radices[l]
		}
	}
	if block < cells {
		return Tree{}, fmt.Errorf("radices are %v, must multiply to at least %d cells", radices, cells)
	}
	t.weigh()
	return t, nil
}

// weigh fills in the nodes and the offsets, from the leaves up.
func (t *Tree) weigh() {
	for l := len(t.levels) - 1; l >= 0; l-- {
		v := &t.levels[l]
		if l == len(t.levels)-1 {
			leaf := node{own: 1 / float64(v.weight), variance: 1 / float64(v.weight*v.weight)}
			v.full, v.last = leaf, leaf
			continue
		}
		next := t.levels[l+1]
		each := v.block / next.block
		v.full = observed(v.weight, t.group(l+1, each, false))
		v.last = v.full
		if t.ragged(l) {
			v.last = observed(v.weight, t.group(l+1, next.count-(v.count-1)*each, true))
		}
	}
	t.root = t.group(0, t.levels[0].count, true)
	offset := 0
	for l := range t.levels {
		t.levels[l].offset = offset
		offset += t.levels[l].count
	}
}

// ragged reports whether the last node of a level is of other shape than the rest.
func (t *Tree) ragged(l int) bool { return t.cells%t.levels[l].block != 0 }

// group describes n neighbouring nodes of a level as somebody's children.
func (t *Tree) group(l, n int, atEnd bool) children {
	v := &t.levels[l]
	if atEnd && t.ragged(l) {
		return children{full: n - 1, last: true, sum: float64(n-1)*v.full.variance + v.last.variance}
	}
	return children{full: n, sum: float64(n) * v.full.variance}
}

// observed weighs a node's own observation y, which reads the node as y/weight with variance 1/weight², against the sum
// of its children's z, by inverse variance.
func observed(weight int64, c children) node {
	w := float64(weight)
	both := 1 + w*w*c.sum
	return node{children: c, own: w * c.sum / both, below: 1 / both, variance: c.sum / both}
}

// node returns the shape of the node index of level l.
func (t *Tree) node(l, index int) *node {
	if v := &t.levels[l]; index < v.count-1 {
		return &v.full
	}
	return &t.levels[l].last
}

// Cells returns the number of cells.
func (t Tree) Cells() int { return t.cells }

// Nodes returns the number of observations.
func (t Tree) Nodes() int {
	bottom := t.levels[len(t.levels)-1]
	return bottom.offset + bottom.count
}

// Claim: one row moves a Tree's observations by at most Σ weights (L1) and Σ weights² (L2²) under add-remove, and by
// twice as much under replace-one; a unit of R rows by at most R and R² times that. Neighbours: add-remove,
// replace-one. Sensitivity: Sensitivity below, exact: attained by any row, and by two rows in cells of different nodes
// of level 0. Theorem: the mechanism is the root package's Release; this file only counts what it adds noise to. Proof:
// a row is in one cell, hence in one node of each level, whose observation is weight·sum: column i of B has the level's
// weight once for each level. Two columns differ where their nodes do; all levels are a bound, and level 0 has at least
// two nodes, below which no node is shared. Limits: at most one weight a level, so that a ragged tree's short last node
// is observed as well as the others.

// Observations returns the number of nodes.
func (t Tree) Observations() int { return t.Nodes() }

// Sensitivity returns the norms of the change of the observations by one row.
func (t Tree) Sensitivity(neighbors privacy.Neighbors) privacy.Sensitivity {
	var s privacy.Sensitivity
	for _, l := range t.levels {
		s.L1 += l.weight
		s.L2Squared += l.weight * l.weight
	}
	if neighbors == privacy.ReplaceOne {
		s.L1, s.L2Squared = 2*s.L1, 2*s.L2Squared
	}
	return s
}

// Observe returns the weighted sums of the nodes, level by level from the top, each left to right. All terms are ≥ 0,
// so that cutting at MaxObserved on the way is cutting at the end.
func (t Tree) Observe(cells []int64) []int64 {
	nodes := make([]int64, t.Nodes())
	for _, l := range t.levels {
		for i := range l.count {
			sum := int64(0)
			for _, c := range cells[i*l.block : min((i+1)*l.block, t.cells)] {
				sum = min(sum+min(max(c, 0), MaxObserved), MaxObserved)
			}
			high, low := bits.Mul64(uint64(sum), uint64(l.weight))
			if high != 0 {
				low = MaxObserved
			}
			nodes[l.offset+i] = int64(min(low, MaxObserved))
		}
	}
	return nodes
}

// closedTree observes the nodes of a tree over the cells that are complete: blocks of equal length on each level, the
// lowest of single cells, each block of a level made of whole blocks of the level below. Blocks that end after the last
// cell are not observed, nor is anything above the top level. The order is that of the blocks' last cells, and of
// blocks that end at one cell the lower first. It is a Continual strategy.
//
// Claim: one row moves the observations by at most one on each level (add-remove), or two (replace-one).
// Neighbours: add-remove, replace-one.
// Sensitivity: L1 = L2² = the levels that have a block, twice as much for replace-one.
// Theorem: the matrix mechanism, as for Tree.
// Proof: a cell is in at most one block of a level.
// Limits: for replace-one the L1 norm is exact but where there is one cell, the L2² norm too.
type closedTree struct {
	cells  int
	blocks []int     // by level, from single cells up
	alpha  []float64 // by level: G⁻¹·1 within a block, G the Gram matrix of this level and those below
}

// maxClosedLevels bounds the levels, MaxContinual the cells of continual strategies.
const (
	maxClosedLevels = 20
	MaxContinual    = 1 << 14
)

// newClosedTree returns the tree of the radices from the top down: how many blocks of the next level make up a block.
func newClosedTree(cells int, radices []int) (*closedTree, error) {
	if cells < 1 || cells > MaxContinual {
		return nil, fmt.Errorf("cells of a continual strategy is %d, must be from 1 to %d", cells, MaxContinual)
	}
	if len(radices) >= maxClosedLevels {
		return nil, fmt.Errorf("number of radices is %d, must be less than %d", len(radices), maxClosedLevels)
	}
	t := &closedTree{cells: cells, blocks: []int{1}, alpha: []float64{1}}
	for l := len(radices) - 1; l >= 0; l-- {
		if radices[l] < 2 || radices[l] > MaxContinual {
			return nil, fmt.Errorf("radix %d is %d, must be from 2 to %d", l+1, radices[l], MaxContinual)
		}
		block := min(t.blocks[len(t.blocks)-1]*radices[l], MaxContinual+1)
		below := t.alpha[len(t.alpha)-1]
		t.blocks = append(t.blocks, block)
		t.alpha = append(t.alpha, below/(1+float64(block)*below))
	}
	return t, nil
}

// Cells returns the number of cells.
func (t *closedTree) Cells() int { return t.cells }

// Observations returns the number of complete blocks.
func (t *closedTree) Observations() int { return t.Known(t.cells) }

// Known returns the number of blocks within the first cells.
func (t *closedTree) Known(cells int) (n int) {
	for _, b := range t.blocks {
		n += cells / b
	}
	return n
}

// Reach returns where the first of the blocks begins that end in (from, to].
func (t *closedTree) Reach(from, to int) int {
	first := to
	for _, b := range t.blocks {
		if to/b > from/b {
			first = min(first, from/b*b)
		}
	}
	return first
}

// place returns where the block of a level that ends after so many cells is among the observations: those that end
// before come first, and of those that end with it the ones of lower levels, all of which do.
func (t *closedTree) place(l, end int) int { return t.Known(end-1) + l }

func (t *closedTree) observedLevels() (n int) {
	for _, b := range t.blocks {
		if b <= t.cells {
			n++
		}
	}
	return n
}

// Sensitivity returns the norms of the change of the observations by one row.
func (t *closedTree) Sensitivity(neighbors privacy.Neighbors) privacy.Sensitivity {
	n := int64(t.observedLevels())
	if neighbors == privacy.ReplaceOne {
		n *= 2
	}
	return privacy.Sensitivity{L1: n, L2Squared: n}
}

// Observe returns the sums of the blocks. A sum is cut at MaxObserved, on the way or at its end alike.
func (t *closedTree) Observe(cells []int64) []int64 {
	observed := make([]int64, t.Observations())
	for l, b := range t.blocks {
		for end := b; end <= t.cells; end += b {
			sum := int64(0)
			for _, x := range cells[end-b : end] {
				sum = min(sum+min(max(x, 0), MaxObserved), MaxObserved)
			}
			observed[t.place(l, end)] = sum
		}
	}
	return observed
}

// solve returns G⁻¹·x, G the Gram matrix of the observations. Level by level from below, a block adds 11' to what G was
// within it, and by Sherman and Morrison its inverse loses αα'·11'/(1 + α·block), α = G⁻¹·1 being the same everywhere
// in it.
func (t *closedTree) solve(x []float64) []float64 {
	u := append([]float64(nil), x...)
	for l := 1; l < len(t.blocks); l++ {
		b := t.blocks[l]
		for end := b; end <= t.cells; end += b {
			sum := 0.0
			for _, v := range u[end-b : end] {
				sum += v
			}
			sum *= t.alpha[l]
			for i := end - b; i < end; i++ {
				u[i] -= sum
			}
		}
	}
	return u
}

// Fit returns the least-squares reading of the cells: G⁻¹·B'·y.
func (t *closedTree) Fit(observations []int64) []float64 {
	x := make([]float64, t.cells)
	for l, b := range t.blocks {
		for end := b; end <= t.cells; end += b {
			y := float64(observations[t.place(l, end)])
			for i := end - b; i < end; i++ {
				x[i] += y
			}
		}
	}
	return t.solve(x)
}

// Variance returns the variance of the reading of the sum of the cells in spans.
func (t *closedTree) Variance(spans []Span) float64 {
	return t.LinearVariance(indicator(t.cells, spans))
}

// LinearVariance returns the variance of the reading of Σ query[i]·x[i], which is q'·G⁻¹·q.
func (t *closedTree) LinearVariance(query []float64) float64 {
	sum := 0.0
	for i, u := range t.solve(query) {
		sum += u * query[i]
	}
	return max(sum, 0)
}

// Terms returns the reading as a weighted sum of observations: the weights are B·G⁻¹·q.
func (t *closedTree) Terms(spans []Span) []noise.Term {
	u := t.solve(indicator(t.cells, spans))
	weights := make([]float64, 0, t.Observations())
	for _, b := range t.blocks {
		for end := b; end <= t.cells; end += b {
			sum := 0.0
			for _, v := range u[end-b : end] {
				sum += v
			}
			weights = append(weights, sum)
		}
	}
	return eachOnce(weights)
}

// within returns the variance of the reading of the first cells of a complete block of a level: from the blocks below,
// less what the block's own observation tells, which is cov²/(1 + Var) with Var = α·block of the whole and cov =
// α·cells.
func (t *closedTree) within(l, cells int) float64 {
	if l == 0 {
		return float64(cells)
	}
	b, below := t.blocks[l-1], t.alpha[l-1]
	whole := float64(cells/b) * below * float64(b)
	cov := below * float64(cells)
	return whole + t.within(l-1, cells%b) - cov*cov/(1+below*float64(t.blocks[l]))
}

// prefixVariance returns the variance of the reading of the first so many cells. The blocks of each level that are in
// no complete block above are side by side, and are independent.
func (t *closedTree) prefixVariance(cells int) float64 {
	sum, from := 0.0, 0
	for l := len(t.blocks) - 1; l >= 0; l-- {
		b := t.blocks[l]
		whole := (t.cells - from) / b
		n := min(whole, (cells-from)/b)
		sum += float64(n) * t.alpha[l] * float64(b)
		if from += n * b; n < whole {
			return sum + t.within(l, cells-from)
		}
	}
	return sum
}

// MeanVariance returns the mean variance over a workload, from E Σ prefix² and E (Σ prefix)².
func (t *closedTree) MeanVariance(workload Workload) float64 {
	squares, each := 0.0, make([]float64, t.cells)
	for i := range t.cells {
		squares += t.prefixVariance(i + 1)
		each[i] = float64(t.cells - i)
	}
	return workload.mean(t.cells, squares, t.LinearVariance(each))
}
