package ranges

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// anyContinual draws a description of a continual strategy.
func anyContinual(t *rapid.T) Description {
	d := Description{Kind: KindContinualTree, Cells: rapid.IntRange(1, 70).Draw(t, "cells")}
	if rapid.Bool().Draw(t, "root") {
		return Description{Kind: KindContinualRoot, Cells: d.Cells, Radices: []int{rapid.IntRange(1, 80).Draw(t, "band")}, Bits: rapid.IntRange(8, 20).Draw(t, "bits")}
	}
	for range rapid.IntRange(0, 3).Draw(t, "levels") {
		d.Radices = append(d.Radices, rapid.IntRange(2, 9).Draw(t, "radix"))
	}
	return d
}

func openContinual(t rapid.TB, d Description) Continual {
	s, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	return s.(Continual)
}

// denseOf is B column by column, as Observe shows it.
func denseOf(s Strategy) *mat.Dense {
	b := mat.NewDense(s.Observations(), s.Cells(), nil)
	for i := range s.Cells() {
		x := make([]int64, s.Cells())
		x[i] = 1
		for j, v := range s.Observe(x) {
			b.Set(j, i, float64(v))
		}
	}
	return b
}

// TestContinualGrows: the strategy of fewer cells observes a beginning of what that of more cells does, whatever the
// later cells hold, and nothing before Reach matters to what is new.
func TestContinualGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyContinual(t)
		all := openContinual(t, d)
		cells := make([]int64, d.Cells)
		for i := range cells {
			cells[i] = int64(rapid.IntRange(0, 99).Draw(t, "count"))
		}
		whole := all.Observe(cells)
		from := rapid.IntRange(0, d.Cells-1).Draw(t, "from")
		to := rapid.IntRange(from+1, d.Cells).Draw(t, "to")
		d.Cells = to
		early := openContinual(t, d)
		seen := append([]int64(nil), cells[:to]...)
		clear(seen[:early.Reach(from, to)])
		observed := early.Observe(seen)
		if len(observed) != all.Known(to) || early.Known(to) != all.Known(to) {
			t.Fatalf("%d observations of %d cells, and %d of them known to the strategy of more", len(observed), to, all.Known(to))
		}
		for j := all.Known(from); j < all.Known(to); j++ {
			if observed[j] != whole[j] {
				t.Fatalf("observation %d of cells %d to %d is %d, of all cells %d", j, from, to, observed[j], whole[j])
			}
		}
	})
}

// TestContinualAgainstDense: sensitivity, reading and errors of the dense matrix.
func TestContinualAgainstDense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyContinual(t)
		s := openContinual(t, d)
		b := denseOf(s)
		most := privacy.Sensitivity{}
		for i := range d.Cells {
			column := mat.Col(nil, i, b)
			l1, l2 := int64(mat.Norm(mat.NewVecDense(len(column), column), 1)), 0.0
			for _, v := range column {
				l2 += v * v
			}
			most.L1, most.L2Squared = max(most.L1, l1), max(most.L2Squared, int64(l2))
		}
		if got := s.Sensitivity(privacy.AddRemove); got.L1 < most.L1 || got.L2Squared < most.L2Squared ||
			got != most && (d.Kind == KindContinualTree || d.Radices[0] <= d.Cells) {
			t.Fatalf("sensitivity is %v, of the columns %v", got, most)
		}
		c := covariance(t, b)
		query := make([]float64, d.Cells)
		spans := anySpans(t, d.Cells)
		for _, span := range spans {
			for i := span.From; i < span.To; i++ {
				query[i] = 1
			}
		}
		want := mat.Inner(mat.NewVecDense(d.Cells, query), c, mat.NewVecDense(d.Cells, query))
		terms := 0.0
		for _, term := range s.Terms(spans) {
			terms += term.Weight * term.Weight * float64(term.Count)
		}
		for name, got := range map[string]float64{"Variance": s.Variance(spans), "Terms": terms} {
			if math.Abs(got-want) > 1e-7*max(want, 1e-9) {
				t.Fatalf("%s of %v is %g, by the dense matrix %g", name, spans, got, want)
			}
		}
		noisy := make([]int64, s.Observations())
		y := mat.NewVecDense(len(noisy), nil)
		for j := range noisy {
			noisy[j] = int64(rapid.IntRange(-1<<30, 1<<30).Draw(t, "noisy"))
			y.SetVec(j, float64(noisy[j]))
		}
		var right, x mat.VecDense
		right.MulVec(b.T(), y)
		x.MulVec(c, &right)
		for i, got := range s.Fit(noisy) {
			if math.Abs(got-x.AtVec(i)) > 1e-5*max(1, mat.Norm(&x, math.Inf(1))) {
				t.Fatalf("cell %d is read as %g, by the dense matrix %g", i, got, x.AtVec(i))
			}
		}
	})
}

