package keys

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// auditAlarm is for one audit: a rule that keeps its claim is accused with at most this probability.
const auditAlarm = 1e-6

// audited releases both databases and returns the lower bound of ε at δ. Each shown key adds its noisy count's distance
// from the middle of the two true ones, in the direction in which they differ; a dropped key counts as what is just
// below the threshold.
func audited(t *testing.T, r Rule, one, other []Count, delta float64, answers int) float64 {
	t.Helper()
	direction, middle := map[string]float64{}, map[string]float64{}
	for i, side := range [][]Count{one, other} {
		for _, c := range side {
			direction[c.Key] += float64(c.Units) * float64(2*i-1)
			middle[c.Key] += float64(c.Units) / 2
		}
	}
	random := seeded(40)
	sample := func(counts []Count) []float64 {
		sums := make([]float64, answers)
		for i := range sums {
			shown := map[string]float64{}
			for _, x := range mustRelease(t, r, counts, random) {
				shown[x.Key] = float64(x.Units)
			}
			for key, d := range direction {
				if x, ok := shown[key]; ok {
					sums[i] += d * (x - middle[key])
				} else {
					sums[i] += d * (float64(r.Threshold()) - 1 - middle[key])
				}
			}
		}
		return sums
	}
	bound, err := stattest.Audit{One: sample(one), Other: sample(other), Delta: delta}.Epsilon(auditAlarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

// neighboring are pairs: a key that appears, a key around the threshold, one far above it, and two keys at once.
func neighboring(threshold int64) map[string][2][]Count {
	return map[string][2][]Count{
		"appears": {{}, {{"a", 1}}},
		"at half": {{{"a", threshold - 1}}, {{"a", threshold}}},
		"far":     {{{"a", 5 * threshold}}, {{"a", 5*threshold + 1}}},
		"two":     {{{"a", threshold}, {"b", 4 * threshold}}, {{"a", threshold + 1}, {"b", 4*threshold + 1}}},
	}
}

// TestAuditsFindNoMoreThanIsPaid: twelve audits at ε = 1, δ = 0.02.
func TestAuditsFindNoMoreThanIsPaid(t *testing.T) {
	const delta = .02
	rho, err := accounting.LargestRho(privacy.MicroEpsilon(1e6), privacy.AttoDelta(1e16))
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]Rule{
		"truncated": made(t, Truncated, has(2), pure(1e6, 2e16)),
		"Gaussian":  made(t, Gaussian, has(2), concentrated(rho.Pico(), 1e16)), // half of δ is the conversion's
		"bought":    made(t, Truncated, has(2), concentrated(rho.Pico(), 1e16)),
	} {
		for pair, sides := range neighboring(r.Threshold()) {
			bound := audited(t, r, sides[0], sides[1], delta, stattest.Length(10_000, 400_000))
			t.Logf("%-9s %-8s epsilon at least %.3f of (1, %g)", name, pair, bound, delta)
			if bound > 1 {
				t.Errorf("seed %q: %s, %s: epsilon is at least %.3f, paid: 1", seed, name, pair, bound)
			}
			if name == "truncated" && pair == "two" && bound < .5 {
				t.Errorf("seed %q: %s: the audit found only %.3f of 1: it is blind", seed, pair, bound)
			}
		}
	}
}

// TestAuditsCatchPlantedFaults: a unit with more keys than the rule was made for, a threshold that is too low, half of
// the noise.
func TestAuditsCatchPlantedFaults(t *testing.T) {
	answers := stattest.Length(20_000, 200_000)
	r := made(t, Truncated, has(2), pure(1e6, 2e16))
	low := r
	low.threshold -= 4
	less := r
	less.noise = made(t, Truncated, has(1), pure(1e6, 2e16)).noise
	pairs := neighboring(r.Threshold())
	many := [2][]Count{}
	for i := range int64(8) {
		for side := range many {
			many[side] = append(many[side], Count{string(rune('a' + i)), 90 + int64(side)})
		}
	}
	for name, c := range map[string]struct {
		rule  Rule
		sides [2][]Count
	}{"a low threshold": {low, pairs["appears"]}, "half of the noise": {less, pairs["two"]}, "eight keys a unit": {r, many}} {
		bound := audited(t, c.rule, c.sides[0], c.sides[1], .02, answers)
		t.Logf("%s: epsilon at least %.3f", name, bound)
		if bound <= 1 {
			t.Errorf("seed %q: %s passed: %.3f", seed, name, bound)
		}
	}
}
