package ranges

import (
	"errors"
	"fmt"
)

// Kind names a family of strategies.
type Kind uint8

// The kinds. The zero value is invalid. Identity is also the Tree of one level; it has a kind because it needs no
// strategy at all.
const (
	KindIdentity  Kind = 1 + iota // each cell once
	KindTree                      // the nodes of a mixed-radix tree, weighted by level: Radices, Weights
	KindPIdentity                 // the shipped p-identity strategy of so many cells: Version
	KindSine                      // square root of the all-ranges Gram matrix, columns normalised: Bits, Version
	KindCosine                    // square root of the prefix Gram matrix, columns normalised: Bits, Version
	KindRoot                      // square-root Toeplitz matrix, columns normalised, for streams: Bits, Version
	KindMatrix                    // a given integer matrix: Matrix
)

func (k Kind) String() string {
	names := []string{"", "identity", "tree", "p-identity", "sine", "cosine", "square root", "matrix"}
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
	Radices []int   // Tree: the branching factors from the root down
	Weights []int64 // Tree: what each level's counts are multiplied by; nil stands for all 1
	Bits    int     // Sine, Cosine, Root: the longest column of the integer matrix is about 2^Bits long
	Version int     // PIdentity, Sine, Cosine, Root: of the recipe or the shipped data, from 1
	Matrix  []int64 // Matrix: row by row
}

// Open returns the strategy that d describes.
func Open(d Description) (Strategy, error) {
	return nil, errors.Join(d.check(), fmt.Errorf("strategy is %s, must be one that this version knows", d.Kind))
}

// check refuses fields that the kind does not use: they would make two names of one strategy.
func (d Description) check() error {
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
		uses(d.Radices != nil, "radices", KindTree),
		uses(d.Weights != nil, "weights", KindTree),
		uses(d.Bits != 0, "bits", KindSine, KindCosine, KindRoot),
		uses(d.Version != 0, "version", KindPIdentity, KindSine, KindCosine, KindRoot),
		uses(d.Matrix != nil, "matrix", KindMatrix),
	)
}
