package marginals

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// cube is the strategy of weighted marginals over the cells of a cube that is small enough to be written out. What it
// observes and how it is read is what a Plan does; all observations have one noise, so that marginals of which more is to
// be known are multiplied by a larger whole number first.
//
// It does not read every cell: only sums of cells of marginals that it observes, or that are within these.
//
// Claim: one row moves the observations by at most Σ w·L1 and Σ w²·L2² over what is observed, where the cells of a marginal
// have L1 = L2² = 1, and the rows of a residual L1 = Π l_i and L2² = Π c_i, with l = c = 1 for an attribute of two cells and
// l = 2(n−1), c = n(n−1) for n. Exchanging a row for another moves them by at most what replaced says.
// Neighbours: add-remove, replace-one.
// Theorem: the matrix mechanism (Li, Miklau, Hay, McGregor, Rastogi 2015).
// Proof: a row is in one cell of each marginal. A column of the frame of n > 2 cells has n−1 once and −1 in the other n−1
// rows; of two cells it is ±1. The rows of a residual are the Kronecker product of the frames, and norms of products are
// products of norms. All of it is whole numbers.
// Observe takes cells in [0, 2^40], which brings no two of them further apart, adds up exactly, in two halves of 20 bits
// each, and cuts at ±2^61 at last, which brings no two observations further apart.
// Limits: a weight times 2^attributes times the cells is at most 2^40.
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

// The largest cubes. Each cell is written out; more attributes than MostCubeAttributes have too many subsets.
const (
	MostCubeCells      = 1 << 18
	MostCubeAttributes = 10
	mostObservedBits   = 40
	mostCell           = 1 << 40
	halfBits           = 20
)

