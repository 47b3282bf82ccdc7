package noise

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestMixturesAgainstTheExact compares the table with the tail itself, by a naive twin, for sums of wide Laplace noise
// of random weights, some of which have a few heavy ones, and with the half-widths that HalfWidthOf inverts.
func TestMixturesAgainstTheExact(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 18))
	proved := 0
	levels, tables := []Probability{.5, .3, .1, .05, .05, .01, .001, 3e-4}, map[Probability]*Mixtures{}
	for _, alpha := range levels {
		tables[alpha] = NewMixtures(alpha)
	}
	for range 3000 {
		alpha := levels[r.IntN(8)]
		n := 10 + r.IntN(400)
		terms, squares, fourths := make([]Term, n), 0., 0.
		power, heavy := r.Float64()*2, r.IntN(4)
		for i := range terms {
			w := math.Pow(r.Float64(), power)
			if i < heavy {
				w = 1 + r.Float64()*math.Sqrt(float64(n))/3
			}
			terms[i] = Term{Weight: w, Count: 1}
			squares += w * w
			fourths += w * w * w * w
		}
		scale := int64(1) << (14 + r.IntN(10))
		d := mustNew(t, Laplace, scale, 1)
		k, ok := tables[alpha].HalfWidth(d, Shape{Squares: squares, Fourths: fourths})
		if !ok {
			continue
		}
		if proved++; proved > 400 {
			break
		}
		// The inversion is certified and smoothed by a hundredth of the deviation: it may be above the least by 2 %.
		if exact := float64(d.HalfWidthOf(terms, alpha)); float64(k) > exact*1.01 || float64(k) < exact*.975 {
			t.Errorf("alpha %g, %d noises of %d: %d, the inversion says %.0f", alpha, n, scale, k, exact)
		}
		at := mixtureTail(terms, float64(scale), float64(k)+.5)
		if at > float64(alpha) {
			t.Errorf("alpha %g, %d noises of %d: half-width %d has tail %g", alpha, n, scale, k, at)
		}
		if at := mixtureTail(terms, float64(scale), (float64(k)-.5)/1.01-1); at < float64(alpha) {
			t.Errorf("alpha %g, %d noises of %d: half-width %d, but 1 %% less has tail %g", alpha, n, scale, k, at)
		}
	}
	if proved < 300 {
		t.Errorf("%d sums are in the table", proved)
	}
}

// mixtureTail is P(|X| ≥ a) of continuous Laplace noises, the naive twin: the inversion formula by the trapezoidal
// rule, 1 − (2/π)∫ sin(au)/u·Π 1/(1+t²wᵢ²u²) du. What the scale 2^14 leaves of the lattice is below 1e-4 of a
// half-width.
func mixtureTail(terms []Term, scale, a float64) float64 {
	squares := 0.
	for _, x := range terms {
		squares += 2 * scale * scale * x.Weight * x.Weight
	}
	step := math.Pi / (20 * math.Sqrt(squares)) // the period is 40 deviations
	sum := a * step / 2
	for n := 1; n < 2000; n++ {
		u, phi := float64(n)*step, 1.
		for _, x := range terms {
			v := scale * x.Weight * u
			if phi /= 1 + v*v; phi < 1e-14 {
				break
			}
		}
		if phi < 1e-14 {
			break
		}
		sum += math.Sin(a*u) / float64(n) * phi
	}
	return 1 - 2/math.Pi*sum
}

// TestMixturesAreMonotone holds what rounding a shape up rests on, and that the curvature's bounds are bounds.
func TestMixturesAreMonotone(t *testing.T) {
	for _, alpha := range []Probability{.5, .2, .1, .05, .01, .001, 1e-6} {
		m := NewMixtures(alpha)
		for i := 1; i <= mixtureShapes && m.reach[i] != 0; i++ {
			if m.reach[i] < m.reach[i-1] {
				t.Errorf("alpha %g, shape %d: %g after %g", alpha, i, m.reach[i], m.reach[i-1])
			}
		}
	}
	for _, z := range []float64{.6, 1.3, 1.96, 2.6, 3.3, 4.9} {
		low, high := 5-math.Sqrt(10), 5+math.Sqrt(10)
		least, most := mixtureCurvature(low, z*z/low), mixtureCurvature(high, z*z/high)
		for s := .05; s < 60; s *= 1.003 {
			g := func(s float64) float64 { return math.Erfc(z / math.Sqrt(2*s)) }
			h := s * 1e-4
			numeric := (g(s+h) - 2*g(s) + g(s-h)) / (h * h)
			if got := mixtureCurvature(z*z/s, s); math.Abs(got-numeric) > 1e-6*(1+1/(s*s)) {
				t.Fatalf("z %g, s %g: curvature %g, by differences %g", z, s, got, numeric)
			}
			if got := mixtureCurvature(z*z/s, s); got < least*(1+1e-9) || got > most*(1+1e-9) {
				t.Errorf("z %g, s %g: curvature %g is not within %g and %g", z, s, got, least, most)
			}
		}
	}
}
