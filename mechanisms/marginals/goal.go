package marginals

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// Wanted is a sum of cells of a cube that some of its attributes decide, and how much its squared error matters.
type Wanted struct {
	Spans      []ranges.Span
	Attributes Set
	Weight     float64
}

// Goal is what marginals of a cube are to be observed for. Whatever is wanted, its error is a weighted sum of the
// variances of residuals, so that the best plans for weighted marginals are the best for it as well. It is made by
// NewGoal.
type Goal struct {
	shape     []int
	norm      ranges.Norm // what the noise is calibrated to
	neighbors privacy.Neighbors
	workload  Workload
	losses    map[Set]float64 // of all that is wanted, by residual
}

// NewGoal finds what the errors of all that is wanted depend on.
func NewGoal(shape []int, wanted []Wanted, norm ranges.Norm, neighbors privacy.Neighbors) (*Goal, error) {
	d, err := NewDomain(shape...)
	if err != nil {
		return nil, err
	}
	g := &Goal{shape: shape, norm: norm, neighbors: neighbors, losses: map[Set]float64{}}
	sets := []Set{0}
	for _, w := range wanted {
		sets = append(sets, w.Attributes)
		d.addLosses(w, g.losses)
	}
	most := 0.0
	for _, x := range g.losses {
		most = math.Max(most, x)
	}
	if !(most > 0) || math.IsInf(most, 1) {
		return nil, fmt.Errorf("what is wanted weighs %g, must weigh more than nothing", most)
	}
	g.workload = Workload{domain: d, loss: map[Set]float64{}}
	for _, s := range maximal(sets) {
		g.workload.marginals = append(g.workload.marginals, Marginal{Set: s, Weight: 1})
		for a := range s.subsets {
			if _, ok := g.workload.loss[a]; !ok {
				g.workload.loss[a] = math.Max(g.losses[a], most*1e-9) // what nobody asks for is still part of what is
				g.workload.closure = append(g.workload.closure, a)
			}
		}
	}
	slices.SortFunc(g.workload.closure, func(a, b Set) int {
		return cmp.Or(cmp.Compare(bits.OnesCount64(uint64(a)), bits.OnesCount64(uint64(b))), cmp.Compare(a, b))
	})
	return g, nil
}

// addLosses adds to the loss of each residual what one unit of its variance adds to that of the sum (see
// cube.Variance): the squared length of its part of what is asked. Lengths are found by inclusion and exclusion from
// those of the marginals.
func (d Domain) addLosses(w Wanted, losses map[Set]float64) {
	own := map[int]float64{} // the marginal on the attributes: of the others every cell is asked for
	for _, span := range w.Spans {
		for cell := span.From; cell < span.To; cell++ {
			own[d.at(cell, w.Attributes)] = 1
		}
	}
	lengths := map[Set]float64{}
	for s := range w.Attributes.subsets {
		sums := map[int]float64{}
		for cell := range own {
			sums[d.within(cell, w.Attributes, s)]++
		}
		for _, x := range sums {
			lengths[s] += x * x
		}
		lengths[s] /= d.product(w.Attributes&^s, func(n float64) float64 { return n })
	}
	for a := range w.Attributes.subsets {
		length := 0.0
		for s := range a.subsets {
			if bits.OnesCount64(uint64(a&^s))%2 == 1 {
				length -= lengths[s]
			} else {
				length += lengths[s]
			}
		}
		losses[a] += w.Weight * math.Max(length, 0) / d.product(w.Attributes&^a, func(n float64) float64 { return n })
	}
}

// at returns the cell of the marginal on s that a cell of the cube is in.
func (d Domain) at(cell int, s Set) int { return d.within(cell, Set(1)<<len(d.sizes)-1, s) }

// within returns the cell of the marginal on to that a cell of the marginal on from is in.
func (d Domain) within(cell int, from, to Set) int {
	at, stride := 0, 1
	for i := len(d.sizes) - 1; i >= 0; i-- {
		if !from.Has(i) {
			continue
		}
		if to.Has(i) {
			at += cell % d.sizes[i] * stride
			stride *= d.sizes[i]
		}
		cell /= d.sizes[i]
	}
	return at
}

// Error returns Σ weight·variance of what is wanted, in units of the noise's variance, when marginals are observed so.
func (g *Goal) Error(d ranges.Description) float64 {
	c, err := newCube(d.Radices, d.Cells, d.Marginals)
	if err != nil {
		return math.Inf(1)
	}
	sum := 0.0
	for _, a := range g.workload.closure { // in order, so that the same goal says the same sum
		if loss := g.losses[a]; loss > 0 {
			at, ok := c.known[a]
			if !ok {
				return math.Inf(1)
			}
			sum += loss * c.variance[at]
		}
	}
	return sum
}

// Candidates returns strategies that may be the best: under L2 residuals (Residuals), and histograms on some of the
// marginals (Histograms), each with whole weights instead of noises of its own.
func (g *Goal) Candidates() []ranges.Description {
	w := g.workload
	var list []ranges.Description
	if g.norm == ranges.L2 {
		precision := w.precisions(w.constraints(g.neighbors == privacy.ReplaceOne))
		wanted := make([]float64, len(precision))
		for i, a := range w.closure {
			wanted[i] = math.Sqrt(precision[i] / w.domain.product(a, frameScale))
		}
		list = append(list, g.described(w.closure, wanted, true))
	}
	if d, ok := g.histograms(); ok {
		list = append(list, d)
	}
	return list
}

// histograms returns the strategy of the best shares that are found.
func (g *Goal) histograms() (ranges.Description, bool) {
	w := g.workload
	s := w.search(w.closure, g.norm)
	best, least := []float64(nil), math.Inf(1)
	for _, start := range s.starts() {
		if shares, loss := s.descend(start); loss < least {
			best, least = shares, loss
		}
	}
	if best == nil {
		return ranges.Description{}, false
	}
	if g.norm == ranges.L2 {
		for i, share := range best {
			best[i] = math.Sqrt(share)
		}
	}
	return g.described(w.closure, best, false), true
}

// described makes whole weights of real ones: as large as a cube lets them be, up to 2^20, so that the smallest keep
// digits. What rounds to nothing is observed least where its residual would be missing, else not at all.
func (g *Goal) described(sets []Set, wanted []float64, residual bool) ranges.Description {
	cells := 1
	for _, n := range g.shape {
		cells *= n
	}
	scale := math.Inf(1)
	for i, s := range sets {
		if wanted[i] > 0 {
			most := math.Min(float64(int64(1<<maxObservedBits)/int64(cells)>>bits.OnesCount64(uint64(s))), 1<<20)
			scale = math.Min(scale, most/wanted[i])
		}
	}
	d := ranges.Description{Kind: ranges.KindMarginals, Cells: cells, Radices: g.shape}
	for i, s := range sets {
		if wanted[i] > 0 || residual {
			weight := int64(math.Max(1, math.Floor(wanted[i]*scale)))
			d.Marginals = append(d.Marginals, ranges.Marginal{Attributes: uint64(s), Residual: residual, Weight: weight})
		}
	}
	return d
}
