package ranges

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
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

// TestLevelWeights: where all nodes are complete, no weights by level are better under L2 by more than rounding. With T
// and c as levelWeights has them, of which T is taken here from the dense Gram matrix of the workload, Σ T/λ · Σ c·λ is
// at least (Σ √(T·c))² by Cauchy and Schwarz, whatever the weights. Even weights miss it, and those of the other
// workload.
func TestLevelWeights(t *testing.T) {
	for _, c := range []struct {
		radices     []int
		even, other float64 // at least so many times the bound
	}{
		{[]int{2, 2, 2, 2, 2, 2, 2}, 1.08, 1.01}, {[]int{4, 4, 4}, 1.02, 1.02}, {[]int{9, 9}, 1.002, 1.005},
		{[]int{3, 5, 2, 4}, 1.01, 1.01}, {[]int{100}, 1, 1},
	} {
		cells := product(c.radices)
		for _, workload := range []Workload{AllRanges, AllPrefixes} {
			gram, bound, before, coarser := gramOfWorkload(workload, cells), 0.0, 0.0, 0.0
			for l := range c.radices {
				block := product(c.radices[l+1:])
				held := 0.0 // tr(G·P), P projecting to the means of blocks
				for i := range cells {
					for k := i / block * block; k < i/block*block+block; k++ {
						held += gram.At(i, k) / float64(block)
					}
				}
				bound += math.Sqrt((held - before) * (1/float64(block) - coarser))
				before, coarser = held, 1/float64(block)
			}
			excess := func(weights []int64) float64 {
				tree, err := NewWeightedTree(cells, c.radices, weights)
				if err != nil {
					t.Fatal(err)
				}
				total := tree.MeanVariance(workload) * workload.queries(cells)
				return total * continuous(L2)(tree.Sensitivity(privacy.AddRemove)) / (bound * bound)
			}
			chosen := levelWeights(cells, c.radices, workload)
			other := levelWeights(cells, c.radices, AllRanges+AllPrefixes-workload)
			t.Logf("%s, %v weighted %v: %.6f, even %.4f, the other's %.4f", workload, c.radices, chosen, excess(chosen),
				excess(nil), excess(other))
			if e := excess(chosen); e < 1-1e-9 || e > 1.0001 {
				t.Errorf("%s, %v weighted %v: %.6f times the bound", workload, c.radices, chosen, e)
			}
			if excess(nil) < c.even || excess(other) < c.other {
				t.Errorf("%s, %v: even weights have %.4f times the bound, the other workload's %.4f", workload, c.radices,
					excess(nil), excess(other))
			}
		}
	}
}

func product(factors []int) int {
	p := 1
	for _, f := range factors {
		p *= f
	}
	return p
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
