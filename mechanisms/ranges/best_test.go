package ranges

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
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
	return math.Sqrt(variance(len(radices)) * tree.AllRanges())
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

// TestBestOfAllTrees compares with every tree there is.
func TestBestOfAllTrees(t *testing.T) {
	for _, cells := range []int{2, 3, 5, 8, 17, 33, 64, 100, 200} {
		for name, variance := range map[string]func(int) float64{"pure": pure, "gaussian": gaussian} {
			best := math.Inf(1)
			var which []int
			every(cells, 1, nil, func(below []int) {
				c := candidate{cells: cells, below: below}
				if e := rootMean(t, cells, c.radices(), variance); e < best {
					best, which = e, c.radices()
				}
			})
			found := Best(cells, variance)
			if got := rootMean(t, cells, found, variance); got > best*(1+1e-9) {
				t.Errorf("%d cells, %s: %v has %.6f, %v has %.6f", cells, name, found, got, which, best)
			}
		}
	}
}

func every(cells, block int, below []int, f func([]int)) {
	f(below)
	for r := 2; block*r < cells; r++ {
		every(cells, block*r, append(slices.Clone(below), r), f)
	}
}

// TestBestOfLargeDomains: never worse than the best figure known of an unweighted tree (reference: mixed radix and even
// bases, D a power of two), and the even trees around.
func TestBestOfLargeDomains(t *testing.T) {
	for _, c := range []struct {
		cells int
		want  float64
	}{{64, 6.09}, {256, 8.90}, {1024, 12.71}, {4096, 16.19}, {1 << 14, 20.84}, {1 << 16, 24.81}, {1 << 20, 34.59}} {
		if got := rootMean(t, c.cells, Best(c.cells, pure), pure); got > c.want+.005 {
			t.Errorf("%d cells: %v has %.3f, known %.3f", c.cells, Best(c.cells, pure), got, c.want)
		}
	}
	for _, cells := range []int{120, 365, 1000, 3650, 43_200, 999_983, 1 << 20} {
		for _, variance := range []func(int) float64{pure, gaussian} {
			got := rootMean(t, cells, Best(cells, variance), variance)
			for base := 2; base < 40; base++ {
				c := candidate{cells: cells}
				for block := base; block < cells; block *= base {
					c.below = append(c.below, base)
				}
				if even := rootMean(t, cells, c.radices(), variance); even < got*(1-1e-12) {
					t.Errorf("%d cells: %.4f, base %d has %.4f", cells, got, base, even)
				}
			}
		}
	}
}

func TestIdentityWhereItIsBest(t *testing.T) {
	for _, cells := range []int{1, 2, 3, 10, 20} {
		if r := Best(cells, pure); len(r) != 1 || r[0] != cells {
			t.Errorf("%d cells: %v", cells, r)
		}
	}
	// At a large ε the discrete noise of one level is nearly never felt, of two levels it is.
	tiny := func(levels int) float64 { return 2 * math.Exp(-10/float64(levels)) }
	if r := Best(200, tiny); len(r) != 1 {
		t.Errorf("at ε = 10: %v", r)
	}
	// Depths that cannot be calibrated are left out.
	only := func(levels int) float64 {
		if levels > 2 {
			return 0
		}
		return pure(levels)
	}
	if r := Best(1<<20, only); len(r) != 2 {
		t.Errorf("of two depths: %v", r)
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
				Best(cells, pure)
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

// Best returns the radices of the tree with the least expected error over all ranges when the noise of an observation
// has variance(levels), among those that it looks at: every depth; for shallow trees all combinations of a list of
// radices; for each depth the even tree; and from the best of each depth every improvement by changing one radix or
// exchanging two. One radix means that the cells themselves are observed. A depth with variance 0 is impossible and
// left out.
func Best(cells int, variance func(levels int) float64) []int {
	if cells < 2 {
		return []int{cells}
	}
	s := search{cells: cells, workload: AllRanges, seen: map[string]bool{}}
	return s.run(variance).best.radices()
}
