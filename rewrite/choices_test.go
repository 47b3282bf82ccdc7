package rewrite_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// choiceStatements are compared with what the same SQL says on the database itself: one choice each, after its keys.
var choiceStatements = []string{
	`SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age) FROM people`,
	`SELECT sex, percentile_disc(0.3) WITHIN GROUP (ORDER BY age) FROM people WHERE age > 2 GROUP BY 1`,
	`SELECT ward, percentile_disc(0.71) WITHIN GROUP (ORDER BY minutes) FROM visits GROUP BY 1`,
	`SELECT ward, percentile_disc(0.4) WITHIN GROUP (ORDER BY minutes) FILTER (WHERE cost > 2) FROM visits GROUP BY 1`,
	`SELECT extract(month FROM day)::int AS m, percentile_disc(0.9) WITHIN GROUP (ORDER BY day) FROM visits GROUP BY 1`,
	`SELECT minutes > 3 AS late, percentile_disc(0.5) WITHIN GROUP (ORDER BY minutes * 2) FROM visits GROUP BY 1`,
	`SELECT p.sex, percentile_disc(0.45) WITHIN GROUP (ORDER BY v.minutes) FROM people p JOIN visits v ON p.person_id = v.who GROUP BY 1`,
	`SELECT percentile_disc(0.6) WITHIN GROUP (ORDER BY n) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) t`,
	`SELECT min(minutes) FROM visits`,
	`SELECT ward, max(minutes) FROM visits GROUP BY 1`,
	`SELECT max(n) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) t`,
	`SELECT min(n) FROM (SELECT who, sum(minutes) AS n FROM visits GROUP BY who) t`,
	`SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY who ORDER BY day) AS n FROM visits) t`,
	`SELECT max(day - DATE '2020-01-01' - minutes) FROM visits`,
	`SELECT ward, max(day) FROM visits WHERE minutes < 4 GROUP BY 1`,
	`SELECT sex, mode() WITHIN GROUP (ORDER BY age) FROM people GROUP BY 1`,
	`SELECT mode() WITHIN GROUP (ORDER BY ward) FROM visits WHERE minutes > 0`,
}

// TestChoicesLookAtWhatTheSQLSays: the cells that a choice is made of are those of the analyst's own rows, in the order
// of their values and in the right group; so what they say exactly is what her SQL says.
func TestChoicesLookAtWhatTheSQLSays(t *testing.T) {
	p, err := policy.Parse([]byte(strings.Replace(joinPolicy, "max_rows_per_unit: 4\n", "max_rows_per_unit: 4\n        extremes: true\n", 1)), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const seed = 992
	t.Logf("seed %d", seed)
	fill := joinRows(rand.New(rand.NewPCG(seed, 1)))
	t.Run("DuckDB", func(t *testing.T) {
		choicesOn(t, p, dialect.DuckDB, duckEngine(t, fill), duckTexts(t, fill))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		choicesOn(t, p, dialect.PostgreSQL, postgresEngine(t, fill), postgresTexts(t, fill))
	})
}

func choicesOn(t *testing.T, p *policy.Policy, d dialect.Dialect, generated engine, own texts) {
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range choiceStatements {
		t.Run(text, func(t *testing.T) {
			statements, refusal := parse.Parse(text)
			if refusal != nil {
				t.Fatal(refusal)
			}
			plan, refusal := planner.Build(statements[0], nil, reuse.Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: time.Unix(0, 0),
				Settings: plans.Settings{Epsilon: p.Datasets[0].Defaults.Epsilon, Confidence: confidence, Zone: time.UTC}})
			if refusal != nil {
				t.Fatalf("%s: %s", refusal.ID, refusal.Message)
			}
			leaf := plan.Leaves[0]
			m := plan.Measures[leaf.Counts[0].Runs[0].Measure]
			q, err := rewrite.Render(m, d)
			if err != nil {
				t.Fatal(err)
			}
			cells := trueCells(m, q, generated(t, q.SQL(), q.Args()))
			want, seen := ownValues(own(t, text), len(leaf.Keys)), 0
			for row := range leaf.Rows {
				var keys []string
				for _, k := range leaf.Keys {
					keys = append(keys, valueText(k.Values[row]))
				}
				counts, values := candidates(m, leaf.Counts[0].Runs[0].Selected, row, cells)
				expected, known := want[strings.Join(keys, "|")]
				if n := total(counts); n == 0 {
					if known && expected != "NULL" {
						t.Errorf("%v: no rows were counted, want %s", keys, expected)
					}
					continue
				}
				seen++
				if !says(text, counts, values, expected) {
					t.Errorf("%v: %v of %v, want %s", keys, counts, values, expected)
				}
			}
			if seen == 0 {
				t.Error("no group was compared")
			}
		})
	}
}

// candidates are the true counts of a row's candidates, and their values.
func candidates(m *plans.Measure, p *plans.SelectedValue, row int, cells []int64) (counts []int64, values []policy.Value) {
	if p.At[row] < 0 {
		return nil, nil
	}
	values = p.Values[row]
	if p.Spans != nil {
		for _, spans := range p.Spans[row] {
			n := int64(0)
			for _, s := range spans {
				n += total(cells[s.From:s.To])
			}
			counts = append(counts, n)
		}
		return counts, values
	}
	each := max(1, len(m.Spec.Kind.(*mechanisms.Choice).Shares))
	from, group := 0, p.At[row]/each
	for _, b := range m.Spec.Kind.(*mechanisms.Choice).Blocks {
		if group < b.Groups {
			from += group * b.Cells
			return cells[from : from+b.Cells], values
		}
		group, from = group-b.Groups, from+b.Groups*b.Cells
	}
	return nil, nil
}

func total(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// says reports whether the choice of the statement, made exactly, is the expected value: percentile_disc is the first
// value with at least the share of the rows up to it, a mode any value with the most rows.
func says(text string, counts []int64, values []policy.Value, expected string) bool {
	share := 1.0
	if _, after, found := strings.Cut(text, "percentile_disc("); found {
		fmt.Sscan(after[:strings.Index(after, ")")], &share)
	}
	if strings.Contains(text, "min(") {
		share = 0
	}
	below, most, all := int64(0), int64(0), total(counts)
	for _, n := range counts {
		most = max(most, n)
	}
	for i, n := range counts {
		below += n
		if strings.Contains(text, "mode()") {
			if n == most && shownValue(values[i]) == expected {
				return true
			}
			continue
		}
		if n > 0 && float64(below) >= math.Max(1, share*float64(all)-1e-9) {
			return shownValue(values[i]) == expected
		}
	}
	return false
}

// shownValue writes a value as the drivers' are written.
func shownValue(v policy.Value) string {
	if d, ok := v.(policy.Date); ok {
		return time.Unix(int64(d)*86400, 0).UTC().String()
	}
	return rounded(valueText(v))
}
