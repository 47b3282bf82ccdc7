package keys

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

const seed = "keys: the same 32 bytes each time"

func seeded(stream byte) *rand.ChaCha8 {
	key := [32]byte([]byte(seed)[:32])
	key[31] = stream
	return rand.NewChaCha8(key)
}

func pure(micro, atto int64) privacy.Cost {
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(micro), Delta: privacy.AttoDelta(atto)}
}

func concentrated(pico, atto int64) privacy.Cost {
	return privacy.Cost{Rho: privacy.PicoRho(pico), Delta: privacy.AttoDelta(atto)}
}

func has(k int64) privacy.Contribution {
	return privacy.Contribution{Groups: k, Neighbors: privacy.AddRemove}
}

func must(t testing.TB, r Rule, err error) Rule {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func made(t testing.TB, kind Kind, c privacy.Contribution, cost privacy.Cost) Rule {
	t.Helper()
	r, err := New(kind, c, cost)
	return must(t, r, err)
}

// optimal is the recursion that defines the largest probability of showing a key, at 200 bits.
func optimal(epsilon float64, delta float64, most int64) []float64 {
	float := func(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }
	e := float(1) // exp(epsilon) by its series
	for k := 60.; k > 0; k-- {
		e.Mul(e, float(epsilon)).Quo(e, float(k)).Add(e, float(1))
	}
	one, d := float(1), float(delta)
	last, all := float(0), []float64{0}
	for int64(len(all)) <= most {
		first := new(big.Float).Add(new(big.Float).Mul(e, last), d)
		second := new(big.Float).Sub(one, last)
		second.Sub(second, d).Quo(second, e).Sub(one, second)
		for _, x := range []*big.Float{first, second, one} {
			if x == first || x.Cmp(last) < 0 {
				last = x
			}
		}
		x, _ := last.Float64()
		all = append(all, x)
	}
	return all
}

// TestTruncatedIsOptimal: the rule's exact probabilities against the recursion that no private rule can beat; at one
// count by as much below it as the claim says.
func TestTruncatedIsOptimal(t *testing.T) {
	for _, c := range []struct {
		epsilon, delta int64
	}{{1e6, 1e12}, {1e6, 1e8}, {100_000, 1e12}, {500_000, 1e12}, {2e6, 1e12}, {3e6, 5e16}, {1e6, 3e17}, {1e6, 9e17}, {10_000, 1e15}} {
		r := made(t, Truncated, has(1), pure(c.epsilon, c.delta))
		for n, want := range optimal(float64(c.epsilon)/1e6, float64(c.delta)/1e18, 2*r.Threshold()+3) {
			got := float64(r.Chance(int64(n)))
			slack := 1e-8*want + 1e-9
			if n == int(2*r.Threshold()-2) {
				slack += math.Exp(-float64(c.epsilon)/1e6) * float64(c.delta) / 1e18
			}
			if got > want*(1+1e-8) || got < want-slack {
				t.Errorf("epsilon %d micro, delta %d atto: %d units are shown with %.12g, the best possible is %.12g", c.epsilon, c.delta, n, got, want)
			}
		}
	}
}

// tail is P(noise ≥ m) from the definition, term by term.
func tail(r Rule, m int64) float64 {
	sum := 0.0
	for x := m + int64(60*math.Sqrt(r.noise.Variance())) + 100; x >= m; x-- {
		sum += float64(r.noise.Mass(x))
	}
	return sum
}

// TestGaussianThresholdsAreTheSmallest: P(1+noise ≥ threshold) ≤ δ_p, and above it one below; but where the floor of 1+σ
// rules.
func TestGaussianThresholdsAreTheSmallest(t *testing.T) {
	for _, rho := range []int64{1e9, 2e10, 5e11, 8e12} {
		for _, delta := range []int64{1, 1e8, 1e12, 1e16, 9e17} {
			for _, k := range []int64{1, 3, 100} {
				each, err := PerKey(privacy.AttoDelta(delta), k)
				if err != nil {
					continue
				}
				r := made(t, Gaussian, has(k), concentrated(rho, delta))
				if got := tail(r, r.Threshold()-1); got > each.Float()*(1+1e-10) {
					t.Errorf("rho %d pico, delta %d atto, %d keys: a single unit passes %d with %g", rho, delta, k, r.Threshold(), got)
				}
				floor := float64(r.Threshold()) <= math.Sqrt(r.sigma2())+2
				if got := tail(r, r.Threshold()-2); got <= each.Float() && r.Threshold() > 1 && !floor {
					t.Errorf("rho %d pico, delta %d atto, %d keys: threshold %d could be one less: %g", rho, delta, k, r.Threshold(), got)
				}
			}
		}
	}
}

// TestWideGaussian: beyond the deviation that is summed, the bound is above the sum and hardly.
func TestWideGaussian(t *testing.T) {
	r := made(t, Gaussian, has(1), concentrated(29_000, 1e12)) // σ = 4152
	exact, bound := tail(r, r.Threshold()-1), r.gaussianTail(r.Threshold()-1)
	if exact > bound || bound > exact*(1+1e-5) || bound > 1e-6 {
		t.Errorf("the tail at %d is %g, its bound %g", r.Threshold(), exact, bound)
	}
}

func TestPerKey(t *testing.T) {
	for _, d := range []int64{1, 7, 1e6, 1e12, 1e17, 5e17, atto - 1} {
		for _, k := range []int64{1, 2, 3, 10, 1000, 1 << 20} {
			got, err := PerKey(privacy.AttoDelta(d), k)
			if err != nil {
				if d/k == 0 {
					continue
				}
				t.Fatal(err)
			}
			miss := func(each int64) *big.Rat { // 1 − (1−each)^k, exactly
				keep := big.NewRat(atto-each, atto)
				num, den := new(big.Int).Exp(keep.Num(), big.NewInt(k), nil), new(big.Int).Exp(keep.Denom(), big.NewInt(k), nil)
				return new(big.Rat).Sub(big.NewRat(1, 1), new(big.Rat).SetFrac(num, den))
			}
			if k > 1000 { // too large for exact powers
				want := -math.Expm1(math.Log(float64(atto-d)/1e18) / float64(k))
				if math.Abs(got.Float()/want-1) > 1e-9 && math.Abs(float64(got.Atto())-want*1e18) > 1 {
					t.Errorf("delta %d atto over %d: %g, want %g", d, k, got.Float(), want)
				}
				continue
			}
			all := big.NewRat(d, atto)
			if miss(got.Atto()).Cmp(all) > 0 || got.Atto() < atto-1 && miss(got.Atto()+1).Cmp(all) <= 0 {
				t.Errorf("delta %d atto over %d: %d atto is not the largest that fits", d, k, got.Atto())
			}
		}
	}
}

// TestReleaseFollowsItsChances: two rules, some counts each, by the coverage of being shown: alarm 1e-7 each; and the
// shown number's distribution by chi-square, 1e-7 each.
func TestReleaseFollowsItsChances(t *testing.T) {
	const n = 20_000
	for i, c := range []struct {
		kind Kind
		keys int64
		cost privacy.Cost
	}{
		{Truncated, 1, pure(1e6, 1e16)}, {Truncated, 1, pure(50_000, 5e16)}, {Truncated, 2, concentrated(5e11, 1e16)},
		{Truncated, 1, pure(1000, 4e17)}, {Gaussian, 3, concentrated(5e11, 1e16)},
	} {
		r := made(t, c.kind, has(c.keys), c.cost)
		half := r.Half()
		random := seeded(byte(i))
		for _, units := range []int64{1, half / 2, half, half + half/2, 2*half + 1} {
			hits := 0
			shown := []int64{}
			for range n {
				out, err := r.Release(privacy.Seal([]Count{{"a", units}}), random)
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range out.Value() {
					hits++
					shown = append(shown, x.Units-units)
				}
			}
			claim := float64(r.Chance(units))
			if err := (stattest.Coverage{Hits: hits, Trials: n, Claim: claim}).Exactly(stattest.Usual); err != nil {
				t.Errorf("seed %q: %s, %v: %d units: %v", seed, c.kind, c.cost, units, err)
			}
			if units == 2*half+1 && c.kind == Truncated && len(shown) == n {
				share := float64(r.mixed) / mixture
				mass := func(x int64) float64 {
					of := func(reach int64) float64 { return r.truncatedTail(x, reach) - r.truncatedTail(x+1, reach) }
					return share*of(r.threshold-2) + (1-share)*of(r.threshold-1)
				}
				if err := stattest.ChiSquare(shown, mass, stattest.Usual); err != nil {
					t.Errorf("seed %q: %s, %v: %v", seed, c.kind, c.cost, err)
				}
			}
		}
	}
}

// TestOrderSaysNothing: whatever the order, the repetitions and the impossible counts of the input, equal randomness
// shows equal keys, sorted by their bytes.
func TestOrderSaysNothing(t *testing.T) {
	r := made(t, Truncated, has(1), pure(1e6, 1e16))
	counts := []Count{{"z", 90}, {"", 40}, {"a\x00", 7}, {"a", 30}, {"é", 1 << 62}, {"dropped", 0}, {"negative", -5}}
	want := mustRelease(t, r, counts, seeded(9))
	shuffle := rand.New(seeded(10))
	for range 20 {
		parts := slices.Clone(counts)
		parts[0].Units -= 10
		parts = append(parts, Count{"z", 10}, Count{"dropped", -1})
		shuffle.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		if got := mustRelease(t, r, parts, seeded(9)); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	if !slices.IsSortedFunc(want, func(a, b Noisy) int { return strings.Compare(a.Key, b.Key) }) || len(want) < 4 || want[len(want)-1].Units < noise.MaxCount-100 {
		t.Error(want)
	}
}

func mustRelease(t testing.TB, r Rule, counts []Count, random *rand.ChaCha8) []Noisy {
	t.Helper()
	out, err := r.Release(privacy.Seal(counts), random)
	if err != nil {
		t.Fatal(err)
	}
	return out.Value()
}

func TestFailingRandomness(t *testing.T) {
	r := made(t, Gaussian, has(3), concentrated(5e11, 1e12))
	many := []Count{}
	for i := range 1000 {
		many = append(many, Count{fmt.Sprint(i), 1000})
	}
	for name, source := range map[string]func() interface{ Read([]byte) (int, error) }{
		"failing": func() interface{ Read([]byte) (int, error) } { return iotest.ErrReader(errors.New("broken")) },
		"ending":  func() interface{ Read([]byte) (int, error) } { return bytes.NewReader(make([]byte, 3000)) },
	} {
		if out, err := r.Release(privacy.Seal(many), source()); err == nil || out.Valid() {
			t.Errorf("%s source: %v", name, err)
		}
	}
	if _, err := r.Release(privacy.Seal(many), nil); err == nil {
		t.Error("no source passed")
	}
	if _, err := r.Release(privacy.Sensitive[[]Count]{}, seeded(0)); err == nil {
		t.Error("an unsealed truth passed")
	}
	if _, err := (Rule{}).Release(privacy.Seal(many), seeded(0)); err == nil {
		t.Error("the zero rule passed")
	}
}

func TestParametersAreRefused(t *testing.T) {
	replace := privacy.Contribution{Rows: 1, Neighbors: privacy.ReplaceOne}
	for want, f := range map[string]func() (Rule, error){
		"keys of a unit is 0, must be from 1 to 4194304":                                  func() (Rule, error) { return New(Truncated, has(0), pure(1e6, 1e12)) },
		"keys of a unit is 4194305, must be from 1 to 4194304":                            func() (Rule, error) { return New(Truncated, has(MaxKeys+1), pure(1e6, 1e12)) },
		"neighbor relation is 0, must be add-remove or replace-one":                       func() (Rule, error) { return New(Truncated, privacy.Contribution{Rows: 1}, pure(1e6, 1e12)) },
		"cost is epsilon 0 and rho 0, must name one of them, greater than 0":              func() (Rule, error) { return New(Truncated, replace, pure(0, 1e12)) },
		"delta is 0, must be greater than 0 and below 1":                                  func() (Rule, error) { return New(Truncated, replace, pure(1e6, 0)) },
		"delta is 1, must be greater than 0 and below 1":                                  func() (Rule, error) { return New(Truncated, replace, pure(1e6, atto)) },
		"delta 2e-18 over 3 keys is less than the smallest delta, 1e-18":                  func() (Rule, error) { return New(Truncated, has(3), pure(1e6, 2)) },
		"kind of rule is 9, must be truncated or Gaussian":                                func() (Rule, error) { return New(9, replace, pure(1e6, 1e12)) },
		"cost names epsilon, must name rho: no Gaussian noise is pure":                    func() (Rule, error) { return New(Gaussian, replace, pure(1e6, 1e12)) },
		"noise scale is 4194304000000/1, must be below 1099511627776":                     func() (Rule, error) { return New(Truncated, has(MaxKeys), pure(1, 1e12)) },
		"cost is epsilon 1 and rho 0.000000000001, must name one of them, greater than 0": func() (Rule, error) { c := pure(1e6, 1); c.Rho = privacy.PicoRho(1); return New(Truncated, replace, c) },
		"cost is epsilon -0.000001 and rho 0, must name one of them, greater than 0":      func() (Rule, error) { return New(Truncated, replace, pure(-1, 1)) },
	} {
		if r, err := f(); err == nil || err.Error() != want || r.Valid() {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestBestSwitches(t *testing.T) {
	for _, c := range []struct {
		k    int64
		cost privacy.Cost
		want Kind
	}{
		{1, pure(1e6, 1e12), Truncated}, {100, pure(1e6, 1e12), Truncated},
		{1, concentrated(24_360_000_000, 1e12), Gaussian}, {1, concentrated(2e12, 1), Gaussian}, {100, concentrated(24_360_000_000, 1e12), Gaussian},
	} {
		r, err := Best(has(c.k), c.cost)
		if must(t, r, err).Kind() != c.want {
			t.Errorf("%d keys, %s: %s, want %s", c.k, c.cost, r.Kind(), c.want)
		}
	}
}
