package ranges

import (
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

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
// no complete block above stand side by side, and are independent.
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
