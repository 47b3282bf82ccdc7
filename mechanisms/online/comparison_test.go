package online

import (
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Comparison holds a session's plan against a plain noisy histogram of the same cells, which answers every query, any
// number of times, and has no stop. Widths are in rows, at the same probability.
type Comparison struct {
	Cost          privacy.Cost // of the session
	Width         int64        // of an answer of the session, while it lasts
	HistogramSame int64        // width of the histogram's answer to the query over all cells, at Cost
	HistogramCost privacy.Cost // what a histogram costs whose width is at most Width
}

// Histogram reports whether the histogram is at least as good at the same cost.
func (c Comparison) Histogram() bool { return c.HistogramSame <= c.Width }

// better compares by public numbers alone. The histogram is taken at its worst query, that over all cells, the session
// at any: up to many cells the histogram wins by orders of magnitude, and a planner that asked for a session there
// should know so.
func better(p Plan, miss noise.Probability) (Comparison, error) {
	cost, err := p.Cost()
	if err != nil {
		return Comparison{}, err
	}
	if err := checkMiss(miss); err != nil {
		return Comparison{}, err
	}
	c := Comparison{Cost: cost, Width: p.Width(miss)}
	unit := cost.Epsilon.Micro() + cost.Rho.Pico() // one of them is zero
	if c.HistogramSame, err = p.histogram(unit, miss); err != nil {
		return Comparison{}, err
	}
	low, high := int64(1), unit
	for width := c.HistogramSame; width > c.Width && high < math.MaxInt64/4; {
		low, high = high, high*2
		if width, err = p.histogram(high, miss); err != nil {
			return Comparison{}, err
		}
	}
	for low < high-high/1000 {
		middle := low + (high-low)/2
		width, err := p.histogram(middle, miss)
		if err != nil || width > c.Width { // an error: the noise is out of range, so the cost too small
			low = middle + 1
		} else {
			high = middle
		}
	}
	if p.spec.Accountant == privacy.Pure {
		c.HistogramCost.Epsilon = privacy.MicroEpsilon(high)
	} else {
		c.HistogramCost.Rho = privacy.PicoRho(high)
	}
	return c, nil
}

// histogram returns the width of a sum of all cells with the noise that cost buys, in whole micro-ε or pico-ρ: one unit
// moves the cells by its rows in L1 and L2, and by twice as much (twice the square) under replace-one.
func (p Plan) histogram(cost int64, miss noise.Probability) (int64, error) {
	rows, times := p.moves, int64(1)
	if p.spec.Contribution.Neighbors == privacy.ReplaceOne {
		times = 2
	}
	if p.spec.Accountant == privacy.Pure {
		d, err := noise.New(noise.Laplace, rows*times*1_000_000, cost)
		if err != nil {
			return 0, err
		}
		return d.HalfWidthOfSum(p.spec.Cells, miss), nil
	}
	deviation := float64(rows) * math.Sqrt(float64(times)*1e12/(2*float64(cost))*float64(p.spec.Cells))
	return int64(math.Ceil(normalQuantile(float64(miss)) * deviation)), nil
}

// Share is a part of all rows, from 0 to 1.
type Share float64

// ProvedUpdates returns how many hard answers multiplicative weights can give at most, each off by at least alpha
// before it is learned: 4·ln(cells)/α² (Gupta, Roth, Ullman 2012). LikelyUpdates is what was seen with the other rules.
func ProvedUpdates(cells int, alpha Share) float64 {
	return math.Ceil(4 * math.Log(float64(cells)) / float64(alpha*alpha))
}

// LikelyUpdates returns about twice the hard answers seen in BenchmarkCovidLike for Projection and Median,
// 0.022·ln(cells)/α². It promises nothing: an analyst can find queries that are harder.
func LikelyUpdates(cells int, alpha Share) float64 {
	return math.Ceil(.045 * math.Log(float64(max(cells, 2))) / float64(alpha*alpha))
}
