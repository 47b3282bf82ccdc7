package quantiles

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// alarm is of each statistical judgement here.
const alarm = 1e-6

func seeded(n byte) io.Reader { return rand.NewChaCha8([32]byte{n, 8, 2}) }

func epsilon(micro int64) privacy.Cost { return privacy.Cost{Epsilon: privacy.MicroEpsilon(micro)} }

func rho(pico int64) privacy.Cost { return privacy.Cost{Rho: privacy.PicoRho(pico)} }

var addOne = privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}

func shares(t testing.TB, pairs ...int64) []Quantile {
	t.Helper()
	all := []Quantile{}
	for i := 0; i < len(pairs); i += 2 {
		q, err := NewQuantile(pairs[i], pairs[i+1])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
	}
	return all
}

func made(t testing.TB, cells int, all []Quantile, c privacy.Contribution, cost privacy.Cost) Mechanism {
	t.Helper()
	m, err := New(cells, all, c, cost)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// coarse returns a mechanism whose cells are not divided.
func coarse(m Mechanism) Mechanism {
	m.fine = 1
	return m
}

func released(t testing.TB, m Mechanism, counts []int64, random io.Reader) []int {
	t.Helper()
	r, err := m.Release(privacy.Seal(counts), random)
	if err != nil {
		t.Fatal(err)
	}
	return r.Value()
}

// rankLoss is the naive twin of a loss: the rows one by one, in order, and how far den·rank is from the cell's.
func rankLoss(counts []int64, cell int, num, den int64) int64 {
	rows := []int{}
	for j, n := range counts {
		for range n {
			rows = append(rows, j)
		}
	}
	target := num * int64(len(rows))
	before, upTo := int64(0), int64(0)
	for _, r := range rows {
		if r < cell {
			before += den
		}
		if r <= cell {
			upTo += den
		}
	}
	switch {
	case target < before:
		return before - target
	case target > upTo:
		return target - upTo
	}
	return 0
}

// tables calls f with all tables of some cells with counts up to most.
func tables(cells int, most int64, f func(counts []int64)) {
	counts := make([]int64, cells)
	var fill func(j int)
	fill = func(j int) {
		if j == cells {
			f(slices.Clone(counts))
			return
		}
		for n := range most + 1 {
			counts[j] = n
			fill(j + 1)
		}
		counts[j] = 0
	}
	fill(0)
}

func losses(m Mechanism, counts []int64, p part, num int64) []uint64 {
	d := drawing{Mechanism: m, counts: counts}
	return d.losses(0, len(counts)-1, p, num, 0)
}

func TestLossesAreRankDistances(t *testing.T) {
	for _, q := range [][2]int64{{1, 2}, {1, 4}, {9, 10}, {2, 3}} {
		m := made(t, 4, shares(t, q[0], q[1]), addOne, epsilon(1))
		tables(4, 3, func(counts []int64) {
			want, least := make([]int64, 4), int64(math.MaxInt64)
			for j := range want {
				want[j] = rankLoss(counts, j, q[0], q[1])
				least = min(least, want[j])
			}
			for j, got := range losses(m, counts, part{0, q[1]}, q[0]) {
				if int64(got) != want[j]-least {
					t.Fatalf("%v of %v, cell %d: %d, want %d", q, counts, j, got, want[j]-least)
				}
			}
		})
	}
}

// TestSpreadIsAttainedAndNeverExceeded: one row more, or one replaced, in every small table.
func TestSpreadIsAttainedAndNeverExceeded(t *testing.T) {
	for _, q := range [][2]int64{{1, 2}, {1, 4}, {9, 10}, {2, 3}} {
		for _, kind := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
			m := made(t, 4, shares(t, q[0], q[1]), privacy.Contribution{Rows: 1, Neighbors: kind}, epsilon(1))
			claim, worst := m.spread(part{0, q[1]}, q[0]), int64(0)
			tables(4, 3, func(counts []int64) {
				neighbours := [][]int64{counts}
				for j := range counts {
					more := slices.Clone(counts)
					more[j]++
					neighbours = append(neighbours, more)
				}
				for i, one := range neighbours {
					for _, other := range neighbours[:i] {
						if kind == privacy.AddRemove && &other[0] != &counts[0] {
							continue
						}
						low, high := int64(math.MaxInt64), int64(math.MinInt64)
						a, b := losses(m, one, part{0, q[1]}, q[0]), losses(m, other, part{0, q[1]}, q[0])
						for j := range a {
							d := int64(a[j]) - int64(b[j])
							low, high = min(low, d), max(high, d)
						}
						worst = max(worst, high-low)
					}
				}
			})
			if worst != claim {
				t.Errorf("%v, %v: the spread is %d, claimed %d", q, kind, worst, claim)
			}
		}
	}
}

func TestReleasesAreInOrderAndTotal(t *testing.T) {
	all := shares(t, 9, 10, 1, 10, 1, 2, 1, 2, 0, 1, 1, 1)
	for _, counts := range [][]int64{nil, {0, 0, 0, 0, 0}, {math.MaxInt64, math.MinInt64, -1, 1 << 61, 3}, {1, 2, 3, 4, 5, 6, 7}} {
		for _, cost := range []privacy.Cost{epsilon(1), epsilon(1_000_000), rho(1e18)} {
			m := made(t, 5, all, addOne, cost)
			r := released(t, m, counts, seeded(3))
			if len(r) != 6 || r[2] != r[3] || !slices.IsSorted([]int{r[4], r[1], r[2], r[0], r[5]}) || r[5] > 4 || r[4] < 0 {
				t.Errorf("%v: %v", counts, r)
			}
		}
	}
}

