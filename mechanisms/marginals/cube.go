package marginals

import (
	"fmt"
	"math/big"
	"math/bits"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// cube is the strategy of weighted marginals over the cells of a cube that is small enough to be written out. What it
// observes and how it is read is what a Plan does; all observations have one noise, so that marginals of which more is
// to be known are multiplied by a larger whole number first.
//
// It does not read every cell: only sums of cells of marginals that it observes, or that are within these.
//
// Claim: one row moves the observations by at most Σ w·L1 and Σ w²·L2² over what is observed, where the cells of a
// marginal have L1 = L2² = 1, and the rows of a residual L1 = Π l_i and L2² = Π c_i, with l = c = 1 for an attribute of
// two cells and l = 2(n−1), c = n(n−1) for n. Exchanging a row for another moves them by at most what replaced says.
// Neighbours: add-remove, replace-one. Theorem: the matrix mechanism (Li, Miklau, Hay, McGregor, Rastogi 2015). Proof:
// a row is in one cell of each marginal. A column of the frame of n > 2 cells has n−1 once and −1 in the other n−1
// rows; of two cells it is ±1. The rows of a residual are the Kronecker product of the frames, and norms of products
// are products of norms. All of it is whole numbers. Observe takes cells within ±2^60, which brings no two of them
// further apart, adds up exactly, in three parts of 20 bits each, and cuts at ±2^61 at last, which brings no two
// observations further apart. Limits: a weight times 2^attributes times the cells is at most 2^40.
type cube struct {
	domain  Domain
	all     Set
	cells   int
	seen    []observed
	sources []Set
	closure []Set // all that can be read, small ones first
	known   map[Set]int
	// By set of the closure: of the residual's reading, in units of the noise's variance, and the precision before it.
	variance []float64
	count    int
	one      privacy.Sensitivity
	two      func() privacy.Sensitivity
}

// observed is one of the weighted marginals or residuals.
type observed struct {
	ranges.Marginal
	set            Set
	source         int
	offset, length int
}

// The largest cubes. Each cell is written out; more attributes than MaxCubeAttributes have too many subsets.
const (
	MaxCubeCells      = 1 << 18
	MaxCubeAttributes = 10
	maxObservedBits   = 40
	maxCell           = 1 << 60
	partBits          = 20
)

func newCube(shape []int, cells int, list []ranges.Marginal) (*cube, error) {
	d, err := NewDomain(shape...)
	if err != nil {
		return nil, err
	}
	c := &cube{domain: d, all: 1<<len(shape) - 1, known: map[Set]int{}}
	if len(shape) > MaxCubeAttributes || d.Cells(c.all) > MaxCubeCells || d.Cells(c.all) != cells {
		return nil, fmt.Errorf("cells of a cube of %d attributes is %d, must be the product of their sizes, at most %d with %d attributes", len(shape), cells, MaxCubeCells, MaxCubeAttributes)
	}
	if len(list) == 0 || len(list) > 2<<MaxCubeAttributes {
		return nil, fmt.Errorf("number of marginals is %d, must be from 1 to %d", len(list), 2<<MaxCubeAttributes)
	}
	c.cells = cells
	sets := make([]Set, len(list))
	for i, m := range list {
		sets[i] = Set(m.Attributes)
		if !sets[i].within(c.all) {
			return nil, fmt.Errorf("marginal %d has attribute %d, must be below %d", i+1, bits.Len64(m.Attributes)-1, len(shape))
		}
		if most := int64(1<<maxObservedBits) / int64(cells) >> bits.OnesCount64(m.Attributes); m.Weight < 1 || m.Weight > most {
			return nil, fmt.Errorf("weight of marginal %d is %d, must be from 1 to %d", i+1, m.Weight, most)
		}
	}
	c.sources = maximal(sets)
	for i, m := range list {
		o := observed{Marginal: m, set: sets[i], offset: c.count, length: d.Cells(sets[i])}
		if m.Residual {
			o.length = int(d.product(o.set, func(n float64) float64 { return float64(frameRows(int(n))) }))
		}
		for k, s := range c.sources {
			if o.set.within(s) {
				o.source = k
			}
		}
		if c.count += o.length; c.count > MaxCells {
			return nil, fmt.Errorf("observations of the marginals are more than %d", MaxCells)
		}
		c.seen = append(c.seen, o)
	}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	return c, c.norms()
}

// prepare finds what can be read, and how exactly.
func (c *cube) prepare() error {
	precision := map[Set]float64{}
	for _, o := range c.seen {
		if o.Residual {
			precision[o.set] += o.precision(c.domain, o.set)
			continue
		}
		for a := range o.set.subsets {
			precision[a] += o.precision(c.domain, a)
		}
	}
	for size := range MaxCubeAttributes + 1 {
		for a := Set(0); a <= c.all; a++ {
			if _, ok := precision[a]; ok && bits.OnesCount64(uint64(a)) == size {
				c.known[a] = len(c.closure)
				c.closure, c.variance = append(c.closure, a), append(c.variance, 1/precision[a])
			}
		}
	}
	for _, s := range c.sources {
		for a := range s.subsets {
			if _, ok := c.known[a]; !ok {
				return fmt.Errorf("marginals are observed without residual %v, must be with all below them", a.Attributes())
			}
		}
	}
	return nil
}

// precision returns, in units of that of the noise, the precision of what is said of residual a.
func (o observed) precision(d Domain, a Set) float64 {
	w := float64(o.Weight)
	if o.Residual {
		return w * w * d.product(a, frameScale)
	}
	return w * w / d.product(o.set&^a, func(n float64) float64 { return n })
}

// norms finds the sensitivities.
func (c *cube) norms() error {
	l1, l2 := new(big.Int), new(big.Int)
	for _, o := range c.seen {
		a, s := o.column(c.domain)
		l1.Add(l1, new(big.Int).Mul(a, big.NewInt(o.Weight)))
		l2.Add(l2, new(big.Int).Mul(s, square64(o.Weight)))
	}
	if l1.BitLen() > 60 || l2.BitLen() > 58 {
		return fmt.Errorf("weights of the marginals are too large: squared norms have %d bits, must have at most 58", l2.BitLen())
	}
	c.one = privacy.Sensitivity{L1: l1.Int64(), L2Squared: l2.Int64()}
	c.two = sync.OnceValue(c.replaced)
	return nil
}

func square64(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), big.NewInt(n)) }

