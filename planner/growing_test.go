package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

var growingPolicy = policytest.Over("duckdb:firm.duckdb") + `
  - id: firm
    unit: {name: person, key: hires.uid}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    defaults: {epsilon: 0.5}
    tables:
      - name: hires
        rows_per_unit_total: 3
        appends: hired
        expected_rows: 10000
        columns:
          - {name: hired, type: date, domain: {min: 2024-01-01, max: 2024-12-31}, nulls: exclude, outside: exclude}
          - {name: ward, type: text, domain: {values: [a, b, c]}}
        releases: [{kind: range, columns: [hired], epsilon: 0.5, insist: true}]
`

// growingContext is alice's on the 15th of March, when 73 days are closed: the 14th closes in the night to the 16th.
// Each pair of edits changes the policy.
func growingContext(t testing.TB, edits ...string) (reuse.Context, *shelf) {
	t.Helper()
	text := growingPolicy
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			t.Fatalf("the policy does not say %q", edits[i])
		}
	}
	p, err := policy.Parse([]byte(strings.NewReplacer(edits...).Replace(text)), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := testContext(t, p)
	c.Settings.Epsilon = epsilon(t, "0.5")
	s := &shelf{}
	c.Holdings = s
	return c, s
}

const march = 73 // days of 2024 that are closed at fixedNow

// take plans, and buys as the proxy does.
func (s *shelf) take(t testing.TB, c reuse.Context, sql string) *plans.Plan {
	t.Helper()
	p := mustBuild(t, c, sql)
	for _, m := range p.Measures {
		if spec := m.Spec; !m.Held {
			if m.Continual != nil {
				spec = m.Continual.Spec
			}
			s.list = append(s.list, reuse.Holding{ID: int64(len(s.list) + 1), Digest: m.Digest, Spec: spec, Cost: m.Cost, Described: m.Describe(), At: c.Now})
		}
	}
	return p
}

func mustBuild(t testing.TB, c reuse.Context, sql string) *plans.Plan {
	t.Helper()
	statements, refusal := parse.Parse(sql)
	if refusal != nil {
		t.Fatal(refusal)
	}
	p, refusal := Build(statements[0], nil, c)
	if refusal != nil {
		t.Fatalf("%s: %s", sql, refusal.Message)
	}
	return p
}

// left reports whether a plan notes that days from that one on are left out.
func left(p *plans.Plan, day string) bool {
	return slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, day+" or later are left out") })
}

func TestGrowingRelease(t *testing.T) {
	c, held := growingContext(t)
	first := held.take(t, c, "SELECT count(*) FROM hires WHERE hired >= DATE '2024-02-01'")
	m := first.Measures[0]
	if m.Continual == nil || m.Continual.Through != march || m.Continual.Spec.Cells != 366 || m.Spec.Cells != march || !m.Shared || m.Cost != first.Cost || first.Cost != (privacy.Cost{Epsilon: epsilon(t, "0.5")}) {
		t.Fatalf("measure %+v with growth %+v", m, m.Continual)
	}
	if !left(first, "2024-03-14") {
		t.Errorf("notes %q", first.Notes)
	}
	if run := first.Leaves[0].Counts[0].Runs[0]; !slices.Equal(run.Spans[0], []mechanisms.Span{{From: 31, To: march}}) {
		t.Errorf("it is read from %v", run.Spans)
	}
	if first.Timeless() {
		t.Error("the answer is kept for other days")
	}
	later := c
	later.Now = c.Now.AddDate(0, 0, 10)
	for sql, note := range map[string]bool{
		"SELECT count(*) FROM hires WHERE hired >= DATE '2024-02-01'": true, "SELECT count(*) FROM hires": true,
		"SELECT hired, count(*) FROM hires GROUP BY hired": true, "SELECT date_trunc('month', hired), count(*) FROM hires GROUP BY 1": true,
		"SELECT count(*) FROM hires WHERE hired < DATE '2024-03-24'": false, "SELECT count(*) FROM hires WHERE hired = DATE '2024-03-23'": false,
		"SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY hired) FROM hires":                                                   true,
		"SELECT count(*) FILTER (WHERE hired < DATE '2024-02-01'), count(*) FILTER (WHERE hired < DATE '2024-03-01') FROM hires": false,
	} {
		p := mustBuild(t, later, sql)
		if !p.Cost.IsZero() || len(p.Measures) != 1 || p.Measures[0].Continual == nil || p.Measures[0].Continual.Through != march+10 || !p.Measures[0].Held {
			t.Errorf("%s costs %s", sql, p.Cost)
		}
		if left(p, "2024-03-24") != note {
			t.Errorf("%s has the notes %q", sql, p.Notes)
		}
		if p.Measures[0].Digest != m.Digest {
			t.Errorf("%s: the release has another name on another day", sql)
		}
	}
	for _, sql := range []string{"SELECT ward, count(*) FROM hires GROUP BY 1", "SELECT count(*) FROM hires WHERE hired < DATE '2024-02-01' AND ward = 'a'"} {
		if p := mustBuild(t, later, sql); p.Cost.IsZero() || p.Measures[0].Continual != nil {
			t.Errorf("%s was read from the release", sql)
		}
	}
}

