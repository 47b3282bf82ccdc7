package mechanisms

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms/internal/memo"
	"github.com/dpproxy/dpproxy/mechanisms/marginals"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// String names the strategy and what determines it, without a matrix's entries.
func (y Strategy) String() string {
	text := y.Kind.String()
	if y.IsCube() {
		return text + cubeText(y)
	}
	if y.Radices != nil {
		text += " " + dotted(y.Radices)
	}
	if y.Weights != nil {
		text += " weighted " + dotted(y.Weights)
	}
	if y.Bits != 0 {
		text += fmt.Sprintf(" of %d bits", y.Bits)
	}
	if y.Version != 0 {
		text += fmt.Sprintf(" version %d", y.Version)
	}
	return text
}

func dotted[T any](list []T) string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = fmt.Sprint(n)
	}
	return strings.Join(texts, "·")
}

// level is a level of a tree: sums of blocks of cells, times a weight. Identity is the level of blocks of one.
type level struct {
	block  int
	weight int64
}

// levels returns the levels of Identity and Tree, from the top. The shape must have been checked.
func (s Spec) levels() []level {
	y := s.Counts().Strategy
	if y.Kind == Identity {
		return []level{{1, 1}}
	}
	all, block := make([]level, len(y.Radices)), 1
	for l := len(all) - 1; l >= 0; l-- {
		if all[l] = (level{block, 1}); y.Weights != nil {
			all[l].weight = y.Weights[l]
		}
		block = min(block*y.Radices[l], s.Cells)
	}
	return all
}

// matrix returns the strategy of a checked Spec where it is neither Identity nor Tree, and nil where it is.
func (s Spec) matrix() ranges.Strategy {
	if s.Counts().Strategy.Kind == Tree {
		return nil
	}
	return s.reader()
}

// reader returns the strategy of a checked Spec, nil for Identity, which needs none.
func (s Spec) reader() ranges.Strategy {
	if s.Counts().Strategy.Kind == Identity {
		return nil
	}
	r, err := opening(s.description())
	if err != nil {
		panic("mechanisms: a strategy that was never checked: " + err.Error())
	}
	return r
}

func (s Spec) description() ranges.Description {
	y := s.Counts().Strategy
	return ranges.Description{Kind: y.Kind, Cells: s.Cells, Radices: y.Radices, Weights: y.Weights, Bits: y.Bits, Version: y.Version, Matrix: y.Matrix,
		Marginals: y.Marginals, Factors: y.Factors}
}

func (s Spec) checkStrategy() error {
	switch y := s.Counts().Strategy; {
	case y.Kind == Identity:
		if len(y.Radices) != 0 {
			return fmt.Errorf("radices of the identity strategy are %v, must be none", y.Radices)
		}
		if y.Weights != nil || y.Bits != 0 || y.Version != 0 || y.Matrix != nil || y.Marginals != nil || y.Factors != nil {
			return fmt.Errorf("the identity strategy has weights, bits, a version or a matrix, must have none")
		}
		return nil
	case y.Kind < Identity || y.Kind > ContinualRoot:
		return fmt.Errorf("strategy is %d, must be from %d to %d", y.Kind, Identity, ContinualRoot)
	}
	_, err := opening(s.description())
	return err
}

// observed returns the number of observations of one counter. The shape must have been checked.
func (s Spec) observed() int {
	if m := s.matrix(); m != nil {
		return m.Observations()
	}
	n := 0
	for _, v := range s.levels() {
		n += (s.Cells + v.block - 1) / v.block
	}
	return n
}

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
