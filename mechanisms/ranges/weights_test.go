package ranges

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func TestWeightedTreeAgainstDense(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 60 {
		cells := 2 + r.IntN(60)
		below, block := []int{}, 1
		for len(below) < 5 {
			radix := 2 + r.IntN(6)
			if block*radix >= cells || r.IntN(4) == 0 {
				break
			}
			block *= radix
			below = append(below, radix)
		}
		radices := append([]int{(cells + block - 1) / block}, below...)
		weights := make([]int64, len(radices))
		b := dense(cells, radices)
		rows, _ := b.Dims()
		at := 0
		for l := range weights {
			weights[l] = 1 + r.Int64N(100)
			block := 1
			for _, radix := range radices[l+1:] {
				block *= radix
			}
			for range (cells + block - 1) / block {
				row := b.RawRowView(at)
				for i := range row {
					row[i] *= float64(weights[l])
				}
				at++
			}
		}
		if at != rows {
			t.Fatal(at, rows)
		}
		tree, err := NewWeightedTree(cells, radices, weights)
		if err != nil {
			t.Fatal(err)
		}
		againstDense(t, fmt.Sprint(cells, radices, weights), tree, b, r)
	}
}

// TestSingleAgainstDense: the strategy of one cell is the matrix 1.
func TestSingleAgainstDense(t *testing.T) {
	againstDense(t, "one cell", single, mat.NewDense(1, 1, []float64{1}), rand.New(rand.NewPCG(11, 12)))
}

func TestNewWeightedTreeRefuses(t *testing.T) {
	for _, c := range []struct {
		weights []int64
		want    string
	}{
		{[]int64{1}, "number of weights is 1"}, {[]int64{}, "number of weights is 0"}, {[]int64{1, 0}, "weight 2 is 0"},
		{[]int64{-1, 1}, "weight 1 is -1"}, {[]int64{1, MaxWeight + 1}, "weight 2 is 1048577"},
	} {
		if _, err := NewWeightedTree(8, []int{2, 4}, c.weights); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("weights %v: %v, want %s", c.weights, err, c.want)
		}
	}
}
