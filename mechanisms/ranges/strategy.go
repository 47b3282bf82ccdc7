package ranges

import (
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Strategy is a linear strategy made exact: an integer matrix B with a row for each observation and a column for each
// cell. Released are the exact integers B·x plus independent integer noise on each; everything else is post-processing.
// Implementations are immutable and safe for concurrent use.
//
// Claim: with one unit's rows changing the cells by a vector d of integers, B·x changes by B·d, and Sensitivity bounds
// |B·d|₁ and |B·d|₂² for a unit of one row. For a unit of up to R rows, |B·d| is a convex function on the polytope whose
// corners are R times the changes of one row, hence at most R times (L2²: R² times) as large. Real-valued matrices that
// B was rounded from play no part: the norms are computed from the integers of B, in integers.
type Strategy interface {
	// Cells returns the number of columns of B.
	Cells() int
	// Observations returns the number of rows of B.
	Observations() int
	// Sensitivity returns the largest norms of the change of B·x by one row: of a column of B (add-remove), and of a
	// column and of a difference of two columns (replace-one). They are exact, or bounds from above.
	Sensitivity(neighbors privacy.Neighbors) privacy.Sensitivity
	// Observe returns B·x for the cells x, each taken into [0, MaxObserved] first and each result into ±MaxObserved at
	// last. Neither step brings two vectors further apart, so that Sensitivity holds for all inputs. Its result is as
	// private as the cells.
	Observe(cells []int64) []int64
	// Fit returns the least-squares reading of the cells from noisy observations.
	Fit(observations []int64) []float64
	// Variance returns the variance of the least-squares reading of the sum of the cells in spans (disjoint, sorted,
	// within the cells), in units of the variance of one observation's noise.
	Variance(spans []Span) float64
	// Terms returns that reading as a weighted sum of observations' noise: Σ Count·Weight² is Variance. There are as
	// many as observations at most.
	Terms(spans []Span) []noise.Term
	// MeanVariance returns the mean of Variance over the workload's queries.
	MeanVariance(workload Workload) float64
}

// MaxObserved bounds what a strategy observes before noise.
const MaxObserved = 1 << 61

// Workload is a set of sums of consecutive cells whose mean error is to be small.
type Workload uint8

// The workloads. The zero value is invalid.
const (
	AllRanges   Workload = 1 + iota // the D·(D+1)/2 ranges
	AllPrefixes                     // the D prefixes, from one cell to all of them: the cumulative distribution
)

func (w Workload) String() string {
	switch w {
	case AllRanges:
		return "all ranges"
	case AllPrefixes:
		return "prefixes"
	}
	return "unknown workload"
}

// queries returns the number of queries over so many cells.
func (w Workload) queries(cells int) float64 {
	if w == AllPrefixes {
		return float64(cells)
	}
	return float64(cells) * float64(cells+1) / 2
}
