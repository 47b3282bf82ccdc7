package mechanisms

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

func discoveryCost(micro, pico, atto int64) privacy.Cost {
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(micro), Rho: privacy.PicoRho(pico), Delta: privacy.AttoDelta(atto)}
}

// TestDiscover: keys that many units have are found with about their numbers, those that one has are not, and NULL is a
// key like any other; groups without a key are nobody's.
func TestDiscover(t *testing.T) {
	for _, cost := range []privacy.Cost{discoveryCost(1e6, 0, 1e10), discoveryCost(0, 5e11, 1e10)} {
		d, err := NewDiscovery(Contribution{Rows: 4, Neighbors: privacy.AddRemove}, cost)
		if err != nil {
			t.Fatal(err)
		}
		group := func(key string, n int64) privacy.Group { return privacy.Group{Key: key, Counts: []int64{n}} }
		truth := privacy.Seal([]privacy.Group{group("=rare", 1), group("=often", 5000), group(privacy.NullKey, 4000), group("=", 3000), {Counts: []int64{9000}}})
		out, err := Discover(d, truth, seeded(4))
		if err != nil {
			t.Fatal(err)
		}
		n := out.Value()
		if !slices.Equal(n.Keys, []string{"=", "=often", privacy.NullKey}) || len(n.Observations) != 3 {
			t.Fatalf("%v: found %q", cost, n.Keys)
		}
		for i, want := range []int64{3000, 5000, 4000} {
			if off := n.Observations[i] - want; off < -200 || off > 200 {
				t.Errorf("%v: %q has about %d units, found %d", cost, n.Keys[i], want, n.Observations[i])
			}
		}
		if _, err := NewEstimate(d.Spec(3), out); err != nil {
			t.Error(err)
		}
		if out, err := Discover(d, privacy.Seal([]privacy.Group(nil)), seeded(5)); err != nil || len(out.Value().Keys) != 0 {
			t.Errorf("nothing was there, and %v, %v", out.Value(), err)
		}
	}
}

// TestDiscoverGuard: of more keys than a backend keeps none is found, whatever their counts.
func TestDiscoverGuard(t *testing.T) {
	d, err := NewDiscovery(Contribution{Rows: 1, Neighbors: privacy.AddRemove}, discoveryCost(1e6, 0, 1e10))
	if err != nil {
		t.Fatal(err)
	}
	groups := make([]privacy.Group, MaxFound+1)
	groups[0] = privacy.Group{Key: "=often", Counts: []int64{5000}}
	if out, err := Discover(d, privacy.Seal(groups), seeded(6)); err != nil || len(out.Value().Keys) != 0 {
		t.Errorf("found %v, %v", out.Value(), err)
	}
	if out, err := Discover(d, privacy.Seal(groups[:1000]), seeded(6)); err != nil || len(out.Value().Keys) != 1 {
		t.Errorf("found %v, %v", out.Value(), err)
	}
}

// TestDiscoveryTakesNoMore: the noise of the rule and of the guard, by their own laws, takes at most what was paid, and
// so does the chance of keys that one unit alone has. Under ρ all rules here are Gaussian.
func TestDiscoveryTakesNoMore(t *testing.T) {
	for _, k := range []int64{1, 3, 10, 200} {
		for _, cost := range []privacy.Cost{discoveryCost(1e6, 0, 1e10), discoveryCost(1e5, 0, 1e12), discoveryCost(0, 5e11, 1e10), discoveryCost(0, 5e9, 1e12)} {
			c := Contribution{Rows: k, Neighbors: privacy.ReplaceOne}
			d, err := NewDiscovery(c, cost)
			if err != nil {
				t.Fatal(err)
			}
			num, den := d.rule.Parameter()
			keys, each := float64(2*k), float64(den)/float64(num) // moved; 1/scale or 1/σ²
			takes, paid := keys*each+float64(k)/spread, cost.Epsilon.Float()
			if paid == 0 {
				takes, paid = keys*each/2+float64(k)*float64(k)/(2*spread*spread), cost.Rho.Float()
			}
			if takes > paid*(1+1e-12) {
				t.Errorf("%d keys: the rule and the guard take %g, paid was %s", k, takes, cost)
			}
			if shown := -math.Expm1(float64(k) * math.Log1p(-float64(d.rule.Chance(1)))); shown > cost.Delta.Float() {
				t.Errorf("%d keys: one of a unit's own is shown with %g, paid was %s", k, shown, cost)
			}
		}
	}
}

func TestDiscoveryRefuses(t *testing.T) {
	one := Contribution{Rows: 1, Neighbors: privacy.AddRemove}
	for want, c := range map[string]struct {
		c    Contribution
		cost privacy.Cost
	}{
		"keys of a unit is 0":     {Contribution{Neighbors: privacy.AddRemove}, discoveryCost(1e6, 0, 1e10)},
		"too small to find keys":  {one, discoveryCost(10, 0, 1e10)},
		"delta is 0":              {one, discoveryCost(1e6, 0, 1)},
		"too small to find keys ": {one, discoveryCost(1e6, 1e6, 1e10)},
	} {
		if _, err := NewDiscovery(c.c, c.cost); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", c, err, want)
		}
	}
	d, err := NewDiscovery(one, discoveryCost(1e6, 0, 1e10))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Discover(d, privacy.Seal([]privacy.Group{{Key: "=a", Counts: []int64{100}}}), iotest.ErrReader(errors.New("broken"))); err == nil {
		t.Error("a failing source passed")
	}
	if _, err := Discover(Discovery{}, privacy.Seal([]privacy.Group(nil)), seeded(1)); err == nil {
		t.Error("the zero discovery passed")
	}
	if _, err := Discover(d, privacy.Sensitive[[]privacy.Group]{}, seeded(1)); err == nil {
		t.Error("an unsealed truth passed")
	}
}
