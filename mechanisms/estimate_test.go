package mechanisms

import (
	"crypto/rand"
	"math"
	"math/big"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

func mustEstimate(t testing.TB, s Spec, r privacy.Released[Noisy]) *Estimate {
	t.Helper()
	e, err := NewEstimate(s, r)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestIdentitySumsAgainstBigIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Spec{Counters: 2, Cells: rapid.IntRange(1, 9).Draw(t, "cells"), Kind: &Counts{Strategy: Strategy{Kind: Identity}, Noise: Noise{Kind: DiscreteLaplace, Num: 1, Den: 1}}}
		observations := rapid.SliceOfN(rapid.Int64Range(-MaxNoisy, MaxNoisy), 2*s.Cells, 2*s.Cells).Draw(t, "observations")
		e, err := NewEstimate(s, privacy.Published(Noisy{Observations: observations}))
		if err != nil {
			t.Fatal(err)
		}
		from, counter := rapid.IntRange(0, s.Cells).Draw(t, "from"), rapid.IntRange(0, 1).Draw(t, "counter")
		to, last := rapid.IntRange(from, s.Cells).Draw(t, "to"), rapid.IntRange(0, s.Cells).Draw(t, "last")
		spans, want := []Span{{from, to}, {max(to, last), s.Cells}}, new(big.Int)
		for _, span := range spans {
			for i := span.From; i < span.To; i++ {
				want.Add(want, big.NewInt(observations[counter*s.Cells+i]))
			}
		}
		cut := new(big.Int).SetInt64(MaxNoisy)
		if want.Cmp(cut) > 0 {
			want = cut
		} else if low := new(big.Int).Neg(cut); want.Cmp(low) < 0 {
			want = low
		}
		if got := e.Sum(counter, spans).Value(); want.Cmp(big.NewInt(got)) != 0 {
			t.Fatalf("%v of %v: %d, want %v", spans, observations, got, want)
		}
	})
}

// TestSumsAdd: what is read of disjoint cells adds up to what is read of them together, but for the rounding.
func TestSumsAdd(t *testing.T) {
	s, err := Ranges(365, oneRow, epsilon(200_000))
	if err != nil || s.Counts().Strategy.Kind == Identity {
		t.Fatal(s, err)
	}
	e := mustEstimate(t, s, mustRelease(t, s, groupsOf(5, 0, 0, 3), seeded(3)))
	for i := range s.Cells + 1 {
		sum := e.Sum(0, []Span{{0, i}}).Value()
		rest := e.Sum(0, []Span{{i, s.Cells}}).Value()
		if all := e.Sum(0, []Span{{0, s.Cells}}).Value(); max(all-sum-rest, sum+rest-all) > 1 {
			t.Fatalf("seed %q: %d and %d, together %d", seed, sum, rest, all)
		}
	}
	parts := e.Sum(0, []Span{{0, 10}, {20, 30}, {30, 40}}).Value() - e.Sum(0, []Span{{0, 10}}).Value() - e.Sum(0, []Span{{20, 40}}).Value()
	if parts < -1 || parts > 1 {
		t.Errorf("seed %q: the union is off by %d", seed, parts)
	}
}

func TestTreeReadsExactCountsExactly(t *testing.T) {
	s := Spec{Counters: 1, Cells: 10, Kind: &Counts{Strategy: Strategy{Kind: Tree, Radices: []int{2, 3, 2}}, Noise: Noise{Kind: DiscreteGaussian, Num: 1, Den: 1_000_000}}}
	e := mustEstimate(t, s, mustRelease(t, s, groupsOf(1, 2, 3, 4, 5, 6, 7, 8, 9, 1_000_000_000_000), rand.Reader))
	for _, c := range []struct {
		spans []Span
		want  int64
	}{
		{nil, 0}, {[]Span{{3, 3}}, 0}, {[]Span{{0, 9}}, 45}, {[]Span{{0, 10}}, 1_000_000_000_045}, {[]Span{{9, 10}}, 1_000_000_000_000},
		{[]Span{{1, 2}, {4, 6}}, 13}, {[]Span{{-5, 2}, {8, 9}}, 12}, {[]Span{{9, 99}}, 1_000_000_000_000}, {[]Span{{4, 6}, {1, 2}, {1, 5}}, 20},
	} {
		if got := e.Sum(0, c.spans).Value(); got != c.want {
			t.Errorf("%v: %d, want %d", c.spans, got, c.want)
		}
	}
}

