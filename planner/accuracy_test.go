package planner

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// accuracyQuestions are over tables and columns without a declared release that is cheap enough.
var accuracyQuestions = []string{
	`SELECT count(*) FROM people`,
	`SELECT kids, count(*) FROM people GROUP BY kids`,
	`SELECT count(*) FROM people WHERE income < 50000`,
	`SELECT kids, count(*) FROM people GROUP BY ROLLUP (kids)`,
	`SELECT kids, count(*) FILTER (WHERE active) FROM people GROUP BY kids`,
	`SELECT (SELECT count(*) FROM people WHERE active) + (SELECT count(*) FROM people WHERE kids > 2)`,
	`SELECT count(*), count(DISTINCT kids) FROM people`,
	`SELECT sum(kids), count(*) FROM people`,
	`SELECT count(*) FROM visits WHERE day < '2025-03-01'`,
	`SELECT kids FROM people GROUP BY kids HAVING count(*) > 100`,
}

// accuracyContext is a context in which anything may be asked at an error.
func accuracyContext(t *testing.T, a privacy.Accountant, most float64) reuse.Context {
	p := testPolicy(t)
	c := testContext(t, p)
	c.Dataset.Accountant = a
	for _, table := range c.Dataset.Tables {
		table.Releases = nil
	}
	c.Settings.Epsilon, c.Settings.MaxError = epsilon(t, "1000"), most
	return c
}

// widestOf is the largest half-width of a plan, and whether each shown value is within most.
func widestOf(p *plans.Plan, spec func(m *plans.Measure) mechanisms.Spec) (width int64) {
	for _, l := range p.Leaves {
		for _, c := range l.Counts {
			for _, run := range c.Runs {
				if run.Measure < 0 { // known: a threshold
					continue
				}
				m := p.Measures[run.Measure]
				for _, spans := range run.Spans {
					width = max(width, spec(m).Only(run.Counter).Error(spans, p.Confidence).HalfWidth)
				}
			}
		}
	}
	return width
}

// TestLeastCost: every value is as exact as asked, and with one micro-ε or pico-ρ less for any measure one is not.
func TestLeastCost(t *testing.T) {
	const seed = 23
	random := rand.New(rand.NewPCG(seed, 0))
	for _, a := range []privacy.Accountant{privacy.Pure, privacy.ZCDP} {
		for _, sql := range accuracyQuestions {
			most := float64(2 + random.IntN(200))
			c := accuracyContext(t, a, most)
			statements, refusal := parse.Parse(sql)
			if refusal != nil {
				t.Fatal(refusal)
			}
			p, refusal := Build(statements[0], nil, c)
			if refusal != nil {
				t.Errorf("seed %d, %s, %s at ±%g: %s", seed, sql, a, most, refusal.Message)
				continue
			}
			if got := widestOf(p, func(m *plans.Measure) mechanisms.Spec { return m.Spec }); float64(got) > most {
				t.Errorf("seed %d, %s, %s: ±%d, asked for ±%g", seed, sql, a, got, most)
			}
			sum := privacy.Cost{}
			for _, m := range p.Measures {
				sum = sum.Plus(m.Cost)
				if m.Spec.Counts().Sums != nil { // each counter has a cost of its own: TestLeastCostOfSums
					continue
				}
				less := m.Cost
				if less.Rho = privacy.PicoRho(max(less.Rho.Pico()-1, 0)); a == privacy.Pure {
					less.Epsilon = privacy.MicroEpsilon(less.Epsilon.Micro() - 1)
				}
				if less.IsZero() {
					continue
				}
				cheaper, err := mechanisms.Plain(m.Spec.Counters, m.Spec.Cells, m.Contribution(), less)
				if err != nil {
					continue
				}
				if got := widestOf(p, func(other *plans.Measure) mechanisms.Spec {
					if other == m {
						return cheaper
					}
					return other.Spec
				}); float64(got) <= most {
					t.Errorf("seed %d, %s, %s at ±%g: %s would do for %q, it costs %s", seed, sql, a, most, less, m.Name, m.Cost)
				}
			}
			if sum != p.Cost {
				t.Errorf("%s: costs %s, its measures %s", sql, p.Cost, sum)
			}
		}
	}
}

// TestLeastCostOfSums: two counters with bounds of their own; one unit less of either share is not enough.
func TestLeastCostOfSums(t *testing.T) {
	c := accuracyContext(t, privacy.Pure, 30)
	statements, _ := parse.Parse(`SELECT sum(kids), count(*) FROM people`)
	p, refusal := Build(statements[0], nil, c)
	if refusal != nil {
		t.Fatal(refusal)
	}
	m := p.Measures[0]
	alone := make([]privacy.Cost, 2)
	for i, sum := range m.Spec.Counts().Sums {
		// A counter's noise has scale L1/ε, and L1 is what one row adds at most.
		alone[i] = privacy.Cost{Epsilon: privacy.MicroEpsilon(max(-sum.Low, sum.High) * 1_000_000 * sum.Noise.Den / sum.Noise.Num)}
		less := alone[i]
		less.Epsilon = privacy.MicroEpsilon(less.Epsilon.Micro() - 1)
		for _, at := range []struct {
			cost privacy.Cost
			want bool
		}{{alone[i], true}, {less, false}} {
			spec, err := mechanisms.SumsEach([]mechanisms.Counter{{Bound: sum.Bound}}, 1, m.Contribution(), []privacy.Cost{at.cost})
			if err != nil {
				t.Fatal(err)
			}
			if got := spec.Error([]mechanisms.Span{{From: 0, To: 1}}, p.Confidence).HalfWidth; got <= 30 != at.want {
				t.Errorf("counter %d at %s: ±%d", i, at.cost, got)
			}
		}
	}
	if want := alone[0].Plus(alone[1]); m.Cost != want {
		t.Errorf("costs %s, its counters %s", m.Cost, want)
	}
}

// TestAccuracyBuysTheCheapest: many questions that a declared release answers cost what it costs, few cost less by
// themselves, and what is left over is counted afresh: checked against all paths to choose.
func TestAccuracyBuysTheCheapest(t *testing.T) {
	p := testPolicy(t)
	for n := 1; n <= 12; n++ {
		c := testContext(t, p)
		c.Settings.Epsilon, c.Settings.MaxError = epsilon(t, "1"), 40
		sql := "SELECT (SELECT count(*) FROM people WHERE kids > 2)"
		for i := range n {
			sql += fmt.Sprintf(", (SELECT count(*) FROM people WHERE age < %d)", 10+i)
		}
		statements, _ := parse.Parse(sql)
		plan, refusal := Build(statements[0], nil, c)
		if refusal != nil {
			t.Fatal(n, refusal.Message)
		}
		const one = 73952 // ±40 at 95 %
		if want := int64(one + min(n*one, 500_000)); plan.Cost.Epsilon.Micro() != want {
			t.Errorf("%d ranges: %s, want %d micro", n, plan.Cost, want)
		}
	}
}

// BenchmarkAccuracy is the planning of a count at an error.
func BenchmarkAccuracy(b *testing.B) {
	p := testPolicy(b)
	c := testContext(b, p)
	c.Settings.MaxError = 50
	statements, _ := parse.Parse(`SELECT kids, count(*) FROM people GROUP BY kids`)
	for b.Loop() {
		if _, refusal := Build(statements[0], nil, c); refusal != nil {
			b.Fatal(refusal)
		}
	}
}