// column returns the L1 norm and the squared L2 norm of a column, without the weight.
func (o observed) column(d Domain) (l1, l2 *big.Int) {
	l1, l2 = big.NewInt(1), big.NewInt(1)
	if o.Residual {
		for _, n := range d.shape(o.set) {
			a, s := int64(1), int64(1)
			if n > 2 {
				a, s = 2*int64(n-1), int64(n)*int64(n-1)
			}
			l1.Mul(l1, big.NewInt(a))
			l2.Mul(l2, big.NewInt(s))
		}
	}
	return l1, l2
}

// replaced bounds the difference of two columns, j and k.
//
// In L1 it is at most twice a column, and nothing of the total, which both have alike. In L2 it depends on the
// attributes D in which j and k differ: of the cells of a marginal it is 2 where it has one of D, else nothing; of a
// residual on a it is 2·(Π c_i − Π c_i over a∖D · Π b_i over a∩D), where b is the inner product of two columns of a
// frame: −n for n > 2 cells, −1 for two. The largest sum over all D is taken: each D is met by some pair.
func (c *cube) replaced() privacy.Sensitivity {
	s := privacy.Sensitivity{}
	for _, o := range c.seen {
		if l1, _ := o.column(c.domain); o.set != 0 {
			s.L1 += 2 * l1.Int64() * o.Weight
		}
	}
	for differ := Set(1); differ <= c.all; differ++ {
		sum := new(big.Int)
		for _, o := range c.seen {
			if o.set&differ == 0 {
				continue
			}
			own := big.NewInt(1)
			if o.Residual {
				_, own = o.column(c.domain)
				inner := big.NewInt(1)
				for _, i := range o.set.Attributes() {
					n := int64(c.domain.sizes[i])
					switch {
					case differ.Has(i) && n > 2:
						inner.Mul(inner, big.NewInt(-n))
					case differ.Has(i):
						inner.Neg(inner)
					case n > 2:
						inner.Mul(inner, big.NewInt(n*(n-1)))
					}
				}
				own.Sub(own, inner)
			}
			sum.Add(sum, own.Mul(own, square64(o.Weight)))
		}
		if sum.Lsh(sum, 1); sum.Int64() > s.L2Squared {
			s.L2Squared = sum.Int64()
		}
	}
	// A unit's only row may also come or go.
	return privacy.Sensitivity{L1: max(s.L1, c.one.L1), L2Squared: max(s.L2Squared, c.one.L2Squared)}
}

