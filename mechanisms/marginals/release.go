package marginals

import (
	"fmt"
	"io"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Noisy is the outcome of a plan: its observed integers, noise added.
type Noisy struct {
	Observations []int64
}

// mostNoisy is where observations end. What is observed lies within ±2^61, so noise that the samplers clip at ±2^63 ends
// there either way.
const mostNoisy = 1 << 62

// Release opens the tallies of the plan's sources, in their order, observes them and adds noise drawn from random. The cells
// of a tally are laid out by ascending attribute, the last fastest; missing ones count as 0, further ones are ignored.
//
// Claim: ε-DP or ρ-zCDP at the plan's cost, for the contribution that it was made with, provided that all tallies count the
// same rows.
// Neighbours, sensitivity, theorem: constraints in load.go for residuals, Histograms in histograms.go for histograms.
// Proof: a cell of a source is cut to 0…MostCount, which brings no two values further apart. One row more or less in one
// cell of each source is one more or less in one cell of each marginal that is summed from it, whatever source that is.
// Sums and frames are exact: each axis lets the largest number grow by at most frameGrowth, and MostCount times the
// product of these is at most 2^61. The noise, drawn before a tally is opened, is added to every observed integer;
// cutting at ±2^62 is post-processing.
// Limits: the samplers' time depends on the noise; the time of everything else on the plan alone.
func Release(p Plan, truth []privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[Noisy], error) {
	var none privacy.Released[Noisy]
	if err := p.valid(); err != nil {
		return none, err
	}
	if len(truth) != len(p.sources) {
		return none, fmt.Errorf("number of tallies is %d, must be the %d of the plan's sources", len(truth), len(p.sources))
	}
	for i, t := range truth {
		if !t.Valid() {
			return none, fmt.Errorf("tally %d was never sealed", i)
		}
	}
	noisy, err := p.draw(random)
	if err != nil {
		return none, err
	}
	for i, s := range p.sources {
		cells := p.clean(sealed.Open(truth[i]), s)
		p.observeHistograms(i, cells, noisy)
		p.observeResiduals(i, cells, noisy)
	}
	return sealed.Release(Noisy{Observations: noisy}), nil
}

// draw returns the noise of every observed integer.
func (p *Plan) draw(random io.Reader) ([]int64, error) {
	reader := noise.NewReader(random)
	drawn := make([]int64, 0, p.Observed())
	for _, o := range p.observations {
		for range o.length {
			drawn = append(drawn, o.noise.Sample(reader))
		}
	}
	if err := reader.Err(); err != nil {
		return nil, err
	}
	return drawn, nil
}

// clean returns the cells of a source, cut to 0…MostCount.
func (p *Plan) clean(tally []int64, s Set) []int64 {
	cells := make([]int64, p.workload.domain.Cells(s))
	for i := range min(len(cells), len(tally)) {
		cells[i] = min(max(tally[i], 0), p.most)
	}
	return cells
}

func (p *Plan) observeHistograms(source int, cells, noisy []int64) {
	for _, o := range p.observations {
		if o.residual || o.source != source {
			continue
		}
		for i, n := range reduced(p.workload.domain, cells, p.sources[source], o.set) {
			noisy[o.offset+i] = addNoise(n, noisy[o.offset+i])
		}
	}
}

// observeResiduals sees every axis of the source through its frame, so that the rows of the residual on a are the entries
// whose index is 0, the sum, on all axes outside of a and a row on those in it.
func (p *Plan) observeResiduals(source int, cells, noisy []int64) {
	s, framed := p.sources[source], false
	shape := p.workload.domain.shape(s)
	for _, o := range p.observations {
		if !o.residual || o.source != source {
			continue
		}
		for axis := 0; !framed && axis < len(shape); axis++ {
			length := 1 + frameRows(shape[axis])
			cells = along(cells, shape, axis, length, frame[int64])
			shape[axis] = length
		}
		framed = true
		i := o.offset
		block(shape, inside(s, o.set), func(at int) {
			noisy[i] = addNoise(cells[at], noisy[i])
			i++
		})
	}
}

// addNoise returns n+noise, cut at ±mostNoisy, for |n| ≤ 2^61.
func addNoise(n, noise int64) int64 {
	if noise >= mostNoisy {
		return mostNoisy
	}
	if noise <= -mostNoisy {
		return -mostNoisy
	}
	return min(max(n+noise, -mostNoisy), mostNoisy)
}
