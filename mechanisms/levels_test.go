package mechanisms

import (
	"io"
	"math"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

func rhoOf(e int64) privacy.Cost { return privacy.Cost{Rho: privacy.MicroEpsilon(e).Rho()} }

// plainLevels are those of cells that are counted once, at so many micro-ε, and ε²/2 of them under zCDP.
func plainLevels(t testing.TB, cells int, zcdp bool, micro ...int64) []Level {
	t.Helper()
	costs := make([]privacy.Cost, len(micro))
	for i, e := range micro {
		if costs[i] = epsilon(e); zcdp {
			costs[i] = rhoOf(e)
		}
	}
	s, err := Plain(1, cells, oneRow, costs[0])
	if err != nil {
		t.Fatal(err)
	}
	list, err := Levels(s, costs)
	if err != nil || len(list) != len(costs) {
		t.Fatalf("%d levels, %v", len(list), err)
	}
	return list
}

// TestLevelsHaveTheirLaw: each level has the noise that its Spec says, whose moments are those of a release at its
// cost, and each is nearer to the next finer one than to the truth. Six judgements at stattest.Usual.
func TestLevelsHaveTheirLaw(t *testing.T) {
	const n = 20_000
	for _, zcdp := range []bool{false, true} {
		list := plainLevels(t, n, zcdp, 500_000, 250_000, 100_000)
		counts := make([]int64, n)
		for i := range counts {
			counts[i] = 1000
		}
		drawn, err := ReleaseLevels(list, inOrder, privacy.Seal(groupsOf(counts...)), seeded(80))
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range list {
			alone, err := Plain(1, n, oneRow, l.Cost)
			if err != nil {
				t.Fatal(err)
			}
			a, b := l.Spec.Counts().Noise, alone.Counts().Noise
			if more := float64(a.Num) / float64(a.Den) / (float64(b.Num) / float64(b.Den)); more < 1-1e-15 || more > 1+1e-8 {
				t.Errorf("level %d has %g of the noise of a release at its cost", i, more)
			}
			noises, d := slices.Clone(drawn[i].Value().Observations), l.Spec.Errors(Confidence{.95})
			for j := range noises {
				noises[j] -= 1000
			}
			if err := stattest.ChiSquare(noises, func(k int64) float64 { return float64(d.noise.Mass(k)) }, stattest.Usual); err != nil {
				t.Errorf("seed %q: zcdp %v, level %d: %v", seed, zcdp, i, err)
			}
			if i == 0 {
				continue
			}
			far, on := 0.0, 0.0
			for j, v := range noises {
				z := float64(drawn[i-1].Value().Observations[j] - 1000)
				far, on = far+float64(v)*float64(v), on+(float64(v)-z)*(float64(v)-z)
			}
			if on >= far {
				t.Errorf("level %d is no closer to the next finer one than to the truth", i)
			}
		}
	}
}

// TestAuditOfPooling: two analysts at ε = 1 and ε = 0.9 put together what they have: the loss is at most 1, where it
// would be 1.9 of two draws; and each alone has lost what she paid. Levels drawn beside each other, each of the data,
// must be found out, and so must two that are both made of the finest but not of each other.
func TestAuditOfPooling(t *testing.T) {
	list := plainLevels(t, 1, false, 2_000_000, 1_000_000, 900_000) // nobody has the finest
	const chained, apart, beside = 0, 1, 2
	pair := func(count int64, random io.Reader, fault int) (fine, coarse float64) {
		truth := func() privacy.Sensitive[[]privacy.Group] { return privacy.Seal(groupsOf(count)) }
		draw := func(levels ...Level) []privacy.Released[Noisy] {
			out, err := ReleaseLevels(levels, inOrder, truth(), random)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		all := draw(list...)
		one, other := all[1], all[2]
		switch fault {
		case apart:
			other = draw(list[1], list[2])[1]
		case beside: // made of the finest, with noise that the other one does not have
			steps := make([]coarsening, 1)
			if _, err := list[2].Spec.stepsFrom(list[0].Spec, steps); err != nil {
				t.Fatal(err)
			}
			other = privacy.PostProcess(all[0], func(f Noisy) Noisy {
				return Noisy{Observations: []int64{steps[0](noise.NewReader(random), f.Observations[0])}}
			})
		}
		return float64(one.Value().Observations[0]), float64(other.Value().Observations[0])
	}
	ratio := func(x, scale float64) float64 { return (math.Abs(x-11) - math.Abs(x-10)) * scale }
	judges := []struct {
		name   string
		most   float64
		pooled bool
		of     func(fine, coarse float64) float64
	}{
		{"the finer one alone", 1, false, func(fine, _ float64) float64 { return ratio(fine, 1) }},
		{"the coarser one alone", .9, false, func(_, coarse float64) float64 { return ratio(coarse, .9) }},
		{"both", 1, true, func(fine, coarse float64) float64 { return ratio(fine, 1) + ratio(coarse, .9) }},
	}
	for _, fault := range []int{chained, apart, beside} {
		for _, j := range judges {
			random := seeded(81)
			side := func(count int64) []float64 {
				out := make([]float64, audits)
				for i := range out {
					out[i] = j.of(pair(count, random, fault))
				}
				return out
			}
			bound, err := stattest.Audit{One: side(10), Other: side(11)}.Epsilon(auditAlarm)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("fault %d, %s: epsilon at least %.3f of %g", fault, j.name, bound, j.most)
			switch found := bound > j.most; {
			case found && (fault == chained || !j.pooled):
				t.Errorf("seed %q: fault %d, %s: epsilon is at least %.3f, must be at most %g", seed, fault, j.name, bound, j.most)
			case !found && fault != chained && j.pooled:
				t.Errorf("fault %d passed: %.3f", fault, bound)
			case fault == chained && bound < .8*j.most:
				t.Errorf("the audit is blind to %s: %.3f", j.name, bound)
			}
		}
	}
}

// TestLevelsOfAllStrategies: ranges of both accountants have levels that observe the same, and errors that fall with
// the price as those of releases at that price do.
func TestLevelsOfAllStrategies(t *testing.T) {
	for _, costs := range [][]privacy.Cost{{epsilon(500_000), epsilon(100_000)}, {rhoOf(500_000), rhoOf(100_000)}} {
		for _, cells := range []int{1, 2, 37, 120, 1000} {
			s, err := Ranges(cells, Contribution{Rows: 3, Neighbors: privacy.ReplaceOne}, costs[0])
			if err != nil {
				t.Fatal(err)
			}
			list, err := Levels(s, costs)
			if err != nil || len(list) != 2 {
				t.Fatalf("%d cells: %d levels, %v", cells, len(list), err)
			}
			alone, err := Ranges(cells, Contribution{Rows: 3, Neighbors: privacy.ReplaceOne}, costs[1])
			if err != nil {
				t.Fatal(err)
			}
			if a, b := list[1].Spec.RMSE(AllRanges), alone.RMSE(AllRanges); math.Abs(a/b-1) > 1e-6 {
				t.Errorf("%d cells: error %g at the level, %g alone", cells, a, b)
			}
			if _, err := ReleaseLevels(list, inOrder, privacy.Seal(groupsOf(make([]int64, cells)...)), seeded(82)); err != nil {
				t.Errorf("%d cells: %v", cells, err)
			}
		}
	}
}

// TestNoLevel: what cannot be a level is left out, by public things alone.
func TestNoLevel(t *testing.T) {
	at := func(s Spec, err error, costs ...privacy.Cost) int {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		list, err := Levels(s, costs)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	near, err := Plain(1, 3, oneRow, rhoOf(500_000))
	if n := at(near, err, rhoOf(500_000), rhoOf(499_000), rhoOf(250_000)); n != 2 {
		t.Errorf("%d levels of two that are too near each other and one that is not", n)
	}
	near, err = Plain(1, 3, oneRow, epsilon(500_000))
	if n := at(near, err, epsilon(500_000), epsilon(499_999)); n != 2 {
		t.Errorf("%d levels under the pure accountant, where none is too near", n)
	}
	large, err := Plain(1, MaxRefined+1, oneRow, epsilon(500_000))
	if n := at(large, err, epsilon(500_000), epsilon(100_000)); n != 1 {
		t.Errorf("%d levels of too many cells", n)
	}
	grows, err := Continual(100, oneRow, epsilon(500_000))
	if n := at(grows, err, epsilon(500_000), epsilon(100_000)); n != 1 {
		t.Errorf("%d levels of a release that grows", n)
	}
	for _, costs := range [][]privacy.Cost{nil, {epsilon(5), epsilon(5)}, {epsilon(5), epsilon(6)}} {
		if _, err := Levels(plainAt(t, 1, 5), costs); err == nil {
			t.Errorf("levels at %v", costs)
		}
	}
}
