package quantiles

import (
	"math"
	"math/rand/v2"
	"testing"
)

func cdf(counts []int64) CDF {
	prefixes := make([]float64, len(counts)+1)
	for j, n := range counts {
		prefixes[j+1] = prefixes[j] + float64(n)
	}
	return NewCDF(prefixes)
}

// TestExactSumsGiveExactQuantiles: against PostgreSQL's definitions over the rows one by one.
func TestExactSumsGiveExactQuantiles(t *testing.T) {
	tables(4, 3, func(counts []int64) {
		rows := []int{}
		for j, n := range counts {
			for range n {
				rows = append(rows, j)
			}
		}
		if len(rows) == 0 {
			return
		}
		c := cdf(counts)
		for _, q := range shares(t, 0, 1, 1, 10, 1, 4, 1, 3, 1, 2, 2, 3, 9, 10, 1, 1) {
			disc := rows[max(0, int(math.Ceil(q.Float()*float64(len(rows))-1e-9))-1)]
			if got := c.Disc(q); got != disc {
				t.Errorf("%v of %v: cell %d, want %d", q, counts, got, disc)
			}
			place := q.Float() * float64(len(rows)-1)
			low := int(place + 1e-9)
			cont := float64(rows[low]) + (place-float64(low))*float64(rows[min(low+1, len(rows)-1)]-rows[low])
			if got := c.Cont(q, func(cell int) float64 { return float64(cell) }); math.Abs(got-cont) > 1e-6 {
				t.Errorf("%v of %v: %v, want %v", q, counts, got, cont)
			}
		}
	})
}

// TestCDFIsTotal: any numbers give cells, which do not decrease with the share.
func TestCDFIsTotal(t *testing.T) {
	source := rand.New(rand.NewPCG(3, 4))
	all := shares(t, 0, 1, 1, 10, 1, 2, 9, 10, 1, 1)
	odd := [][]float64{nil, {0}, {0, -5, -3}, {math.NaN(), math.Inf(1), 3}, {0, 0, 0, 0}, {5, 4, 3}}
	for range 300 {
		prefixes := make([]float64, 2+source.IntN(9))
		for i := range prefixes {
			prefixes[i] = 20 * source.NormFloat64()
		}
		odd = append(odd, prefixes)
	}
	for _, prefixes := range odd {
		c, last := NewCDF(prefixes), 0
		for _, q := range all {
			cell := c.Disc(q)
			value := c.Cont(q, func(cell int) float64 { return float64(cell) })
			if cell < last || cell >= max(1, len(prefixes)-1) || math.IsNaN(value) {
				t.Errorf("%v of %v: cell %d after %d, value %v", q, prefixes, cell, last, value)
			}
			last = cell
		}
	}
}
