package marginals

import (
	"fmt"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// openFactor refuses strategies with entries below 0.
func openFactor(d ranges.Description) (ranges.Strategy, error) {
	switch d.Kind {
	case ranges.KindIdentity, ranges.KindTree, ranges.KindPIdentity, ranges.KindSine:
		return ranges.Open(d)
	case ranges.KindMarginals:
		for _, m := range d.Marginals {
			if m.Residual {
				return nil, fmt.Errorf("marginal %v is a residual, must be observed by its cells", Set(m.Attributes).Attributes())
			}
		}
		return OpenCube(d)
	}
	return nil, fmt.Errorf("strategy is %s, must be one without entries below 0", d.Kind)
}

// readingOf returns, by observation, what it adds to each cell.
func readingOf(s ranges.Strategy) [][]float64 {
	line := make([]float64, s.Observations())
	out := make([][]float64, len(line))
	for j := range out {
		line[j] = 1
		out[j] = make([]float64, s.Cells())
		fit(s, line, out[j])
		line[j] = 0
	}
	return out
}

// fit reads a line of real observations by a strategy that takes integers: scaled by a power of two to 60 bits, of
// which the rounding is far below a float's own.
func fit(s ranges.Strategy, line, to []float64) {
	most := 0.0
	for _, x := range line {
		most = math.Max(most, math.Abs(x))
	}
	if most == 0 {
		clear(to)
		return
	}
	_, exponent := math.Frexp(most)
	scaled := make([]int64, len(line))
	for i, x := range line {
		scaled[i] = int64(math.Ldexp(x, 60-exponent))
	}
	for i, x := range s.Fit(scaled) {
		to[i] = math.Ldexp(x, exponent-60)
	}
}
