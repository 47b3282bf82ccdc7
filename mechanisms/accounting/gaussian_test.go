package accounting

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestGaussianKnownFigures: σ at (1, 1e-6), classic, by zCDP's conversion, and analytic.
func TestGaussianKnownFigures(t *testing.T) {
	e, d := privacy.MicroEpsilon(1e6), privacy.AttoDelta(1e12)
	v, err := GaussianVariance(e, d, 1)
	if err != nil || math.Abs(math.Sqrt(v.Float())-4.2247) > 5e-5 {
		t.Errorf("analytic sigma is %.5f, known 4.2247 (%v)", math.Sqrt(v.Float()), err)
	}
	rho, _ := LargestRho(e, d)
	classic, cks := math.Sqrt(2*math.Log(1.25e6)), 1/math.Sqrt(2*rho.Float())
	if math.Abs(classic-5.30) > .005 || math.Abs(cks-4.53) > .005 {
		t.Errorf("classic %.4f, known 5.30; by zCDP %.4f, known 4.53", classic, cks)
	}
	w, err := DiscreteGaussianVariance(e, d, 1)
	if err != nil || math.Abs(math.Sqrt(w.Float())-math.Sqrt(v.Float())) > .05 {
		t.Errorf("discrete sigma is %.5f, real-valued %.5f (%v)", math.Sqrt(w.Float()), math.Sqrt(v.Float()), err)
	}
	t.Logf("sigma at (1, 1e-6): classic %.4f, zCDP %.4f, analytic %.4f, discrete %.4f", classic, cks, math.Sqrt(v.Float()), math.Sqrt(w.Float()))
}

// textbook is the discrete mechanism's divergence for k coordinates by convolution and the definition.
func textbook(epsilon, sigma2 float64, k int) float64 {
	reach := int(40*math.Sqrt(sigma2)) + 10
	one := make([]float64, 2*reach+1)
	total := 0.0
	for i := range one {
		x := float64(i - reach)
		one[i] = math.Exp(-x * x / (2 * sigma2))
		total += one[i]
	}
	sum := []float64{1}
	for range k {
		next := make([]float64, len(sum)+len(one)-1)
		for i, a := range sum {
			for j, b := range one {
				next[i+j] += a * b / total
			}
		}
		sum = next
	}
	at := func(i int) float64 {
		if i < 0 || i >= len(sum) {
			return 0
		}
		return sum[i]
	}
	delta := 0.0
	for i := range sum { // P(S = s) against P(S = s+k): the outcome's probabilities have this ratio for each vector
		s := float64(i - k*reach)
		if loss := (2*s + float64(k)) / (2 * sigma2); loss > epsilon {
			delta += at(i) - math.Exp(epsilon)*at(i+k)
		}
	}
	return delta
}

// TestDiscreteAgainstTheDefinition: bounds are never below the definition, and close to it.
func TestDiscreteAgainstTheDefinition(t *testing.T) {
	for _, sigma2 := range []float64{.3, 1, 2.5, 18, 100} {
		for _, k := range []int{1, 2, 5} {
			for _, epsilon := range []float64{.01, .3, 1, 3} {
				want, got := textbook(epsilon, sigma2, k), discreteDelta(epsilon, sigma2, int64(k))
				if got < want*(1-1e-10)-1e-16 || sigma2 >= 1 && got > want*(1+1e-6)+1e-15 && k == 1 || sigma2 >= 2.5 && got > want*(1+1e-4)+1e-8 {
					t.Errorf("sigma² %g, %d coordinates, epsilon %g: delta %g, by definition %g", sigma2, k, epsilon, got, want)
				}
			}
		}
	}
}

