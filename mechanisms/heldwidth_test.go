package mechanisms

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// TestWidthsOfRandomRanges compares the errors of random ranges of p-identity releases, which are read off a table by
// variance and shape, with the terms themselves: the variance with their squares, the half-width with the inversion's,
// which is smoothed by up to 1 % of the deviation or of itself and rounded up: it may be above by 2 % and an integer or
// two. Short ranges are among them, which few noises make; none takes an inversion.
func TestWidthsOfRandomRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 4))
	for _, cells := range []int{110, 251, 1024, 4096} {
		s, err := Ranges(cells, oneRow, epsilon(500_000))
		if err != nil {
			t.Fatal(err)
		}
		confidence, _ := NewConfidence([]float64{.9, .95, .99}[r.IntN(3)])
		e := s.Errors(confidence)
		mixtures := noise.NewMixtures(e.alpha)
		taken, before := time.Duration(0), time.Duration(0)
		for n := range 90 {
			spans := []Span{}
			for range 1 + n%3 {
				a, most := r.IntN(cells), cells
				if n >= 60 {
					most = a + 1 + r.IntN(20)
				}
				spans = append(spans, Span{a, a + 1 + r.IntN(min(most, cells)-a)})
			}
			spans = normal(spans, cells)
			terms := e.reader.Terms(sameSpans(spans))
			shape := noise.ShapeOf(terms)
			began := time.Now()
			inverted := e.noise.HalfWidthOf(e.reader.Terms(sameSpans(spans)), e.alpha)
			before += time.Since(began)
			e.Variance(spans) // keeps the prefixes, not the half-width
			if began = time.Now(); e.shaped == nil {
				t.Fatal("a p-identity strategy does not tell shapes")
			}
			inversions := noise.Inversions()
			own := e.Of(spans)
			if taken += time.Since(began); noise.Inversions() != inversions {
				t.Errorf("%d cells, %v: an inversion", cells, spans)
			}
			if quick, ok := e.Quick(spans); !ok || quick != own {
				t.Errorf("%d cells, %v: %+v, quickly %+v", cells, spans, own, quick)
			}
			if want := shape.Squares * e.law.variance(); own.Variance < want*(1-1e-9) || own.Variance > want*(1+1e-9) {
				t.Errorf("%d cells, %v: variance %g, by the terms %g", cells, spans, own.Variance, want)
			}
			exact, proved := mixtures.HalfWidth(e.noise, shape)
			if !proved {
				t.Errorf("%d cells, %v: no half-width is proved", cells, spans)
			}
			if steps := e.inSteps(spans).HalfWidth; steps < exact-exact/1000 || steps > inverted+inverted/100+1 || steps < inverted-inverted/40-2 {
				t.Errorf("%d cells, %v: half-width %d, by the exact shape %d, inverted %d", cells, spans, steps, exact, inverted)
			}
		}
		t.Logf("%d cells at %g: %v each, inverted %v", cells, confidence.p, taken/90, before/90)
	}
}
