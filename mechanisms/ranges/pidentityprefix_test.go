package ranges

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// TestPrefixSums: what is made of all prefixes at once is what solving for each gives, of strategies of several shapes.
func TestPrefixSums(t *testing.T) {
	for _, cells := range []int{64, 110, 251, 1024} {
		s, err := pIdentityOf(cells, PIdentityVersion(AllRanges))
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n <= cells; n += 1 + cells/97 {
			own, want := s.prefixSums(n), s.solvedFor(indicator(cells, []Span{{0, n}}))
			largest := 0.0
			for _, w := range want {
				largest = max(largest, math.Abs(w))
			}
			for k := range want {
				if math.Abs(own[k]-want[k]) > 1e-11*largest {
					t.Fatalf("%d of %d cells: weight %d is %g, solved for %g", n, cells, k, own[k], want[k])
				}
			}
		}
		if s.table == nil {
			t.Fatal("no table was made")
		}
	}
}

// TestShapesAreBounds: the shape of a range's reading is that of its terms, from above and nearly so, whatever ranges
// it is of.
func TestShapesAreBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 105))
	for _, cells := range []int{64, 251, 1024, 4096} {
		s, err := pIdentityOf(cells, PIdentityVersion(AllRanges))
		if err != nil {
			t.Fatal(err)
		}
		for n := range 200 {
			var spans []Span
			for at := r.IntN(cells); at < cells && len(spans) <= n%4; at += 1 + r.IntN(20) {
				to := min(at+1+r.IntN([]int{3, 30, cells}[n%3]), cells)
				spans = append(spans, Span{at, to})
				at = to
			}
			own, want := s.Shape(spans, nil), noise.ShapeOf(s.Terms(spans))
			unit := want.Squares * want.Squares
			if math.Abs(own.Squares-want.Squares) > 1e-9*want.Squares {
				t.Errorf("%d cells, %v: squares %g, by the terms %g", cells, spans, own.Squares, want.Squares)
			}
			if own.Fourths < want.Fourths*(1-1e-9) || own.Fourths-own.Loose > want.Fourths*(1+1e-9) || own.Fourths > want.Fourths+1e-3*unit {
				t.Errorf("%d cells, %v: fourth powers %g, of which %g are a bound, by the terms %g", cells, spans, own.Fourths/unit, own.Loose/unit, want.Fourths/unit)
			}
			heavy := func(list []noise.Term) (sum float64) {
				for _, x := range list {
					sum += float64(x.Count) * x.Weight * x.Weight / want.Squares
				}
				return sum
			}
			if a, b := heavy(own.Heavy), heavy(want.Heavy); a > b+1e-9 || a < b-.05 {
				t.Errorf("%d cells, %v: heavy noises have %g of the squares, by the terms %g", cells, spans, a, b)
			}
		}
	}
}
