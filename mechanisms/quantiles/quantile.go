// Package quantiles finds quantiles of rows in ordered cells: one by the exponential mechanism or permute-and-flip,
// several by recursion, many from the prefix sums of a range release, which is the better from some number on. What is
// released is a cell; an empty table gives some cell too.
package quantiles

import "fmt"

// MaxDenominator is the largest denominator of a quantile, and of all quantiles of a mechanism together.
const MaxDenominator = 1_000_000

// Quantile is a share of the rows, from 0 (the least) to 1 (the largest). The zero value is invalid.
type Quantile struct{ num, den int64 }

// NewQuantile checks num/den.
func NewQuantile(num, den int64) (Quantile, error) {
	if den < 1 || num < 0 || num > den {
		return Quantile{}, fmt.Errorf("quantile is %d/%d, must be from 0 to 1", num, den)
	}
	d := gcd(num, den)
	if den/d > MaxDenominator {
		return Quantile{}, fmt.Errorf("quantile is %d/%d, must have a denominator of at most %d", num, den, MaxDenominator)
	}
	return Quantile{num / d, den / d}, nil
}

// Float returns the share.
func (q Quantile) Float() float64 { return float64(q.num) / float64(q.den) }

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
