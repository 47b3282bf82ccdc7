package quantiles

import (
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// CDF reads quantiles from released prefix sums: all of them for one cost. The zero value is invalid.
type CDF struct{ prefixes []float64 }

// NewCDF makes non-decreasing sums of the estimates of the first 0, 1, …, all cells (isotonic regression, which brings
// no estimate further from the truth in sum). Estimates that are not finite count as 0.
func NewCDF(prefixes []float64) CDF {
	own := make([]float64, max(2, len(prefixes)))
	for i, p := range prefixes {
		if !math.IsNaN(p) && !math.IsInf(p, 0) {
			own[i] = p
		}
	}
	ranges.Isotonic(own)
	return CDF{own}
}

// Rows returns the estimate of all rows.
func (c CDF) Rows() float64 { return c.prefixes[len(c.prefixes)-1] }

// Disc returns the cell of percentile_disc: the first one that holds, with those before, the share q of the rows, and
// at least one row where there is one.
func (c CDF) Disc(q Quantile) int { return c.cellOf(q.Float() * c.Rows()) }

// cellOf returns the cell of the row of a rank, counted from 1; a rank below 1 is the first row's. A rank may be a
// fraction, and is never beyond the last row.
func (c CDF) cellOf(rank float64) int {
	rows := c.Rows()
	rank = min(max(rank, min(1, rows)), rows)
	for cell := range len(c.prefixes) - 2 {
		if c.prefixes[cell+1] >= rank && rows > 0 {
			return cell
		}
	}
	if rows <= 0 {
		return 0
	}
	return len(c.prefixes) - 2
}

// Cont returns percentile_cont: of rows r in order of value, at place 1 + q·(r − 1), between two rows in proportion.
// value gives the value of a cell's rows.
func (c CDF) Cont(q Quantile, value func(cell int) float64) float64 {
	place := 1 + q.Float()*max(0, c.Rows()-1)
	whole := math.Floor(place)
	low := value(c.cellOf(whole))
	if place == whole {
		return low
	}
	return low + (place-whole)*(value(c.cellOf(whole+1))-low)
}
