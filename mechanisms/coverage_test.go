package mechanisms

import (
	"io"
	"math"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"

	"pgregory.net/rapid"
)

const freshReleases = 3000

// held is what a run of fresh releases found of one sum: how often its interval held the truth, and how often it
// should.
type held struct {
	times int
	exact float64
}

// exactCoverage is P(|X| < k+½) for X the weighted sum of the noise, or P(|X| ≤ k) on the integers, by a plain
// inversion of the characteristic function written out here, term by term, with a hundred thousand frequencies.
// Gaussian noise here is so wide that it passes for continuous.
func exactCoverage(n Noise, terms []noise.Term, k int64) float64 {
	parameter := float64(n.Num) / float64(n.Den)
	p, q := -math.Expm1(-1/parameter), math.Exp(-1/parameter) // p = 1−q, with all its digits
	deviation := 0.0
	for _, term := range terms {
		deviation += term.Weight * term.Weight * float64(term.Count)
	}
	if n.Kind == DiscreteGaussian {
		deviation = math.Sqrt(deviation * parameter)
		return math.Erf((float64(k) + .5) / (math.Sqrt2 * deviation))
	}
	deviation = math.Sqrt(deviation * 2 * q / (p * p))
	period, a := 60*deviation, float64(k)+.5
	sum := 2 * a / period
	for n := 1; n < 100_000; n++ {
		u := 2 * math.Pi * float64(n) / period
		logarithm := 0.0
		for _, term := range terms {
			s := math.Sin(u * term.Weight / 2)
			logarithm -= float64(term.Count) * math.Log1p(4*q*s*s/(p*p))
			if logarithm < -40 {
				break
			}
		}
		sum += 2 * math.Exp(logarithm) * math.Sin(a*u) / (math.Pi * float64(n))
	}
	return sum
}

// coverOf looks at the last counter.
func coverOf(t *testing.T, random io.Reader, s Spec, groups []privacy.Group, spans []Span, truth int64) held {
	t.Helper()
	sure, _ := NewConfidence(.95)
	last := s.Counters - 1
	width := s.Only(last).Error(spans, sure).HalfWidth
	terms, cells := []noise.Term{{Weight: 1, Count: CellsIn(spans)}}, s.reader()
	if cells != nil {
		terms = cells.Terms(sameSpans(spans))
	}
	h := held{exact: exactCoverage(s.noise(last), terms, width)}
	for range freshReleases {
		r := mustRelease(t, s, groups, random)
		if inside(mustEstimate(t, s, r).Sum(last, spans).Value(), truth, width) {
			h.times++
		}
	}
	return h
}

func inside(x, truth, width int64) bool { return max(x-truth, truth-x) <= width }

