package noise

import (
	"math"
	"math/rand/v2"
	"testing"
)

// fewShape is a sum of few noises that weigh, by its name and weights.
type fewShape struct {
	name  string
	terms []Term
}

// fewShapes are equal noises, one among many, weights that fall, and drawn ones.
func fewShapes(r *rand.Rand) (list []fewShape) {
	equal := func(n int, w float64) []Term { return []Term{{w, n}} }
	for _, n := range []int{1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 20, 40} {
		list = append(list, fewShape{"equal", equal(n, 1)})
		list = append(list, fewShape{"equal among many", append(equal(n, 1), equal(2000, .01)...)})
	}
	for _, share := range []float64{.01, .1, .3, .5, .7, .9, .99} {
		list = append(list, fewShape{"one and a Gaussian", append(equal(1, math.Sqrt(share)), equal(4000, math.Sqrt((1-share)/4000))...)})
		list = append(list, fewShape{"one and one", append(equal(1, math.Sqrt(share)), equal(1, math.Sqrt(1-share))...)})
		list = append(list, fewShape{"one and a dozen", append(equal(1, math.Sqrt(share)), equal(12, math.Sqrt((1-share)/12))...)})
		list = append(list, fewShape{"one and fifty", append(equal(1, math.Sqrt(share)), equal(50, math.Sqrt((1-share)/50))...)})
	}
	for _, falls := range []float64{.3, .6, .8, .9, .95, .99} {
		var terms []Term
		for w := 1.; w > 1e-4 && len(terms) < 300; w *= falls {
			terms = append(terms, Term{w, 1})
		}
		list = append(list, fewShape{"falling", terms})
	}
	for range 40 {
		terms, power := make([]Term, 2+r.IntN(60)), 1+r.Float64()*6
		for i := range terms {
			terms[i] = Term{math.Copysign(math.Pow(r.Float64(), power), r.Float64()-.5), 1 + r.IntN(2)}
		}
		list = append(list, fewShape{"drawn", terms})
	}
	return list
}

// TestFewNoisesAgainstTheExact holds half-widths of few noises against the tail itself, by a naive twin: never below
// it, and at most 1 % above where one is given. It is given for all shapes at 90 to 99.9 %.
func TestFewNoisesAgainstTheExact(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 105))
	for _, alpha := range []Probability{.5, .3, .1, .05, .01, .001, 3e-4} {
		m, told, farthest := NewMixtures(alpha), 0, 0.
		shapes := fewShapes(r)
		for _, s := range shapes {
			scale := int64(1) << (16 + r.IntN(6))
			d := mustNew(t, Laplace, scale, 1)
			k, ok := m.few(d, ShapeOf(s.terms))
			if !ok {
				if alpha <= .1 && alpha >= .001 {
					t.Errorf("alpha %g, %s %v: nothing is proved", alpha, s.name, few(s.terms))
				}
				continue
			}
			told++
			at := fewTail(s.terms, float64(scale), float64(k)+.5)
			if at > float64(alpha) {
				t.Errorf("alpha %g, %s %v: half-width %d has tail %g", alpha, s.name, few(s.terms), k, at)
			}
			if at := fewTail(s.terms, float64(scale), (float64(k)-.5)/1.01-1); at < float64(alpha) {
				t.Errorf("alpha %g, %s %v: half-width %d, but 1 %% less has tail %g", alpha, s.name, few(s.terms), k, at)
			}
			for above := 0.; above < .012; above += .001 { // how far it is above
				if fewTail(s.terms, float64(scale), (float64(k)-.5)/(1+above)-1) < float64(alpha) {
					farthest = max(farthest, above)
				}
			}
		}
		t.Logf("alpha %g: %d of %d are told, at most %.1f %% above", alpha, told, len(shapes), 100*(farthest+.001))
	}
}

func few(terms []Term) []Term { return terms[:min(len(terms), 4)] }

// fewTail is P(|X| ≥ a) of continuous Laplace noises: mixtureTail, whose sum is long enough for a characteristic
// function that falls like 1/u² only; of one noise it is exp(−a/scale).
func fewTail(terms []Term, scale, a float64) float64 {
	if len(terms) == 1 && terms[0].Count == 1 {
		return math.Exp(-a / (scale * math.Abs(terms[0].Weight)))
	}
	squares := 0.
	for _, x := range terms {
		squares += 2 * scale * scale * x.Weight * x.Weight * float64(x.Count)
	}
	step := math.Pi / (20 * math.Sqrt(squares))
	sum := a * step / 2
	for n := 1; n < 20000; n++ {
		u, phi := float64(n)*step, 1.
		for _, x := range terms {
			v := scale * x.Weight * u
			if phi *= math.Pow(1/(1+v*v), float64(x.Count)); phi < 1e-14 {
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

// TestLumpedIsTheMean holds the law of S̃ against S itself, drawn: its mean is 1, and what is lost of the variance is
// what it says.
func TestLumpedIsTheMean(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 105))
	for _, s := range fewShapes(r) {
		squares, fourths := 0., 0.
		for _, x := range s.terms {
			squares += float64(x.Count) * x.Weight * x.Weight
			fourths += float64(x.Count) * math.Pow(x.Weight, 4)
		}
		big, small, _ := shares(ShapeOf(s.terms))
		for _, step := range []float64{1. / 16, 1. / 64} {
			l, ok := lump(big, small, step, .05)
			if !ok {
				t.Fatalf("%s %v: no law", s.name, few(s.terms))
			}
			mean, square := 0., 0.
			for k, p := range l.masses {
				x := l.first + float64(k)*step
				mean, square = mean+p*x, square+p*x*x
			}
			// What is beyond is worth less than these.
			if lost := fourths/(squares*squares) - (square - mean*mean); math.Abs(mean-1) > 2e-4 || math.Abs(lost-l.lost) > 4e-3 || l.beyond > 1e-5 {
				t.Errorf("%s %v, step %g: mean %g, lost %g and %g, beyond %g", s.name, few(s.terms), step, mean, lost, l.lost, l.beyond)
			}
		}
	}
}

func BenchmarkFewNoises(b *testing.B) {
	m, d := NewMixtures(.05), mustNew(b, Laplace, 1<<17, 1)
	for _, s := range fewShapes(rand.New(rand.NewPCG(1, 2)))[:24] {
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				m.few(d, ShapeOf(s.terms))
			}
		})
	}
}
