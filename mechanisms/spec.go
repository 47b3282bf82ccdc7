// Package mechanisms turns true counts into releases. A Spec says what is measured, by which strategy and with which
// noise; it is a function of public things alone. Release opens the sealed counts, adds the noise and forgets them.
// Estimate reads any sum of cells from a release; Error says, before any data, how far such a sum will be off.
// The package knows neither SQL nor users.
package mechanisms

import "github.com/dpproxy/dpproxy/mechanisms/privacy"

// StrategyKind names how the cells of a measure are observed.
type StrategyKind uint8

// The strategies. The zero value is invalid.
const (
	Identity StrategyKind = 1 + iota // each cell once
	Tree                             // the nodes of a mixed-radix tree over the cells, root left out
)

// Strategy is what is observed of a vector of cells.
type Strategy struct {
	Kind    StrategyKind
	Radices []int // Tree: the branching factors from the root down; their product is at least the number of cells
}

// NoiseKind names a noise distribution.
type NoiseKind uint8

// The noise distributions. The zero value is invalid.
const (
	DiscreteLaplace  NoiseKind = 1 + iota // P(k) ∝ exp(−|k|/t), t = Num/Den
	DiscreteGaussian                      // P(k) ∝ exp(−k²/(2σ²)), σ² = Num/Den
)

// Noise is a distribution with a rational parameter Num/Den > 0: the scale t of the discrete Laplace, the
// variance parameter σ² of the discrete Gaussian.
type Noise struct {
	Kind     NoiseKind
	Num, Den int64
}

// Spec is all of a measurement that is public. Two equal Specs over equal measures are the same release.
type Spec struct {
	Counters int      // counts per cell (count(*), count(*) FILTER …), at least 1
	Cells    int      // cells per counter, 1 to 2^20
	Strategy Strategy // how each counter's cells are observed
	Noise    Noise    // of every observation
}

// Placement maps one group to the cell that its count belongs to, for one counter; −1 leaves it out. It is a function
// of public things alone, total, and says the same each time.
type Placement func(cells []int32, counter int) int

// Contribution bounds what one unit puts into a measure.
type Contribution = privacy.Contribution

// Noisy is the outcome of a measurement: per counter, the observations of the strategy in its order
// (Identity: the cells; Tree: level by level from the top, each left to right), noise added.
type Noisy struct {
	Observations []int64
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
