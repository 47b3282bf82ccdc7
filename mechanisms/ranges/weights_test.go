package ranges

import (
	"math"
	"testing"
)

func TestExploreWeights(t *testing.T) {
	for _, w := range []Workload{AllRanges, AllPrefixes} {
		for _, n := range []Norm{L1, L2} {
			for _, d := range []int{64, 256, 1024, 4096, 1 << 20} {
				r, ws := BestWeighted(d, w, n)
				tree, err := NewWeightedTree(d, r, ws)
				if err != nil {
					t.Fatal(err)
				}
				e := tree.weightedError(w, n)
				if n == L1 {
					e *= 2
				}
				t.Log(w, n, d, r, ws, math.Sqrt(e))
			}
		}
	}
}
