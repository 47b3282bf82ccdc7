package sparse

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// alarm is of each statistical judgement here.
const alarm = 1e-6

func seeded(n byte) io.Reader { return rand.NewChaCha8([32]byte{n, 1, 4}) }

func epsilon(micro int64) privacy.Cost { return privacy.Cost{Epsilon: privacy.MicroEpsilon(micro)} }

func rho(pico int64) privacy.Cost { return privacy.Cost{Rho: privacy.PicoRho(pico)} }

func unsaved(State) error { return nil }

func made(t testing.TB, s Spec) Mechanism {
	t.Helper()
	m, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func opened(t testing.TB, m Mechanism, random io.Reader) *Instance {
	t.Helper()
	i, err := m.Open(random, unsaved)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// deviation returns the standard deviation of the noise of one comparison, threshold's and query's together.
func deviation(m Mechanism) float64 {
	variance := 0.0
	for _, d := range []noise.Distribution{m.threshold, m.comparison} {
		q := ratio(d)
		variance += q / ((1 - q) * (1 - q))
	}
	return math.Sqrt(variance)
}

// TestDeviations: noise of one side beside the best known figures of Laplace noise, at ε = 1 and sensitivity 1: √2 less.
func TestDeviations(t *testing.T) {
	for _, c := range []struct {
		positives int
		monotone  bool
		laplace   float64
	}{{1, false, 5.88}, {50, false, 151}, {50, true, 79}} {
		ours := deviation(made(t, Spec{Positives: c.positives, Sensitivity: 1, Monotone: c.monotone, Cost: epsilon(1_000_000)}))
		t.Logf("c = %d, monotone %v: %.2f, Laplace %v", c.positives, c.monotone, ours, c.laplace)
		if ours > .715*c.laplace || ours < .7*c.laplace {
			t.Errorf("c = %d, monotone %v: deviation %.3f, of Laplace noise %v", c.positives, c.monotone, ours, c.laplace)
		}
	}
	kept := deviation(made(t, Spec{Positives: 50, Sensitivity: 1, Cost: epsilon(1_000_000)}))
	refreshed := deviation(made(t, Spec{Positives: 50, Sensitivity: 1, Cost: rho(500_000_000_000)}))
	t.Logf("c = 50, rho 0.5: kept %.1f, refreshed %.1f", kept, refreshed)
	if refreshed > kept/3 {
		t.Error("a threshold for each positive should be narrower under zCDP")
	}
}

// TestItStops after the declared positives, whatever is asked, and only then.
func TestItStops(t *testing.T) {
	for _, cost := range []privacy.Cost{epsilon(5_000_000), rho(5e12)} {
		m := made(t, Spec{Positives: 3, Sensitivity: 1, Cost: cost})
		i := opened(t, m, seeded(5))
		for n := range 3 {
			if i.Remaining() != 3-n {
				t.Fatalf("%d left after %d", i.Remaining(), n)
			}
			for range 20 {
				if a, err := i.Ask(privacy.Seal[int64](-1<<40), 0); err != nil || a.Value() {
					t.Fatalf("far below: %v, %v", a, err)
				}
			}
			if a, err := i.Ask(privacy.Seal[int64](math.MaxInt64), math.MinInt64); err != nil || !a.Value() {
				t.Fatalf("far above: %v, %v", a, err)
			}
		}
		if _, err := i.Ask(privacy.Seal[int64](0), 0); !errors.Is(err, ErrSpent) || i.Remaining() != 0 {
			t.Errorf("after the stop: %v, %d left", err, i.Remaining())
		}
	}
}

// TestRestoring takes a positive each time, and never gives a spent one again.
func TestRestoring(t *testing.T) {
	high := privacy.Seal[int64](1 << 40)
	for _, s := range []Spec{
		{Positives: 4, Restarts: 3, Sensitivity: 1, Cost: epsilon(1_000_000)},
		{Positives: 4, Sensitivity: 1, Cost: rho(1e12)},
	} {
		m, saved := made(t, s), State{}
		save := func(s State) error { saved = s; return nil }
		i, err := m.Open(seeded(1), save)
		if err != nil || saved.Runs != 1 || saved.Positives != 0 {
			t.Fatal(saved, err)
		}
		if _, err := i.Ask(high, 0); err != nil || saved.Positives != 1 || saved != i.state {
			t.Fatal(saved, err)
		}
		if i, err = m.Restore(saved, seeded(2), save); err != nil || i.Remaining() != 2 {
			t.Fatal(i.Remaining(), err)
		}
		if i, err = m.Restore(saved, seeded(3), save); err != nil || i.Remaining() != 1 {
			t.Fatal(i.Remaining(), err)
		}
		if _, err = m.Restore(saved, seeded(4), save); !errors.Is(err, ErrSpent) {
			t.Errorf("a fifth positive: %v", err)
		}
		if _, err := i.Ask(high, 0); err != nil || i.Remaining() != 0 {
			t.Error(err)
		}
		for _, bad := range []State{{-1, 1}, {5, 1}, {}} {
			if _, err := m.Restore(bad, seeded(1), unsaved); err == nil {
				t.Errorf("%+v was restored", bad)
			}
		}
	}
	m := made(t, Spec{Positives: 4, Sensitivity: 1, Cost: epsilon(1)})
	if _, err := m.Restore(State{0, 1}, seeded(1), unsaved); err == nil || !strings.Contains(err.Error(), "below the 0 declared") {
		t.Errorf("an undeclared restart: %v", err)
	}
}

// TestAnUnsavedPositiveIsNotAnswered, and nothing after it.
func TestAnUnsavedPositiveIsNotAnswered(t *testing.T) {
	m, full := made(t, Spec{Positives: 9, Sensitivity: 1, Cost: epsilon(1_000_000)}), errors.New("disk full")
	fail := false
	i, err := m.Open(seeded(1), func(State) error {
		if fail {
			return full
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	fail = true
	if _, err := i.Ask(privacy.Seal[int64](-1<<40), 0); err != nil {
		t.Errorf("below needs no saving: %v", err)
	}
	if a, err := i.Ask(privacy.Seal[int64](1<<40), 0); !errors.Is(err, full) || a.Valid() {
		t.Error(a, err)
	}
	if _, err := i.Ask(privacy.Seal[int64](0), 0); !errors.Is(err, ErrSpent) {
		t.Error(err)
	}
	if _, err := m.Open(seeded(1), func(State) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
}

func TestACopyDoesNotAnswer(t *testing.T) {
	i := opened(t, made(t, Spec{Positives: 1, Sensitivity: 1, Cost: epsilon(1_000_000)}), seeded(1))
	second := &Instance{self: i.self, mechanism: i.mechanism, random: i.random, state: i.state, threshold: i.threshold}
	for _, c := range []*Instance{second, {}} {
		if _, err := c.Ask(privacy.Seal[int64](0), 0); err == nil || c.Remaining() != 0 {
			t.Error("a copy answered")
		}
	}
}

// TestConcurrentAsking: never more positives than declared.
func TestConcurrentAsking(t *testing.T) {
	i := opened(t, made(t, Spec{Positives: 7, Sensitivity: 1, Cost: epsilon(1_000_000)}), seeded(1))
	group, above := sync.WaitGroup{}, make(chan bool, 100)
	for range 4 {
		group.Go(func() {
			for range 20 {
				if a, err := i.Ask(privacy.Seal[int64](1<<40), 0); err == nil {
					above <- a.Value()
				}
			}
		})
	}
	group.Wait()
	if len(above) != 7 {
		t.Errorf("%d positives of 7", len(above))
	}
}

func TestAFailingSourceAnswersNothing(t *testing.T) {
	m := made(t, Spec{Positives: 50, Sensitivity: 1, Cost: epsilon(1_000_000)})
	broken := errors.New("broken")
	for bytes := int64(0); bytes < 4000; bytes += 256 {
		i, err := m.Open(io.MultiReader(io.LimitReader(seeded(1), bytes), iotest.ErrReader(broken)), unsaved)
		for n := 0; err == nil; n++ {
			before := i.state
			a, failed := i.Ask(privacy.Seal[int64](3), 3)
			if failed == nil == !a.Valid() || failed != nil && i.state != before {
				t.Fatal(a, failed)
			}
			err = failed
		}
		if !errors.Is(err, broken) && !errors.Is(err, ErrSpent) {
			t.Fatal(err)
		}
	}
}

func TestMarginHolds(t *testing.T) {
	const beta = .1
	for _, cost := range []privacy.Cost{epsilon(1_000_000), rho(500_000_000_000)} {
		m := made(t, Spec{Positives: 2, Sensitivity: 1, Cost: cost})
		margin := int64(math.Ceil(m.Margin(beta)))
		for _, up := range []bool{false, true} {
			count := -margin
			if up {
				count = margin
			}
			c := stattest.Coverage{Trials: stattest.Length(10_000, 100_000), Claim: 1 - beta}
			random := seeded(8)
			for range c.Trials {
				a, err := opened(t, m, random).Ask(privacy.Seal(count), 0)
				if err == nil && a.Value() == up {
					c.Hits++
				}
			}
			if err := c.AtLeast(alarm); err != nil {
				t.Errorf("%v, above %v: margin %d: %v", cost, up, margin, err)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	good := Spec{Positives: 3, Sensitivity: 1, Cost: epsilon(1_000_000)}
	for text, change := range map[string]func(*Spec){
		"positives is 0":          func(s *Spec) { s.Positives = 0 },
		"positives is 1048577":    func(s *Spec) { s.Positives = MaxPositives + 1 },
		"restarts is 3":           func(s *Spec) { s.Restarts = 3 },
		"restarts is set":         func(s *Spec) { s.Restarts, s.Cost = 1, rho(1e12) },
		"sensitivity is 0":        func(s *Spec) { s.Sensitivity = 0 },
		"must be together":        func(s *Spec) { s.Sensitivity = MaxSensitivity },
		"cost is ε 0":             func(s *Spec) { s.Cost = privacy.Cost{} },
		"cost is ε -":             func(s *Spec) { s.Cost = epsilon(-1_000_000) },
		"delta is":                func(s *Spec) { s.Cost.Delta = privacy.AttoDelta(1) },
		"at most 1000000":         func(s *Spec) { s.Cost = epsilon(math.MaxInt64) },
		"too small to be split":   func(s *Spec) { s.Cost = rho(1); s.Positives = 1 << 20 },
		"must be below 109951162": func(s *Spec) { s.Sensitivity = 1 << 30; s.Cost = epsilon(1) },
	} {
		s := good
		change(&s)
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := (Mechanism{}).Open(seeded(1), unsaved); err == nil {
		t.Error("a mechanism that was not made was opened")
	}
	if _, err := opened(t, made(t, good), seeded(1)).Ask(privacy.Sensitive[int64]{}, 0); err == nil {
		t.Error("an unsealed query was answered")
	}
	if _, err := made(t, good).Open(nil, unsaved); err == nil {
		t.Error("opened without randomness")
	}
}
