package ranges

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
		radices := candidate{cells: cells, below: below}.radices()
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

// TestWeightedTreeErrors: the figures of weighted trees that are known (reference: mixed radix with optimal level
// weights, and the Haar wavelet with optimal level weights), pure at ε = 1 and in multiples of σ.
func TestWeightedTreeErrors(t *testing.T) {
	for _, c := range []struct {
		workload Workload
		norm     Norm
		cells    int
		best     float64
		excess   float64
	}{
		{AllRanges, L1, 64, 6.05, 1}, {AllRanges, L1, 256, 8.89, 1}, {AllRanges, L1, 1024, 12.43, 1}, {AllRanges, L1, 4096, 16.15, 1},
		{AllPrefixes, L1, 64, 5.87, 1}, {AllPrefixes, L1, 256, 8.41, 1}, {AllPrefixes, L1, 1024, 10.91, 1}, {AllPrefixes, L1, 4096, 13.90, 1},
		{AllRanges, L1, 1 << 14, 20.84, 1}, {AllRanges, L1, 1 << 16, 24.81, 1}, {AllRanges, L1, 1 << 20, 34.59, 1},
		// The wavelet weighs the total apart, which a tree without root does not observe.
		{AllRanges, L2, 64, 2.638, 1.007}, {AllRanges, L2, 256, 3.436, 1.005}, {AllRanges, L2, 1024, 4.248, 1.005}, {AllRanges, L2, 4096, 5.064, 1.005},
		{AllPrefixes, L2, 64, 2.405, 1}, {AllPrefixes, L2, 256, 2.977, 1}, {AllPrefixes, L2, 1024, 3.553, 1}, {AllPrefixes, L2, 4096, 4.130, 1},
	} {
		radices, weights := BestWeighted(c.cells, c.workload, c.norm)
		tree, err := NewWeightedTree(c.cells, radices, weights)
		if err != nil {
			t.Fatal(err)
		}
		got := math.Sqrt(tree.weightedError(c.workload, c.norm))
		if c.norm == L1 {
			got *= math.Sqrt2
		}
		t.Logf("%s of %d cells: %v weighted %v: %.4f, known %.3f", c.workload, c.cells, radices, weights, got, c.best)
		if got > c.best*c.excess {
			t.Errorf("%s of %d cells: %v weighted %v: %.4f, known %.3f", c.workload, c.cells, radices, weights, got, c.best)
		}
	}
}

// TestBestWeightedOfAll compares with all trees over few cells and all weights up to 8.
func TestBestWeightedOfAll(t *testing.T) {
	for _, cells := range []int{2, 3, 6, 9, 12} {
		for _, norm := range []Norm{L1, L2} {
			for _, workload := range []Workload{AllRanges, AllPrefixes} {
				best := math.Inf(1)
				every(cells, 1, nil, func(below []int) {
					w := newWeighted(cells, workload, norm, candidate{cells: cells, below: below}.radices())
					weights := slices.Repeat([]int64{1}, len(w.radices))
					for l := 0; l < len(weights); {
						best = min(best, w.ofIntegers(weights))
						for l = 0; l < len(weights); l++ {
							if weights[l]++; weights[l] <= 8 {
								break
							}
							weights[l] = 1
						}
					}
				})
				radices, weights := BestWeighted(cells, workload, norm)
				tree, err := NewWeightedTree(cells, radices, weights)
				if err != nil {
					t.Fatal(err)
				}
				if got := tree.weightedError(workload, norm); got > best*(1+1e-4) {
					t.Errorf("%d cells, norm %d, %s: %v %v has %g, there is one with %g", cells, norm, workload, radices, weights, got, best)
				}
			}
		}
	}
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

func BenchmarkWeightedTree(b *testing.B) {
	const cells = 1 << 20
	for _, norm := range []Norm{L1, L2} {
		b.Run(fmt.Sprintf("best/norm %d", norm), func(b *testing.B) {
			for b.Loop() {
				BestWeighted(cells, AllRanges, norm)
			}
		})
		radices, weights := BestWeighted(cells, AllRanges, norm)
		tree, err := NewWeightedTree(cells, radices, weights)
		if err != nil {
			b.Fatal(err)
		}
		x := make([]int64, cells)
		b.Run(fmt.Sprintf("observe and fit/norm %d", norm), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tree.Fit(tree.Observe(x))
			}
		})
	}
}
