package mechanisms

import (
	"bytes"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// levels are a spec for ε = paid and the same at other ε.
func levels(t testing.TB, s Spec, paid privacy.Epsilon, others ...privacy.Epsilon) []Spec {
	t.Helper()
	out := []Spec{s}
	for _, e := range others {
		at, ok := s.At(paid, e)
		if !ok {
			t.Fatalf("%v is no level", e)
		}
		out = append(out, at)
	}
	return out
}

func plainAt(t testing.TB, cells int, micro int64) Spec {
	t.Helper()
	s, err := Plain(1, cells, Contribution{Rows: 1, Neighbors: privacy.AddRemove}, epsilon(micro))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAtIsCalibration: a spec at another ε is the one that is calibrated to it, of counts and of sums.
func TestAtIsCalibration(t *testing.T) {
	c := Contribution{Rows: 3, Neighbors: privacy.ReplaceOne}
	counters := []Counter{{Bound: Bound{0, 1}}, {Bound: Bound{-7, 20}}, {Bound: Bound{0, 1}, Values: 5}}
	for _, micro := range []int64{1, 7, 100_000, 123_457, 1_000_000} {
		plain, _ := Plain(2, 9, c, epsilon(50_000))
		sums, _ := Sums(counters, 9, c, epsilon(50_000))
		for _, s := range []struct {
			held  Spec
			again func() (Spec, error)
		}{
			{plain, func() (Spec, error) { return Plain(2, 9, c, epsilon(micro)) }},
			{sums, func() (Spec, error) { return Sums(counters, 9, c, epsilon(micro)) }},
		} {
			want, err := s.again()
			if err != nil {
				t.Fatal(err)
			}
			got, ok := s.held.At(privacy.MicroEpsilon(50_000), privacy.MicroEpsilon(micro))
			if !ok {
				t.Fatal(micro)
			}
			for i := range got.Counters {
				a, b := got.noise(i), want.noise(i)
				if math.Abs(float64(a.Num)/float64(a.Den)/(float64(b.Num)/float64(b.Den))-1) > 1e-12 {
					t.Errorf("%d micro, counter %d: noise %v, calibrated %v", micro, i, a, b)
				}
			}
		}
	}
	gaussian, _ := Plain(1, 1, c, privacy.Cost{Rho: privacy.PicoRho(1e10)})
	if _, ok := gaussian.At(privacy.MicroEpsilon(1), privacy.MicroEpsilon(2)); ok {
		t.Error("a Gaussian level")
	}
	large, _ := Plain(1, MaxRefined+1, c, epsilon(1e6))
	if _, ok := large.At(privacy.MicroEpsilon(1e6), privacy.MicroEpsilon(2e6)); ok {
		t.Error("a level of too many cells")
	}
}

// TestLadderOfARelease: what is shown first, after one refinement and after two, has each time the noise that a release
// of that cost has, and the last level is the finest. Four judgements at stattest.Usual.
func TestLadderOfARelease(t *testing.T) {
	const n = 20_000
	e := []privacy.Epsilon{privacy.MicroEpsilon(100_000), privacy.MicroEpsilon(150_000), privacy.MicroEpsilon(600_000), privacy.MicroEpsilon(1_000_000)}
	specs := levels(t, plainAt(t, n, e[0].Micro()), e[0], e[1:]...)
	finest := specs[3]
	for i := 1; i < 4; i++ {
		if !specs[i].Refinable(specs[i-1], finest) {
			t.Fatal(i)
		}
	}
	counts := make([]int64, n)
	for i := range counts {
		counts[i] = 1000
	}
	random := seeded(60)
	shown, sealedFinest, err := ReleaseFirst(specs[0], finest, inOrder, privacy.Seal(groupsOf(counts...)), random)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadFinest(sealedFinest.AppendTo(nil))
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range specs {
		if i > 0 {
			if shown, err = Refine(specs[i-1], shown, s, again, random); err != nil {
				t.Fatal(err)
			}
		}
		noises, d := slices.Clone(shown.Value().Observations), s.Errors(Confidence{.95})
		for j := range noises {
			noises[j] -= 1000
		}
		if err := stattest.ChiSquare(noises, func(k int64) float64 { return float64(d.noise.Mass(k)) }, stattest.Usual); err != nil {
			t.Errorf("seed %q: level %d: %v", seed, i, err)
		}
	}
	if _, err := Refine(specs[0], shown, plainAt(t, 5, 2e5), again, random); err == nil {
		t.Error("refined to other cells")
	}
	if _, err := Refine(specs[2], shown, specs[1], again, random); err == nil {
		t.Error("refined to less")
	}
	if _, err := Refine(specs[0], shown, specs[1], Finest{}, random); err == nil {
		t.Error("refined from nothing")
	}
}

// TestLadderOfSums: counters with noises of their own keep them at each level: by their variances.
func TestLadderOfSums(t *testing.T) {
	const n = 12_000
	c := Contribution{Rows: 1, Neighbors: privacy.AddRemove}
	sums, err := Sums([]Counter{{Bound: Bound{0, 1}}, {Bound: Bound{0, 50}}}, n, c, epsilon(200_000))
	if err != nil {
		t.Fatal(err)
	}
	e := privacy.MicroEpsilon(200_000)
	specs := levels(t, sums, e, privacy.MicroEpsilon(700_000), privacy.MicroEpsilon(1_000_000))
	random := seeded(61)
	shown, finest, err := ReleaseFirst(specs[0], specs[2], func(cells []int32, _ int) int { return int(cells[0]) }, privacy.Seal([]privacy.Group{}), random)
	if err != nil {
		t.Fatal(err)
	}
	if shown, err = Refine(specs[0], shown, specs[1], finest, random); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		d, _ := specs[1].noise(i).distribution()
		own := make([]float64, n)
		for j := range own {
			own[j] = float64(shown.Value().Observations[i*n+j])
		}
		v := d.Variance()
		if err := stattest.Variance(own, stattest.Moments{Variance: v, Fourth: 6 * v * v}, stattest.Usual); err != nil {
			t.Errorf("seed %q: counter %d: %v", seed, i, err)
		}
	}
}

// TestAuditOfRefining: what she sees who paid ε = 0.4 for a count and the difference to 1 for a more exact one: the
// loss of both together is at most 1. A second answer with noise of its own, at the same price, must be found out.
func TestAuditOfRefining(t *testing.T) {
	one, finestAt := privacy.MicroEpsilon(1_000_000), privacy.MicroEpsilon(3_000_000)
	first := plainAt(t, 1, 400_000)
	specs := levels(t, first, privacy.MicroEpsilon(400_000), one, finestAt)
	pair := func(count int64, random io.Reader, fault bool) (coarse, fine float64) {
		shown, finest, err := ReleaseFirst(specs[0], specs[2], inOrder, privacy.Seal(groupsOf(count)), random)
		if err != nil {
			t.Fatal(err)
		}
		refined, err := Refine(specs[0], shown, specs[1], finest, random)
		if fault {
			refined, err = Release(specs[1], inOrder, privacy.Seal(groupsOf(count)), random)
		}
		if err != nil {
			t.Fatal(err)
		}
		return float64(shown.Value().Observations[0]), float64(refined.Value().Observations[0])
	}
	// The judged number is the logarithm of the likelihood ratio of the fine answer, of two independent ones, or a
	// mixture that bends towards one: an audit bounds ε from below whatever is judged.
	ratio := func(x, scale float64) float64 { return (math.Abs(x-11) - math.Abs(x-10)) * scale }
	for name, judge := range map[string]func(coarse, fine float64) float64{
		"coarse":     func(coarse, _ float64) float64 { return ratio(coarse, .4) },
		"fine":       func(_, fine float64) float64 { return ratio(fine, 1) },
		"both":       func(coarse, fine float64) float64 { return ratio(coarse, .4) + ratio(fine, 1) },
		"difference": func(coarse, fine float64) float64 { return ratio(fine, 1) + min(max(coarse-fine, -1), 1)/8 },
	} {
		for _, fault := range []bool{false, true} {
			random := seeded(62)
			side := func(count int64) []float64 {
				out := make([]float64, audits)
				for i := range out {
					out[i] = judge(pair(count, random, fault))
				}
				return out
			}
			bound, err := stattest.Audit{One: side(10), Other: side(11)}.Epsilon(auditAlarm)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, fault %v: epsilon at least %.3f of 1", name, fault, bound)
			switch {
			case !fault && (bound > 1 || name == "coarse" && bound > .4):
				t.Errorf("seed %q: %s: epsilon is at least %.3f, paid 0.4 and 0.6 more", seed, name, bound)
			case !fault && name == "fine" && bound < .85:
				t.Errorf("the audit is blind: %.3f", bound)
			case fault && name == "both" && bound <= 1:
				t.Errorf("fresh noise for the difference passed: %.3f", bound)
			}
		}
	}
}

// TestLoadFinestRefuses what was cut short or made longer.
func TestLoadFinestRefuses(t *testing.T) {
	specs := levels(t, plainAt(t, 3, 100_000), privacy.MicroEpsilon(100_000), privacy.MicroEpsilon(1_000_000))
	_, finest, err := ReleaseFirst(specs[0], specs[1], inOrder, privacy.Seal(groupsOf(1, 2, 3)), seeded(63))
	if err != nil {
		t.Fatal(err)
	}
	text := finest.AppendTo(nil)
	back, err := LoadFinest(text)
	if err != nil || !bytes.Equal(back.AppendTo(nil), text) {
		t.Fatal(err)
	}
	for i := range text {
		if _, err := LoadFinest(text[:i]); err == nil {
			t.Errorf("the first %d bytes passed", i)
		}
	}
	if _, err := LoadFinest(append(text, 0)); err == nil {
		t.Error("a byte more passed")
	}
	if (Finest{}).Valid() {
		t.Error("nothing is valid")
	}
}
