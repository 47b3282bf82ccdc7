package ranges

import (
	"math"
	"testing"
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
