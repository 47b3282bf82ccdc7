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

// TestFilterMixesNoUnits: a limit that names ε holds nothing of ρ, and the other way round; a unit that a cost does not name
// does not refuse it, even where more than its limit is spent.
func TestFilterMixesNoUnits(t *testing.T) {
	f, g := Filter{Limit: pure(10, 5)}, Filter{Limit: concentrated(10, 5)}
	if f.Holds(concentrated(1, 0)) || g.Holds(pure(1, 0)) || f.Holds(privacy.Cost{Epsilon: privacy.MicroEpsilon(1), Rho: privacy.PicoRho(1)}) {
		t.Error("units mixed")
	}
	f = f.Forfeit(Price(pure(3, 7)))
	if !f.Holds(pure(7, 0)) || f.Holds(pure(7, 1)) || f.Holds(pure(8, 0)) || f.Left() != pure(7, 0) {
		t.Errorf("%+v", f)
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

// TestRepricingNeverLoses: what charges come to under zCDP and replace-one is at least what each does by itself, though it be
// more than can be written.
func TestRepricingNeverLoses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		costs := rapid.SliceOf(rapid.Int64Range(1, 1e12)).Draw(t, "costs")
		var spent Charge
		want := int64(0)
		for _, c := range costs {
			spent = spent.Plus(Price(pure(c, 0)))
			want = plus(want, privacy.MicroEpsilon(2*c).Rho().Pico())
		}
		got := spent.Doubled().Concentrated()
		if got.Cost.Epsilon.Micro() != 0 || got.Cost.Rho.Pico() < want {
			t.Fatalf("re-priced to %+v, must be at least %d", got, want)
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
