package mechanisms

import (
	"io"
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

const freshReleases = 3000

// held is what a run of fresh releases found of one sum: how often its interval held the truth, before and after the
// isotonic step, and how often it should before.
type held struct {
	before, after int
	exact         float64
}

// exactCoverage is P(|X| < k+½) for X the weighted sum of the noise, or P(|X| ≤ k) on the integers, by a plain inversion
// of the characteristic function written out here, term by term, with a million frequencies.
func exactCoverage(t *testing.T, s Spec, terms []noise.Term, k int64) float64 {
	t.Helper()
	scale := float64(s.Noise.Num) / float64(s.Noise.Den)
	q := math.Exp(-1 / scale)
	deviation := 0.0
	for _, term := range terms {
		deviation += term.Weight * term.Weight * float64(term.Count)
	}
	deviation = math.Sqrt(deviation * 2 * q / ((1 - q) * (1 - q)))
	period, a := 60*deviation, float64(k)+.5
	sum := 2 * a / period
	for n := 1; n < 1_000_000; n++ {
		u := 2 * math.Pi * float64(n) / period
		logarithm := 0.0
		for _, term := range terms {
			logarithm += float64(term.Count) * math.Log((1-q)*(1-q)/(1-2*q*math.Cos(u*term.Weight)+q*q))
			if logarithm < -40 {
				break
			}
		}
		sum += 2 * math.Exp(logarithm) * math.Sin(a*u) / (math.Pi * float64(n))
	}
	return sum
}

func coverOf(t *testing.T, random io.Reader, s Spec, groups []privacy.Group, spans []Span, truth int64) held {
	t.Helper()
	sure, _ := NewConfidence(.95)
	width := s.Error(spans, sure).HalfWidth
	terms := []noise.Term{}
	if s.Strategy.Kind != Identity {
		same := []ranges.Span{}
		for _, span := range spans {
			same = append(same, ranges.Span(span))
		}
		terms = s.reader().Terms(same)
	} else {
		for _, span := range spans {
			terms = append(terms, noise.Term{Weight: 1, Count: span.To - span.From})
		}
	}
	h := held{exact: exactCoverage(t, s, terms, width)}
	for range freshReleases {
		r := mustRelease(t, s, groups, random)
		if inside(mustEstimate(t, s, r).Sum(0, spans).Value(), truth, width) {
			h.after++
		}
		cells := []float64{}
		if s.Strategy.Kind != Identity {
			cells = s.reader().Fit(r.Value().Observations)
		} else {
			for _, n := range r.Value().Observations {
				cells = append(cells, float64(n))
			}
		}
		sum, prefixes := 0.0, ranges.Prefixes(cells)
		for _, span := range spans {
			sum += prefixes[span.To] - prefixes[span.From]
		}
		if inside(rounded(sum), truth, width) {
			h.before++
		}
	}
	return h
}

func inside(x, truth, width int64) bool { return max(x-truth, truth-x) <= width }

// TestCoverage: over fresh releases, the stated interval holds as often as the noise says, within 3 standard errors, and
// after the isotonic step not less than 95 % less 3 of them. Over all seeds 2 % of the runs would fail; this seed is
// fixed, and a new one is only drawn when the samplers come to use their words otherwise.
func TestCoverage(t *testing.T) {
	ages := make([]int64, 365)
	for i := range ages {
		ages[i] = int64(200 * math.Exp(-float64(i)/60)) // most of the later cells are empty: the isotonic step works
	}
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
	ordered, err := Ranges(365, oneRow, epsilon(100_000))
	if err != nil {
		t.Fatal(err)
	}
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
		{"range", ordered, groupsOf(ages...), []Span{{30, 200}}, prefix(30, 200)},
		{"range, empty cells", ordered, groupsOf(ages...), []Span{{330, 350}}, prefix(330, 350)},
	} {
		h := coverOf(t, seeded(byte(10+i)), c.spec, c.groups, c.spans, c.truth)
		n := float64(freshReleases)
		before, after := float64(h.before)/n, float64(h.after)/n
		errorBefore := math.Sqrt(h.exact * (1 - h.exact) / n)
		errorAfter := math.Sqrt(.95 * .05 / n)
		t.Logf("%-20s exact %.4f, measured %.4f (%+.1f standard errors), after the isotonic step %.4f", c.name, h.exact, before, (before-h.exact)/errorBefore, after)
		if h.exact < .95 || math.Abs(before-h.exact) > 3*errorBefore || after < .95-3*errorAfter {
			t.Errorf("seed %q: %s: coverage %.4f and %.4f, exactly %.4f", seed, c.name, before, after, h.exact)
		}
	}
}
