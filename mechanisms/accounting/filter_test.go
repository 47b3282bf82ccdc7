package accounting

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

func pure(micro, atto int64) privacy.Cost {
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(micro), Delta: privacy.AttoDelta(atto)}
}

func concentrated(pico, atto int64) privacy.Cost {
	return privacy.Cost{Rho: privacy.PicoRho(pico), Delta: privacy.AttoDelta(atto)}
}

// TestFilterAgainstSums: random charges against a naive sum, in ε and in ρ; a refused charge takes nothing.
func TestFilterAgainstSums(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		limit, own := 1+random.Int64N(1e6), random.Int64N(1e12)
		f, g := Filter{Limit: pure(limit, own)}, Filter{Limit: concentrated(limit, own)}
		main, delta := int64(0), int64(0)
		for range 100 {
			e, d := 1+random.Int64N(1e5), random.Int64N(1e11)
			if random.IntN(2) == 0 {
				d = 0
			}
			fits := main+e <= limit && delta+d <= own
			var ok, too bool
			f, ok = f.Charge(Price(pure(e, d)))
			g, too = g.Charge(Price(concentrated(e, d)))
			if ok != fits || too != fits {
				t.Fatalf("%d and %d after %d and %d of %s: %t, %t", e, d, main, delta, f.Limit, ok, too)
			}
			if fits {
				main, delta = main+e, delta+d
			}
			if f.Left() != pure(limit-main, own-delta) || g.Left() != concentrated(limit-main, own-delta) {
				t.Fatalf("%s and %s are left", f.Left(), g.Left())
			}
		}
	}
}

// TestFilterMixesNoUnits: a limit that names ε holds nothing of ρ; one that names ρ holds ε for the ρ that they come
// to. A unit that a cost does not name does not refuse it, even where more than its limit is spent.
func TestFilterMixesNoUnits(t *testing.T) {
	f, g := Filter{Limit: pure(10, 5)}, Filter{Limit: concentrated(10, 5)}
	if f.Holds(Price(concentrated(1, 0))) || f.Holds(Price(privacy.Cost{Epsilon: privacy.MicroEpsilon(1), Rho: privacy.PicoRho(1)})) {
		t.Error("a pure filter holds ρ")
	}
	if !g.Holds(Price(pure(4, 0))) || g.Holds(Price(pure(5, 0))) { // 8 and 13 pico of 10
		t.Error("ε under zCDP are not ε²/2")
	}
	f = f.Forfeit(Price(pure(3, 7)))
	if !f.Holds(Price(pure(7, 0))) || f.Holds(Price(pure(7, 1))) || f.Holds(Price(pure(8, 0))) || f.Left() != pure(7, 0) {
		t.Errorf("%+v", f)
	}
}

// TestEitherAgainstSums: under a limit of ε and ρ, random histories of charges that name ε or ρ against the two
// conditions written down naively, from the list of what was charged; a refused charge takes nothing; what is left is
// what the next one is held to.
func TestEitherAgainstSums(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 19))
	ends := map[string]int{}
	for range 2000 {
		limit := privacy.Cost{Epsilon: privacy.MicroEpsilon(1 + random.Int64N(3000)), Rho: privacy.PicoRho(1 + random.Int64N(1e5)), Delta: privacy.AttoDelta(random.Int64N(100))}
		f := Filter{Limit: limit}
		var charged []privacy.Cost
		// Laplace noise first in some histories, so that the pure condition is met at all; of small ε in others.
		pureFor, most := random.IntN(40), 1+random.Int64N(400)
		within := func(list []privacy.Cost) (epsilons, rhos, deltas bool) {
			e, r, d, known := int64(0), int64(0), int64(0), true
			for _, c := range list {
				e, d = e+c.Epsilon.Micro(), d+c.Delta.Atto()
				r += c.Rho.Pico() + (c.Epsilon.Micro()*c.Epsilon.Micro()+1)/2
				known = known && c.Rho.Pico() == 0
			}
			return known && e <= limit.Epsilon.Micro(), r <= limit.Rho.Pico(), d <= limit.Delta.Atto()
		}
		for i := range 60 {
			c := pure(1+random.Int64N(most), 0)
			if i >= pureFor && random.IntN(2) == 0 {
				c = concentrated(1+random.Int64N(most*most), 0)
			}
			if random.IntN(4) == 0 {
				c.Delta = privacy.AttoDelta(random.Int64N(20))
			}
			e, r, d := within(append(charged, c))
			fits := Filter{Limit: f.Left()}.Holds(Price(c))
			next, ok := f.Charge(Price(c))
			if want := (e || r) && d; ok != want || fits != want {
				t.Fatalf("%s after %v of %s: held %t, fits what is left %t, must be %t", c, charged, limit, ok, fits, want)
			}
			if !ok && next != f {
				t.Fatalf("a refused charge took something: %+v", next)
			}
			if f = next; ok {
				charged = append(charged, c)
				switch {
				case !r:
					ends["pure alone"]++
				case !e:
					ends["zCDP alone"]++
				default:
					ends["both"]++
				}
			}
			if !f.Within() {
				t.Fatalf("%+v", f)
			}
		}
	}
	for _, end := range []string{"pure alone", "zCDP alone", "both"} {
		if ends[end] < 1000 {
			t.Errorf("after %d charges %s held: the test does not see it", ends[end], end)
		}
	}
}

