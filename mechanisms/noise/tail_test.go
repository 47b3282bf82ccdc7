package noise

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// convolved is the distribution of Σ weight·noise on the integers −reach to reach, by direct convolution; the weights
// are integers here.
func convolved(kind Kind, parameter float64, weights []int) (mass []float64, reach int) {
	one := textbookMass(kind, parameter)
	single := 0
	for one(int64(single)) > 1e-15 {
		single++
	}
	mass = []float64{1}
	for _, w := range weights {
		next := make([]float64, len(mass)+2*single*w)
		for i, m := range mass {
			for k := -single; k <= single; k++ {
				next[i+(k+single)*w] += m * one(int64(k))
			}
		}
		mass, reach = next, reach+single*w
	}
	return mass, reach
}

// beyond returns P(|X| > k) of a symmetric distribution, from the small end.
func beyond(mass []float64, reach int, k float64) float64 {
	sum := 0.0
	for i, m := range mass {
		if math.Abs(float64(i-reach)) > k {
			sum += m
		}
	}
	return sum
}

func onesOf(n int) []int {
	w := make([]int, n)
	for i := range w {
		w[i] = 1
	}
	return w
}

var alphas = []Probability{.5, .1, .05, .01, 1e-3, 1e-6, 1e-9}

func TestHalfWidthOfSumAgainstConvolution(t *testing.T) {
	for _, s := range []struct {
		kind     Kind
		num, den int64
		count    int
	}{
		{Laplace, 1, 1, 1}, {Laplace, 10, 1, 1}, {Laplace, 1, 9, 1}, {Laplace, 1, 1, 2}, {Laplace, 10, 1, 2}, {Laplace, 7, 3, 5}, {Laplace, 1, 9, 30}, {Laplace, 3, 1, 20},
		{Gaussian, 1, 1, 1}, {Gaussian, 100, 1, 1}, {Gaussian, 1, 10, 1}, {Gaussian, 1, 10, 12}, {Gaussian, 7, 3, 5}, {Gaussian, 40, 1, 7}, {Gaussian, 1, 2, 3},
	} {
		d := mustNew(t, s.kind, s.num, s.den)
		mass, reach := convolved(s.kind, float64(s.num)/float64(s.den), onesOf(s.count))
		for _, alpha := range alphas {
			k := d.HalfWidthOfSum(s.count, alpha)
			at, before := beyond(mass, reach, float64(k)), beyond(mass, reach, float64(k-1))
			if at > float64(alpha)*(1+1e-9) {
				t.Errorf("kind %d, %d/%d, %d of them: half-width %d at %g has tail %g", s.kind, s.num, s.den, s.count, k, alpha, at)
			}
			slack := 1e-4
			if alpha < 1e-8 {
				slack = 1e-3
			}
			if k > 0 && before < float64(alpha)*(1-slack) {
				t.Errorf("kind %d, %d/%d, %d of them: half-width %d at %g, but %d has tail %g", s.kind, s.num, s.den, s.count, k, alpha, k-1, before)
			}
		}
	}
}

func TestHalfWidthOfIsCertifiedAndNarrow(t *testing.T) {
	for _, s := range []struct {
		kind     Kind
		num, den int64
		weights  []int
	}{
		{Laplace, 1, 1, []int{1}}, {Laplace, 5, 1, []int{3, 1, 1}}, {Laplace, 3, 1, []int{1, 2, 3, 4, 5}}, {Laplace, 1, 6, []int{5, 5, 7}},
		{Gaussian, 9, 1, []int{1, 2, 3, 4, 5}}, {Gaussian, 1, 8, []int{4, 4, 9}}, {Gaussian, 50, 1, []int{3, 1}},
	} {
		d := mustNew(t, s.kind, s.num, s.den)
		mass, reach := convolved(s.kind, float64(s.num)/float64(s.den), s.weights)
		for _, scale := range []float64{1, .37, -.05} { // X is scale times a sum on the integers
			terms := []Term{{0, 5}, {2, 0}}
			for _, w := range s.weights {
				terms = append(terms, Term{float64(w) * scale, 1})
			}
			deviation := math.Sqrt(varianceOf(summands([]Part{{d, terms}})))
			for _, alpha := range alphas {
				k := float64(d.HalfWidthOf(terms, alpha))
				wider := max(1./16, deviation/100, k/100) + 1e-9
				at := func(a float64) float64 { return beyond(mass, reach, a/math.Abs(scale)-1e-9) } // P(|X| ≥ a)
				if got := at(k + .5); got > float64(alpha)*(1+1e-9) {
					t.Errorf("kind %d, %d/%d, %v·%g: half-width %g at %g has tail %g", s.kind, s.num, s.den, s.weights, scale, k, alpha, got)
				}
				if got := at(k - .5 - 2*wider); k > 0 && got < float64(alpha)*(1-1e-3) {
					t.Errorf("kind %d, %d/%d, %v·%g: half-width %g at %g is too wide: %g would have tail %g",
						s.kind, s.num, s.den, s.weights, scale, k, alpha, k-1, got)
				}
			}
		}
	}
}

// TestHalfWidthOfManyWeights compares with the normal law, which sums of a thousand noises of like weight follow.
func TestHalfWidthOfManyWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	terms := []Term{}
	for range 40 {
		terms = append(terms, Term{.5 + r.Float64(), 50})
	}
	d := mustNew(t, Laplace, 3, 1)
	deviation := math.Sqrt(varianceOf(summands([]Part{{d, terms}})))
	if k := float64(d.HalfWidthOf(terms, .05)); math.Abs(k/(1.96*deviation)-1) > .02 {
		t.Errorf("half-width %g of deviation %g", k, deviation)
	}
}

