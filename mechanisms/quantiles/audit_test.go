package quantiles

import (
	"math"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

func choices(t *testing.T, answers int, one, other func(*noise.Reader) int) float64 {
	t.Helper()
	c := stattest.Choices{One: make([]int, answers), Other: make([]int, answers)}
	random := noise.NewReader(seeded(30))
	for n := range answers {
		c.One[n], c.Other[n] = one(random), other(random)
	}
	bound, err := c.Epsilon(alarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

func code(cells []int) int {
	n := 0
	for _, c := range cells {
		n = n*64 + c
	}
	return n
}

// lopsided is a median on which the loss is near the claim: few cells below the middle one, many above, all alike but
// for the side; one more row at the upper end makes the few worse by half a row, and the many better.
func lopsided(more int64) []int64 {
	counts := make([]int64, 60)
	counts[0], counts[3], counts[59] = 5, 2, 5+more
	return counts
}

func ask(t *testing.T, m Mechanism, counts []int64) func(*noise.Reader) int {
	return func(random *noise.Reader) int {
		d := drawing{Mechanism: m, counts: slices.Clone(counts), random: random, found: make([]int, len(m.nums))}
		if err := d.draw(0, len(counts)-1, 0, len(m.nums), part{0, m.den}); err != nil {
			t.Fatal(err)
		}
		return code(d.found)
	}
}

// neighbours returns the pair of small tables with the largest loss at an answer of at least two percent.
func neighbours(t *testing.T, m Mechanism) (one, other []int64) {
	worst := 0.0
	tables(m.cells, 4, func(counts []int64) {
		a := chances(t, m, counts)
		for j := range counts {
			more := slices.Clone(counts)
			more[j]++
			for code, p := range chances(t, m, more) {
				if loss := math.Abs(math.Log(p / a[code])); max(p, a[code]) > .02 && loss > worst {
					worst, one, other = loss, slices.Clone(counts), more
				}
			}
		}
	})
	return one, other
}

func TestAuditsOfQuantiles(t *testing.T) {
	for _, cost := range []privacy.Cost{epsilon(2_000_000), rho(500_000_000_000)} { // the exponential mechanism's ε is 2
		median := made(t, 60, shares(t, 1, 2), addOne, cost)
		three := coarse(made(t, 3, shares(t, 1, 4, 1, 2, 3, 4), addOne, cost))
		one, other := neighbours(t, three)
		for name, c := range map[string]struct {
			m          Mechanism
			one, other []int64
		}{"median": {median, lopsided(0), lopsided(1)}, "three": {three, one, other}} {
			paid := c.m.epsilon()
			bound := choices(t, stattest.Length(40_000, 1_000_000), ask(t, c.m, c.one), ask(t, c.m, c.other))
			t.Logf("%s, %v: epsilon at least %.3f of %v", name, c.m.rule, bound, paid)
			if bound > paid || bound < .3*paid {
				t.Errorf("%s, %v: epsilon at least %.3f, paid %v (below 0.3 of it the audit is blind)", name, c.m.rule, bound, paid)
			}
		}
	}
}

// TestAuditsCatchFaults: a spread too small by 1.3, and two levels of which one is paid.
func TestAuditsCatchFaults(t *testing.T) {
	m := made(t, 60, shares(t, 1, 2), addOne, rho(500_000_000_000))
	m.strength = m.strength * 13 / 10
	if bound := choices(t, stattest.Length(120_000, 1_000_000), ask(t, m, lopsided(0)), ask(t, m, lopsided(1))); bound <= 2 {
		t.Errorf("a spread too small by 1.3 passed: %.3f of 2", bound)
	}
	m = coarse(made(t, 5, shares(t, 1, 4, 1, 2, 3, 4), addOne, rho(62_500_000_000))) // two levels of ε ½ each
	m.strength *= 2
	one, other := neighbours(t, m)
	if bound := choices(t, stattest.Length(150_000, 1_000_000), ask(t, m, one), ask(t, m, other)); bound <= 1 {
		t.Errorf("a level that is not paid passed: %.3f of 1", bound)
	}
}
