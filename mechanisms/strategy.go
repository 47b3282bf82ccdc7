package mechanisms

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// String names the strategy and what determines it, without a matrix's entries.
func (y Strategy) String() string {
	text := y.Kind.String()
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
	if s.Strategy.Kind == Identity {
		return []level{{1, 1}}
	}
	all, block := make([]level, len(s.Strategy.Radices)), 1
	for l := len(all) - 1; l >= 0; l-- {
		if all[l] = (level{block, 1}); s.Strategy.Weights != nil {
			all[l].weight = s.Strategy.Weights[l]
		}
		block = min(block*s.Strategy.Radices[l], s.Cells)
	}
	return all
}

// matrix returns the strategy of a checked Spec where it is neither Identity nor Tree, and nil where it is.
func (s Spec) matrix() ranges.Strategy {
	if s.Strategy.Kind == Tree {
		return nil
	}
	return s.reader()
}

// reader returns the strategy of a checked Spec, nil for Identity, which needs none.
func (s Spec) reader() ranges.Strategy {
	if s.Strategy.Kind == Identity {
		return nil
	}
	r, err := opened.strategy(s.description())
	if err != nil {
		panic("mechanisms: a strategy that was never checked: " + err.Error())
	}
	return r
}

func (s Spec) description() ranges.Description {
	y := s.Strategy
	return ranges.Description{Kind: y.Kind, Cells: s.Cells, Radices: y.Radices, Weights: y.Weights, Bits: y.Bits, Version: y.Version, Matrix: y.Matrix}
}

func (s Spec) checkStrategy() error {
	switch y := s.Strategy; {
	case y.Kind == Identity:
		if len(y.Radices) != 0 {
			return fmt.Errorf("radices of the identity strategy are %v, must be none", y.Radices)
		}
		if y.Weights != nil || y.Bits != 0 || y.Version != 0 || y.Matrix != nil {
			return fmt.Errorf("the identity strategy has weights, bits, a version or a matrix, must have none")
		}
		return nil
	case y.Kind < Identity || y.Kind > Matrix:
		return fmt.Errorf("strategy is %d, must be from %d to %d", y.Kind, Identity, Matrix)
	}
	_, err := opened.strategy(s.description())
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

// opened keeps strategies that take work to open, for the whole process: each is a function of its description alone.
var opened openStrategies

type openStrategies struct {
	mu    sync.RWMutex
	known map[string]ranges.Strategy
	cells int
}

// mostOpen and mostOpenCells bound the strategies that are kept; beyond it they are forgotten, all at once.
const (
	mostOpen      = 64
	mostOpenCells = 1 << 21
)

func (o *openStrategies) strategy(d ranges.Description) (ranges.Strategy, error) {
	key := keyOf(d)
	o.mu.RLock()
	s, ok := o.known[key]
	o.mu.RUnlock()
	if ok {
		return s, nil
	}
	s, err := open(d)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cells += d.Cells; o.known == nil || len(o.known) >= mostOpen || o.cells > mostOpenCells {
		o.known, o.cells = map[string]ranges.Strategy{}, d.Cells
	}
	o.known[key] = s
	return s, nil
}

// open opens a strategy. Trees have an error text of their own.
func open(d ranges.Description) (ranges.Strategy, error) {
	if d.Kind == Tree && d.Weights == nil && d.Bits == 0 && d.Version == 0 && d.Matrix == nil {
		return ranges.NewTree(d.Cells, d.Radices)
	}
	return ranges.Open(d)
}

func keyOf(d ranges.Description) string {
	b := make([]byte, 0, 64)
	for _, n := range []int{int(d.Kind), d.Cells, d.Bits, d.Version, len(d.Radices), len(d.Weights)} {
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
	return string(b)
}
