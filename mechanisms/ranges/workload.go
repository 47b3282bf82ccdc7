package ranges

import (
	"errors"
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/internal/memo"
)

// Kind names a family of strategies.
type Kind uint8

// The kinds. The zero value is invalid. Identity is also the Tree of one level; it has a kind because it needs no
// strategy at all.
const (
	KindIdentity      Kind = 1 + iota // each cell once
	KindTree                          // the nodes of a mixed-radix tree, weighted by level: Radices, Weights
	KindPIdentity                     // the shipped p-identity strategy of so many cells: Version
	KindSine                          // square root of the all-ranges Gram matrix, columns normalised: Bits, Version
	KindCosine                        // square root of the prefix Gram matrix, columns normalised: Bits, Version
	_                                 // was a square-root Toeplitz matrix, columns normalised: nothing was released by it
	KindMatrix                        // a given integer matrix: Matrix
	KindMarginals                     // marginals of a cube, weighted: Radices, Marginals; see package marginals
	KindProduct                       // the Kronecker product of strategies: Factors; see package marginals
	KindContinualTree                 // the complete nodes of a tree over cells that come one by one: Radices
	KindContinualRoot                 // square-root Toeplitz matrix within a band, for the same: Radices, Bits
)

func (k Kind) String() string {
	names := []string{"", "identity", "tree", "p-identity", "sine", "cosine", "", "matrix", "marginals", "product",
		"continual tree", "continual square root"}
	if int(k) < len(names) && k > 0 {
		return names[k]
	}
	return "unknown strategy"
}

// Description determines a strategy for ever: two that are equal open as the same integer matrix, whatever the machine
// and the release of this package. Fields that a kind does not name are zero.
type Description struct {
	Kind    Kind
	Cells   int
	Radices []int   // Tree: the branching factors from the root down; ContinualTree: from the top level down, none but cells if empty; ContinualRoot: the band
	Weights []int64 // Tree: what each level's counts are multiplied by; nil stands for all 1
	Bits    int     // Sine, Cosine: the longest column of the integer matrix is about 2^Bits long; ContinualRoot: its largest entry
	Version int     // PIdentity, Sine, Cosine: of the recipe or the shipped data, from 1
	Matrix  []int64 // Matrix: row by row

	// Marginals: the cells are those of a cube whose attributes have Radices cells each, the last one's fastest.
	Marginals []Marginal
	Factors   []Description // Product: of consecutive attributes, the last factor's cells fastest
}

// Marginal is what is observed of one marginal of a cube: its cells, or the rows of its residual, times a weight.
type Marginal struct {
	Attributes uint64 // bit i stands for attribute i; none means the total
	Residual   bool
	Weight     int64
}

// Open returns the strategy that d describes, but those of cubes, which package marginals opens. Those that take long
// to make are remembered for the process.
func Open(d Description) (Strategy, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	switch d.Kind {
	case KindIdentity:
		if d.Cells == 1 {
			return single, nil
		}
		return known(NewTree(d.Cells, []int{d.Cells}))
	case KindTree:
		return known(NewWeightedTree(d.Cells, d.Radices, d.Weights))
	case KindSine, KindCosine:
		if d.Version != 1 {
			return nil, fmt.Errorf("version of strategy %s is %d, must be 1", d.Kind, d.Version)
		}
		return known(opened.Try(convolutionKey{d.Kind, d.Cells, d.Bits}, d.Cells, func() (*convolution, error) { return newConvolution(d.Kind, d.Cells, d.Bits) }))
	case KindPIdentity:
		return known(pIdentityOf(d.Cells, d.Version))
	case KindMatrix:
		return known(newMatrix(d.Cells, d.Matrix))
	case KindContinualTree:
		return known(newClosedTree(d.Cells, d.Radices))
	case KindContinualRoot:
		return known(newBand(d.Cells, d.Radices, d.Bits))
	}
	return nil, fmt.Errorf("strategy is %d, must be one that this version knows", d.Kind)
}

// single observes one cell.
var single = Tree{cells: 1, levels: []level{{
	block: 1, count: 1, weight: 1, full: node{own: 1, variance: 1}, last: node{own: 1, variance: 1},
}}, root: children{full: 1, sum: 1}}

// known drops a strategy that came with an error.
func known[S Strategy](s S, err error) (Strategy, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// opened remembers convolutions by the number of their cells, each of which takes some 150 bytes.
var opened = memo.Map[convolutionKey, *convolution]{Most: 1 << 18}

type convolutionKey struct {
	kind        Kind
	cells, bits int
}

// Check refuses fields that the kind does not use: they would make two names of one strategy.
func (d Description) Check() error {
	uses := func(used bool, name string, kinds ...Kind) error {
		if !used {
			return nil
		}
		for _, k := range kinds {
			if d.Kind == k {
				return nil
			}
		}
		return fmt.Errorf("%s of strategy %s is given, must be absent", name, d.Kind)
	}
	return errors.Join(
		uses(d.Radices != nil, "radices", KindTree, KindMarginals, KindContinualTree, KindContinualRoot),
		uses(d.Weights != nil, "weights", KindTree),
		uses(d.Bits != 0, "bits", KindSine, KindCosine, KindContinualRoot),
		uses(d.Version != 0, "version", KindPIdentity, KindSine, KindCosine),
		uses(d.Matrix != nil, "matrix", KindMatrix),
		uses(d.Marginals != nil, "marginals", KindMarginals),
		uses(d.Factors != nil, "factors", KindProduct),
	)
}