// Cells returns the number of cells of the cube.
func (c *cube) Cells() int { return c.cells }

// Observations returns the number of observed integers.
func (c *cube) Observations() int { return c.count }

// Sensitivity returns the norms of the change of the observations by one row.
func (c *cube) Sensitivity(neighbors privacy.Neighbors) privacy.Sensitivity {
	if neighbors == privacy.ReplaceOne {
		return c.two()
	}
	return c.one
}

// Observe returns the weighted marginals and residuals of the cells, which may be below 0 where sums are.
func (c *cube) Observe(cells []int64) []int64 {
	var parts [3][]int64
	for k := range parts {
		parts[k] = make([]int64, c.cells)
	}
	for i := range min(len(cells), c.cells) {
		n := min(max(cells[i], -maxCell), maxCell)
		parts[0][i], parts[1][i], parts[2][i] = n>>(2*partBits), n>>partBits&(1<<partBits-1), n&(1<<partBits-1)
	}
	seen := c.linear(parts[0])
	for _, part := range parts[1:] {
		for i, n := range c.linear(part) {
			seen[i] = shifted(seen[i], n)
		}
	}
	for i, n := range seen {
		seen[i] = min(max(n, -ranges.MaxObserved), ranges.MaxObserved)
	}
	return seen
}

// shifted returns n·2^20 + m for |m| ≤ 2^60, cut at ±2^62 where |n| is above 2^42: it is beyond 2^61 then, and stays
// there with whatever part comes next.
func shifted(n, m int64) int64 {
	switch {
	case n >= 1<<42:
		return 1 << 62
	case n <= -1<<42:
		return -1 << 62
	}
	return n<<partBits + m
}

// linear observes cells within ±2^20: no sum is beyond 2^20·w·2^attributes·cells ≤ 2^60.
func (c *cube) linear(cells []int64) []int64 {
	out := make([]int64, c.count)
	for k, s := range c.sources {
		marginal := reduced(c.domain, cells, c.all, s)
		framed, shape := marginal, c.domain.shape(s)
		ready := false
		for _, o := range c.seen {
			to := out[o.offset : o.offset+o.length]
			switch {
			case o.source != k:
				continue
			case !o.Residual:
				copy(to, reduced(c.domain, marginal, s, o.set))
			default:
				for axis := 0; !ready && axis < len(shape); axis++ {
					length := 1 + frameRows(shape[axis])
					framed = along(framed, shape, axis, length, frame[int64])
					shape[axis] = length
				}
				ready = true
				i := 0
				block(shape, inside(s, o.set), func(at int) {
					to[i] = framed[at]
					i++
				})
			}
			for i := range to {
				to[i] *= o.Weight
			}
		}
	}
	return out
}
