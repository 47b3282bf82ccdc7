package mechanisms

import (
	"encoding/binary"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/marginals"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// opened keeps strategies that take work to open, for the whole process: each is a function of its description alone.
var opened openStrategies

type openStrategies struct {
	mu    sync.RWMutex
	known map[string]*openStrategy
	cells int
}

// openStrategy remembers what takes long to compute of a strategy: the mean variance of a workload and the variance of
// spans, by their keys.
type openStrategy struct {
	ranges.Strategy
	mu        sync.RWMutex
	means     map[Workload]float64
	variances map[string]float64
}

// maxOpen and maxOpenCells bound the strategies that are kept, maxVariances the variances of each; beyond it they are
// forgotten, all at once.
const (
	maxOpen      = 64
	maxOpenCells = 1 << 21
	maxVariances = 1 << 15
)

func (o *openStrategies) strategy(d ranges.Description) (ranges.Strategy, error) {
	key := keyOf(d)
	o.mu.RLock()
	s, ok := o.known[key]
	o.mu.RUnlock()
	if ok {
		return s, nil
	}
	plain, err := open(d)
	if err != nil {
		return nil, err
	}
	s = &openStrategy{Strategy: plain, means: map[Workload]float64{}}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cells += d.Cells; o.known == nil || len(o.known) >= maxOpen || o.cells > maxOpenCells {
		o.known, o.cells = map[string]*openStrategy{}, d.Cells
	}
	o.known[key] = s
	return s, nil
}

// MeanVariance returns the strategy's, which may take as long as reading a release.
func (s *openStrategy) MeanVariance(w Workload) float64 {
	s.mu.RLock()
	mean, ok := s.means[w]
	s.mu.RUnlock()
	if ok {
		return mean
	}
	mean = s.Strategy.MeanVariance(w)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.means[w] = mean
	return mean
}

// Variance returns the strategy's; that of a tree and of what tells shapes takes no longer than a look-up.
func (s *openStrategy) Variance(spans []ranges.Span) float64 {
	switch s.Strategy.(type) {
	case ranges.Tree, ranges.Shaped:
		return s.Strategy.Variance(spans)
	}
	key := string(keyOfSpans(spans))
	s.mu.RLock()
	variance, ok := s.variances[key]
	s.mu.RUnlock()
	if ok {
		return variance
	}
	variance = s.Strategy.Variance(spans)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.variances == nil || len(s.variances) >= maxVariances {
		s.variances = map[string]float64{}
	}
	s.variances[key] = variance
	return variance
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