func TestVeryRareTails(t *testing.T) {
	d := mustNew(t, Laplace, 10, 1)
	// One Laplace has a closed form at any alpha; two are bounded by Chernoff, within a factor of the tail.
	if k := d.HalfWidthOfSum(1, 1e-300); math.Abs(float64(k)-6908) > 2 {
		t.Errorf("half-width %d", k)
	}
	narrow, wide := d.HalfWidthOfSum(2, 1e-9), d.HalfWidthOfSum(2, 1e-15)
	if wide <= narrow || wide > 450 {
		t.Errorf("half-widths %d and %d", narrow, wide)
	}
	if k := d.HalfWidthOf([]Term{{.5, 2}}, 1e-15); k < wide/2-1 || k > wide/2+1 {
		t.Errorf("half-width %d of half the noise, %d of the whole", k, wide)
	}
	for _, k := range []int64{d.HalfWidthOfSum(0, .05), d.HalfWidthOf(nil, .05), d.HalfWidthOf([]Term{{0, 3}}, .05), d.HalfWidthOfSum(3, 1)} {
		if k != 0 {
			t.Errorf("nothing has the half-width %d", k)
		}
	}
}

// TestWideNoise: the time does not grow with the scale, and the shape is the continuous law's.
func TestWideNoise(t *testing.T) {
	for _, count := range []int{1, 2, 3, 1000} {
		small, large := mustNew(t, Laplace, 1000, 1), mustNew(t, Laplace, 1_000_000_000, 1)
		ratio := float64(large.HalfWidthOfSum(count, .05)) / float64(small.HalfWidthOfSum(count, .05))
		if math.Abs(ratio/1e6-1) > 2e-3 {
			t.Errorf("%d noises: ratio %g", count, ratio)
		}
	}
}

func TestCharacteristicAgainstTheDefinition(t *testing.T) {
	for _, s := range samplers {
		parameter := float64(s.num) / float64(s.den)
		if parameter > 1000 {
			continue
		}
		d, mass := mustNew(t, s.kind, s.num, s.den), textbookMass(s.kind, parameter)
		logPhi := d.logCharacteristic()
		phi := func(u float64) float64 { return math.Exp(logPhi(u)) }
		moment, limit := d.logMoment()
		last := 2.0
		for u := 0.0; u <= math.Pi; u += .1 {
			sum, theta := mass(0), min(u, .7*limit)
			grown := mass(0)
			for k := 1; k < 2000; k++ {
				sum += 2 * mass(int64(k)) * math.Cos(u*float64(k))
				grown += 2 * mass(int64(k)) * math.Cosh(min(600, theta*float64(k)))
			}
			if math.Abs(phi(u)-sum) > 1e-11 || math.Abs(phi(u+4*math.Pi)-sum) > 1e-11 {
				t.Errorf("kind %d, %d/%d at %g: %g, the definition says %g", s.kind, s.num, s.den, u, phi(u), sum)
			}
			if phi(u) > last {
				t.Errorf("kind %d, %d/%d at %g: does not fall", s.kind, s.num, s.den, u)
			}
			if theta < 1 && moment(theta) < math.Log(grown)-1e-9 {
				t.Errorf("kind %d, %d/%d at %g: log moment %g, the definition says %g", s.kind, s.num, s.den, theta, moment(theta), math.Log(grown))
			}
			last = phi(u)
		}
	}
}

// TestKaiserTransform integrates the density that is claimed.
func TestKaiserTransform(t *testing.T) {
	const n = 4000
	for _, beta := range []float64{8, 20, 36} {
		bessel := func(x float64) float64 { // I0(x)·exp(−β)
			term, sum := math.Exp(-beta), 0.0
			for k := 1.0; k < 400; k++ {
				sum += term
				term *= (x / 2 / k) * (x / 2 / k)
			}
			return sum
		}
		for _, x := range []float64{0, 1, 5, 8, 19, 20, 21, 35, 37, 80} {
			mass, sum := 0.0, 0.0
			for i := range n {
				z := (float64(i)+.5)/n*2 - 1
				density := bessel(beta * math.Sqrt(1-z*z))
				mass += density
				sum += density * math.Cos(x*z)
			}
			if got := kaiserTransform(beta, x); math.Abs(got-sum/mass) > 1e-5*math.Exp(-beta/4) {
				t.Errorf("β %g at %g: %g, integrated %g", beta, x, got, sum/mass)
			}
		}
	}
}

// TestSinglesAreSummands: terms of one noise each are listed as terms of several would be.
func TestSinglesAreSummands(t *testing.T) {
	d := scaled(t, Laplace, 7)
	terms := []Term{{.5, 1}, {-.25, 1}, {0, 1}, {.5, 1}, {2, 1}, {-.5, 1}, {.25, 0}, {1e-9, 1}, {2, 1}}
	for n := range len(terms) + 1 {
		own, want := summands([]Part{{d, terms[:n]}}), summands([]Part{{d, terms[:n/2]}, {d, terms[n/2 : n]}})
		if !slices.EqualFunc(own, want, func(a, b summand) bool {
			return a.of == b.of && a.weight == b.weight && a.count == b.count && a.unit == b.unit
		}) {
			t.Errorf("%v: %v, of two parts %v", terms[:n], own, want)
		}
	}
}