// TestCoverage: over fresh releases, the stated interval holds as often as the noise says, within 3 standard errors,
// whatever the cells beside hold; and it is not much wider than it must be. Over all seeds 3 % of the runs would fail;
// this seed is fixed, and a new one is only drawn when the samplers come to use their words otherwise.
func TestCoverage(t *testing.T) {
	ages := make([]int64, 365)
	for i := range ages {
		ages[i] = int64(200 * math.Exp(-float64(i)/60)) // most of the later cells are empty
	}
	lone := make([]int64, 365)
	lone[247] = 500 // a code between many that nobody has
	prefix := func(from, to int) (sum int64) {
		for _, n := range ages[from:to] {
			sum += n
		}
		return sum
	}
	count, err := Plain(1, 1, oneRow, epsilon(100_000))
	if err != nil {
		t.Fatal(err)
	}
	histogram, err := Plain(1, 365, oneRow, epsilon(100_000))
	if err != nil {
		t.Fatal(err)
	}
	must := func(s Spec, err error) Spec {
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	ordered := must(Ranges(365, oneRow, epsilon(100_000)))
	tree := must(OfStrategy(1, 365, Strategy{Kind: Tree, Radices: []int{20, 19}}, oneRow, epsilon(100_000)))
	weighted := must(OfStrategy(1, 365, Strategy{Kind: Tree, Radices: []int{8, 7, 7}, Weights: []int64{4, 5, 6}}, oneRow, epsilon(100_000)))
	sine := must(Ranges(365, oneRow, rho(5_000_000_000)))
	var everyOther []Span
	for i := 0; i < 365; i += 2 {
		everyOther = append(everyOther, Span{i, i + 1})
	}
	average := must(Sums([]Counter{{Bound: counted}, {Bound: Bound{-40, 100}}}, 3, oneRow, epsilon(500_000)))
	for i, c := range []struct {
		name   string
		spec   Spec
		groups []privacy.Group
		spans  []Span
		truth  int64
	}{
		{"count", count, groupsOf(1234), []Span{{0, 1}}, 1234},
		{"histogram, one cell", histogram, groupsOf(ages...), []Span{{7, 8}}, ages[7]},
		{"histogram, 20 cells", histogram, groupsOf(ages...), []Span{{0, 10}, {20, 30}}, prefix(0, 10) + prefix(20, 30)},
		{"tree", tree, groupsOf(ages...), []Span{{30, 200}}, prefix(30, 200)},
		{"weighted tree", weighted, groupsOf(ages...), []Span{{30, 200}}, prefix(30, 200)},
		{"p-identity", ordered, groupsOf(ages...), []Span{{30, 200}}, prefix(30, 200)},
		{"p-identity, empty", ordered, groupsOf(ages...), []Span{{330, 350}}, prefix(330, 350)},
		{"p-identity, the lone cell", ordered, groupsOf(lone...), []Span{{247, 248}}, 500},
		{"sine, the lone cell", sine, groupsOf(lone...), []Span{{247, 248}}, 500},
		{"p-identity, every other cell", ordered, groupsOf(), everyOther, 0},
		{"sine", sine, groupsOf(ages...), []Span{{30, 200}}, prefix(30, 200)},
		{"sine, two parts", sine, groupsOf(ages...), []Span{{30, 200}, {330, 350}}, prefix(30, 200) + prefix(330, 350)},
		{"sums of both signs", average, beside(groupsOf(9, 9, 9), 70, -300, 200), []Span{{1, 3}}, -100},
	} {
		h := coverOf(t, seeded(byte(10+i)), c.spec, c.groups, c.spans, c.truth)
		n := float64(freshReleases)
		measured, deviation := float64(h.times)/n, math.Sqrt(h.exact*(1-h.exact)/n)
		off := (measured - h.exact) / deviation
		t.Logf("%-28s exact %.4f, measured %.4f (%+.1f standard errors)", c.name, h.exact, measured, off)
		if h.exact < .95 || h.exact > .965 || math.Abs(off) > 3 {
			t.Errorf("seed %q: %s: coverage %.4f, exactly %.4f", seed, c.name, measured, h.exact)
		}
	}
}

// TestErrorsDoNotDependOnCounts: with the same noise, what is read of any counts is off by what is read of no rows, so
// that a half-width that holds for one histogram holds for all.
func TestErrorsDoNotDependOnCounts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cells := rapid.SampledFrom([]int{1, 7, 40, 365}).Draw(r, "cells")
		costs := []privacy.Cost{epsilon(100_000), epsilon(2_000_000), rho(5_000_000_000)}
		cost := rapid.SampledFrom(costs).Draw(r, "cost")
		asked := rapid.SampledFrom([]Workload{AllRanges, AllPrefixes}).Draw(r, "workload")
		s, err := RangesFor(asked, cells, oneRow, cost)
		if rapid.IntRange(0, 3).Draw(r, "plain") == 0 {
			s, err = Plain(1, cells, oneRow, cost)
		}
		if err != nil {
			r.Fatal(err)
		}
		counts := make([]int64, cells)
		for range rapid.IntRange(0, 6).Draw(r, "filled") {
			counts[rapid.IntRange(0, cells-1).Draw(r, "cell")] = rapid.Int64Range(0, 1_000_000).Draw(r, "rows")
		}
		exact := counts
		if reader := s.reader(); reader != nil {
			exact = reader.Observe(counts)
		}
		noise := rapid.SliceOfN(rapid.Int64Range(-1_000_000, 1_000_000), len(exact), len(exact)).Draw(r, "noise")
		noisy := slices.Clone(exact)
		for i, n := range noise {
			noisy[i] += n
		}
		full := mustEstimate(t, s, privacy.Published(Noisy{Observations: noisy}))
		empty := mustEstimate(t, s, privacy.Published(Noisy{Observations: noise}))
		for range 5 {
			spans, end := []Span(nil), 0
			for most := rapid.IntRange(1, 9).Draw(r, "spans"); end < cells && len(spans) < most; {
				from := rapid.IntRange(end, cells-1).Draw(r, "from")
				to := rapid.IntRange(from+1, cells).Draw(r, "to")
				spans, end = append(spans, Span{from, to}), to+1
			}
			off := full.Sum(0, spans).Value() - sumOf(counts, spans) - empty.Sum(0, spans).Value()
			if off < -1 || off > 1 { // both are rounded
				r.Fatalf("%v, %v of %v: %d further off than of no rows", s.Counts().Strategy, spans, counts, off)
			}
		}
	})
}
