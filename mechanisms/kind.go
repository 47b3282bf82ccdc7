// Package mechanisms turns true counts into releases. A Spec says what is measured, by which strategy and with which
// noise; it is a function of public things alone. Release opens the sealed counts, adds the noise and forgets them.
// Estimate reads any sum of cells from a release; Error says, before any data, how far such a sum will be off.
// The package knows neither SQL nor users.
package mechanisms

import (
	"fmt"
	"io"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// StrategyKind names how the cells of a measure are observed; package ranges describes them.
type StrategyKind = ranges.Kind

// The strategies. The zero value is invalid.
const (
	Identity  = ranges.KindIdentity  // each cell once
	Tree      = ranges.KindTree      // the nodes of a mixed-radix tree over the cells, root left out
	PIdentity = ranges.KindPIdentity // each cell, and a few weighted sums of all
	Sine      = ranges.KindSine      // the sine transform's square root: best for all ranges under zCDP
	Cosine    = ranges.KindCosine    // the cosine transform's: for prefixes under zCDP
	Matrix    = ranges.KindMatrix    // any integer matrix

	Marginals = ranges.KindMarginals // weighted marginals of a cube, or their residuals
	Product   = ranges.KindProduct   // the Kronecker product of strategies for some of a cube's attributes

	ContinualTree = ranges.KindContinualTree // the complete nodes of a tree over cells that come one by one
	ContinualRoot = ranges.KindContinualRoot // the square-root Toeplitz matrix within a band, for the same
)

// Strategy is what is observed of a vector of cells: a ranges.Description, whose cells are the Spec's.
type Strategy struct {
	Kind          StrategyKind
	Radices       []int   // Tree: the branching factors from the root down; their product is at least the number of cells. Marginals: the attributes' cells; see ranges.Description for others
	Weights       []int64 // Tree: what each level's sums are multiplied by; nil means nothing
	Bits, Version int     // of the others, see ranges.Description
	Matrix        []int64
	Marginals     []ranges.Marginal    // Marginals: what is observed
	Factors       []ranges.Description // Product: the strategies
}

// NoiseKind names a noise distribution. The numbers are in ledgers.
type NoiseKind = noise.Kind

// The noise distributions. The zero value is invalid.
const (
	DiscreteLaplace  = noise.Laplace  // P(k) ∝ exp(−|k|/t), t = Num/Den
	DiscreteGaussian = noise.Gaussian // P(k) ∝ exp(−k²/(2σ²)), σ² = Num/Den
)

// Noise is a distribution with a rational parameter Num/Den > 0: the scale t of the discrete Laplace, the
// variance parameter σ² of the discrete Gaussian. With a Step it is in steps of so many integers; see step.go.
type Noise struct {
	Kind     NoiseKind
	Num, Den int64
	Step     int64 // 0: none; else odd and above 1. Only sums have one
}

// Sum is a counter that adds up a bounded whole number of each row: a count is the sum of 1, between 0 and 1. With
// Values above 0 it adds up different values, of so many, once each, that the rows of a cell have: the placement then
// says cell and value at once, cell·Values + value, and the Bound is that of a value; that of a count makes it their
// number. Values are distinguished in cells counted once each.
type Sum struct {
	Bound
	Noise  Noise // of every observation of this counter
	Values int
}

// Bound says what one row adds to a counter: a whole number in [Low, High], or nothing where the row is filtered out.
// The SQL must clamp to it.
type Bound struct{ Low, High int64 }

// counted is the bound of a count.
var counted = Bound{0, 1}

// Placement maps one group to the cell that its count belongs to, for one counter (see Sum for counters of values); −1
// leaves it out. It is a function of public things alone, total, and says the same each time.
type Placement func(cells []int32, counter int) int

// Contribution bounds what one unit puts into a measure. Its groups are the cells of the Spec: where a placement puts
// several of the database's groups into one cell, PerGroup is for all of them together.
type Contribution = privacy.Contribution

// Noisy is the outcome of a measurement: per counter, the observations of the strategy in its order
// (Identity: the cells; Tree: level by level from the top, each left to right), noise added.
type Noisy struct {
	Observations []int64
	Keys         []string // of a discovery: by observation, its key as privacy.Group writes it
}

// Span is the half-open range [From, To) of cells.
type Span struct{ From, To int }

// Confidence is the probability, in (0, 1), that an interval holds the true value.
type Confidence struct{ p float64 }

// Error is how far a sum of cells read from a release is off: noise alone, per value.
type Error struct {
	Variance  float64
	HalfWidth int64 // the smallest k with P(|rounded estimate − truth| > k) ≤ 1 − confidence
}

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

// String writes all of a Spec, where another would be distinguished from it by its text.
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
