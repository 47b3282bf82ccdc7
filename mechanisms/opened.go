package mechanisms

import (
	"encoding/binary"

	"github.com/dpproxy/dpproxy/mechanisms/internal/memo"
	"github.com/dpproxy/dpproxy/mechanisms/marginals"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// opened keeps strategies that take work to open, by the number of their cells and 64 at most.
var opened = memo.Map[string, *openStrategy]{Most: maxOpenCells}

const (
	maxOpenCells = 1 << 21
	leastOpen    = maxOpenCells / 64 // what one counts at least
)

// openStrategy remembers what takes long to compute of a strategy: the mean variance of a workload and the variance of
// spans, by their keys.
type openStrategy struct {
	ranges.Strategy
	means     memo.Map[Workload, float64]
	variances memo.Map[string, float64]
}

func opening(d ranges.Description) (ranges.Strategy, error) {
	s, err := opened.Try(keyOf(d), max(d.Cells, leastOpen), func() (*openStrategy, error) {
		plain, err := open(d)
		return &openStrategy{plain, memo.Map[Workload, float64]{Most: 16}, memo.Map[string, float64]{Most: 1 << 15}}, err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// MeanVariance returns the strategy's, which may take as long as reading a release.
func (s *openStrategy) MeanVariance(w Workload) float64 {
	return s.means.Of(w, 1, func() float64 { return s.Strategy.MeanVariance(w) })
}

// Variance returns the strategy's; that of a tree and of what tells shapes takes no longer than a look-up.
func (s *openStrategy) Variance(spans []ranges.Span) float64 {
	switch s.Strategy.(type) {
	case ranges.Tree, ranges.Shaped:
		return s.Strategy.Variance(spans)
	}
	return s.variances.Of(string(keyOfSpans(spans)), 1, func() float64 { return s.Strategy.Variance(spans) })
}

func open(d ranges.Description) (ranges.Strategy, error) {
	if d.Kind == Marginals || d.Kind == Product {
		return marginals.OpenCube(d)
	}
	return ranges.Open(d)
}

func keyOf(d ranges.Description) string {
	b := make([]byte, 0, 64)
	for _, n := range []int{int(d.Kind), d.Cells, d.Bits, d.Version, len(d.Radices), len(d.Weights), len(d.Matrix), len(d.Marginals)} {
		b = binary.AppendVarint(b, int64(n))
	}
	for _, r := range d.Radices {
		b = binary.AppendVarint(b, int64(r))
	}
	for _, w := range d.Weights {
		b = binary.AppendVarint(b, w)
	}
	for _, e := range d.Matrix {
		b = binary.AppendVarint(b, e)
	}
	for _, m := range d.Marginals {
		residual := int64(0)
		if m.Residual {
			residual = 1
		}
		b = binary.AppendVarint(binary.AppendVarint(binary.AppendUvarint(b, m.Attributes), residual), m.Weight)
	}
	for _, f := range d.Factors {
		key := keyOf(f)
		b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	}
	return string(b)
}
