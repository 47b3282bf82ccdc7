package planner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// The set-ups of published systems that re-use answers, asked through the planner: what a budget buys. No peer's code
// runs; what it would spend is computed from its own rules, or quoted. `make bench-answers` prints the tables of
// docs/benchmarks.md; without DPPROXY_BENCH a short version runs.

// answersBench tells how many questions of a workload are asked.
func answersBench(t *testing.T, whole, short int) int {
	t.Helper()
	if os.Getenv("DPPROXY_BENCH") != "" {
		return whole
	}
	return short
}

// attribute is a column of a set-up: its values are v0, v1, …, or, where ordered, numbers from least on.
type attribute struct {
	name    string
	size    int
	ordered bool
	least   int
}

// setUp is a table with some attributes and a budget that does not end.
func setUp(t *testing.T, attributes []attribute, accountant string) reuse.Context {
	t.Helper()
	var columns strings.Builder
	for _, a := range attributes {
		domain := fmt.Sprintf("{min: %d, max: %d, step: 1}", a.least, a.least+a.size-1)
		kind := "integer"
		if !a.ordered {
			values := make([]string, a.size)
			for i := range values {
				values[i] = fmt.Sprintf("v%d", i)
			}
			kind, domain = "text", "{values: ["+strings.Join(values, ", ")+"]}"
		}
		fmt.Fprintf(&columns, "          - {name: %s, type: %s, domain: %s, nulls: exclude, outside: exclude}\n", a.name, kind, domain)
	}
	text := `version: 1
server: {listen: 127.0.0.1:6432}
backend: {url: "duckdb:", files: {rows: rows.csv}}
ledger: {url: sqlite:test.ledger}
users:
  - {name: alice, password: "SCRAM-SHA-256$4096:8EWKhj2ogpvGvd7KaI/qCQ==$bAANfPPZ9drMzPBuhqgN3dO4gvAJCK6kkd6rmt3mG9A=:4q8DTu8uRc3WMOS/Xkv6HPcWmrMsDUzCViSBvTWG1eg="}
datasets:
  - id: bench
    unit: {name: person, key: rows.id}
    accountant: ` + accountant + `
    cap: {epsilon: 100000, delta: 1e-5}
    budgets: {"*": {epsilon: 100000, delta: 1e-5}}
    defaults: {epsilon: 100, max_epsilon: 100}
    buying: {after: 1}
    tables:
      - name: rows
        source: main.rows
        max_rows_per_unit: 1
        columns:
` + columns.String()
	p, err := policy.Parse([]byte(text), "bench.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return testContext(t, p)
}

// asked is one question of a workload, and the error that it may have.
type asked struct {
	sql string
	off int64 // at the workload's confidence
}

// spend asks the workload through the planner until the budget holds no more, and tells what was spent and how many
// questions were answered, with the number of releases bought.
func spend(t *testing.T, c reuse.Context, workload []asked, budget privacy.Cost) (spent privacy.Cost, answered, bought int) {
	t.Helper()
	parsed := map[string]parse.Statement{}
	for _, q := range workload {
		s, known := parsed[q.sql]
		if !known {
			list, refusal := parse.Parse(q.sql)
			if refusal != nil {
				t.Fatal(refusal)
			}
			s, parsed[q.sql] = list[0], list[0]
		}
		c.Settings.MaxError = float64(q.off)
		if c.Settings.Epsilon = privacy.MicroEpsilon(budget.Epsilon.Micro() - spent.Epsilon.Micro()); c.Settings.Epsilon.Micro() == 0 {
			break
		}
		p, refusal := Build(s, nil, c)
		if refusal != nil && refusal.ID == "error-too-dear" {
			continue
		}
		if refusal != nil {
			t.Fatalf("%s at ±%d: %v", q.sql, q.off, refusal)
		}
		if next := spent.Plus(p.Cost); next.Fits(budget) {
			spent = next
			c.Holdings.(*shelf).buy(p)
			answered++
			for _, m := range p.Measures {
				if !m.Held {
					bought++
				}
			}
		}
	}
	return spent, answered, bought
}

// leastFor is the least cost at which a sum of so many cells of a histogram is off by at most that much.
func leastFor(t *testing.T, c reuse.Context, cells int, off int64) privacy.Cost {
	t.Helper()
	cost, ok := (&choose.Weigher{Context: c}).Least(func(cost privacy.Cost) bool {
		spec, err := mechanisms.Plain(1, cells, c.Dataset.Tables[0].Contribution(), cost)
		return err == nil && spec.Error([]mechanisms.Span{{From: 0, To: cells}}, c.Settings.Confidence).HalfWidth <= off
	})
	if !ok {
		t.Fatal("no cost is enough")
	}
	return cost
}

// zipf draws places of a list so long by a power law with that exponent.
func zipf(n int, k float64, random *rand.Rand) func() int {
	sums, total := make([]float64, n), 0.
	for i := range sums {
		total += math.Pow(float64(i+1), -k)
		sums[i] = total
	}
	return func() int {
		at, _ := slices.BinarySearch(sums, random.Float64()*total)
		return min(at, n-1)
	}
}

// covid are the 34,425 counting queries over positive, gender, age and ethnicity: every product of non-empty subsets of
// their values.
func covid() (attributes []attribute, pool []string) {
	attributes = []attribute{{name: "positive", size: 2}, {name: "gender", size: 2}, {name: "age", size: 4}, {name: "ethnicity", size: 8}}
	pool = []string{"SELECT count(*) FROM rows WHERE true"}
	for _, a := range attributes {
		var longer []string
		for _, q := range pool {
			for set := 1; set < 1<<a.size; set++ {
				var values []string
				for v := range a.size {
					if set>>v&1 == 1 {
						values = append(values, fmt.Sprintf("'v%d'", v))
					}
				}
				longer = append(longer, q+" AND "+a.name+" IN ("+strings.Join(values, ", ")+")")
			}
		}
		pool = longer
	}
	return attributes, pool
}

// citibike are the counts behind the charts of four public stories on the rides of New York: the cells of marginals
// over eight attributes.
func citibike() (attributes []attribute, pool []string) {
	attributes = []attribute{{name: "weekday", size: 7}, {name: "hour", size: 6}, {name: "duration", size: 6}, {name: "origin", size: 10},
		{name: "target", size: 10}, {name: "kind", size: 2}, {name: "gender", size: 3}, {name: "age", size: 4}}
	for _, marginal := range []string{"gender", "kind", "kind gender", "", "age", "origin", "target", "hour", "origin target", "gender age", "duration",
		"duration age", "duration gender", "duration gender age", "duration kind", "origin age", "target age",
		"kind age", "weekday",
		"weekday duration", "hour duration", "weekday hour", "kind gender age", "hour origin", "hour target",
		"weekday origin",
		"weekday target", "weekday origin target", "hour origin target"} {
		cells := []string{"SELECT count(*) FROM rows WHERE true"}
		for _, name := range strings.Fields(marginal) {
			a := attributes[slices.IndexFunc(attributes, func(a attribute) bool { return a.name == name })]
			var longer []string
			for _, q := range cells {
				for v := range a.size {
					longer = append(longer, fmt.Sprintf("%s AND %s = 'v%d'", q, a.name, v))
				}
			}
			cells = longer
		}
		pool = append(pool, cells...)
	}
	return attributes, pool
}

// TestBenchTurbo asks the two workloads of Turbo (SOSP 2023): every answer within α of the rows with probability 1 − β.
func TestBenchTurbo(t *testing.T) {
	const alpha, beta = .05, .001
	for _, w := range []struct {
		name  string
		make  func() ([]attribute, []string)
		rows  int64
		asked int
		k     float64
		paper string
	}{
		{"Covid, Zipf 0", covid, 600_000, answersBench(t, 70_000, 300), 0, ""},
		{"Covid, Zipf 1", covid, 600_000, answersBench(t, 70_000, 300), 1, "2452 L: 77 restarts of 12 L and 1528 answers of L"},
		{"Citibike, Zipf 0", citibike, 300_000, answersBench(t, 70_000, 300), 0, ""},
	} {
		attributes, pool := w.make()
		c := setUp(t, attributes, "pure")
		c.Settings.Confidence, _ = mechanisms.NewConfidence(1 - beta)
		random := rand.New(rand.NewPCG(64, 1))
		order, draw := random.Perm(len(pool)), zipf(len(pool), w.k, random)
		off, cells, distinct := int64(alpha*float64(w.rows)), 1, map[string]bool{}
		for _, a := range attributes {
			cells *= a.size
		}
		var workload []asked
		for range w.asked {
			q := pool[order[draw()]]
			distinct[q] = true
			workload = append(workload, asked{q, off})
		}
		spent, answered, bought := spend(t, c, workload, privacy.Cost{Epsilon: privacy.MicroEpsilon(1e11)})
		one, whole := leastFor(t, c, 1, off), privacy.Cost{}
		if cells <= mechanisms.MaxCells {
			whole = leastFor(t, c, cells, off)
		}
		cached := one.Epsilon.Micro() * int64(len(distinct))
		t.Logf("%s: %d queries of a pool of %d over %d cells, %d rows, within %g with probability %g: one count costs L = ε %s", w.name, w.asked, len(pool), cells, w.rows, alpha, 1-beta, one.Epsilon)
		published := ""
		if w.paper != "" {
			published = fmt.Sprintf("ε %s (%s)", privacy.MicroEpsilon(2452*one.Epsilon.Micro()), w.paper)
		}
		figures.Row("Turbo (SOSP 2023)", w.name, "asked", fmt.Sprintf("%d queries of %d over %d cells, %d rows", w.asked, len(pool), cells, w.rows), "Laplace, each different query once", "ε "+privacy.MicroEpsilon(cached).String(),
			"histogram of all cells", "ε "+whole.Epsilon.String(), "published", published, "dpproxy", fmt.Sprintf("ε %s, %d releases", spent.Epsilon, bought))
		if answered != w.asked {
			t.Errorf("%s: %d of %d answered", w.name, answered, w.asked)
		}
		if limit := 2*min(cached, whole.Epsilon.Micro()) + one.Epsilon.Micro(); spent.Epsilon.Micro() > limit {
			t.Errorf("%s: ε %s spent, more than twice the better of both, ε %s", w.name, spent.Epsilon, privacy.MicroEpsilon(limit))
		}
	}
}

// TestBenchRanges asks DProvDB's workload of range counts (SIGMOD 2024): two analysts, one of whom may spend nine times
// what the other may, ask for less and less variance until the budgets are spent.
func TestBenchRanges(t *testing.T) {
	attributes := []attribute{{name: "age", size: 74, ordered: true, least: 17}, {name: "education", size: 16, ordered: true, least: 1}, {name: "hours", size: 99, ordered: true, least: 1}}
	random := rand.New(rand.NewPCG(42, 1))
	n := answersBench(t, 4000, 200)
	workloads := make([][]asked, 2)
	for who := range workloads {
		for i := range n {
			a := attributes[random.IntN(len(attributes))]
			size := float64(a.size)
			low := int(size/3 + random.NormFloat64()*size/15)
			high := low + int(max(0, size/8+random.NormFloat64()*size/40))
			variance := max(1, 3000-float64(i)*4000/float64(n))
			q := fmt.Sprintf("SELECT count(*) FROM rows WHERE %s BETWEEN %d AND %d", a.name, a.least+low, a.least+high)
			workloads[who] = append(workloads[who], asked{q, laplaceWidth(variance)})
		}
	}
	for _, budget := range []float64{.4, .8, 1.6, 3.2, 6.4} {
		ours, cached := 0, 0
		for who, share := range []float64{.1, .9} {
			own := budget * share
			c := setUp(t, attributes, "pure")
			_, answered, _ := spend(t, c, workloads[who], privacy.Cost{Epsilon: privacy.MicroEpsilon(int64(own * 1e6))})
			ours += answered
			cached += answeredAlone(t, c, workloads[who], own)
		}
		figures.Row("DProvDB (SIGMOD 2024)", fmt.Sprintf("ε %.1f", budget), fmt.Sprintf("Laplace, exact cache: answered of %d", 2*n), fmt.Sprint(cached), "dpproxy", fmt.Sprint(ours), "ratio", fmt.Sprintf("%.1f", float64(ours)/float64(cached)))
		if ours < cached {
			t.Errorf("ε %.1f: %d answered, fewer than %d", budget, ours, cached)
		}
	}
}

// laplaceWidth is the half-width at 95 % of Laplace noise of a variance.
func laplaceWidth(variance float64) int64 {
	return int64(math.Sqrt(variance/2) * math.Log(20))
}

// answeredAlone counts the questions that a budget answers one by one, each asked once more for nothing where it was
// asked at least as exactly.
func answeredAlone(t *testing.T, c reuse.Context, workload []asked, budget float64) (answered int) {
	t.Helper()
	had, costs := map[string]int64{}, map[int64]float64{}
	for _, q := range workload {
		if off, again := had[q.sql]; again && off <= q.off {
			answered++
			continue
		}
		if _, known := costs[q.off]; !known {
			costs[q.off] = float64(leastFor(t, c, 1, q.off).Epsilon.Micro()) / 1e6
		}
		if budget >= costs[q.off] {
			budget -= costs[q.off]
			had[q.sql] = q.off
			answered++
		}
	}
	return answered
}