func newCube(shape []int, cells int, list []ranges.Marginal) (*cube, error) {
	d, err := NewDomain(shape...)
	if err != nil {
		return nil, err
	}
	c := &cube{domain: d, all: 1<<len(shape) - 1, known: map[Set]int{}}
	if len(shape) > MostCubeAttributes || d.Cells(c.all) > MostCubeCells || d.Cells(c.all) != cells {
		return nil, fmt.Errorf("cells of a cube of %d attributes is %d, must be the product of their sizes, at most %d with %d attributes", len(shape), cells, MostCubeCells, MostCubeAttributes)
	}
	if len(list) == 0 || len(list) > 2<<MostCubeAttributes {
		return nil, fmt.Errorf("number of marginals is %d, must be from 1 to %d", len(list), 2<<MostCubeAttributes)
	}
	c.cells = cells
	sets := make([]Set, len(list))
	for i, m := range list {
		sets[i] = Set(m.Attributes)
		if !sets[i].within(c.all) {
			return nil, fmt.Errorf("marginal %d has attribute %d, must be below %d", i+1, bits.Len64(m.Attributes)-1, len(shape))
		}
		if most := int64(1<<mostObservedBits) / int64(cells) >> bits.OnesCount64(m.Attributes); m.Weight < 1 || m.Weight > most {
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
		if c.count += o.length; c.count > MostCells {
			return nil, fmt.Errorf("observations of the marginals are more than %d", MostCells)
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
	for size := range MostCubeAttributes + 1 {
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
// In L1 it is at most twice a column, and nothing of the total, which both have alike. In L2 it depends on the attributes D
// in which j and k differ: of the cells of a marginal it is 2 where it has one of D, else nothing; of a residual on a it is
// 2·(Π c_i − Π c_i over a∖D · Π b_i over a∩D), where b is the inner product of two columns of a frame: −n for n > 2 cells,
// −1 for two. The largest sum over all D is taken: each D is met by some pair.
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

// Observe returns the weighted marginals and residuals of the cells.
func (c *cube) Observe(cells []int64) []int64 {
	high, low := make([]int64, c.cells), make([]int64, c.cells)
	for i := range min(len(cells), c.cells) {
		n := min(max(cells[i], 0), mostCell)
		high[i], low[i] = n>>halfBits, n&(1<<halfBits-1)
	}
	upper, seen := c.linear(high), c.linear(low)
	for i, n := range upper {
		// Each half is within ±2^60: beyond 2^42 the sum is beyond 2^61, whatever the lower half is.
		switch {
		case n >= 1<<42:
			seen[i] = ranges.MostObserved
		case n <= -1<<42:
			seen[i] = -ranges.MostObserved
		default:
			seen[i] = min(max(n<<halfBits+seen[i], -ranges.MostObserved), ranges.MostObserved)
		}
	}
	return seen
}

// linear observes cells of at most 20 bits: no sum is beyond 2^20·w·2^attributes·cells ≤ 2^60.
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

// Fit returns the least-squares reading of what can be read: cells that add up to it, each residual spread evenly. Of all
// that do, they are the shortest.
func (c *cube) Fit(observations []int64) []float64 {
	residuals := make([][]float64, len(c.closure))
	add := func(o observed, a Set, coordinates []float64) {
		at := c.known[a]
		share := o.precision(c.domain, a) * c.variance[at]
		if residuals[at] == nil {
			residuals[at] = make([]float64, len(coordinates))
		}
		for i, r := range coordinates {
			residuals[at][i] += share * r
		}
	}
	for _, o := range c.seen {
		noisy := make([]float64, o.length)
		for i := range noisy {
			noisy[i] = float64(observations[o.offset+i]) / float64(o.Weight)
		}
		if o.Residual {
			add(o, o.set, c.domain.unframed(o.set, noisy))
			continue
		}
		noisy = c.domain.splitAll(o.set, noisy)
		for a := range o.set.subsets {
			add(o, a, c.domain.residualOf(o.set, a, noisy))
		}
	}
	cells, shape := make([]float64, c.cells), c.domain.shape(c.all)
	for at, a := range c.closure {
		i, list := 0, residuals[at]
		block(shape, inside(c.all, a), func(cell int) {
			cells[cell] = list[i]
			i++
		})
	}
	for axis, n := range shape {
		cells = along(cells, shape, axis, n, join)
	}
	return cells
}

// MeanVariance is infinite: the cells of a cube are in no order, and most ranges of them cannot be read.
func (c *cube) MeanVariance(ranges.Workload) float64 { return math.Inf(1) }

// Variance returns the variance of the reading of the sum of the cells in spans, infinite where it cannot be read.
//
// Derivation: with q the sum's indicator and q_a its marginal on a, the sum is Σ_a ⟨q_a/Π d_i (outside of a), r_a⟩, and the
// reading of r_a has the covariance variance·⊗P. What is asked of residuals that are not known must be nothing.
func (c *cube) Variance(spans []ranges.Span) float64 {
	variance := 0.0
	for at, loss := range c.losses(spans) {
		if at == len(c.closure) {
			return math.Inf(1)
		}
		variance += c.variance[at] * loss
	}
	return variance
}

// losses returns, for each residual that is known, what one unit of its variance adds to that of the sum, and, where the
// sum asks for others too, a last one.
func (c *cube) losses(spans []ranges.Span) []float64 {
	q, asked := c.asked(spans)
	norms := make([]float64, len(c.closure))
	for at, s := range c.closure {
		for _, x := range q[at] {
			norms[at] += x * x
		}
		norms[at] /= c.outside(s)
	}
	losses, read := make([]float64, len(c.closure)), 0.0
	for at, a := range c.closure {
		// |⊗P q_a|² by inclusion and exclusion over the projections onto the constant vectors.
		for s := range a.subsets {
			sign := 1.0
			if bits.OnesCount64(uint64(a&^s))%2 == 1 {
				sign = -1
			}
			losses[at] += sign * norms[c.known[s]]
		}
		losses[at] = math.Max(losses[at], 0)
		read += losses[at]
		losses[at] /= c.outside(a)
	}
	if read < asked*(1-1e-9) {
		losses = append(losses, asked-read)
	}
	return losses
}

// outside returns Π d_i over the attributes that are not in s.
func (c *cube) outside(s Set) float64 {
	return c.domain.product(c.all&^s, func(n float64) float64 { return n })
}

// asked returns the marginals of the indicator of the cells in spans, and how many cells these are.
func (c *cube) asked(spans []ranges.Span) (q [][]float64, cells float64) {
	strides := make([][]int, len(c.sources))
	q = make([][]float64, len(c.closure))
	for k, s := range c.sources {
		strides[k] = make([]int, len(c.domain.sizes))
		stride := 1
		for i := len(c.domain.sizes) - 1; i >= 0; i-- {
			if s.Has(i) {
				strides[k][i] = stride
				stride *= c.domain.sizes[i]
			}
		}
		q[c.known[s]] = make([]float64, stride)
	}
	at := make([]int, len(c.sources))
	for _, span := range spans {
		for cell := span.From; cell < span.To; cell++ {
			rest := cell
			clear(at)
			for i := len(c.domain.sizes) - 1; i >= 0; i-- {
				digit := rest % c.domain.sizes[i]
				rest /= c.domain.sizes[i]
				for k := range at {
					at[k] += digit * strides[k][i]
				}
			}
			for k, s := range c.sources {
				q[c.known[s]][at[k]]++
			}
		}
		cells += float64(span.To - span.From)
	}
	for at := len(c.closure) - 1; at >= 0; at-- {
		if q[at] == nil {
			for _, s := range c.sources {
				if c.closure[at].within(s) {
					q[at] = reduced(c.domain, q[c.known[s]], s, c.closure[at])
					break
				}
			}
		}
	}
	return q, cells
}

// Terms returns the reading of the sum of the cells in spans as a weighted sum of observations' noise.
func (c *cube) Terms(spans []ranges.Span) []noise.Term {
	q, _ := c.asked(spans)
	var terms []noise.Term
	for _, o := range c.seen {
		for _, w := range c.weights(o, q[c.known[o.set]]) {
			if w != 0 {
				terms = append(terms, noise.Term{Weight: w, Count: 1})
			}
		}
	}
	return terms
}

// weights returns how the reading weighs the integers of one observation, for the marginal of what is asked on its set.
//
// A residual's coordinates are Bᵀy/(w·f) of its rows y, f being the scale of its frame, and ⟨q_a, Bᵀy⟩ = ⟨B·q_a, y⟩. Of a
// histogram's cells y/w, marginal and projection lift ⟨P·q_a, r_a⟩ back onto the cells, evenly.
func (c *cube) weights(o observed, q []float64) []float64 {
	shape := c.domain.shape(o.set)
	if o.Residual {
		scale := o.precision(c.domain, o.set) * c.variance[c.known[o.set]] / (float64(o.Weight) * c.domain.product(o.set, frameScale) * c.outside(o.set))
		for axis, n := range shape {
			length := 1 + frameRows(n)
			q = along(q, shape, axis, length, frame[float64])
			shape[axis] = length
		}
		out := make([]float64, 0, o.length)
		block(shape, inside(o.set, o.set), func(at int) { out = append(out, q[at]*scale) })
		return out
	}
	cells := c.domain.splitAll(o.set, q)
	for a := range o.set.subsets {
		share := o.precision(c.domain, a) * c.variance[c.known[a]] / (float64(o.Weight) * c.outside(o.set))
		block(shape, inside(o.set, a), func(at int) { cells[at] *= share })
	}
	for axis, n := range shape {
		cells = along(cells, shape, axis, n, join)
	}
	return cells
}
