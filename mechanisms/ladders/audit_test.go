package ladders

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

const auditAlarm = 1e-6

// audited bounds ε of two black boxes from below.
func audited(t *testing.T, one, other func() float64) float64 {
	t.Helper()
	n := stattest.Length(20_000, 400_000)
	sample := func(f func() float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = f()
		}
		return out
	}
	bound, err := stattest.Audit{One: sample(one), Other: sample(other)}.Epsilon(auditAlarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

// TestAuditOfBothLevels: all that is seen by someone who paid ε = 1 for the finer of two levels, judged by each level,
// their sum and their difference; four audits.
func TestAuditOfBothLevels(t *testing.T) {
	draw := pair(t, noise.NewReader(seeded(2)))
	for name, judge := range map[string]func(coarse, fine int64) float64{
		"coarse":  func(coarse, _ int64) float64 { return float64(coarse) },
		"fine":    func(_, fine int64) float64 { return float64(fine) },
		"sum":     func(coarse, fine int64) float64 { return float64(coarse + fine) },
		"bent in": func(coarse, fine int64) float64 { return float64(fine) + float64(min(max(coarse-fine, -1), 1))/4 },
	} {
		side := func(count int64) func() float64 {
			return func() float64 { return judge(draw(count)) }
		}
		bound := audited(t, side(10), side(11))
		t.Logf("%s: epsilon at least %.3f of 1", name, bound)
		if bound > 1 || name == "coarse" && bound > .5 {
			t.Errorf("seed %q: %s: epsilon is at least %.3f, paid: 1 for both, 0.5 for the coarse", seed, name, bound)
		}
		if name == "fine" && bound < .8 {
			t.Errorf("seed %q: the audit is blind: %.3f", seed, bound)
		}
	}
}

// TestAuditCatchesStoredNoise plants the fault that the package forbids: the coarse answer was given before a row was
// added, the fine one, with the stored noise, after it. Paid: 1. The difference of the two is Y plus the row. The exact
// worst loss is ε2 from the fine noise and ln(P(Y=0)/P(Y=1)) from the step, which grows without bound as the levels get
// closer.
func TestAuditCatchesStoredNoise(t *testing.T) {
	draw := pair(t, noise.NewReader(seeded(3)))
	history := func(before, after int64) func() float64 {
		return func() float64 {
			coarse, fine := draw(before)
			fine += after - before
			// The likelihood ratio's two parts: the noise's and the step's.
			return float64(min(max(fine, 10), 11)) + 2*float64(min(max(fine-coarse, 0), 1))
		}
	}
	y := mass(math.Exp(-.5), math.Exp(-1))
	exact := 1 + math.Log(y(0)/y(1))
	bound := audited(t, history(10, 10), history(10, 11))
	t.Logf("stored noise against new data: epsilon at least %.3f, exactly %.3f, paid 1", bound, exact)
	if bound <= 1 || bound > exact || math.Abs(exact-2.313) > .001 {
		t.Errorf("seed %q: stored noise passed: %.3f, exactly %.3f", seed, bound, exact)
	}
	near := mass(math.Exp(-.99), math.Exp(-1))
	if loss := 1 + math.Log(near(0)/near(1)); loss < 5 {
		t.Errorf("levels 0.99 and 1: loss %.3f", loss)
	}
}
