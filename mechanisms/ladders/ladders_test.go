package ladders

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

const seed = "ladders: the same 32 bytes again"

func seeded(stream byte) *rand.ChaCha8 {
	key := [32]byte([]byte(seed)[:32])
	key[31] = stream
	return rand.NewChaCha8(key)
}

func ladder(t testing.TB, l1 int64, micros ...int64) Ladder {
	t.Helper()
	levels := make([]privacy.Epsilon, len(micros))
	for i, m := range micros {
		levels[i] = privacy.MicroEpsilon(m)
	}
	l, err := New(levels, privacy.Sensitivity{L1: l1})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// drawn returns each level's cells.
func drawn(t testing.TB, l Ladder, cells []int64, random *rand.ChaCha8) [][]int64 {
	t.Helper()
	rungs, err := l.Draw(privacy.Seal(cells), random)
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]int64, l.Levels())
	for i := range out {
		r, err := rungs.Reveal(i)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = r.Value()
	}
	return out
}

// mass is the law of Y by its definition, from two one-sided parts.
func mass(q1, q2 float64) func(k int64) float64 {
	side := func(k int64) float64 {
		if k == 0 {
			return (1 - q1) / (1 - q2)
		}
		return (1 - q1) / (1 - q2) * (q1 - q2) * math.Pow(q1, float64(k-1))
	}
	return func(k int64) float64 {
		sum := 0.0
		for j := int64(0); side(j) > 1e-18 || j == 0; j++ {
			sum += side(j) * side(j+max(k, -k))
		}
		return sum
	}
}

// TestTheSumIsTheCoarseLaw: fine noise and Y, convolved, are the coarse noise to 1e-12; and Y is 0 with the probability
// q2(1−q1)²/(q1(1−q2)²), else the coarse noise itself.
func TestTheSumIsTheCoarseLaw(t *testing.T) {
	for _, c := range []struct{ coarse, fine float64 }{{.5, 1}, {.1, 1}, {1, 1.01}, {2, 6}, {.3, .4}} {
		q1, q2 := math.Exp(-c.coarse), math.Exp(-c.fine)
		y := mass(q1, q2)
		laplace := func(q float64, k int64) float64 { return (1 - q) / (1 + q) * math.Pow(q, math.Abs(float64(k))) }
		reach := int64(30 / c.coarse)
		total := 0.0
		atom := q2 * (1 - q1) * (1 - q1) / (q1 * (1 - q2) * (1 - q2))
		table := make([]float64, 2*reach+1)
		for j := range table {
			table[j] = y(int64(j))
		}
		for k := -reach; k <= reach; k++ {
			total += y(k)
			sum := 0.0
			for j := -2 * reach; j <= 2*reach; j++ {
				sum += laplace(q2, k-j) * table[max(j, -j)]
			}
			if want := laplace(q1, k); math.Abs(sum/want-1) > 1e-9 {
				t.Errorf("%v: P(%d) of the sum is %g, of the coarse noise %g", c, k, sum, want)
			}
			want := (1 - atom) * laplace(q1, k)
			if k == 0 {
				want += atom
			}
			if math.Abs(y(k)/want-1) > 1e-10 {
				t.Errorf("%v: P(Y=%d) is %g, by the mixture %g", c, k, y(k), want)
			}
		}
		if math.Abs(total-1) > 1e-11 {
			t.Errorf("%v: Y has mass %g", c, total)
		}
	}
}

