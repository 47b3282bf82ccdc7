package paths

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/material"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m, nil)) }

var (
	questions = flag.Int("paths-questions", 10, "of each published workload; make paths asks 2,000")
	whole     = flag.Bool("paths-whole", false, "plan batches too, whose strategies are optimised, and ask over tables that never change")
)

const plannerData = "../../planner/testdata/"

// corpus is statements of one policy, and how they are asked.
type corpus struct {
	name   string
	policy *policy.Policy
	now    time.Time
	schema string
	params []policy.Value
	texts  func(t *testing.T) []string // skips where it lies beside the repository, and does not
	again  []time.Duration             // asked again after these
	script bool                        // it has its own settings and is asked once
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func policyOf(t *testing.T, path string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(read(t, path)), path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// blocks are the parts of a text between separators, without the names in their first lines.
func blocks(text, separator string) (list []string) {
	for _, b := range strings.Split(text, separator) {
		var lines []string
		for _, line := range strings.Split(b, "\n") {
			if !strings.HasPrefix(strings.TrimSpace(line), "--") {
				lines = append(lines, line)
			}
		}
		if sql := strings.TrimSpace(strings.Join(lines, "\n")); sql != "" {
			list = append(list, sql)
		}
	}
	return list
}

// prompts are the statements that a document shows behind its prompts.
func prompts(text string) (list []string) {
	for _, line := range strings.Split(text, "\n") {
		if sql, ok := strings.CutPrefix(line, "demo=> "); ok {
			list = append(list, sql)
		}
	}
	return list
}

// demo is the policy that `dpproxy demo` writes for a million people.
func demo(t *testing.T) *policy.Policy {
	t.Helper()
	dir := t.TempDir()
	kit.Demo(t, dir, "2000").Stop(syscall.SIGTERM)
	text := strings.NewReplacer("expected_rows: 2000\n", "expected_rows: 1000000\n", "expected_rows: 4000\n", "expected_rows: 2000000\n").Replace(read(t, filepath.Join(dir, "policy.yaml")))
	p, err := policy.Parse([]byte(text), filepath.Join(dir, "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func corpora(t *testing.T) (list []corpus) {
	moment := time.Date(2026, 6, 15, 10, 30, 0, 0, time.UTC)
	refreshes := []time.Duration{0, time.Hour, 31 * 24 * time.Hour}
	list = append(list,
		corpus{name: "dashboard of 30 charts", policy: policyOf(t, plannerData+"dashboard.yaml"), texts: func(t *testing.T) []string { return blocks(read(t, plannerData+"dashboard.sql"), "\n;;")[1:] }, again: refreshes},
		corpus{name: "shapes of BI tools", policy: policyOf(t, plannerData+"shop.yaml"), texts: func(t *testing.T) []string {
			return blocks(read(t, material.Path(t, "clients", "bi-shapes.sql")), "\n;;\n")
		}, params: []policy.Value{"paid"}, again: refreshes[:1]},
		corpus{name: "recorded clients", policy: policyOf(t, plannerData+"policy.yaml"), texts: func(t *testing.T) []string { return material.Statements(t) }, script: true},
		corpus{name: "PUMS", policy: policyOf(t, plannerData+"pums.yaml"), schema: "pums", texts: func(t *testing.T) []string {
			return strings.Split(read(t, material.Path(t, "data", "smartnoise_pums_statements.sql")), "\n")
		}, again: refreshes[:1]},
		corpus{name: "TPC-H", policy: policyOf(t, "../../examples/tpch/policy.yaml"), texts: func(t *testing.T) []string {
			list := strings.Split(read(t, "../../examples/tpch/queries.sql"), "\n-- Q")[1:]
			for i, text := range list {
				_, list[i], _ = strings.Cut(text, "\n")
			}
			return list
		}})
	d := demo(t)
	list = append(list,
		corpus{name: "tour", policy: d, texts: func(t *testing.T) []string {
			return append(prompts(read(t, "../../README.md")), prompts(read(t, "../../docs/tour.md"))...)
		}, script: true},
		corpus{name: "mechanisms of the lecture notes", policy: d, texts: func(t *testing.T) []string { return prompts(read(t, "../../docs/mechanisms.md")) }, script: true},
		corpus{name: "the demo's report", policy: d, texts: func(t *testing.T) []string { return blocks(read(t, "../../examples/demo/report.sql"), ";") }, again: refreshes})
	for i := range list {
		list[i].now = moment
	}
	return list
}

// asked asks a corpus as its analyst: at its own settings, or once for each accountant by ε given and by error given.
func (c corpus) asked(tally *Tally, texts []string) {
	if c.script {
		c.once(tally, texts, func(*Analyst) {})
		return
	}
	accountants := []privacy.Accountant{privacy.Pure, privacy.ZCDP}
	if !*whole {
		accountants, c.again = accountants[:1], c.again[:min(1, len(c.again))]
	}
	for _, accountant := range accountants {
		for _, set := range []func(*Analyst){
			func(*Analyst) {},
			func(a *Analyst) {
				a.Context.Settings.MaxError, a.Context.Settings.Epsilon = 200, a.Context.Dataset.Defaults.MaxEpsilon
			},
		} {
			if *whole { // a report that is released ahead, and then asked
				c.once(tally, texts, func(a *Analyst) {
					a.Context.Dataset.Accountant = accountant
					set(a)
					if a.Context.Settings.MaxError == 0 {
						a.Batch(texts)
					}
				})
			}
			for _, static := range []bool{false, true} {
				if static && !*whole {
					continue
				}
				c.once(tally, texts, func(a *Analyst) {
					a.Context.Dataset.Accountant = accountant
					for _, t := range a.Context.Dataset.Tables {
						t.Static = static
					}
					set(a)
				})
			}
		}
	}
}

func (c corpus) once(tally *Tally, texts []string, set func(*Analyst)) {
	a := NewAnalyst(c.policy, c.now, tally)
	if c.schema != "" {
		a.Context.Settings.SearchPath = []string{c.schema}
	}
	set(a)
	for _, later := range append([]time.Duration{0}, c.again...) {
		a.Context.Now = c.now.Add(later)
		for _, text := range texts {
			a.Ask(text, c.params, true)
		}
	}
}

// golden asks a script of the planner's golden plans, with the settings of its directives.
func golden(t *testing.T, tally *Tally, path string) {
	p := policyOf(t, plannerData+"policy.yaml")
	now := time.Date(2024, 3, 15, 10, 30, 0, 0, time.UTC)
	a := NewAnalyst(p, now, tally)
	a.Context.Settings.Epsilon = epsilon(t, "0.1")
	for _, block := range strings.Split(strings.TrimSpace(read(t, path)), "\n\n\n") {
		head, _, _ := strings.Cut(block, "\n----")
		lines := strings.Split(head, "\n")
		for len(lines) > 0 && strings.HasPrefix(lines[0], "#") {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			continue
		}
		words, set := strings.Fields(lines[0]), &a.Context.Settings
		var params []policy.Value
		for _, w := range words[1:] {
			switch name, value, _ := strings.Cut(w, "="); name {
			case "epsilon":
				set.Epsilon = epsilon(t, value)
			case "max_error":
				_, _ = fmt.Sscan(value, &set.MaxError)
			case "alarms":
				_, _ = fmt.Sscan(value, &set.Alarms)
			case "after":
				_, _ = fmt.Sscan(value, &a.Context.Dataset.Buying.After)
			case "release":
				set.Release = value == "on"
			case "offgrid":
				set.OffGrid = map[string]plans.OffGrid{"snap": plans.OffGridSnap, "exact": plans.OffGridExact}[value]
			case "days":
				var n int
				_, _ = fmt.Sscan(value, &n)
				a.Context.Now = now.AddDate(0, 0, n)
			case "zcdp":
				a.Context.Dataset.Accountant = privacy.ZCDP
			case "replace-one":
				a.Context.Dataset.Neighbors = privacy.ReplaceOne
			case "int":
				var n int64
				_, _ = fmt.Sscan(value, &n)
				params = append(params, n)
			case "text":
				params = append(params, value)
			case "null":
				params = append(params, nil)
			}
		}
		if words[0] == "plan" || words[0] == "buy" {
			a.Ask(strings.Join(lines[1:], "\n"), params, words[0] == "buy")
		}
	}
}

func epsilon(t *testing.T, s string) privacy.Epsilon {
	t.Helper()
	e, err := privacy.ParseEpsilon(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// published are the workloads of published systems, with the cells and the errors of their set-ups: what they ask is
// drawn.
func published(t *testing.T, tally *Tally) {
	for _, of := range []struct {
		columns  []string // text of so many values, or, beginning with a plus, whole numbers
		ask      func(r *rand.Rand) string
		maxError float64
	}{
		// Counting queries of a hypercube, for multiplicative weights: any product of subsets.
		{[]string{"2", "2", "4", "8"}, func(r *rand.Rand) string {
			sql := "SELECT count(*) FROM rows WHERE true"
			for i, n := range []int{2, 2, 4, 8} {
				var values []string
				for v, set := 0, 1+r.IntN(1<<n-1); v < n; v++ {
					if set>>v&1 == 1 {
						values = append(values, fmt.Sprintf("'v%d'", v))
					}
				}
				sql += fmt.Sprintf(" AND c%d IN (%s)", i, strings.Join(values, ", "))
			}
			return sql
		}, 30000},
		// Ranges over one of three columns, for trees and matrix mechanisms.
		{[]string{"+74", "+16", "+99"}, func(r *rand.Rand) string {
			c := r.IntN(3)
			n := []int{74, 16, 99}[c]
			a, b := r.IntN(n), r.IntN(n)
			return fmt.Sprintf("SELECT count(*) FROM rows WHERE c%d BETWEEN %d AND %d", c, min(a, b), max(a, b))
		}, 150},
		// The charts of a story: cells of marginals over eight columns.
		{[]string{"7", "6", "6", "10", "10", "2", "3", "4"}, func(r *rand.Rand) string {
			sizes, sql := []int{7, 6, 6, 10, 10, 2, 3, 4}, "SELECT count(*) FROM rows WHERE true"
			for _, c := range r.Perm(8)[:r.IntN(4)] {
				sql += fmt.Sprintf(" AND c%d = 'v%d'", c, r.IntN(sizes[c]))
			}
			return sql
		}, 15000},
	} {
		for _, accountant := range []string{"pure", "zcdp"} {
			for _, byError := range []bool{false, true} {
				a := NewAnalyst(setUp(t, of.columns, accountant), time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC), tally)
				if byError {
					a.Context.Settings.MaxError = of.maxError
				} else {
					a.Context.Settings.Epsilon = epsilon(t, "0.1")
				}
				r := rand.New(rand.NewPCG(1, 2))
				var texts []string
				for range *questions {
					texts = append(texts, of.ask(r))
				}
				if *whole && !byError {
					a.Batch(texts[:min(len(texts), 60)])
				}
				for _, sql := range texts {
					a.Ask(sql, nil, true)
				}
			}
		}
	}
}

// reports are planned as batches: what the lecture notes ask of ordered columns.
func reports(t *testing.T, tally *Tally) {
	cdf, ranges, byGroup, decades := []string{}, []string{}, []string{}, []string{}
	for i := range 64 {
		cdf = append(cdf, fmt.Sprintf("SELECT count(*) FROM rows WHERE c0 <= %d", 4*i))
		ranges = append(ranges, fmt.Sprintf("SELECT count(*) FROM rows WHERE c0 BETWEEN %d AND %d", 2*i, 255-i))
		byGroup = append(byGroup, fmt.Sprintf("SELECT c1, count(*) FROM rows WHERE c0 BETWEEN %d AND %d GROUP BY c1", 3*i, 3*i+60))
		decades = append(decades, fmt.Sprintf("SELECT c0 / %d, count(*) FROM rows GROUP BY 1", 1+i))
	}
	for _, accountant := range []string{"pure", "zcdp"} {
		for _, list := range [][]string{cdf, ranges, byGroup, decades, append(slices.Clone(cdf[:20]), byGroup[:20]...)} {
			NewAnalyst(setUp(t, []string{"+256", "4"}, accountant), time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC), tally).Batch(list)
		}
	}
}

// setUp is a policy over one table of such columns, whose budget does not end.
func setUp(t *testing.T, columns []string, accountant string) *policy.Policy {
	t.Helper()
	var b strings.Builder
	for i, size := range columns {
		var n int
		_, _ = fmt.Sscan(strings.TrimPrefix(size, "+"), &n)
		if strings.HasPrefix(size, "+") {
			fmt.Fprintf(&b, "          - {name: c%d, type: integer, domain: {min: 0, max: %d}, nulls: exclude, outside: exclude}\n", i, n-1)
			continue
		}
		var values []string
		for v := range n {
			values = append(values, fmt.Sprintf("v%d", v))
		}
		fmt.Fprintf(&b, "          - {name: c%d, type: text, domain: {values: [%s]}, nulls: exclude, outside: exclude}\n", i, strings.Join(values, ", "))
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
    tables:
      - name: rows
        source: main.rows
        max_rows_per_unit: 1
        columns:
` + b.String()
	p, err := policy.Parse([]byte(text), "bench.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPaths prints how often each access path is possible and taken (docs/paths.md). Of all corpora together the paths
// that the planner prefers must be taken somewhere: one that never is, is code that nobody uses.
func TestPaths(t *testing.T) {
	kit.Beside(t)
	all := map[string]int{}
	report := func(name string, tally *Tally) {
		t.Logf("\n%s: %s", name, tally.Table())
		for path, c := range tally.counts {
			all[path] += c.Taken
		}
	}
	for _, c := range corpora(t) {
		t.Run(c.name, func(t *testing.T) {
			tally := new(Tally)
			c.asked(tally, c.texts(t))
			report(c.name, tally)
		})
	}
	files, _ := filepath.Glob(plannerData + "*.txt")
	tally := new(Tally)
	for _, file := range files {
		golden(t, tally, file)
	}
	report("golden plans", tally)
	tally = new(Tally)
	published(t, tally)
	report("published workloads", tally)
	if *whole {
		tally = new(Tally)
		reports(t, tally)
		report("reports of ranges", tally)
	}
	for _, path := range []string{"asked before", "containment", "widening", "refining", "own range release", "declared release: range"} {
		if all[path] == 0 {
			t.Errorf("%s is never taken", path)
		}
	}
	names := make([]string, 0, len(all))
	for path := range all {
		if all[path] == 0 {
			names = append(names, path)
		}
	}
	slices.Sort(names)
	t.Logf("never taken: %s", strings.Join(names, "; "))
}
