package accounting

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

func pure(t testing.TB, micro, atto int64) PureCost {
	t.Helper()
	c, err := Pure(privacy.Cost{Epsilon: privacy.MicroEpsilon(micro), Delta: privacy.AttoDelta(atto)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFiltersAgainstSums: random charges against a naive sum; a refused charge takes nothing.
func TestFiltersAgainstSums(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		limit := privacy.Cost{Epsilon: privacy.MicroEpsilon(1 + random.Int64N(1e6)), Delta: privacy.AttoDelta(random.Int64N(1e12))}
		f, err := NewPureFilter(limit)
		if err != nil {
			t.Fatal(err)
		}
		g, err := NewConcentratedFilter(privacy.Cost{Rho: privacy.PicoRho(limit.Epsilon.Micro()), Delta: limit.Delta})
		if err != nil {
			t.Fatal(err)
		}
		epsilon, delta := int64(0), int64(0)
		for range 100 {
			e, d := 1+random.Int64N(1e5), random.Int64N(1e11)
			session := random.IntN(2) == 0
			if session {
				d = 0
			}
			fits := epsilon+e <= limit.Epsilon.Micro() && delta+d <= limit.Delta.Atto()
			var errs [2]error
			if session {
				s, _ := NewPureSession(privacy.MicroEpsilon(e))
				r, _ := NewConcentratedSession(privacy.PicoRho(e))
				errs = [2]error{f.Open(s), g.Open(r)}
			} else {
				r, _ := Concentrated(privacy.Cost{Rho: privacy.PicoRho(e), Delta: privacy.AttoDelta(d)})
				errs = [2]error{f.Charge(pure(t, e, d)), g.Charge(r)}
			}
			for _, err := range errs {
				if (err == nil) != fits || err != nil && !errors.Is(err, ErrSpent) {
					t.Fatalf("%d and %d after %d and %d of %s: %v", e, d, epsilon, delta, limit, err)
				}
			}
			if fits {
				epsilon, delta = epsilon+e, delta+d
			}
			if left := f.Left(); left.Epsilon.Micro() != limit.Epsilon.Micro()-epsilon || left.Delta.Atto() != limit.Delta.Atto()-delta {
				t.Fatalf("%s is left", left)
			}
		}
	}
}

// TestApproximateFilterAgainstItsFormula: adaptively growing costs; the rational decision agrees with floats away from
// the edge.
func TestApproximateFilterAgainstItsFormula(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		f, err := NewApproximateFilter(privacy.MicroEpsilon(1e6), Deltas{privacy.AttoDelta(1e12), privacy.AttoDelta(1e10)})
		if err != nil {
			t.Fatal(err)
		}
		squares, own := 0.0, int64(0)
		for range 300 {
			micro, atto := 1+random.Int64N(20_000), random.Int64N(1e8)
			e := float64(micro) / 1e6
			value := math.Sqrt(2*math.Log(1e6)*(squares+e*e)) + (squares+e*e)/2
			err := f.Charge(approximate(t, micro, atto))
			if fits := value <= 1 && own+atto <= 1e10; (err == nil) != fits && math.Abs(value-1) > 1e-9 {
				t.Fatalf("value %.12f, own %d: %v", value, own+atto, err)
			}
			if err == nil {
				squares, own = squares+e*e, own+atto
			}
		}
		if e, d := f.Guarantee(); e.Micro() != 1e6 || d.Atto() != 1e12+1e10 {
			t.Error(e, d)
		}
	}
}

// TestRacingCharges: as many succeed as fit.
func TestRacingCharges(t *testing.T) {
	f, err := NewPureFilter(privacy.Cost{Epsilon: privacy.MicroEpsilon(1000)})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var mutex sync.Mutex
	accepted := 0
	for range 8 {
		group.Go(func() {
			for range 100 {
				if f.Charge(pure(t, 3, 0)) == nil {
					mutex.Lock()
					accepted++
					mutex.Unlock()
				}
			}
		})
	}
	group.Wait()
	if accepted != 333 || f.Left().Epsilon.Micro() != 1 {
		t.Errorf("%d charges of 3 fitted into 1000, %s is left", accepted, f.Left())
	}
}

func TestGuarantees(t *testing.T) {
	f, err := NewConcentratedFilter(privacy.Cost{Rho: privacy.PicoRho(24_360_000_000), Delta: privacy.AttoDelta(5e11)})
	if err != nil {
		t.Fatal(err)
	}
	e, d, err := f.Guarantee(privacy.AttoDelta(1e12))
	if err != nil || math.Abs(e.Float()-1) > 1e-4 || d.Atto() != 15e11 {
		t.Errorf("(%s, %s) (%v)", e, d, err)
	}
	if _, _, err := f.Guarantee(privacy.AttoDelta(1e18 - 1)); err == nil {
		t.Error("a delta of 1 passed")
	}
	if c := pure(t, 1e6, 7).Concentrated().Cost(); c.Rho.Pico() != 5e11 || c.Delta.Atto() != 7 {
		t.Error(c)
	}
	if c := pure(t, 5, 7).Approximate(); c.epsilon.Micro() != 5 || c.delta.Atto() != 7 {
		t.Error(c)
	}
	if s, err := NewPureSession(privacy.MicroEpsilon(1e6)); err != nil || s.Concentrated().rho.Pico() != 5e11 {
		t.Error(s, err)
	}
}

func TestCostsAreRefused(t *testing.T) {
	both := privacy.Cost{Epsilon: privacy.MicroEpsilon(1), Rho: privacy.PicoRho(1)}
	certain := privacy.Cost{Epsilon: privacy.MicroEpsilon(1), Delta: privacy.AttoDelta(1e18)}
	f, _ := NewPureFilter(privacy.Cost{Epsilon: privacy.MicroEpsilon(1)})
	g, _ := NewConcentratedFilter(privacy.Cost{Rho: privacy.PicoRho(1)})
	h, _ := NewApproximateFilter(privacy.MicroEpsilon(1), Deltas{Composition: privacy.AttoDelta(1)})
	for want, f := range map[string]func() error{
		"cost is epsilon 0.000001 and rho 0.000000000001, must name epsilon alone, greater than 0": func() error { _, err := Pure(both); return err },
		"cost is epsilon 0.000001 and rho 0.000000000001, must name rho alone, greater than 0":     func() error { _, err := Concentrated(both); return err },
		"cost is epsilon 0 and rho 0, must name epsilon alone, greater than 0":                     func() error { _, err := NewPureFilter(privacy.Cost{}); return err },
		"cost is epsilon 0 and rho 0, must name rho alone, greater than 0":                         func() error { _, err := NewConcentratedFilter(privacy.Cost{}); return err },
		"delta is 1, must be at least 0 and below 1":                                               func() error { _, err := Pure(certain); return err },
		"delta is 1, must be greater than 0 and below 1": func() error {
			_, err := NewApproximateFilter(privacy.MicroEpsilon(1), Deltas{privacy.AttoDelta(6e17), privacy.AttoDelta(4e17)})
			return err
		},
		"cost was not made by Pure":                                         func() error { return f.Charge(PureCost{}) },
		"cost was not made by Concentrated":                                 func() error { return g.Charge(ConcentratedCost{}) },
		"cost was not made by Approximate":                                  func() error { return h.Charge(ApproximateCost{}) },
		"session was not made by NewPureSession":                            func() error { return f.Open(PureSession{}) },
		"session was not made by NewConcentratedSession":                    func() error { return g.Open(ConcentratedSession{}) },
		"rho is 0, must be greater than 0":                                  func() error { _, err := NewConcentratedSession(privacy.Rho{}); return err },
		"epsilon is 0, must be greater than 0":                              func() error { _, err := NewPureSession(privacy.Epsilon{}); return err },
		"budget is spent: ε 0.000001 is left, the release costs ε 0.000002": func() error { return f.Charge(pure(t, 2, 0)) },
		"rows of a unit is 0, must be from 1 to 4194304":                    func() error { _, err := Histogram(privacy.Contribution{}); return err },
		"groups of a unit is -1, must be from 0 to 4194304":                 func() error { _, err := Histogram(privacy.Contribution{Rows: 1, Groups: -1}); return err },
		"neighbor relation is 0, must be add-remove or replace-one":         func() error { _, err := Histogram(privacy.Contribution{Rows: 1}); return err },
	} {
		if err := f(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestHistogramAgainstAllVectors: every way in which two units' rows can lie in three groups.
func TestHistogramAgainstAllVectors(t *testing.T) {
	for rows := int64(1); rows <= 4; rows++ {
		for groups := range int64(4) {
			for each := range int64(5) {
				vectors := [][3]int64{}
				for code := range int64(125) {
					v := [3]int64{code % 5, code / 5 % 5, code / 25}
					sum, used, highest := int64(0), int64(0), int64(0)
					for _, x := range v {
						sum, highest = sum+x, max(highest, x)
						if x > 0 {
							used++
						}
					}
					if sum <= rows && (groups == 0 || used <= groups) && (each == 0 || highest <= each) {
						vectors = append(vectors, v)
					}
				}
				worst := map[privacy.Neighbors]privacy.Sensitivity{}
				for _, a := range vectors {
					for _, b := range vectors {
						for _, kind := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
							if kind == privacy.AddRemove && b != [3]int64{} {
								continue
							}
							w, s := worst[kind], privacy.Sensitivity{}
							for i := range a {
								s.L1 += max(a[i]-b[i], b[i]-a[i])
								s.L2Squared += (a[i] - b[i]) * (a[i] - b[i])
							}
							worst[kind] = privacy.Sensitivity{L1: max(w.L1, s.L1), L2Squared: max(w.L2Squared, s.L2Squared)}
						}
					}
				}
				for kind, want := range worst {
					got, err := Histogram(privacy.Contribution{Rows: rows, Groups: groups, PerGroup: each, Neighbors: kind})
					tight := kind == privacy.AddRemove && rows <= 3*max(1, each) // else three groups are too few to attain it
					if err != nil || got.L1 < want.L1 || got.L2Squared < want.L2Squared || tight && got != want && (each == 0 || rows <= 3*each) {
						t.Errorf("%d rows, %d groups, %d each, %s: %+v, by trial %+v (%v)", rows, groups, each, kind, got, want, err)
					}
				}
			}
		}
	}
}

// TestWhatHasNoProofHasNoMethod: no interactive mechanism under the (ε, δ) filter, no charging to a batch, no δ in a
// session, no way from concentrated costs to others but the filter's guarantee.
func TestWhatHasNoProofHasNoMethod(t *testing.T) {
	var open, charge, back bool
	_, open = any(&ApproximateFilter{}).(interface{ Open(PureSession) error })
	_, charge = any(&Batch{}).(interface{ Charge(ApproximateCost) error })
	_, back = any(ConcentratedCost{}).(interface{ Approximate() ApproximateCost })
	_, taken := any(&PureFilter{}).(interface{ Charge(PureCost) error })
	if open || charge || back || !taken {
		t.Error(open, charge, back, taken)
	}
}
