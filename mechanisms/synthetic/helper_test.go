package synthetic

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

const seed = "synthetic: thirty-two fixed bytes"

func seeded(stream byte) *rand.ChaCha8 {
	key := [32]byte([]byte(seed)[:32])
	key[31] = stream
	return rand.NewChaCha8(key)
}

func epsilon(x float64) privacy.Cost {
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(int64(math.Round(x * 1e6)))}
}

func rho(x float64) privacy.Cost {
	return privacy.Cost{Rho: privacy.PicoRho(int64(math.Round(x * 1e12)))}
}

var oneRow = privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}

// predicates are random sets of cells.
func predicates(t testing.TB, cells, n int, random *rand.Rand) Queries {
	t.Helper()
	members := make([][]int32, n)
	for i := range members {
		for c := range cells {
			if random.IntN(2) == 0 {
				members[i] = append(members[i], int32(c))
			}
		}
	}
	q, err := NewQueries(cells, members)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// data draws rows from a random distribution.
func data(cells, rows int, random *rand.Rand) []int64 {
	weights, total := make([]float64, cells), 0.0
	for i := range weights {
		weights[i] = random.ExpFloat64()
		total += weights[i]
	}
	counts := make([]int64, cells)
	for range rows {
		at, c := random.Float64()*total, 0
		for at > weights[c] && c < cells-1 {
			at -= weights[c]
			c++
		}
		counts[c]++
	}
	return counts
}

func floats(counts []int64) []float64 {
	out := make([]float64, len(counts))
	for i, c := range counts {
		out[i] = float64(c)
	}
	return out
}

func small(t testing.TB, q Queries, m int64, n Total, cost privacy.Cost) Small {
	t.Helper()
	s, err := NewSmall(q, m, n, oneRow, cost)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func weights(t testing.TB, q Queries, n Total, rounds int, cost privacy.Cost) Weights {
	t.Helper()
	w, err := NewWeights(q, n, rounds, oneRow, cost)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// worst returns the largest and the root mean squared error of a database's answers.
func worst(t testing.TB, q Queries, truth []int64, cells []float64) (most, rmse float64) {
	t.Helper()
	got := q.answers(cells, make([]float64, q.Len()))
	for i, want := range q.truth(truth) {
		off := math.Abs(got[i] - float64(want))
		most, rmse = max(most, off), rmse+off*off
	}
	return most, math.Sqrt(rmse / float64(q.Len()))
}

// newRanges makes queries of intervals [from, to) of cells.
func newRanges(cells int, ranges [][2]int32) (Queries, error) {
	members := make([][]int32, len(ranges))
	for i, r := range ranges {
		for c := r[0]; c < r[1]; c++ {
			members[i] = append(members[i], c)
		}
	}
	return NewQueries(cells, members)
}
