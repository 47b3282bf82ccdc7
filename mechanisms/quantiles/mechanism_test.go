package quantiles

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/selection"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
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

// drawTwin returns the exact probabilities of one draw.
func drawTwin(rule selection.Rule, losses []uint64, rate float64) []float64 {
	p, sum := make([]float64, len(losses)), 0.0
	if rule == selection.Exponential {
		for i, g := range losses {
			p[i] = math.Exp(-rate * float64(g))
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
		return p
	}
	for heads := 1; heads < 1<<len(losses); heads++ { // all coins thrown, one of the heads
		f, n := 1.0, 0
		for i, g := range losses {
			if heads>>i&1 == 1 {
				f *= math.Exp(-rate * float64(g))
				n++
			} else {
				f *= -math.Expm1(-rate * float64(g))
			}
		}
		for i := range losses {
			if heads>>i&1 == 1 {
				p[i] += f / float64(n)
			}
		}
	}
	return p
}

// chances returns the exact probabilities of all answers to the different quantiles, coded in base cells.
func chances(t *testing.T, m Mechanism, counts []int64) []float64 {
	size := 1
	for range m.nums {
		size *= m.cells
	}
	p := make([]float64, size)
	type task struct {
		low, high, first, last int
		part                   part
	}
	var walk func(counts []int64, tasks []task, code int, reached float64)
	walk = func(counts []int64, tasks []task, code int, reached float64) {
		if len(tasks) == 0 {
			p[code] += reached
			return
		}
		now, rest := tasks[0], tasks[1:]
		if now.first >= now.last {
			walk(counts, rest, code, reached)
			return
		}
		middle := (now.first + now.last) / 2
		num := m.nums[middle]
		rate, err := m.rate(now.part, num)
		if err != nil {
			t.Fatal(err)
		}
		d := drawing{Mechanism: m, counts: counts}
		place := 1
		for range middle {
			place *= m.cells
		}
		for i, f := range drawTwin(m.rule, d.losses(now.low, now.high, now.part, num, m.slack(rate)), rate.Float()) {
			chosen := now.low + i
			// The two parts as tables of their own.
			below, above := slices.Clone(counts), slices.Clone(counts)
			below[chosen], above[chosen] = counts[chosen]-counts[chosen]/2, counts[chosen]/2
			left, right := chances2(t, m, below, now.low, chosen, now.first, middle, part{now.part.from, num}), chances2(t, m, above, chosen, now.high, middle+1, now.last, part{num, now.part.to})
			for a, x := range left {
				for b, y := range right {
					walk(counts, rest, code+chosen*place+a+b, reached*f*x*y)
				}
			}
		}
	}
	walk(counts, []task{{0, m.cells - 1, 0, len(m.nums), part{0, m.den}}}, 0, 1)
	return p
}

// chances2 returns the probabilities of the answers of a part with at most one quantile, by their code.
func chances2(t *testing.T, m Mechanism, counts []int64, low, high, first, last int, p part) map[int]float64 {
	if first >= last {
		return map[int]float64{0: 1}
	}
	if last-first != 1 {
		t.Fatal("the twin knows up to three quantiles")
	}
	rate, err := m.rate(p, m.nums[first])
	if err != nil {
		t.Fatal(err)
	}
	d, place, found := drawing{Mechanism: m, counts: counts}, 1, map[int]float64{}
	for range first {
		place *= m.cells
	}
	for i, f := range drawTwin(m.rule, d.losses(low, high, p, m.nums[first], m.slack(rate)), rate.Float()) {
		found[(low+i)*place] = f
	}
	return found
}

// TestReleasesHaveTheirProbabilities against the exact sums.
func TestReleasesHaveTheirProbabilities(t *testing.T) {
	counts := []int64{2, 0, 5, 1}
	for _, cost := range []privacy.Cost{epsilon(1_500_000), rho(300_000_000_000)} {
		m := coarse(made(t, 4, shares(t, 1, 4, 3, 4, 1, 2), addOne, cost))
		claim, random := chances(t, m, counts), seeded(1)
		seen := make([]int64, stattest.Length(20_000, 500_000))
		for n := range seen {
			r := released(t, m, counts, random)
			seen[n] = int64(r[0] + 4*r[2] + 16*r[1])
		}
		if err := stattest.ChiSquare(seen, func(k int64) float64 {
			if k < 0 || k > 63 {
				return 0
			}
			return claim[k]
		}, alarm); err != nil {
			t.Errorf("%v: %v", cost, err)
		}
	}
}

// TestDividedCells: a release with two places a cell is one of twice the cells, dealt out, and the places put together.
func TestDividedCells(t *testing.T) {
	m := made(t, 2, shares(t, 1, 4, 3, 4, 1, 2), addOne, epsilon(1_500_000))
	m.fine = 2
	wide := coarse(m)
	wide.cells = 4
	fine, random := chances(t, wide, []int64{3, 2, 1, 1}), seeded(2) // five and two rows
	claim := make([]float64, 8)
	for code, p := range fine {
		claim[code%4/2+code/4%4/2*2+code/16/2*4] += p
	}
	seen := make([]int64, stattest.Length(20_000, 500_000))
	for n := range seen {
		r := released(t, m, []int64{5, 2}, random)
		seen[n] = int64(r[0] + 2*r[2] + 4*r[1])
	}
	if err := stattest.ChiSquare(seen, func(k int64) float64 {
		if k < 0 || k > 7 {
			return 0
		}
		return claim[k]
	}, alarm); err != nil {
		t.Error(err)
	}
}

// TestPlacesMoveByOneRow: dealt out, one row more is one more in one place, and nothing is lost.
func TestPlacesMoveByOneRow(t *testing.T) {
	m := made(t, 3, shares(t, 1, 4, 3, 4), addOne, epsilon(1))
	for _, fine := range []int{1, 2, 8} {
		m.fine = fine
		for n := range int64(40) {
			one, other, moved, sum := m.places([]int64{7, n, 3}), m.places([]int64{7, n + 1, 3}), int64(0), int64(0)
			for j := range one {
				moved += max(one[j]-other[j], other[j]-one[j])
				sum += one[j]
			}
			if moved != 1 || sum != 10+n {
				t.Fatalf("%d places, %d rows: moved %d, sum %d", fine, n, moved, sum)
			}
		}
	}
}

// TestExactLoss: the probabilities of all answers, exactly, on all small tables and neighbours: the ratios stay within ε.
func TestExactLoss(t *testing.T) {
	for _, rule := range []privacy.Cost{epsilon(2_000_000), rho(500_000_000_000)} {
		for _, kind := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
			for name, all := range map[string][]Quantile{"median": shares(t, 1, 2), "quartiles": shares(t, 1, 4, 1, 2, 3, 4), "extremes": shares(t, 0, 1, 1, 1)} {
				m := coarse(made(t, 3, all, privacy.Contribution{Rows: 1, Neighbors: kind}, rule))
				paid, err := m.Cost(privacy.Pure)
				if err != nil {
					t.Fatal(err)
				}
				worst := 0.0
				tables(3, 3, func(counts []int64) {
					known := [][]float64{chances(t, m, counts)}
					for j := range counts {
						counts[j]++
						known = append(known, chances(t, m, counts))
						counts[j]--
					}
					for i, one := range known {
						for o, other := range known[:i] {
							if kind == privacy.AddRemove && o > 0 {
								continue
							}
							for code := range one {
								if one[code] > 0 {
									worst = max(worst, math.Abs(math.Log(one[code]/other[code])))
								}
							}
						}
					}
				})
				t.Logf("%v, %v, %s: loss up to %.4f of %v", m.rule, kind, name, worst, paid)
				if worst > paid.Epsilon.Float()+1e-9 || worst < .2*paid.Epsilon.Float() {
					t.Errorf("%v, %v, %s: loss %.4f, paid %v", m.rule, kind, name, worst, paid)
				}
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
	broken := errors.New("broken")
	m := made(t, 100, shares(t, 1, 4, 1, 2, 3, 4), addOne, epsilon(1_000_000))
	for bytes := int64(0); bytes < 2000; bytes += 64 {
		r, err := m.Release(privacy.Seal(make([]int64, 100)), io.MultiReader(io.LimitReader(seeded(1), bytes), iotest.ErrReader(broken)))
		if (err == nil) != r.Valid() || err != nil && !errors.Is(err, broken) {
			t.Fatal(r, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	median := shares(t, 1, 2)
	last := func(_ Mechanism, err error) error { return err }
	quantile := func(num, den int64) error { _, err := NewQuantile(num, den); return err }
	for text, err := range map[string]error{
		"quantile is 2/1":              quantile(2, 1),
		"quantile is -1/2":             quantile(-1, 2),
		"quantile is 1/0":              quantile(1, 0),
		"denominator of at most":       quantile(1, MostDenominator+1),
		"cells is 0":                   last(New(0, median, addOne, epsilon(1))),
		"cells is 1048577":             last(New(MostCells+1, median, addOne, epsilon(1))),
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

// TestCosts: levels times one, within what was paid.
func TestCosts(t *testing.T) {
	for m := 1; m < 100; m += 7 {
		all, err := Evenly(m)
		if err != nil {
			t.Fatal(err)
		}
		for accountant, cost := range map[privacy.Accountant]privacy.Cost{privacy.Pure: epsilon(1_000_000), privacy.ZCDP: rho(1e10)} {
			q := made(t, 10, all, addOne, cost)
			took, err := q.Cost(accountant)
			if err != nil || !took.Fits(cost) || took.Epsilon.Micro() < cost.Epsilon.Micro()-1 || took.Rho.Pico() < cost.Rho.Pico()*999/1000 {
				t.Errorf("%d quantiles for %v take %v (%v)", m, cost, took, err)
			}
			if q.Levels() != int(math.Log2(float64(m)))+1 {
				t.Errorf("%d quantiles have %d levels", m, q.Levels())
			}
		}
	}
}