// TestExtremes: at a good price the least and the largest are within the slack of the true ones.
func TestExtremes(t *testing.T) {
	counts := make([]int64, 1000)
	for j := 300; j < 700; j++ {
		counts[j] = 50
	}
	r := released(t, made(t, 1000, shares(t, 0, 1, 1, 1), addOne, epsilon(1_000_000)), counts, seeded(4))
	if r[0] < 295 || r[0] > 305 || r[1] < 694 || r[1] > 704 {
		t.Errorf("least and largest %v, true 300 and 699", r)
	}
}

func TestAFailingSourceGivesNothing(t *testing.T) {
	nine, err := Evenly(9)
	if err != nil {
		t.Fatal(err)
	}
	m, cells, failures := made(t, 100, nine, addOne, epsilon(20_000_000)), make([]int64, 100), 0
	for i := range cells {
		cells[i] = 1000
	}
	released := 0
	for bytes := int64(0); released < 3; bytes += max(256, bytes/4) {
		source := breaksAfter(bytes, seeded(1))
		r, err := m.Release(privacy.Seal(cells), source)
		if (err != nil) != source.failed || r.Valid() == source.failed || err != nil && !errors.Is(err, errBroken) {
			t.Fatal(source.failed, r.Valid(), err)
		}
		if failures++; !source.failed {
			failures, released = failures-1, released+1
		}
	}
	if failures < 10 {
		t.Errorf("%d failures", failures)
	}
}

// TestOddCellsCountAsNone: negative cells are empty, and none is so large that sums overflow.
func TestOddCellsCountAsNone(t *testing.T) {
	m := made(t, 3, shares(t, 1, 4, 3, 4), addOne, epsilon(1_000_000))
	sum := int64(0)
	for _, n := range m.places([]int64{-5, math.MinInt64, math.MaxInt64}) {
		if sum += n; n < 0 || sum < 0 || sum > maxTotal/m.den {
			t.Fatalf("a place of %d, %d in all", n, sum)
		}
	}
}

// breaking is a source that fails after some bytes, and reports whether it has.
type breaking struct {
	io.Reader
	failed bool
}

var errBroken = errors.New("broken")

func breaksAfter(bytes int64, source io.Reader) *breaking {
	return &breaking{Reader: io.MultiReader(io.LimitReader(source, bytes), iotest.ErrReader(errBroken))}
}

func (b *breaking) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.failed = b.failed || err != nil
	return n, err
}

func TestRefusals(t *testing.T) {
	median := shares(t, 1, 2)
	last := func(_ Mechanism, err error) error { return err }
	quantile := func(num, den int64) error { _, err := NewQuantile(num, den); return err }
	for text, err := range map[string]error{
		"quantile is 2/1":              quantile(2, 1),
		"quantile is -1/2":             quantile(-1, 2),
		"quantile is 1/0":              quantile(1, 0),
		"denominator of at most":       quantile(1, MaxDenominator+1),
		"cells is 0":                   last(New(0, median, addOne, epsilon(1))),
		"cells is 1048577":             last(New(MaxCells+1, median, addOne, epsilon(1))),
		"quantiles is 0":               last(New(1, nil, addOne, epsilon(1))),
		"not made by NewQuantile":      last(New(1, []Quantile{{}}, addOne, epsilon(1))),
		"rows a unit is 0":             last(New(1, median, privacy.Contribution{Neighbors: privacy.AddRemove}, epsilon(1))),
		"neighbors is 0":               last(New(1, median, privacy.Contribution{Rows: 1}, epsilon(1))),
		"cost is ε 0":                  last(New(1, median, addOne, privacy.Cost{})),
		"common denominator":           last(New(1, shares(t, 1, 999_983, 1, 999_979), addOne, epsilon(1))),
		"quantiles is 0, must be from": func() error { _, err := Evenly(0); return err }(),
		"was not made by New":          func() error { _, err := (Mechanism{}).Release(privacy.Seal([]int64{1}), nil); return err }(),
		"never sealed": func() error {
			_, err := made(t, 1, median, addOne, epsilon(1)).Release(privacy.Sensitive[[]int64]{}, nil)
			return err
		}(),
	} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// epsilon returns the ε of all levels.
func (m Mechanism) epsilon() float64 { return float64(m.strength) / 1e9 * float64(m.levels) }

// TestCosts: levels times one, within what was paid.
func TestCosts(t *testing.T) {
	for m := 1; m < 100; m += 7 {
		all, err := Evenly(m)
		if err != nil {
			t.Fatal(err)
		}
		pure, concentrated := made(t, 10, all, addOne, epsilon(1_000_000)), made(t, 10, all, addOne, rho(1e10))
		if took := pure.epsilon(); took > 1 || took < 1-1e-6 {
			t.Errorf("%d quantiles for an ε of 1 take %v", m, took)
		}
		each := float64(concentrated.strength) / 1e9
		if took := float64(concentrated.levels) * each * each / 8; took > .01 || took < .00999 {
			t.Errorf("%d quantiles for a ρ of 0.01 take %v", m, took)
		}
		if pure.levels != int(math.Log2(float64(m)))+1 {
			t.Errorf("%d quantiles have %d levels", m, pure.levels)
		}
	}
}

// Evenly returns the m quantiles 1/(m+1) to m/(m+1): of m = 1 the median.
func Evenly(m int) ([]Quantile, error) {
	if m < 1 || m >= MaxQuantiles {
		return nil, fmt.Errorf("quantiles is %d, must be from 1 to %d", m, MaxQuantiles-1)
	}
	all := make([]Quantile, m)
	for i := range all {
		all[i], _ = NewQuantile(int64(i+1), int64(m+1))
	}
	return all, nil
}
