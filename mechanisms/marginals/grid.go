package marginals

import (
	"errors"
	"fmt"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// GridShape is the number of cells of two ordered columns.
type GridShape struct{ Rows, Columns int }

// Grid is a checked plan for rectangles over two ordered columns: the Kronecker product of a strategy for ranges of the
// rows and one of the columns. It is immutable; the zero value is invalid.
type Grid struct {
	shape         GridShape
	rows, columns ranges.Strategy
	described     [2]ranges.Description
	mean          float64 // variance over all rectangles, in units of the noise's
	noise         noise.Distribution
	cost          privacy.Cost
}

// Rectangle is a range of rows and one of columns, both half-open.
type Rectangle struct{ Rows, Columns ranges.Span }

// NewGrid chooses, for the cost and by exact expected error over all rectangles, the best pair of strategies for the two
// columns among: the cells themselves; the best tree, plain and weighted; what package ranges finds best for the norm;
// under zCDP the sine strategy, in few enough bits for the product.
//
// Claim: ε-DP or ρ-zCDP. Neighbours: add-remove, replace-one, a unit in at most rows rows.
// Sensitivity: with A and B the integer matrices of the two strategies, a row in cell (i, j) moves the observations
// A·x·Bᵀ by the product of column i of A and column j of B: L1 and L2² are products of the strategies' own for add-remove.
// The matrices' entries are not negative, so that of two such vectors |u−v|₁ ≤ |u|₁+|v|₁ and |u−v|₂² ≤ |u|₂²+|v|₂²:
// replace-one doubles both. A unit of R rows moves them by at most R and R² times that.
// Theorem: discrete Laplace or Gaussian noise on each observation, as for any strategy.
// Proof of exactness: both steps are integers cut at MostObserved; each of them, its entries not negative, moves by no
// more than it would uncut, entry by entry, and keeps that order in the next.
// Limits: rectangles alone. An observation is cut at 2^61, which under zCDP may be 2^31 times a count: beyond two billion
// rows the reading is too small.
func NewGrid(shape GridShape, c privacy.Contribution, cost privacy.Cost) (Grid, error) {
	if shape.Rows < 2 || shape.Columns < 2 || shape.Rows > MostCells || shape.Columns > MostCells || shape.Rows*shape.Columns > MostCells {
		return Grid{}, fmt.Errorf("shape of a grid is %d by %d, must be at least 2 by 2 and at most %d cells", shape.Rows, shape.Columns, MostCells)
	}
	b, err := boundsOf(c)
	if err != nil {
		return Grid{}, err
	}
	accountant, err := checkCost(cost)
	if err != nil {
		return Grid{}, err
	}
	best, least := Grid{}, math.Inf(1)
	columns := candidates(shape.Columns, accountant)
	for _, first := range candidates(shape.Rows, accountant) {
		for _, second := range columns {
			g, err := newGrid(shape, b, cost, first, second)
			if err != nil {
				continue
			}
			if v := g.MeanVariance(); v < least {
				best, least = g, v
			}
		}
	}
	if best.rows == nil {
		return Grid{}, fmt.Errorf("cost is %s, too small for %d rows of a unit", cost, b.rows)
	}
	return best, nil
}

// gridBits are the precisions of a sine strategy in a product. Two of the first take 30 of an observation's 61 bits; where
// the noise has no room beside them, the next are taken.
var gridBits = []int{15, 13, 11, 9}

// candidate is a strategy for one of the columns, and its mean variance over all ranges.
type candidate struct {
	ranges.Strategy
	described ranges.Description
	mean      float64
}

// candidates describes the strategies that may be best for one of the columns. A product's mean variance is a product of
// the columns' own, each times its sensitivity, squared for ε; so a strategy that is best by that alone is best.
func candidates(cells int, accountant privacy.Accountant) []candidate {
	list := []candidate{}
	for _, d := range describe(cells, accountant) {
		if s, err := ranges.Open(d); err == nil {
			list = append(list, candidate{s, d, s.MeanVariance(ranges.AllRanges)})
		}
	}
	return list
}

func describe(cells int, accountant privacy.Accountant) []ranges.Description {
	list := []ranges.Description{{Kind: ranges.KindIdentity, Cells: cells}}
	norm, power := ranges.L1, 2
	if accountant == privacy.ZCDP {
		norm, power = ranges.L2, 1
		for _, bits := range gridBits {
			list = append(list, ranges.Description{Kind: ranges.KindSine, Cells: cells, Bits: bits, Version: 1})
		}
	}
	variance := func(levels int) float64 { return math.Pow(float64(levels), float64(power)) }
	if radices := ranges.Best(cells, variance); len(radices) > 1 {
		list = append(list, ranges.Description{Kind: ranges.KindTree, Cells: cells, Radices: radices})
	}
	if radices, weights := ranges.BestWeighted(cells, ranges.AllRanges, norm); len(radices) > 1 {
		list = append(list, ranges.Description{Kind: ranges.KindTree, Cells: cells, Radices: radices, Weights: weights})
	}
	goal := ranges.Goal{Cells: cells, Workload: ranges.AllRanges, Norm: norm, Neighbors: privacy.AddRemove}
	chosen, _ := ranges.Choose(goal, func(s privacy.Sensitivity) float64 {
		if norm == ranges.L1 {
			return float64(s.L1) * float64(s.L1)
		}
		return float64(s.L2Squared)
	})
	if chosen.Kind == ranges.KindPIdentity {
		list = append(list, chosen)
	}
	return list
}

// newGrid gives the product of two strategies the noise of its cost.
func newGrid(shape GridShape, b bounds, cost privacy.Cost, first, second candidate) (Grid, error) {
	g := Grid{shape: shape, cost: cost, rows: first, columns: second, mean: first.mean * second.mean}
	g.described = [2]ranges.Description{first.described, second.described}
	if g.rows.Observations() > MostCells/g.columns.Observations() {
		return Grid{}, fmt.Errorf("observations of a grid are more than %d", MostCells)
	}
	one, other := g.rows.Sensitivity(privacy.AddRemove), g.columns.Sensitivity(privacy.AddRemove)
	times, err := int64(1), error(nil)
	if b.replaceOne {
		times = 2
	}
	if cost.Rho.Pico() > 0 {
		squared := float64(one.L2Squared) * float64(other.L2Squared) * float64(b.rows) * float64(b.rows) * float64(times)
		g.noise, err = normalAtLeast(margin * squared * 1e12 / (2 * float64(cost.Rho.Pico())))
		return g, err
	}
	l1 := float64(one.L1) * float64(other.L1) * float64(b.rows*times)
	if l1 > 1<<42 {
		return Grid{}, errors.New("noise of a grid is out of range")
	}
	g.noise, err = noise.New(noise.Laplace, one.L1*other.L1*b.rows*times*1_000_000, cost.Epsilon.Micro())
	return g, err
}

// Cost returns what is to be charged.
func (g Grid) Cost() privacy.Cost { return g.cost }

// Strategies describes the strategies of the rows and of the columns.
func (g Grid) Strategies() (rows, columns ranges.Description) { return g.described[0], g.described[1] }

// MeanVariance returns the expected mean squared error over all rectangles: the mean of a product over all pairs of a range
// of rows and one of columns is the product of the means.
func (g Grid) MeanVariance() float64 {
	return g.noise.Variance() * g.mean
}

// Variance returns the exact variance of the count in a rectangle as GridEstimate.Sum reads it.
func (g Grid) Variance(r Rectangle) (float64, error) {
	if err := g.check(r); err != nil {
		return 0, err
	}
	return g.noise.Variance() * g.rows.Variance([]ranges.Span{r.Rows}) * g.columns.Variance([]ranges.Span{r.Columns}), nil
}

// Noise returns the noise of each observation.
func (g Grid) Noise() noise.Distribution { return g.noise }

// Terms returns the reading of the count in a rectangle as a weighted sum of observations' noise, from which package noise
// tells half-widths: every term of the rows' reading times every term of the columns'.
func (g Grid) Terms(r Rectangle) ([]noise.Term, error) {
	if err := g.check(r); err != nil {
		return nil, err
	}
	terms, columns := []noise.Term{}, g.columns.Terms([]ranges.Span{r.Columns})
	for _, a := range g.rows.Terms([]ranges.Span{r.Rows}) {
		for _, b := range columns {
			terms = append(terms, noise.Term{Weight: a.Weight * b.Weight, Count: a.Count * b.Count})
		}
	}
	return terms, nil
}

func (g *Grid) check(r Rectangle) error {
	if g.rows == nil {
		return errors.New("grid is the zero value, must be made by NewGrid")
	}
	if r.Rows.From < 0 || r.Rows.From >= r.Rows.To || r.Rows.To > g.shape.Rows {
		return fmt.Errorf("rows of a rectangle are %d to %d, must be a range within 0 to %d", r.Rows.From, r.Rows.To, g.shape.Rows)
	}
	if r.Columns.From < 0 || r.Columns.From >= r.Columns.To || r.Columns.To > g.shape.Columns {
		return fmt.Errorf("columns of a rectangle are %d to %d, must be a range within 0 to %d", r.Columns.From, r.Columns.To, g.shape.Columns)
	}
	return nil
}
