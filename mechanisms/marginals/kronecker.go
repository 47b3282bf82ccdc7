package marginals

import (
	"fmt"
	"math"
	"math/big"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// OpenCube returns the strategy of a cube that d describes: marginals, or a Kronecker product.
func OpenCube(d ranges.Description) (ranges.Strategy, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	switch d.Kind {
	case ranges.KindMarginals:
		c, err := newCube(d.Radices, d.Cells, d.Marginals)
		if err != nil {
			return nil, err
		}
		return c, nil
	case ranges.KindProduct:
		p, err := newProduct(d.Cells, d.Factors)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	return nil, fmt.Errorf("strategy is %s, must be marginals or a product", d.Kind)
}

// product is the Kronecker product of strategies of groups of attributes of a cube: ranges of an ordered one, marginals
// or the cells of others. None is made any more (docs/adr/0221), and those that were saved are read.
//
// Claim: one row moves the observations by the products of the factors' own L1 and L2² (add-remove), exchanging a row
// for another by twice that. Neighbours: add-remove, replace-one. Theorem: the matrix mechanism (Li, Miklau, Hay,
// McGregor, Rastogi 2015), for products McKenna, Miklau, Hay, Machanavajjhala 2018. Proof: a column of the product is
// the product of columns, and so are its norms. The matrices' entries are not negative, hence of two columns |u−v|₁ ≤
// |u|₁+|v|₁ and |u−v|₂² ≤ |u|₂²+|v|₂². Observe applies one factor after the other to the lines of the cube. Each step
// is exact, but for cutting at 2^61: its entries not negative, it moves by no more than it would uncut, entry by entry,
// and keeps the order of cells of which one is the other with some rows more; so does the next. Exchanging a row goes
// over the cells without either. Limits: factors are the cells, trees, p-identity, sine strategies and marginals
// without residuals, whose matrices have no entry below 0.
type product struct {
	factors []ranges.Strategy
	cells   int
	count   int
	one     privacy.Sensitivity
	maps    []func() [][]float64 // by factor: how each cell of it is read; nil means itself
}

// maxFactors bounds the factors, maxReading the size of a factor's reading.
const (
	maxFactors = 8
	maxReading = 1 << 22
)

func newProduct(cells int, list []ranges.Description) (*product, error) {
	if len(list) < 2 || len(list) > maxFactors {
		return nil, fmt.Errorf("number of factors is %d, must be from 2 to %d", len(list), maxFactors)
	}
	p := &product{cells: 1, count: 1}
	l1, l2 := big.NewInt(1), big.NewInt(1)
	for i, d := range list {
		s, err := openFactor(d)
		if err != nil {
			return nil, fmt.Errorf("factor %d: %w", i+1, err)
		}
		n, m := s.Cells(), s.Observations()
		if p.cells *= n; p.cells > MaxCubeCells || n*m > maxReading && d.Kind != ranges.KindIdentity {
			return nil, fmt.Errorf("cells of a product are more than %d, or those of a factor too many", MaxCubeCells)
		}
		if p.count *= m; p.count > MaxCells {
			return nil, fmt.Errorf("observations of a product are more than %d", MaxCells)
		}
		one := s.Sensitivity(privacy.AddRemove)
		l1.Mul(l1, big.NewInt(one.L1))
		l2.Mul(l2, big.NewInt(one.L2Squared))
		p.factors = append(p.factors, s)
		p.maps = append(p.maps, nil)
		if d.Kind != ranges.KindIdentity {
			p.maps[i] = sync.OnceValue(func() [][]float64 { return readingOf(s) })
		}
	}
	if p.cells != cells {
		return nil, fmt.Errorf("cells of a product is %d, must be the %d of its factors", cells, p.cells)
	}
	if l1.BitLen() > 60 || l2.BitLen() > 60 {
		return nil, fmt.Errorf("squared norms of a product have %d bits, must have at most 60", l2.BitLen())
	}
	p.one = privacy.Sensitivity{L1: l1.Int64(), L2Squared: l2.Int64()}
	return p, nil
}

// Cells returns the number of cells of the cube.
func (p *product) Cells() int { return p.cells }

// Observations returns the product of the factors' numbers.
func (p *product) Observations() int { return p.count }

// Sensitivity returns the norms of the change of the observations by one row.
func (p *product) Sensitivity(neighbors privacy.Neighbors) privacy.Sensitivity {
	if neighbors == privacy.ReplaceOne {
		return privacy.Sensitivity{L1: 2 * p.one.L1, L2Squared: 2 * p.one.L2Squared}
	}
	return p.one
}

// shape returns the cells of the factors.
func (p *product) shape() []int {
	shape := make([]int, len(p.factors))
	for i, f := range p.factors {
		shape[i] = f.Cells()
	}
	return shape
}

// Observe applies the factors to the lines of the cube, the last one first.
func (p *product) Observe(cells []int64) []int64 {
	shape := p.shape()
	seen := make([]int64, p.cells)
	copy(seen, cells)
	for i := len(shape) - 1; i >= 0; i-- {
		f := p.factors[i]
		seen = along(seen, shape, i, f.Observations(), func(line, to []int64) { copy(to, f.Observe(line)) })
		shape[i] = f.Observations()
	}
	for i, n := range seen {
		seen[i] = min(max(n, 0), ranges.MaxObserved)
	}
	return seen
}

// Fit reads the lines by one factor after the other: the pseudo-inverse of a product is the product of theirs.
func (p *product) Fit(observations []int64) []float64 {
	shape := make([]int, len(p.factors))
	for i, f := range p.factors {
		shape[i] = f.Observations()
	}
	cells := make([]float64, len(observations))
	for i, n := range observations {
		cells[i] = float64(n)
	}
	for i, f := range p.factors {
		cells = along(cells, shape, i, f.Cells(), func(line, to []float64) { fit(f, line, to) })
		shape[i] = f.Cells()
	}
	return cells
}

// MeanVariance is infinite, as that of marginals is.
func (p *product) MeanVariance(ranges.Workload) float64 { return math.Inf(1) }

// Variance returns the variance of the reading of the sum of the cells in spans.
func (p *product) Variance(spans []ranges.Span) float64 {
	sum := 0.0
	for _, w := range p.weights(spans) {
		sum += w * w
	}
	return sum
}

// weights returns how the reading of the sum of the cells in spans weighs the observations.
func (p *product) weights(spans []ranges.Span) []float64 {
	q := make([]float64, p.cells)
	for _, s := range spans {
		for i := s.From; i < s.To; i++ {
			q[i] = 1
		}
	}
	shape := p.shape()
	for i, f := range p.factors {
		if p.maps[i] == nil {
			continue
		}
		reading := p.maps[i]()
		q = along(q, shape, i, f.Observations(), func(line, to []float64) {
			for j, r := range reading {
				to[j] = dot(line, r)
			}
		})
		shape[i] = f.Observations()
	}
	return q
}

// Terms returns that reading as a weighted sum of observations' noise.
func (p *product) Terms(spans []ranges.Span) []noise.Term {
	var terms []noise.Term
	for _, w := range p.weights(spans) {
		if w != 0 {
			terms = append(terms, noise.Term{Weight: w, Count: 1})
		}
	}
	return terms
}
