package online

import (
	"io"
	"math"
	weak "math/rand/v2"
	"reflect"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

func offline(t testing.TB, accountant privacy.Accountant, rounds int) OfflineSpec {
	t.Helper()
	random := weak.New(generator(1))
	s := OfflineSpec{Contribution: byRow, Rows: 10_000, Rounds: rounds, Accountant: accountant}
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
			off := v - q.sum(skewed)
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
		"finding":     func(s *OfflineSpec) { s.Finds = 2 },
		"tiny sparse": func(s *OfflineSpec) { s.Finds, s.Cost = Sparse, privacy.Cost{Epsilon: privacy.MicroEpsilon(60)} },
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

// TestOfflineBySparse: a round that finds no query far off learns nothing and costs what it costs; what is found was
// far off but for its miss. Cost: twice as dear a comparison under zCDP, within the spec's.
func TestOfflineBySparse(t *testing.T) {
	for _, accountant := range []privacy.Accountant{privacy.Pure, privacy.ZCDP} {
		s := offline(t, accountant, 12)
		s.Finds = Sparse
		p, err := NewOffline(s)
		if err != nil {
			t.Fatal(err)
		}
		cost, err := p.Cost()
		if err != nil || !cost.Fits(s.Cost) || !s.Cost.Fits(cost.Plus(cost)) {
			t.Errorf("%s of %s (%v)", cost, s.Cost, err)
		}
		h, err := p.Release(privacy.Seal(skewed), seeded(3))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(h.Value().Measured); n < 1 || n >= 12 {
			t.Errorf("%s: %d rounds of 12 found a query", accountant, n)
		}
		for _, q := range s.Queries {
			v, err := h.Value().Value(q)
			if err != nil {
				t.Fatal(err)
			}
			if off := v - q.sum(skewed); max(off, -off) > 3*p.find.SparseReach(sparseMiss) {
				t.Errorf("%s: a query is off by %d, and no round found it", accountant, off)
			}
		}
		if _, err := p.Bound(); err == nil {
			t.Error("a bound that is not proved for the sparse distinguisher")
		}
	}
}

// TestOfflineAgainstHistogram: why reports are not answered so. Over the tables of a report (region by education,
// education by sex, and each of these alone) of 200,000 rows at ε = 0.56, a histogram of all cells has the lesser
// error, for any number of rounds and both distinguishers.
func TestOfflineAgainstHistogram(t *testing.T) {
	const regions, grades, sexes = 7, 7, 4
	truth := make([]int64, regions*grades*sexes)
	random, left := weak.New(generator(7)), int64(200_000)
	for i := range truth {
		n := left * int64(1+random.IntN(40)) / 1000
		truth[i], left = n, left-n
	}
	var queries []Query
	sizes := 0.0
	add := func(key func(region, grade, sex int) int, keys int) {
		lists := make([][]Span, keys)
		for cell := range truth {
			k := key(cell/(grades*sexes), cell/sexes%grades, cell%sexes)
			lists[k] = append(lists[k], Span{cell, cell + 1})
			sizes++
		}
		for _, spans := range lists {
			q, err := Spans(len(truth), spans...)
			if err != nil {
				t.Fatal(err)
			}
			queries = append(queries, q)
		}
	}
	add(func(r, g, _ int) int { return r*grades + g }, regions*grades)
	add(func(_, g, s int) int { return g*sexes + s }, grades*sexes)
	add(func(r, _, _ int) int { return r }, regions)
	add(func(_, _, s int) int { return s }, sexes)
	const epsilon = .56
	histogram := math.Sqrt(sizes / float64(len(queries)) * 2 / epsilon / epsilon)
	for _, finds := range []Finding{Exponential, Sparse} {
		for _, rounds := range []int{5, 20, 60} {
			p, err := NewOffline(OfflineSpec{Queries: queries, Contribution: byRow, Rows: 200_000, Rounds: rounds,
				Finds: finds, Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(epsilon * 1e6)}, Accountant: privacy.Pure})
			if err != nil {
				t.Fatal(err)
			}
			h, err := p.Release(privacy.Seal(truth), seeded(11))
			if err != nil {
				t.Fatal(err)
			}
			squares := 0.0
			for _, q := range queries {
				v, err := h.Value().Value(q)
				if err != nil {
					t.Fatal(err)
				}
				squares += math.Pow(float64(v-q.sum(truth)), 2)
			}
			rmse := math.Sqrt(squares / float64(len(queries)))
			t.Logf("distinguisher %d, %d rounds: RMSE %.0f; histogram %.1f", finds, rounds, rmse, histogram)
			if rmse < 2*histogram {
				t.Errorf("distinguisher %d, %d rounds: RMSE %.1f, a histogram's is %.1f", finds, rounds, rmse, histogram)
			}
		}
	}
}
