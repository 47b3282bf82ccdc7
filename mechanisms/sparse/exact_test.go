package sparse

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// chances returns the exact probability of every sequence of answers to the counts (bit j: count j is above) of a kept
// threshold 0, the run ending after c positives; what was not asked counts as below.
func chances(m Mechanism, counts []int64) []float64 {
	mass := func(d noise.Distribution, n int64) float64 {
		if n < 0 {
			return 0
		}
		q := ratio(d)
		return (1 - q) * math.Pow(q, float64(n))
	}
	const reach = 400
	above := map[int64]float64{} // P(ν ≥ t)
	sum := 0.0
	for n := int64(2 * reach); n >= -2*reach; n-- {
		sum += mass(m.comparison, n)
		above[n] = sum
	}
	p := make([]float64, 1<<len(counts))
	for z := int64(-reach); z <= reach; z++ {
		w := mass(m.threshold, z)
		for code := range p {
			f, positives := w, 0
			for j, count := range counts {
				up := above[z+m.offset-count]
				switch {
				case positives == m.spec.Positives && code>>j&1 == 1:
					f = 0
				case positives == m.spec.Positives:
				case code>>j&1 == 1:
					f *= up
					positives++
				default:
					f *= 1 - up
				}
			}
			p[code] += f
		}
	}
	return p
}

// chance returns the exact probability that n counts of the first kind are below and then positives of the second
// above.
func chance(m Mechanism, n int, first, second int64) float64 {
	p := 0.0
	up := func(t int64) float64 { // P(ν ≥ t)
		return math.Pow(ratio(m.comparison), float64(max(0, t)))
	}
	q := ratio(m.threshold)
	for z := range int64(401) {
		p += (1 - q) * math.Pow(q, float64(z)) * math.Pow(1-up(z+m.offset-first), float64(n)) * math.Pow(up(z+m.offset-second), float64(m.spec.Positives))
	}
	return p
}

// TestExactLoss: the probabilities of answers, exactly, on neighbours that pull in every direction: their ratios stay
// within ε, and come near to it, when many queries are below and the last ones are not.
func TestExactLoss(t *testing.T) {
	for _, monotone := range []bool{false, true} {
		for _, c := range []int{1, 3} {
			m := made(t, Spec{Positives: c, Sensitivity: 1, Monotone: monotone, Cost: epsilon(1_000_000)})
			worst := 0.0
			for move := range 27 {
				one, other, d := make([]int64, 3), make([]int64, 3), move
				for j := range one {
					one[j] = int64(-8 + 4*j)
					other[j] = one[j] + int64(d%3) - 1
					if monotone {
						other[j] = one[j] + int64(d%3)/2
					}
					d /= 3
				}
				a, b := chances(m, one), chances(m, other)
				for code := range a {
					if a[code] > 1e-9 {
						worst = max(worst, math.Abs(math.Log(a[code]/b[code])))
					}
				}
			}
			for _, n := range []int{1, 30, 1000} {
				for level := int64(-60); level <= 0; level += 10 {
					for _, low := range []int64{-1, 0, 1} {
						for _, high := range []int64{-1, 0, 1} {
							if monotone && low*high < 0 {
								continue
							}
							a, b := chance(m, n, level, -40), chance(m, n, level+low, -40+high)
							worst = max(worst, math.Abs(math.Log(a/b)))
						}
					}
				}
			}
			t.Logf("monotone %v, c = %d: loss up to %.4f of 1", monotone, c, worst)
			if worst > 1+1e-6 || worst < .8 {
				t.Errorf("monotone %v, c = %d: loss %.4f", monotone, c, worst)
			}
		}
	}
}

// TestAnswersHaveTheirProbabilities: instances against the exact sums.
func TestAnswersHaveTheirProbabilities(t *testing.T) {
	counts := []int64{0, 3, -2, 5}
	m := made(t, Spec{Positives: 2, Sensitivity: 1, Cost: epsilon(2_000_000)})
	claim, random := chances(m, counts), seeded(3)
	seen := make([]int64, stattest.Length(30_000, 1_000_000))
	for n := range seen {
		i := opened(t, m, random)
		for j, count := range counts {
			a, err := i.Ask(privacy.Seal(count+1000), 1000)
			if err != nil {
				break
			}
			if a.Value() {
				seen[n] |= 1 << j
			}
		}
	}
	if err := stattest.ChiSquare(seen, func(k int64) float64 {
		if k < 0 || k > 15 {
			return 0
		}
		return claim[k]
	}, alarm); err != nil {
		t.Error(err)
	}
}
