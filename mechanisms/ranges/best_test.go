package ranges

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// pure is the variance of continuous Laplace noise at ε = 1 with so many levels, gaussian that of σ = 1 likewise.
func pure(levels int) float64     { return 2 * float64(levels*levels) }
func gaussian(levels int) float64 { return float64(levels) }

func rootMean(t testing.TB, cells int, radices []int, variance func(int) float64) float64 {
	t.Helper()
	tree, err := NewTree(cells, radices)
	if err != nil {
		t.Fatal(err)
	}
	return math.Sqrt(variance(len(radices)) * tree.MeanVariance(AllRanges))
}

// TestKnownErrors: the figures of the literature's strategies, to the digits given there.
func TestKnownErrors(t *testing.T) {
	binary := func(n int) []int { return slices.Repeat([]int{2}, n) }
	for _, c := range []struct {
		cells    int
		radices  []int
		variance func(int) float64
		want     float64
	}{
		{64, []int{64}, pure, 6.63}, {4096, []int{4096}, pure, 52.27}, {1024, []int{1024}, pure, 26.15},
		{64, []int{8, 8}, pure, 6.09}, {256, []int{16, 16}, pure, 8.90}, {1024, []int{8, 16, 8}, pure, 12.71}, {4096, []int{16, 16, 16}, pure, 16.19},
		{64, binary(6), pure, 10.00}, {4096, binary(12), pure, 26.22}, {1 << 20, slices.Repeat([]int{16}, 5), pure, 34.59}, {1 << 16, slices.Repeat([]int{16}, 4), pure, 24.81},
		{64, []int{64}, gaussian, 4.690}, {4096, []int{4096}, gaussian, 36.96}, {4096, binary(12), gaussian, 5.351}, {64, binary(6), gaussian, 2.886},
	} {
		if got := rootMean(t, c.cells, c.radices, c.variance); math.Abs(got-c.want) > .006 {
			t.Errorf("%d cells %v: %.4f, known %.3f", c.cells, c.radices, got, c.want)
		}
	}
}

// TestTreesAreBest: the tree that is chosen is no worse than any tree without weights.
func TestTreesAreBest(t *testing.T) {
	for _, cells := range []int{2, 3, 5, 8, 17, 33, 64, 100, 200} {
		for _, norm := range []Norm{L1, L2} {
			best := math.Inf(1)
			var which []int
			every(cells, 1, nil, func(below []int) {
				block := 1
				for _, r := range below {
					block *= r
				}
				radices := append([]int{(cells + block - 1) / block}, below...)
				if e := rootMean(t, cells, radices, levelNoise[norm]); e < best {
					best, which = e, radices
				}
			})
			found, got := chosenTree(cells, norm)
			t.Logf("%d cells, norm %d: %v has %.4f, %v has %.4f: %.4f", cells, norm, found, got, which, best, got/best)
			if got > best*(1+1e-9) {
				t.Errorf("%d cells, norm %d: %v has %.6f, %v has %.6f", cells, norm, found, got, which, best)
			}
		}
	}
}

var levelNoise = map[Norm]func(int) float64{L1: pure, L2: gaussian}

// chosenTree returns the tree that is chosen for all ranges, and its error.
func chosenTree(cells int, norm Norm) (Description, float64) {
	c := choice{goal: Goal{cells, AllRanges, norm, privacy.AddRemove}, variance: continuous(norm)}
	c.consider(Description{Kind: KindTree, Cells: cells, Radices: []int{cells}})
	c.trees()
	return c.best, math.Sqrt(c.error)
}

func every(cells, block int, below []int, f func([]int)) {
	f(below)
	for r := 2; block*r < cells; r++ {
		every(cells, block*r, append(slices.Clone(below), r), f)
	}
}

// TestTreesOfLargeDomains: no worse than the best figure known of a tree without weights (reference: mixed radix and
// even bases, D a power of two).
func TestTreesOfLargeDomains(t *testing.T) {
	for _, c := range []struct {
		cells int
		want  float64
	}{{64, 6.09}, {256, 8.90}, {1024, 12.71}, {4096, 16.19}, {1 << 14, 20.84}, {1 << 16, 24.81}, {1 << 20, 34.59}} {
		if d, got := chosenTree(c.cells, L1); got > c.want {
			t.Errorf("%d cells: %v has %.3f, known %.3f", c.cells, d, got, c.want)
		}
	}
}

func TestIdentityWhereItIsBest(t *testing.T) {
	for _, cells := range []int{2, 3, 10, 20} {
		if d, _ := chosenTree(cells, L1); len(d.Radices) != 1 || d.Weights != nil {
			t.Errorf("%d cells: %v", cells, d)
		}
	}
}

func TestNewTreeRefuses(t *testing.T) {
	for _, c := range []struct {
		cells   int
		radices []int
		want    string
	}{
		{1, []int{2}, "at least 2 cells"}, {0, nil, "at least 2 cells"}, {8, nil, "1 radix"}, {-4, []int{2}, "at least 2 cells"},
		{8, []int{1, 8}, "radix 1 is 1"}, {8, []int{8, 0}, "radix 2 is 0"}, {8, []int{2, -3}, "radix 2 is -3"},
		{8, []int{2, 8}, "must not cover"}, {9, []int{2, 4}, "must multiply to at least 9"},
		{9, []int{math.MaxInt, math.MaxInt}, "must not cover"},
	} {
		if _, err := NewTree(c.cells, c.radices); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d cells %v: %v, want %s", c.cells, c.radices, err, c.want)
		}
	}
	if _, err := NewTree(9, []int{math.MaxInt, 4}); err != nil {
		t.Error(err)
	}
}

func BenchmarkBest(b *testing.B) {
	for _, cells := range []int{120, 4096, 1 << 20} {
		b.Run(fmt.Sprint(cells), func(b *testing.B) {
			for b.Loop() {
				Choose(Goal{cells, AllRanges, L1, privacy.AddRemove}, continuous(L1))
			}
		})
	}
}

func BenchmarkFit(b *testing.B) {
	tree, err := NewTree(4096, []int{17, 18, 14})
	if err != nil {
		b.Fatal(err)
	}
	y := make([]int64, tree.Nodes())
	for b.Loop() {
		Isotonic(Prefixes(tree.Fit(y)))
	}
}