// TestJointLaw: three levels; each level's noise, each step, and pairs of them, by chi-square: nine judgements at 1e-7.
func TestJointLaw(t *testing.T) {
	const n = 60_000
	l := ladder(t, 2, 500_000, 1_000_000, 3_000_000)
	cells := make([]int64, n)
	for i := range cells {
		cells[i] = 40
	}
	v := drawn(t, l, cells, seeded(1))
	q := []float64{math.Exp(-.25), math.Exp(-.5), math.Exp(-1.5)}
	judge := func(name string, of func(i int) int64, mass func(int64) float64) {
		samples := make([]int64, n)
		for i := range samples {
			samples[i] = of(i)
		}
		if err := stattest.ChiSquare(samples, mass, stattest.Usual); err != nil {
			t.Errorf("seed %q: %s: %v", seed, name, err)
		}
	}
	for level := range v {
		d, err := l.Noise(level)
		if err != nil {
			t.Fatal(err)
		}
		judge("a level's noise", func(i int) int64 { return v[level][i] - 40 }, func(k int64) float64 { return float64(d.Mass(k)) })
		if level > 0 {
			judge("a step", func(i int) int64 { return v[level-1][i] - v[level][i] }, mass(q[level-1], q[level]))
		}
	}
	// Pairs: both cut to −2…2, as one number of two digits.
	cut := func(k int64) int64 { return min(max(k, -2), 2) + 2 }
	cutMass := func(m func(int64) float64) [5]float64 {
		p := [5]float64{}
		for k := int64(-200); k <= 200; k++ {
			p[cut(k)] += m(k)
		}
		return p
	}
	finest, err := l.Noise(2)
	if err != nil {
		t.Fatal(err)
	}
	parts := [][5]float64{cutMass(func(k int64) float64 { return float64(finest.Mass(k)) }), cutMass(mass(q[1], q[2])), cutMass(mass(q[0], q[1]))}
	value := []func(i int) int64{
		func(i int) int64 { return v[2][i] - 40 }, func(i int) int64 { return v[1][i] - v[2][i] }, func(i int) int64 { return v[0][i] - v[1][i] },
	}
	for a := range parts {
		for b := range a {
			judge("a pair", func(i int) int64 { return 5*cut(value[a](i)) + cut(value[b](i)) }, func(k int64) float64 {
				if k < 0 || k > 24 {
					return 0
				}
				return parts[a][k/5] * parts[b][k%5]
			})
		}
	}
}

// TestOneSidedStepIsCaught plants the misreading of the published formula as Y's own: the sum is lopsided.
func TestOneSidedStepIsCaught(t *testing.T) {
	const n = 20_000
	l := ladder(t, 1, 500_000, 1_000_000)
	random := noise.NewReader(seeded(4))
	coarse, err := l.Noise(0)
	if err != nil {
		t.Fatal(err)
	}
	samples := make([]int64, n)
	for i := range samples {
		samples[i] = l.finest.Sample(random) + l.steps[0].side(random)
	}
	if stattest.ChiSquare(samples, func(k int64) float64 { return float64(coarse.Mass(k)) }, stattest.Usual) == nil {
		t.Error("a one-sided step passed")
	}
}

func TestCosts(t *testing.T) {
	l := ladder(t, 1, 100_000, 300_000, 1_000_000)
	for _, c := range []struct {
		paid, wanted int
		a            privacy.Accountant
		want         string
	}{
		{-1, 0, privacy.Pure, "ε 0.1"}, {-1, 2, privacy.Pure, "ε 1"}, {0, 2, privacy.Pure, "ε 0.9"}, {1, 2, privacy.Pure, "ε 0.7"},
		{2, 0, privacy.Pure, "ε 0"}, {1, 1, privacy.Pure, "ε 0"},
		{-1, 2, privacy.ZCDP, "ρ 0.5"}, {0, 2, privacy.ZCDP, "ρ 0.5"}, {2, 2, privacy.ZCDP, "ε 0"},
		{0, 3, privacy.Pure, "level is 3, must be from 0 to 2"}, {3, 0, privacy.Pure, "paid level is 3, must be from -1 to 2"},
		{0, 1, 0, "accountant is 0, must be pure or zcdp"},
	} {
		got, err := l.Cost(c.paid, c.wanted, c.a)
		if err == nil && got.String() != c.want || err != nil && err.Error() != c.want {
			t.Errorf("from %d to %d: %s (%v), want %s", c.paid, c.wanted, got, err, c.want)
		}
	}
}

