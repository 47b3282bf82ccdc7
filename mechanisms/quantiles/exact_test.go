package quantiles

import (
	"math"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/selection"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

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

// TestExactLoss: the probabilities of all answers, exactly, on all small tables and neighbours: the ratios stay within
// ε.
func TestExactLoss(t *testing.T) {
	for _, rule := range []privacy.Cost{epsilon(2_000_000), rho(500_000_000_000)} {
		for _, kind := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
			for name, all := range map[string][]Quantile{"median": shares(t, 1, 2), "quartiles": shares(t, 1, 4, 1, 2, 3, 4), "extremes": shares(t, 0, 1, 1, 1)} {
				m := coarse(made(t, 3, all, privacy.Contribution{Rows: 1, Neighbors: kind}, rule))
				paid := m.epsilon()
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
				if worst > paid+1e-9 || worst < .2*paid {
					t.Errorf("%v, %v, %s: loss %.4f, paid %v", m.rule, kind, name, worst, paid)
				}
			}
		}
	}
}