func TestEstimateRefuses(t *testing.T) {
	s := Spec{Counters: 2, Cells: 3, Kind: &Counts{Strategy: Strategy{Kind: Identity}, Noise: Noise{Kind: DiscreteLaplace, Num: 1, Den: 1}}}
	if _, err := NewEstimate(s, privacy.Published(Noisy{Observations: make([]int64, 5)})); err == nil || err.Error() != "number of observations is 5, must be the 6 of the spec" {
		t.Error(err)
	}
	if _, err := NewEstimate(s, privacy.Released[Noisy]{}); err == nil || err.Error() != "release was never released" {
		t.Error(err)
	}
	e := mustEstimate(t, s, privacy.Published(Noisy{Observations: make([]int64, 6)}))
	sure, _ := NewConfidence(.95)
	for name, f := range map[string]func(){
		"counter":    func() { e.Sum(2, nil) },
		"negative":   func() { e.Sum(-1, nil) },
		"confidence": func() { s.Error(nil, Confidence{}) },
		"spec":       func() { Spec{}.Error(nil, sure) },
		"randomness": func() { e.Redraw(failing{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestErrorOfNothingAndOfEverything(t *testing.T) {
	sure, _ := NewConfidence(.95)
	for _, cells := range []int{4, 4096} {
		s, err := Ranges(cells, oneRow, epsilon(1e6))
		if err != nil {
			t.Fatal(err)
		}
		if e := s.Error(nil, sure); e != (Error{}) {
			t.Errorf("%d cells: nothing is off by %+v", cells, e)
		}
		if e := s.Error([]Span{{2, 2}, {-3, 0}, {cells, cells + 5}}, sure); e != (Error{}) {
			t.Errorf("%d cells: nothing is off by %+v", cells, e)
		}
		whole, split := s.Error([]Span{{0, cells}}, sure), s.Error([]Span{{0, 2}, {2, cells}}, sure)
		if whole != split || whole.HalfWidth == 0 {
			t.Errorf("%d cells: %+v, in two %+v", cells, whole, split)
		}
	}
	one, _ := Plain(1, 1, oneRow, epsilon(1e6))
	// 2q^(k+1)/(1+q) with q = 1/e: 0.0728 for k = 2, 0.0268 for k = 3.
	if e := one.Error([]Span{{0, 1}}, sure); e.HalfWidth != 3 || math.Abs(e.Variance-1.8413) > 1e-4 {
		t.Errorf("a count is off by %+v", e)
	}
}

// TestRedraw: redrawn sums scatter around the released ones with the noise's variance, and differ.
func TestRedraw(t *testing.T) {
	counts := groupsOf(1000, 2000, 3000)
	identity, err := Plain(1, 3, oneRow, epsilon(100_000))
	if err != nil {
		t.Fatal(err)
	}
	tree := Spec{Counters: 1, Cells: 40, Kind: &Counts{Strategy: Strategy{Kind: Tree, Radices: []int{7, 6}}, Noise: Noise{Kind: DiscreteGaussian, Num: 100, Den: 1}}}
	for _, s := range []Spec{identity, tree} {
		e, spans := mustEstimate(t, s, mustRelease(t, s, counts, seeded(4))), []Span{{0, 1}, {2, 3}}
		sure, _ := NewConfidence(.95)
		variance, held, n := s.Error(spans, sure).Variance, 0, 10_000
		off, random := []float64{}, seeded(5)
		for range n {
			x := float64(e.Redraw(random).Sum(0, spans).Value() - e.Sum(0, spans).Value())
			off = append(off, x)
			if math.Abs(x) <= float64(s.Error(spans, sure).HalfWidth) {
				held++
			}
			if len(off) == 1000 && s.Counts().Strategy.Kind == Tree {
				break
			}
		}
		mean, square := 0.0, 0.0
		for _, x := range off {
			mean, square = mean+x/float64(len(off)), square+x*x/float64(len(off))
		}
		// Six standard errors: of the mean, and (kurtosis at most 6, rounding adds 1/6 at most) of the square.
		if math.Abs(mean) > 6*math.Sqrt(variance/float64(len(off))) || math.Abs(square/variance-1) > 6*math.Sqrt(5/float64(len(off)))+.01 {
			t.Errorf("seed %q: strategy %d: mean %g, square %g of %g", seed, s.Counts().Strategy.Kind, mean, square, variance)
		}
		if err := (stattest.Coverage{Hits: held, Trials: len(off), Claim: .95}).AtLeast(1e-7); err != nil {
			t.Errorf("seed %q: strategy %d: %v", seed, s.Counts().Strategy.Kind, err)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	s, _ := Ranges(365, oneRow, epsilon(200_000))
	e := mustEstimate(t, s, mustRelease(t, s, groupsOf(5, 0, 0, 3), rand.Reader))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 50 {
				e.Redraw(rand.Reader).Sum(0, []Span{{i, 200}})
				e.Sum(0, []Span{{i, 200}})
			}
		})
	}
	all.Wait()
}
