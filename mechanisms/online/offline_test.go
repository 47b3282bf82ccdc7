package online

import (
	"io"
	weak "math/rand/v2"
	"reflect"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

func offline(t testing.TB, accountant privacy.Accountant, rounds int) OfflineSpec {
	t.Helper()
	random := weak.New(generator(1))
	s := OfflineSpec{Grid: 1, Contribution: byRow, Rows: 10_000, Rounds: rounds, Accountant: accountant}
	for range 60 {
		s.Queries = append(s.Queries, randomQuery(t, 8, random))
	}
	if s.Cost.Epsilon = privacy.MicroEpsilon(1_000_000); accountant == privacy.ZCDP {
		s.Cost = privacy.Cost{Rho: privacy.PicoRho(5e11)}
	}
	return s
}

// TestOfflineLearnsItsQueries: within the bound that theory gives, and far within; at no more than its cost.
func TestOfflineLearnsItsQueries(t *testing.T) {
	for _, accountant := range []privacy.Accountant{privacy.Pure, privacy.ZCDP} {
		s := offline(t, accountant, 12)
		p, err := NewOffline(s)
		if err != nil {
			t.Fatal(err)
		}
		cost, err := p.Cost()
		if err != nil || !cost.Fits(s.Cost) || !s.Cost.Fits(cost.Plus(cost)) {
			t.Errorf("%s of %s (%v)", cost, s.Cost, err)
		}
		h, err := p.Release(privacy.Seal(skewed), seeded(2))
		if err != nil {
			t.Fatal(err)
		}
		again, err := p.Release(privacy.Seal(skewed), seeded(2))
		if err != nil || !reflect.DeepEqual(h, again) {
			t.Error("one seed, two releases")
		}
		largest, seen := int64(0), map[string]bool{}
		for _, q := range s.Queries {
			v, err := h.Value().Value(q)
			if err != nil {
				t.Fatal(err)
			}
			off := v - q.sum(skewed, 1)
			largest = max(largest, off, -off)
		}
		for _, e := range h.Value().Measured {
			seen[e.Query.Key()] = true
		}
		total := 0.0
		for _, rows := range h.Value().Cells() {
			total += rows
		}
		if largest > 400 || len(seen) != 12 || total < 9999 || total > 10_001 {
			t.Errorf("%s: largest error %d, %d different queries measured, %.1f rows", accountant, largest, len(seen), total)
		}
		if bound, err := p.Bound(); (err == nil) != (accountant == privacy.Pure) || err == nil && float64(largest) > bound {
			t.Errorf("largest error %d, bound %.0f (%v)", largest, bound, err)
		}
	}
}

func TestOfflineIsChecked(t *testing.T) {
	for name, change := range map[string]func(*OfflineSpec){
		"no rounds":   func(s *OfflineSpec) { s.Rounds = 0 },
		"many rounds": func(s *OfflineSpec) { s.Rounds = 61 },
		"no rows":     func(s *OfflineSpec) { s.Rows = 0 },
		"spare":       func(s *OfflineSpec) { s.Spare = -1 },
		"no cost":     func(s *OfflineSpec) { s.Cost = privacy.Cost{} },
		"wrong cost":  func(s *OfflineSpec) { s.Cost.Rho = privacy.PicoRho(1) },
		"tiny cost":   func(s *OfflineSpec) { s.Cost.Epsilon = privacy.MicroEpsilon(20) },
		"accountant":  func(s *OfflineSpec) { s.Accountant = 7 },
		"grid":        func(s *OfflineSpec) { s.Grid = 0 },
	} {
		s := offline(t, privacy.Pure, 12)
		change(&s)
		if _, err := NewOffline(s); err == nil {
			t.Errorf("%s passed", name)
		}
	}
	if _, err := (OfflinePlan{}).Release(privacy.Seal(skewed), seeded(1)); err == nil {
		t.Error("zero plan released")
	}
	if _, err := (Hypothesis{}).Value(only(t, 8, 1)); err == nil {
		t.Error("zero hypothesis answered")
	}
	p, err := NewOffline(offline(t, privacy.Pure, 12))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{0, 100, 1000, 3000} {
		if h, err := p.Release(privacy.Seal(skewed), io.LimitReader(seeded(1), n)); err == nil || h.Valid() {
			t.Errorf("%d random bytes were enough", n)
		}
	}
	if _, err := p.Release(privacy.Sensitive[[]int64]{}, seeded(1)); err == nil {
		t.Error("unsealed truth")
	}
}