// TestContinualMeanVariance sums over all queries.
func TestContinualMeanVariance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyContinual(t)
		s := openContinual(t, d)
		ranges, prefixes := 0.0, 0.0
		for from := range d.Cells {
			for to := from + 1; to <= d.Cells; to++ {
				v := s.Variance([]Span{{from, to}})
				ranges += v
				if from == 0 {
					prefixes += v
				}
			}
		}
		for w, sum := range map[Workload]float64{AllRanges: ranges, AllPrefixes: prefixes} {
			if got, want := s.MeanVariance(w), sum/w.queries(d.Cells); math.Abs(got-want) > 1e-9*want {
				t.Fatalf("mean variance of %s is %g, must be %g", w, got, want)
			}
		}
	})
}

func TestContinualRefusals(t *testing.T) {
	for _, d := range []Description{
		{Kind: KindContinualTree, Cells: 0}, {Kind: KindContinualTree, Cells: MaxContinual + 1}, {Kind: KindContinualTree, Cells: 9, Radices: []int{1}},
		{Kind: KindContinualTree, Cells: 9, Radices: make([]int, 99)}, {Kind: KindContinualTree, Cells: 9, Bits: 20}, {Kind: KindContinualRoot, Cells: 9},
		{Kind: KindContinualRoot, Cells: 9, Radices: []int{0}, Bits: 20}, {Kind: KindContinualRoot, Cells: 9, Radices: []int{4}}, {Kind: KindContinualRoot, Cells: 0, Radices: []int{4}, Bits: 20},
		{Kind: KindContinualRoot, Cells: 9, Radices: []int{4}, Bits: 20, Version: 1},
	} {
		if _, err := Open(d); err == nil {
			t.Errorf("%v was opened", d)
		}
	}
}

// TestContinualSaturates: counts beyond the bound are cut, and no sum overflows.
func TestContinualSaturates(t *testing.T) {
	for _, d := range []Description{{Kind: KindContinualTree, Cells: 4, Radices: []int{2, 2}}, {Kind: KindContinualRoot, Cells: 4, Radices: []int{4}, Bits: 20}} {
		for j, v := range openContinual(t, d).Observe([]int64{math.MaxInt64, math.MaxInt64, math.MaxInt64, -5}) {
			if v < 0 || v > MaxObserved {
				t.Errorf("observation %d of %v is %d", j, d, v)
			}
		}
	}
}

// TestContinualFigures holds the chosen strategies to the figures in docs/benchmarks.md: of three years of days, noise
// of unit cost, the root of the mean over the time of the mean variance of all ranges, and of the sum so far.
func TestContinualFigures(t *testing.T) {
	const days = 1095
	for _, c := range []struct {
		norm          Norm
		ranges, sofar float64
	}{{L1, 11.21, 14.9}, {L2, 3.42, 3.32}} {
		d := ChooseContinual(days, c.norm)
		all := openContinual(t, d)
		one := all.Sensitivity(privacy.AddRemove)
		scale := float64(one.L2Squared)
		if c.norm == L1 {
			scale = 2 * float64(one.L1) * float64(one.L1)
		}
		ranges, sofar := 0.0, 0.0
		const times = 73
		for i := 1; i <= times; i++ {
			d.Cells = days * i / times
			s := openContinual(t, d)
			ranges += scale * s.MeanVariance(AllRanges) / times
			sofar += scale * s.Variance([]Span{{0, d.Cells}}) / times
		}
		t.Logf("%s %v: all ranges %.3f, sum so far %.3f", d.Kind, d.Radices, math.Sqrt(ranges), math.Sqrt(sofar))
		if math.Sqrt(ranges) > c.ranges || math.Sqrt(sofar) > c.sofar {
			t.Errorf("norm %v: all ranges %.3f, sum so far %.3f, must be at most %.2f and %.2f", c.norm, math.Sqrt(ranges), math.Sqrt(sofar), c.ranges, c.sofar)
		}
	}
}

func BenchmarkContinualVariance(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, norm := range []Norm{L1, L2} {
		s, err := Open(ChooseContinual(1095, norm))
		if err != nil {
			b.Fatal(err)
		}
		b.Run([]string{"", "tree", "root"}[norm], func(b *testing.B) {
			for b.Loop() {
				from := random.IntN(1000)
				s.Variance([]Span{{from, from + 1 + random.IntN(1095-from)}})
			}
		})
	}
}
