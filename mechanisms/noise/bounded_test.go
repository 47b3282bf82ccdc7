package noise

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
)

// rational returns num/den for a parameter from 1e-18 to 1e18.
func rational(x float64) (num, den int64) {
	switch {
	case x >= 1e9:
		return int64(min(x, 9e18)), 1
	case x <= 1e-9:
		return 1, int64(min(1/x, 9e18))
	}
	return int64(math.Ceil(x * 1e9)), 1_000_000_000
}

// scaled returns a distribution of the scale t or of the parameter σ.
func scaled(t testing.TB, kind Kind, scale float64) Distribution {
	if kind == Gaussian {
		scale *= scale
	}
	num, den := rational(scale)
	return mustNew(t, kind, num, den)
}

// TestHalfWidthsAreBounded: what a half-width takes is bounded at every scale, weight, count and confidence. Operations
// and bytes are counted; no clock is read.
func TestHalfWidthsAreBounded(t *testing.T) {
	const maxBytes = 2 << 20
	var worst widening
	calls, most := 0, uint64(0)
	r := rand.New(rand.NewPCG(15, 3))
	look := func(parts []Part, alpha Probability) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := widening{}
		k := w.of(parts, alpha)
		runtime.ReadMemStats(&after)
		calls++
		taken := after.TotalAlloc - before.TotalAlloc
		most = max(most, taken)
		worst = widening{max(worst.inversions, w.inversions), max(worst.evaluations, w.evaluations), max(worst.sines, w.sines)}
		if k < 0 || w.inversions > maxInversions || w.evaluations > w.inversions*maxEvaluations || w.sines > w.inversions*maxFrequencies*250 || taken > maxBytes {
			t.Fatalf("%v at %g: half-width %d, %d inversions, %d evaluations, %d sines, %d bytes", parts, alpha, k, w.inversions, w.evaluations, w.sines, taken)
		}
	}
	confidences := []Probability{.5, .05, 1e-4, 1e-9, 1e-30}
	for exponent := -6.; exponent <= 9; exponent += .25 {
		for _, kind := range []Kind{Laplace, Gaussian} {
			d := scaled(t, kind, math.Pow(10, exponent))
			for _, count := range []int{1, 2, 3, 100, 1_000_000} {
				weight := []float64{1, .37, 1e-6, 144, 1e12}[r.IntN(5)]
				look([]Part{{d, []Term{{1, count}}}}, confidences[r.IntN(5)])
				look([]Part{{d, []Term{{weight, count}, {1, 1}, {3, 2}}}}, confidences[r.IntN(5)])
			}
		}
	}
	for range 300 { // any mix
		var parts []Part
		for range 1 + r.IntN(4) {
			p := Part{Of: scaled(t, Kind(1+r.IntN(2)), math.Pow(10, r.Float64()*15-6))}
			for range 1 << r.IntN(6) {
				p.Terms = append(p.Terms, Term{math.Pow(10, r.Float64()*24-12), 1 + int(math.Pow(10, r.Float64()*6))})
			}
			parts = append(parts, p)
		}
		look(parts, Probability(math.Pow(10, -r.Float64()*12)))
	}
	t.Logf("%d half-widths: at most %d inversions, %d evaluations, %d sines, %d bytes", calls, worst.inversions, worst.evaluations, worst.sines, most)
}

// TestHalfWidthOfNarrowNoise: at ε 150 the noise of a sum is 0 but once in exp(11250). The Chernoff bound once took the
// Gaussian's moment for it, said 10^102, and the inversion made so many frequencies until the memory was gone.
func TestHalfWidthOfNarrowNoise(t *testing.T) {
	for _, kind := range []Kind{Laplace, Gaussian} {
		for _, den := range []int64{5, 20, 100, 300, 745, 1000, 22_500, 1 << 62} {
			d := mustNew(t, kind, 1, den)
			for _, count := range []int{1, 2, 1000, 1_000_000} {
				for _, alpha := range []Probability{.05, 1e-12} {
					w := widening{}
					k := float64(w.of([]Part{{d, []Term{{1, count}}}}, alpha))
					lost := float64(count) * d.nonzero() // how many noises are not 0, and a bound of P(some is not)
					if lost < float64(alpha) && k != 0 || k > 8*math.Sqrt(lost)+40 || w.evaluations > 10_000 {
						t.Errorf("kind %d, 1/%d, %d of them at %g: half-width %g by %d evaluations", kind, den, count, alpha, k, w.evaluations)
					}
				}
			}
		}
	}
}

// of2 convolves two symmetric distributions on the integers, their middles in the middle.
func of2(a, b []float64) []float64 {
	out := make([]float64, len(a)+len(b)-1)
	for i, x := range a {
		if x > 0 {
			for j, y := range b {
				out[i+j] += x * y
			}
		}
	}
	return out
}

// exactly is the distribution of Σ weight·noise on the integers by convolution, up to 1e-13, whole weights.
func exactly(t *testing.T, parts []Part) []float64 {
	all := []float64{1}
	for _, p := range parts {
		for _, term := range p.Terms {
			reach := 0
			for p.Of.Mass(int64(reach)+1) > 1e-14 {
				reach++
			}
			step := int(term.Weight)
			one := make([]float64, 2*reach*step+1)
			for k := -reach; k <= reach; k++ {
				one[(k+reach)*step] = float64(p.Of.Mass(int64(k)))
			}
			for range term.Count {
				all = of2(all, one)
			}
			if len(all) > 1<<20 {
				t.Fatal("too far")
			}
		}
	}
	return all
}