// TestRefiningUnderZCDP looks at an analyst who has seen the coarse level and, by its outcome, goes on to the fine one or
// spends the same on Gaussian noise, whichever tells more: the divergence of the whole, exactly, for counts of 0 and 1. With
// ε²/2 of the fine level for going on it stays below all that was paid; with the difference of the two it is above.
func TestRefiningUnderZCDP(t *testing.T) {
	const coarse, fine, order, reach = .2, .4, 2., 120
	y := mass(math.Exp(-coarse), math.Exp(-fine))
	laplace := func(k int) float64 { return math.Tanh(fine/2) * math.Exp(-fine*math.Abs(float64(k))) }
	steps := make([]float64, 2*reach+1)
	for d := range steps {
		steps[d] = y(int64(d))
	}
	divergence := func(goingOn float64) (all, paid float64) {
		sum := 0.0
		for seen := -reach; seen <= reach; seen++ {
			one, other, refined := 0.0, 0.0, 0.0
			for k := -reach; k <= reach; k++ {
				step := steps[max(seen-k, k-seen)]
				p, q := laplace(k)*step, laplace(k-1)*step
				one, other, refined = one+p, other+q, refined+p*math.Pow(p/q, order-1)
			}
			spent := one * math.Pow(one/other, order-1) * math.Exp(order*(order-1)*goingOn)
			sum += max(refined, spent)
		}
		return math.Log(sum) / (order - 1), order * (coarse*coarse/2 + goingOn)
	}
	if all, paid := divergence(fine * fine / 2); all > paid {
		t.Errorf("divergence %.6f, paid %.6f", all, paid)
	}
	if all, paid := divergence(fine*fine/2 - coarse*coarse/2); all <= 1.03*paid {
		t.Errorf("paid the difference alone: divergence %.6f of %.6f, expected to be above it", all, paid)
	}
}

// TestSavedRungsReveal: the same levels after saving; nothing after a change of any byte.
func TestSavedRungsReveal(t *testing.T) {
	l := ladder(t, 3, 100_000, 300_000)
	rungs, err := l.Draw(privacy.Seal([]int64{5, -7, 0, math.MaxInt64}), seeded(5))
	if err != nil {
		t.Fatal(err)
	}
	text := &bytes.Buffer{}
	if err := rungs.Save(text); err != nil {
		t.Fatal(err)
	}
	again, err := Load(bytes.NewReader(text.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	for level := range 2 {
		a, _ := rungs.Reveal(level)
		b, err := again.Reveal(level)
		if err != nil || !slices.Equal(a.Value(), b.Value()) {
			t.Errorf("level %d: %v, %v (%v)", level, a.Value(), b.Value(), err)
		}
	}
	for i := range text.Len() {
		broken := bytes.Clone(text.Bytes())
		broken[i] ^= 1
		if _, err := Load(bytes.NewReader(broken)); err == nil {
			t.Fatalf("a change of byte %d passed", i)
		}
		if _, err := Load(bytes.NewReader(text.Bytes()[:i])); err == nil {
			t.Fatalf("the first %d bytes passed", i)
		}
	}
}

func TestRefused(t *testing.T) {
	one := privacy.MicroEpsilon(1)
	l := ladder(t, 1, 500_000, 1_000_000)
	for want, f := range map[string]func() error{
		"number of levels is 0, must be from 1 to 64":                           func() error { _, err := New(nil, privacy.Sensitivity{L1: 1}); return err },
		"L1 sensitivity is 0, must be from 1 to 9223372036854":                  func() error { _, err := New([]privacy.Epsilon{one}, privacy.Sensitivity{}); return err },
		"level 1 is 0.000001, must be greater than 0 and than the level before": func() error { _, err := New([]privacy.Epsilon{one, one}, privacy.Sensitivity{L1: 1}); return err },
		"level 0 is 0, must be greater than 0 and than the level before":        func() error { _, err := New([]privacy.Epsilon{{}}, privacy.Sensitivity{L1: 1}); return err },
		"ladder was not made by New":                                            func() error { _, err := Ladder{}.Draw(privacy.Seal([]int64{1}), seeded(0)); return err },
		"truth was never sealed":                                                func() error { _, err := l.Draw(privacy.Sensitive[[]int64]{}, seeded(0)); return err },
		"noise: the source of randomness failed: broken": func() error {
			_, err := l.Draw(privacy.Seal([]int64{1}), iotest.ErrReader(errors.New("broken")))
			return err
		},
		"noise: no source of randomness": func() error { _, err := l.Draw(privacy.Seal([]int64{1}), nil); return err },
	} {
		if err := f(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := (Rungs{}).Reveal(0); err == nil {
		t.Error("zero rungs were revealed")
	}
	if err := (Rungs{}).Save(&bytes.Buffer{}); err == nil {
		t.Error("zero rungs were saved")
	}
}
