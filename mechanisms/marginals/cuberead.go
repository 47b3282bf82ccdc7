package marginals

import (
	"math"
	"math/bits"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// Fit returns the least-squares reading of what can be read: cells that add up to it, each residual spread evenly. Of
// all that do, they are the shortest.
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
// Derivation: with q the sum's indicator and q_a its marginal on a, the sum is Σ_a ⟨q_a/Π d_i (outside of a), r_a⟩, and
// the reading of r_a has the covariance variance·⊗P. What is asked of residuals that are not known must be nothing.
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

// losses returns, for each residual that is known, what one unit of its variance adds to that of the sum, and, where
// the sum asks for others too, a last one.
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
// A residual's coordinates are Bᵀy/(w·f) of its rows y, f being the scale of its frame, and ⟨q_a, Bᵀy⟩ = ⟨B·q_a, y⟩. Of
// a histogram's cells y/w, marginal and projection lift ⟨P·q_a, r_a⟩ back onto the cells, evenly.
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
