package mechanisms

import (
	"fmt"
	"io"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Spec is all of a measurement that is public. Two equal Specs over equal measures are the same release.
type Spec struct {
	Counters int // counts per cell (count(*), count(*) FILTER …) or bounded sums, at least 1
	Cells    int // cells per counter, 1 to 2^20
	Kind     Kind
}

// Kind is what is done with the cells: *Counts, *Choice, *Alarm, *Online or *Synthetic, which is never changed once it
// is in a Spec. What this package does by kind is a method here; another tells kinds apart in one type switch that
// names all of them (internal/structure looks), and asks Is of the one kind that is a special case of its own.
type Kind interface {
	// check refuses every Spec of the kind that this package would not make.
	check(s Spec) error
	// release draws what Release does, or says by what else a measurement of the kind is opened.
	release(s Spec, place Placement, truth privacy.Sensitive[[]privacy.Group], random io.Reader) (privacy.Released[Noisy], error)
	// errors are those of sums of cells; it panics where none are read.
	errors(s Spec, confidence Confidence) *Errors
	hasNoise() bool
}

// Is reports whether a Spec is of a kind.
func Is[K Kind](s Spec) bool {
	_, is := s.Kind.(K)
	return is
}

// String writes all of a Spec, where another would be told from it by its text.
func (s Spec) String() string {
	return fmt.Sprintf("%d counters of %d cells: %T%+v", s.Counters, s.Cells, s.Kind, s.Kind)
}

// HasNoise reports whether what is released is drawn at random: each counter has noise, or what it is drawn for has a
// cost.
func (s Spec) HasNoise() bool { return s.Kind != nil && s.Kind.hasNoise() }

// Counts is a measurement that counts, or adds up, the rows of each cell, with noise.
type Counts struct {
	Strategy Strategy // how each counter's cells are observed
	Noise    Noise    // of every observation; none where Sums are given
	Sums     []Sum    // one for each counter; none where all of them count rows
}

// Counts is what a Spec counts by: the zero Counts in one of another kind.
func (s Spec) Counts() Counts {
	if c, ok := s.Kind.(*Counts); ok {
		return *c
	}
	return Counts{}
}

func (c *Counts) hasNoise() bool {
	for _, sum := range c.Sums {
		if sum.Noise.Num <= 0 || sum.Noise.Den <= 0 {
			return false
		}
	}
	return len(c.Sums) > 0 || c.Noise.Num > 0 && c.Noise.Den > 0
}

// scaled returns the Spec of the same counts with other noise.
func (s Spec) scaled(by func(Noise) Noise) Spec {
	own := s.Counts()
	if own.Sums = slices.Clone(own.Sums); own.Sums == nil {
		own.Noise = by(own.Noise)
	}
	for i := range own.Sums {
		own.Sums[i].Noise = by(own.Sums[i].Noise)
	}
	s.Kind = &own
	return s
}