// TestGrowingReleaseGoesFirst: an answer that was kept is of the days that had passed then.
func TestGrowingReleaseGoesFirst(t *testing.T) {
	c, held := growingContext(t)
	const sql = "SELECT count(*) FROM hires WHERE hired >= DATE '2024-02-01'"
	c.Settings.Epsilon = epsilon(t, "0.01")
	if p := held.take(t, c, sql); p.Measures[0].Continual != nil || !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "SET dp.epsilon = 0.5") }) {
		t.Fatalf("bought above dp.epsilon: %v", p.Notes)
	}
	c.Settings.Epsilon = epsilon(t, "0.5")
	held.take(t, c, "SELECT count(*) FROM hires WHERE hired < DATE '2024-01-20'")
	if p := mustBuild(t, c, sql); p.Measures[0].Continual == nil || !p.Cost.IsZero() {
		t.Errorf("read from %s", p.Measures[0].Why)
	}
	c.Settings.MaxError = 200
	if p := mustBuild(t, c, sql); p.Measures[0].Continual == nil || !p.Cost.IsZero() {
		t.Errorf("with dp.max_error read from %s", p.Measures[0].Why)
	}
}

func TestGrowingByThePolicy(t *testing.T) {
	const open, shut = "SELECT count(*) FROM hires WHERE hired >= DATE '2024-02-01'", "SELECT count(*) FROM hires WHERE hired < DATE '2024-02-01'"
	grows := func(c reuse.Context, sql string) bool { return mustBuild(t, c, sql).Measures[0].Continual != nil }
	c, held := growingContext(t, "appends: hired", "appends: {column: hired, unclosed: count}")
	if grows(c, open) || !grows(c, shut) {
		t.Error("unclosed: count")
	}
	held.take(t, c, shut)
	if p := mustBuild(t, c, open); p.Cost.IsZero() || p.Measures[0].Continual != nil {
		t.Error("unclosed: count, with the release held")
	}
	if c, _ = growingContext(t, "nulls: exclude, ", ""); grows(c, "SELECT hired, count(*) FROM hires GROUP BY 1") || !grows(c, open) {
		t.Error("rows without a date are in a day")
	}
	if c, _ = growingContext(t, "rows_per_unit_total", "max_rows_per_unit"); grows(c, shut) {
		t.Error("it grows without a bound for life")
	}
	if why := mustBuild(t, c, shut).Measures[0].Why; !strings.Contains(why, "it does not grow, since rows_per_unit_total is not given") {
		t.Errorf("EXPLAIN says of it: %s", why)
	}
	old, bought := growingContext(t)
	bought.take(t, old, shut)
	c.Holdings = bought
	if p := mustBuild(t, c, shut); p.Cost.IsZero() {
		t.Error("a release that grew is read without a bound for life")
	}
	longer, _ := growingContext(t, "max: 2024-12-31", "max: 2025-12-31")
	longer.Holdings = bought
	if p := mustBuild(t, longer, shut); p.Cost.IsZero() || p.Measures[0].Continual == nil {
		t.Error("a longer horizon is another release, charged anew")
	}
	if old.Now = time.Date(2024, 1, 2, 23, 0, 0, 0, time.UTC); mustBuild(t, old, open).Measures[0].Continual != nil {
		t.Error("read before any day is closed")
	}
	if old.Now = time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC); mustBuild(t, old, open).Measures[0].Continual.Through != 366 || left(mustBuild(t, old, open), "") {
		t.Error("read after the horizon")
	}
	if c, _ = growingContext(t, "        releases: [{kind: range, columns: [hired], epsilon: 0.5, insist: true}]\n", ""); grows(c, shut) {
		t.Error("an undeclared release was bought")
	}
	if c.Settings.Release = true; !grows(c, shut) || mustBuild(t, c, shut).Measures[0].Shared {
		t.Error("dp.release = on")
	}
}

func TestClosedDays(t *testing.T) {
	c, _ := growingContext(t, "appends: hired", "appends: {column: hired, closes: 6h}", "max: 2024-12-31", "max: 2024-12-31, step: 7 days")
	a := c.Dataset.Tables[0].Appends
	for at, want := range map[string]int{
		"2024-01-08T05:59:59Z": 0, "2024-01-08T06:00:00Z": 1, "2024-01-15T05:59:00Z": 1, "2024-01-15T06:00:00Z": 2,
		"2025-01-01T05:59:59Z": 52, "2025-01-01T06:00:00Z": 53, "1950-01-01T00:00:00Z": 0, "2099-01-01T00:00:00Z": 53,
	} {
		when, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Closed(when); got != want {
			t.Errorf("at %s %d weeks are closed, must be %d", at, got, want)
		}
	}
}

// BenchmarkGrowing plans a free question on a release over ten years of days.
func BenchmarkGrowing(b *testing.B) {
	c, held := growingContext(b, "min: 2024-01-01, max: 2024-12-31", "min: 2015-01-01, max: 2024-12-31")
	held.take(b, c, "SELECT count(*) FROM hires WHERE hired >= DATE '2024-02-01'")
	statements, refusal := parse.Parse("SELECT count(*) FROM hires WHERE hired >= DATE '2023-02-01'")
	if refusal != nil {
		b.Fatal(refusal)
	}
	for b.Loop() {
		if _, refusal := Build(statements[0], nil, c); refusal != nil {
			b.Fatal(refusal)
		}
	}
}