// TestEitherIsEachOfThem: a history of ε alone goes as far as under pure, one of ρ alone as far as under zCDP.
func TestEitherIsEachOfThem(t *testing.T) {
	both := privacy.Cost{Epsilon: privacy.MicroEpsilon(1e6), Rho: privacy.PicoRho(24_360_000_000)}
	held := func(limit, each privacy.Cost) (n int) {
		f, ok := Filter{Limit: limit}, true
		for ; ok; n++ {
			f, ok = f.Charge(Price(each))
		}
		return n - 1
	}
	for _, e := range []int64{1_000_000, 300_000, 100_000, 50_000, 10_000, 1000} {
		c := pure(e, 0)
		pures, conc := held(privacy.Cost{Epsilon: both.Epsilon}, c), held(privacy.Cost{Rho: both.Rho}, c)
		if n := held(both, c); n != max(pures, conc) {
			t.Errorf("ε %s: %d by either, %d by pure, %d by zCDP", c.Epsilon, n, pures, conc)
		}
		if n, want := held(both, privacy.Cost{Rho: c.Epsilon.Rho()}), held(privacy.Cost{Rho: both.Rho}, privacy.Cost{Rho: c.Epsilon.Rho()}); n != want {
			t.Errorf("ρ %s: %d by either, %d by zCDP", c.Epsilon.Rho(), n, want)
		}
	}
}

// TestPriceUnderZCDP: an ε-DP release is ε²/2-zCDP, each rounded up; a δ stays.
func TestPriceUnderZCDP(t *testing.T) {
	if c := Price(pure(1e6, 7)).Concentrated(); c.Cost != concentrated(5e11, 7) || c.Converted.Pico() != 0 {
		t.Error(c)
	}
	if c := Price(pure(1, 0)).Plus(Price(pure(1, 0))); c.Converted.Pico() != 2 {
		t.Error("two half units of ρ are", c.Converted)
	}
}

// TestRepricingNeverLoses: what charges come to under zCDP and replace-one is at least what each does by itself, though
// it be more than can be written.
func TestRepricingNeverLoses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		costs := rapid.SliceOf(rapid.Int64Range(1, 1e12)).Draw(t, "costs")
		var spent Charge
		var want privacy.Cost
		for _, c := range costs {
			spent = spent.Plus(Price(pure(c, 0)))
			want = want.Plus(privacy.Cost{Rho: privacy.MicroEpsilon(2 * c).Rho()})
		}
		got := spent.Doubled().Concentrated()
		if got.Cost.Epsilon.Micro() != 0 || got.Cost.Rho.Pico() < want.Rho.Pico() {
			t.Fatalf("re-priced to %+v, must be at least %v", got, want)
		}
	})
	most := Price(pure(math.MaxInt64, 0)).Plus(Price(pure(math.MaxInt64, 0))).Doubled()
	if most.Cost.Epsilon.Micro() != math.MaxInt64 || most.Converted.Pico() != math.MaxInt64 {
		t.Error(most)
	}
	if twice := Price(pure(3, 0)).Plus(Charge{Cost: concentrated(5, 0)}).Doubled(); twice.Cost.Epsilon.Micro() != 6 || twice.Cost.Rho.Pico() != 20 {
		t.Error(twice)
	}
}