func TestCalibrationIsTightAndSafe(t *testing.T) {
	for _, micro := range []int64{1000, 100_000, 1e6, 5e6, 50e6, 1e9} {
		for _, atto := range []int64{1, 1e6, 1e12, 1e16, 3e17} {
			e, d := privacy.MicroEpsilon(micro), privacy.AttoDelta(atto)
			for _, k := range []int64{1, 2, 3, 100, 10_000} {
				v, err := GaussianVariance(e, d, k)
				if err != nil {
					t.Errorf("epsilon %s delta %s: %v", e, d, err)
					continue
				}
				if s := v.Float() / float64(k); normalDelta(e.Float(), s) > d.Float() || normalDelta(e.Float(), s*(1-1e-6)) <= d.Float() {
					t.Errorf("epsilon %s delta %s k %d: %v is not the least", e, d, k, v)
				}
				w, err := DiscreteGaussianVariance(e, d, k)
				if err != nil {
					t.Errorf("epsilon %s delta %s k %d: %v", e, d, k, err)
					continue
				}
				if discreteDelta(e.Float(), w.Float(), k) > d.Float() {
					t.Errorf("epsilon %s delta %s k %d: %v is not proved", e, d, k, w)
				}
				if r := w.Float() / v.Float(); v.Float() > 4 && (r > 1.2 || r < .8) {
					t.Errorf("epsilon %s delta %s k %d: discrete %g, real-valued %g", e, d, k, w.Float(), v.Float())
				}
			}
		}
	}
}

// TestWideTails: bounds beyond the summed deviations enclose the sum.
func TestWideTails(t *testing.T) {
	v := 1100.0 * 1100
	for _, m := range []float64{-500, 0, 300, 1099, 1102, 3000, 9000, 20000} {
		upper, lower := tails(v, m)
		sum := summed(v, m)
		if a, b, s := upper.value(0), lower.value(0), sum.value(0); a < s*(1-1e-9) || b > s*(1+1e-9) || a > s*(1+1e-4)+1e-8 || b < s*(1-1e-4)-1e-8 {
			t.Errorf("P(N ≥ %g) is %g, bounds %g and %g", m, s, b, a)
		}
	}
}

func TestConversionsAgree(t *testing.T) {
	half := privacy.PicoRho(5e11)
	if e, err := LeastEpsilon(half, privacy.AttoDelta(1e12)); err != nil || math.Abs(e.Float()-5.22) > .005 {
		t.Errorf("rho 0.5 at delta 1e-6: epsilon %s, known 5.22 (%v)", e, err)
	}
	for _, micro := range []int64{100_000, 1e6, 10e6} {
		for _, atto := range []int64{1e6, 1e9, 1e12, 1e16} {
			e, d := privacy.MicroEpsilon(micro), privacy.AttoDelta(atto)
			rho, err := LargestRho(e, d)
			if err != nil {
				t.Fatal(err)
			}
			back, err := LeastEpsilon(rho, d)
			if err != nil || back.Micro() > micro || back.Micro() < micro-1-micro/1_000_000 {
				t.Errorf("(%s, %s) is rho %s is epsilon %s (%v)", e, d, rho, back, err)
			}
			delta, err := LeastDelta(rho, e)
			if err != nil || delta.Atto() > atto+1 || delta.Float() < d.Float()*(1-1e-5) {
				t.Errorf("(%s, %s) is rho %s is delta %s (%v)", e, d, rho, delta, err)
			}
			if c := conversion(rho, e); delta.Float() < c*(1-1e-6) {
				t.Errorf("rho %s at epsilon %s: delta %s, by the formula %g", rho, e, delta, c)
			}
		}
	}
	for want, f := range map[string]func() error{
		"rho is 0, must be greater than 0":                     func() error { _, err := LeastEpsilon(privacy.Rho{}, privacy.AttoDelta(1)); return err },
		"delta is 0, must be greater than 0 and below 1":       func() error { _, err := LeastEpsilon(half, privacy.AttoDelta(0)); return err },
		"epsilon is 0, must be greater than 0":                 func() error { _, err := LeastDelta(half, privacy.Epsilon{}); return err },
		"rho 1000000 at epsilon 0.000001 has no delta below 1": func() error { _, err := LeastDelta(privacy.PicoRho(1e18), privacy.MicroEpsilon(1)); return err },
		"number of coordinates is 0, must be from 1 to 4194304": func() error {
			_, err := DiscreteGaussianVariance(privacy.MicroEpsilon(1), privacy.AttoDelta(1), 0)
			return err
		},
		"squared sensitivity is -1, must be from 1 to 4194304": func() error {
			_, err := GaussianVariance(privacy.MicroEpsilon(1), privacy.AttoDelta(1), -1)
			return err
		},
		"delta is 1, must be greater than 0 and below 1": func() error {
			_, err := GaussianVariance(privacy.MicroEpsilon(1), privacy.AttoDelta(1e18), 1)
			return err
		},
	} {
		if err := f(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
