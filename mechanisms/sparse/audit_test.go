package sparse

import (
	"math/bits"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// stream are the counts of a sequence of queries on two neighbours, the threshold being 0.
type stream struct{ one, other []int64 }

// apart: n queries that a unit moves up, then last ones that it moves down.
func apart(n, last int) stream {
	s := stream{make([]int64, n+last), make([]int64, n+last)}
	for j := range n + last {
		if j < n {
			s.other[j] = 1
		} else {
			s.one[j] = 1
		}
	}
	return s
}

func lift(s stream, by int64) stream {
	for j := range s.one {
		s.one[j], s.other[j] = s.one[j]+by, s.other[j]+by
	}
	return s
}

func TestAuditsOfInstances(t *testing.T) {
	answers := stattest.Length(30_000, 1_000_000)
	for _, c := range []struct {
		name      string
		positives int
		queries   stream
		monotone  bool
	}{
		{"one positive", 1, lift(apart(15, 1), -2), false},
		{"two positives", 2, lift(apart(8, 2), 0), false},
		{"monotone", 1, lift(apart(0, 3), 0), true},
	} {
		m := made(t, Spec{Positives: c.positives, Sensitivity: 1, Monotone: c.monotone, Cost: epsilon(3_000_000)})
		random := seeded(6)
		ask := func(counts []int64) int {
			i, code := opened(t, m, random), 0
			for j, count := range counts {
				a, err := i.Ask(privacy.Seal(count), 0)
				if err != nil {
					break
				}
				if a.Value() {
					code |= 1 << j
				}
			}
			return code
		}
		bound := choices(t, answers, func() int { return ask(c.queries.one) }, func() int { return ask(c.queries.other) })
		t.Logf("%s: epsilon at least %.3f of 3", c.name, bound)
		if bound > 3 || bound < .5 {
			t.Errorf("%s: epsilon at least %.3f, paid 3 (below 0.5 the audit is blind)", c.name, bound)
		}
	}
}

// broken is a sparse vector of the literature that is not as private as it was said to be (Lyu, Su, Li 2017, figure 2),
// each written down as if it cost ε = 1.
type broken struct {
	threshold, comparison int64 // scales; 0 means no noise
	positives             int   // 0: never stops
}

// answer returns which counts are above, as bits, and the last compared number that is.
func (b broken) answer(t *testing.T, counts []int64, random *noise.Reader) (code int, compared int64) {
	z, positives := scaled(t, b.threshold, random), 0
	for j, count := range counts {
		noisy := count + scaled(t, b.comparison, random)
		if noisy < z {
			continue
		}
		code |= 1 << j
		compared = noisy
		if positives++; positives == b.positives {
			break
		}
	}
	return code, compared
}

// first returns the first of the counts that is above, and the compared number.
func (b broken) first(t *testing.T, counts []int64, random *noise.Reader) (j int, compared int64) {
	z := scaled(t, b.threshold, random)
	for j, count := range counts {
		if compared = count + scaled(t, b.comparison, random); compared >= z {
			return j, compared
		}
	}
	return len(counts), 0
}

func scaled(t *testing.T, scale int64, random *noise.Reader) int64 {
	if scale == 0 {
		return 0
	}
	d, err := noise.New(noise.Laplace, scale, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d.Sample(random)
}

// TestAuditsCatchBrokenVariants: what is above or below, alone.
func TestAuditsCatchBrokenVariants(t *testing.T) {
	answers := stattest.Length(40_000, 500_000)
	for _, c := range []struct {
		name    string
		variant broken
		queries stream
	}{
		{"Stoddard et al. 2014: no noise on the queries", broken{threshold: 2}, apart(1, 1)},
		{"Lee and Clifton 2014: c = 8 not in the queries' noise", broken{threshold: 4, comparison: 1, positives: 8}, lift(apart(6, 8), 1)},
		{"factor 2 for queries that move either way forgotten", broken{threshold: 4, comparison: 1, positives: 1}, lift(apart(9, 1), -2)},
	} {
		random := noise.NewReader(seeded(9))
		ask := func(counts []int64) func() int {
			return func() int { code, _ := c.variant.answer(t, counts, random); return code }
		}
		bound := choices(t, answers, ask(c.queries.one), ask(c.queries.other))
		t.Logf("%s: epsilon at least %.2f of 1", c.name, bound)
		if bound <= 1 {
			t.Errorf("%s passed: epsilon at least %.3f", c.name, bound)
		}
	}
}

// TestAuditsCatchNoStop: Chen et al. 2015 stop at no number of positives. The judged number is how many more of the
// queries that a unit moves up are above than of those that it moves down.
func TestAuditsCatchNoStop(t *testing.T) {
	const each = 30
	queries := apart(each, each)
	bound := numbers(t, stattest.Length(20_000, 500_000), queries, func(counts []int64, random *noise.Reader) float64 {
		code, _ := broken{threshold: 2, comparison: 2}.answer(t, counts, random)
		return float64(bits.OnesCount64(uint64(code)&(1<<each-1)) - bits.OnesCount64(uint64(code)>>each))
	})
	t.Logf("Chen et al. 2015: epsilon at least %.2f of 1", bound)
	if bound <= 1 {
		t.Errorf("no stop passed: epsilon at least %.3f", bound)
	}
}

// TestAuditsCatchTheComparedNumber: the trap of Roth's notes of 2011 and of the notes on interactive mechanisms, whose
// answer is the number that was compared; noise of scale 2c/ε on both, c = 1. With every query below but the last, that
// number is above the threshold's noise: that it is small says that the noise is, and then each query before was likely
// to be above on the neighbour that moves it up.
func TestAuditsCatchTheComparedNumber(t *testing.T) {
	const before = 80
	queries := lift(apart(before, 0), -5)
	queries.one, queries.other = append(queries.one, 1), append(queries.other, 1)
	bound := numbers(t, stattest.Length(150_000, 1_000_000), queries, func(counts []int64, random *noise.Reader) float64 {
		answer := 100.0
		if j, compared := (broken{threshold: 2, comparison: 2}).first(t, counts, random); j == before {
			answer = float64(compared)
		}
		return answer
	})
	t.Logf("the compared number: epsilon at least %.2f of 1", bound)
	if bound <= 1 {
		t.Errorf("the compared number passed: epsilon at least %.3f", bound)
	}
}

// numbers audits a real-valued answer.
func numbers(t *testing.T, answers int, queries stream, ask func(counts []int64, random *noise.Reader) float64) float64 {
	t.Helper()
	random := noise.NewReader(seeded(10))
	a := stattest.Audit{One: make([]float64, answers), Other: make([]float64, answers)}
	for n := range answers {
		a.One[n], a.Other[n] = ask(queries.one, random), ask(queries.other, random)
	}
	bound, err := a.Epsilon(alarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

func choices(t *testing.T, answers int, one, other func() int) float64 {
	t.Helper()
	c := stattest.Choices{One: make([]int, answers), Other: make([]int, answers)}
	for n := range answers {
		c.One[n], c.Other[n] = one(), other()
	}
	bound, err := c.Epsilon(alarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}
