package keys

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

const dropped = math.MinInt64

// outcomes is the exact law of what is shown of a key with n units.
func outcomes(r Rule, n int64) map[int64]float64 {
	law := map[int64]float64{dropped: 1}
	show := func(share float64, threshold int64, mass func(x int64) float64) {
		for value := threshold; value <= n+200+4*r.threshold; value++ {
			p := share * mass(value-n)
			law[value] += p
			law[dropped] -= p
		}
	}
	if n == 0 {
		return law
	}
	if r.kind != Truncated {
		show(1, r.threshold, func(x int64) float64 { return float64(r.noise.Mass(x)) })
		return law
	}
	share := float64(r.mixed) / mixture
	for i, weight := range []float64{1 - share, share} {
		reach := r.threshold - 1 - int64(i)
		show(weight, reach+1, func(x int64) float64 {
			if x < -reach || x > reach {
				return 0
			}
			return float64(r.noise.Mass(x)) / float64(r.noise.Mass(0)) * r.lostAt(reach)
		})
	}
	return law
}

// lostAt is P(X_reach = 0).
func (r Rule) lostAt(reach int64) float64 {
	return r.lost(reach) * math.Exp(float64(r.den)/float64(r.num)*float64(reach))
}

// divergence is the smallest δ for which P ≤ e^ε Q + δ on every event.
func divergence(p, q map[int64]float64, epsilon float64) float64 {
	sum := 0.0
	for x, mass := range p {
		sum += max(0, mass-math.Exp(epsilon)*q[x])
	}
	return sum
}

// worstDelta is the largest divergence between neighbouring counts, either way, at ε.
func worstDelta(r Rule, epsilon float64) float64 {
	worst := 0.0
	last := outcomes(r, 0)
	for n := int64(1); n <= 2*r.threshold+3; n++ {
		next := outcomes(r, n)
		worst = max(worst, divergence(last, next, epsilon), divergence(next, last, epsilon))
		last = next
	}
	return worst
}

// TestExactPrivacyOfOneKey: the divergence of all neighbouring counts of one key, from the outcomes' exact
// probabilities, is at most δ at ε, and for truncated noise it is δ: nothing is given away. A threshold one lower, or the
// mixture's coin the wrong way round, is caught.
func TestExactPrivacyOfOneKey(t *testing.T) {
	for _, c := range []struct{ micro, atto int64 }{{1e6, 1e12}, {1e6, 1e16}, {300_000, 1e15}, {2e6, 5e16}, {500_000, 3e17}} {
		epsilon, delta := float64(c.micro)/1e6, float64(c.atto)/1e18
		r := made(t, Truncated, has(1), pure(c.micro, c.atto))
		if got := worstDelta(r, epsilon+1e-12); got > delta*(1+1e-8) || got < delta*(1-1e-6) {
			t.Errorf("(%g, %g): delta is %g", epsilon, delta, got)
		}
		faulty := r
		faulty.threshold, faulty.mixed = r.threshold-1, mixture-1
		if faulty.threshold > 1 && worstDelta(faulty, epsilon+1e-12) <= delta {
			t.Errorf("(%g, %g): a lower threshold passed", epsilon, delta)
		}
	}
	half := privacy.AttoDelta(5e15)
	rho, err := accounting.LargestRho(privacy.MicroEpsilon(1e6), half)
	if err != nil {
		t.Fatal(err)
	}
	converted := made(t, Gaussian, has(1), concentrated(rho.Pico(), half.Atto()))
	if got := worstDelta(converted, 1); got > .01 {
		t.Errorf("Gaussian by zCDP: delta is %g of 0.01", got)
	}
}

// TestTruncationIsPaidForAllMovedKeys: under replace-one a unit's keys may fall on one side and rise on the other, each
// out of the other's support, so twice as many take a part of δ.
func TestTruncationIsPaidForAllMovedKeys(t *testing.T) {
	for _, neighbors := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
		for _, k := range []int64{1, 3} {
			r := made(t, Truncated, privacy.Contribution{Rows: k, Groups: k, Neighbors: neighbors}, pure(1e6, 1e13))
			share, moved := float64(r.mixed)/mixture, float64(k)
			if neighbors == privacy.ReplaceOne {
				moved *= 2
			}
			each := share*r.lost(r.threshold-2) + (1-share)*r.lost(r.threshold-1)
			if all := -math.Expm1(moved * math.Log1p(-each)); all > 1e-5 || all < .999e-5 {
				t.Errorf("%s, %d keys: takes %g of a δ of 1e-5", neighbors, k, all)
			}
		}
	}
}
