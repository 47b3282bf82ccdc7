package mechanisms

import (
	"fmt"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/quantiles"
)

// What a choice is expected to be off, and how it is read. None of it needs data.

func (s Spec) choosers() ([]chooser, error) { return s.Kind.(*Choice).choosers() }

// Chooser names how one group's cells are chosen.
func (s Spec) Chooser() string {
	choosers, err := s.choosers()
	if err != nil {
		panic("mechanisms: a choice that was not planned: " + err.Error())
	}
	return choosers[0].name
}

// Spread returns how much further one unit can raise one candidate's score than another's; 0 where quantiles are
// chosen.
func (s Spec) Spread() int64 {
	choosers, err := s.choosers()
	if err != nil {
		panic("mechanisms: a choice that was not planned: " + err.Error())
	}
	return choosers[0].spread
}

// RankError returns how many rows the worst of a group's chosen cells is off at most, at the confidence: of Quantiles,
// how far its rank is from the share's; of Dearest in units of weight times rows; of the others how many rows fewer it
// has than the best that could have been chosen.
func (s Spec) RankError(c Confidence) float64 {
	choosers, err := s.choosers()
	if err != nil {
		panic("mechanisms: error of a choice that was not planned: " + err.Error())
	}
	worst := 0.0
	for _, one := range choosers {
		worst = max(worst, one.bound(noise.Probability(1-c.p)))
	}
	return worst
}

// PreferPrefixes reports whether quantiles read from prefix sums with such a variance on average are expected to be
// nearer.
func (s Spec) PreferPrefixes(rows int64, variance float64) bool {
	choosers, err := s.choosers()
	if err != nil || s.Kind.(*Choice).Kind != Quantiles {
		return false
	}
	return choosers[0].ranges(quantiles.ExpectedRows(rows), deviation(variance))
}

// deviation is the root of a variance.
func deviation(variance float64) quantiles.Deviation { return quantiles.Deviation(math.Sqrt(variance)) }

// CDF reads quantiles from counts in order: see package quantiles.
type CDF struct{ read quantiles.CDF }

// maxPieces bounds the spans that a prefix sum is read from at once.
const maxPieces = 64

// CDF adds the counts of spans up, in their order, for reading quantiles.
func (e *Estimate) CDF(counter int, spans [][]Span) privacy.Released[CDF] {
	return privacy.PostProcess(e.Sum(counter, nil), func(int64) CDF {
		prefixes, pieces := make([]float64, len(spans)+1), []Span(nil)
		joined := e.spec.Counts().Strategy.Kind != Identity // whose single cells are rounded
		for i, own := range spans {
			if pieces = joinedTo(pieces, own); len(pieces) > maxPieces {
				joined = false
			}
			if joined {
				prefixes[i+1] = float64(e.Sum(counter, pieces).Value())
			} else {
				prefixes[i+1] = prefixes[i] + float64(e.Sum(counter, own).Value())
			}
		}
		return CDF{quantiles.NewCDF(prefixes)}
	})
}

// joinedTo adds spans to pieces, to the ends of which they are joined where they meet.
func joinedTo(pieces, spans []Span) []Span {
	for _, s := range spans {
		n := len(pieces)
		switch {
		case n > 0 && pieces[n-1].To == s.From:
			pieces[n-1].To = s.To
		case n > 0 && pieces[0].From == s.To:
			pieces[0].From = s.From
		case n <= maxPieces:
			pieces = append(pieces, s)
		}
	}
	return pieces
}

// Rows returns the estimate of all rows.
func (c CDF) Rows() float64 { return c.read.Rows() }

// Disc returns the number of the cell of percentile_disc.
func (c CDF) Disc(share Share) int {
	q, err := quantiles.NewQuantile(share.Num, share.Den)
	if err != nil {
		panic("mechanisms: a share that was never checked: " + err.Error())
	}
	return c.read.Disc(q)
}

// Cont returns percentile_cont, value giving that of a cell's rows.
func (c CDF) Cont(share Share, value func(cell int) float64) float64 {
	q, err := quantiles.NewQuantile(share.Num, share.Den)
	if err != nil {
		panic("mechanisms: a share that was never checked: " + err.Error())
	}
	return c.read.Cont(q, value)
}

// Chosen returns the observations of a choice: by group, the numbers of the chosen cells within it.
func (s Spec) Chosen(released privacy.Released[Noisy]) (privacy.Released[[]int64], error) {
	var none privacy.Released[[]int64]
	ch, ok := s.Kind.(*Choice)
	if !ok {
		return none, fmt.Errorf("the release counts cells, must choose them")
	}
	if err := s.check(); err != nil {
		return none, err
	}
	if !released.Valid() {
		return none, fmt.Errorf("release was never released")
	}
	if n := ch.groups() * ch.chosen(); len(released.Value().Observations) != n {
		return none, fmt.Errorf("number of observations is %d, must be the %d of the spec", len(released.Value().Observations), n)
	}
	return privacy.PostProcess(released, func(n Noisy) []int64 { return n.Observations }), nil
}