// TestHalfWidthsAgainstConvolution: certified, and at most 2 % and 1 above the exact half-width, for noises from 0 but
// once in a million to wide ones, of several distributions, with weights from 1 to 1000, some seldom noise of great
// weight among them.
func TestHalfWidthsAgainstConvolution(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	looked := 0
	for range 150 {
		var parts []Part
		weights, far := []float64{1, 1, 2, 3, 5, 100, 300}, 0.0
		for range 1 + r.IntN(3) {
			weight := weights[r.IntN(len(weights))]
			scale := math.Pow(10, r.Float64()*2.2-1.3) // .05 to 8
			if weight >= 100 {
				scale = .07 + r.Float64()*.5
			}
			p := Part{scaled(t, Kind(1+r.IntN(2)), scale), []Term{{weight, 1 + r.IntN(3)}}}
			far += weight * scale
			parts = append(parts, p)
		}
		mass := exactly(t, parts)
		middle := len(mass) / 2
		tails := make([]float64, middle+2) // P(|X| ≥ k)
		for k := middle; k >= 0; k-- {
			tails[k] = tails[k+1] + mass[middle+k]
			if k > 0 {
				tails[k] += mass[middle-k]
			}
		}
		for _, alpha := range []Probability{.5, .2, .05, .01, 1e-4, 1e-6, 1e-9} {
			looked++
			k := int(HalfWidthOfParts(parts, alpha))
			if k <= middle && tails[k+1] > float64(alpha)*(1+1e-9)+1e-12 {
				t.Errorf("%v at %g: half-width %d has tail %g", parts, alpha, k, tails[k+1])
			}
			exact := 0
			for tails[exact+1] > float64(alpha)*(1-1e-3) {
				exact++
			}
			if float64(k) > 1.02*float64(exact)+1 {
				t.Errorf("%v at %g: half-width %d, exactly %d", parts, alpha, k, exact)
			}
		}
	}
	t.Logf("%d half-widths", looked)
}

// TestHalfWidthsScale: a wide noise has the continuous law's half-width, whatever its scale and weight, up to those
// that no integer holds.
func TestHalfWidthsScale(t *testing.T) {
	for _, kind := range []Kind{Laplace, Gaussian} {
		for _, count := range []int{1, 2, 3, 1000, 1_000_000} {
			for _, alpha := range []Probability{.5, .05, 1e-6, 1e-9} {
				base := float64(scaled(t, kind, 1000).HalfWidthOf([]Term{{1000, count}}, alpha))
				for _, scale := range []float64{1e4, 1e6, 1e9} {
					for _, weight := range []float64{.5, 1, 144, 1e5} {
						got := float64(scaled(t, kind, scale).HalfWidthOf([]Term{{weight, count}}, alpha))
						want := base * scale / 1e6 * weight
						if want < 9e18 && math.Abs(got/want-1) > .01 {
							t.Errorf("kind %d, %d noises of scale %g, weight %g at %g: %g, should be near %g", kind, count, scale, weight, alpha, got, want)
						}
						if want > 9.3e18 && got != math.MaxInt64 {
							t.Errorf("kind %d, %d noises of scale %g, weight %g at %g: %g, beyond the integers", kind, count, scale, weight, alpha, got)
						}
					}
				}
			}
		}
	}
}

// TestHalfWidthOfThousandsOfWeights compares gathered sums with the normal law.
func TestHalfWidthOfThousandsOfWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, scale := range []float64{.3, 3, 1e6} {
		var parts []Part
		for _, kind := range []Kind{Laplace, Gaussian} {
			p := Part{Of: scaled(t, kind, scale)}
			for range 4000 {
				p.Terms = append(p.Terms, Term{math.Exp(r.NormFloat64()), 1 + r.IntN(20)})
			}
			parts = append(parts, p)
		}
		deviation := math.Sqrt(varianceOf(summands(parts)))
		for _, alpha := range []Probability{.5, .05, 1e-3} {
			normal := deviation * math.Sqrt2 * math.Erfcinv(float64(alpha))
			if k := float64(HalfWidthOfParts(parts, alpha)); k < normal*.995-1 || k > normal*1.04+1 {
				t.Errorf("scale %g at %g: half-width %g, the normal law's %g", scale, alpha, k, normal)
			}
		}
	}
}

// TestGatheredWeights: with 300 weights gathered and with all of them, half-widths agree, whatever the noise looks
// like.
func TestGatheredWeights(t *testing.T) {
	for _, kind := range []Kind{Laplace, Gaussian} {
		for _, scale := range []float64{.2, 1, 1e3} {
			sum := summands([]Part{{scaled(t, kind, scale), manyTerms(300)}})
			for _, alpha := range []Probability{.05, 1e-3, 1e-6} {
				few, left, moved := gathered(sum, alpha)
				all, own := (&widening{}).width(sum, alpha), math.Ceil((&widening{}).width(few, left)+moved)
				if len(few) > len(sum)*3/4 || own < .99*all-1 || own > 1.02*all+2 {
					t.Errorf("kind %d, scale %g at %g: %g with all weights, %g with %d of them", kind, scale, alpha, all, own, len(few))
				}
			}
		}
	}
}

func BenchmarkHalfWidth(b *testing.B) {
	for _, scale := range []float64{1e-6, 1e-2, .3, 3, 1e3, 1e9} {
		for _, terms := range [][]Term{{{1, 1}}, {{1, 100}}, {{1, 1_000_000}}, {{1, 1}, {.37, 3}, {1e4, 1}}, manyTerms(300)} {
			d := scaled(b, Laplace, scale)
			b.Run(fmt.Sprintf("scale=%g/terms=%d/count=%d", scale, len(terms), terms[0].Count), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					d.HalfWidthOf(terms, .05)
				}
			})
		}
	}
}

func manyTerms(n int) (terms []Term) {
	for i := range n {
		terms = append(terms, Term{math.Exp(-3 * float64(i) / float64(n)), 1 + i%3})
	}
	return terms
}
