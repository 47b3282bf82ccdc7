package planner

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// instancePolicy is the tests' policy with more releases over people.
func instancePolicy(t *testing.T, releases ...string) *policy.Policy {
	t.Helper()
	const after = "          - {kind: histogram, columns: [sex, age], epsilon: 0.8}\n"
	return testPolicy(t, after, after+"          - "+strings.Join(releases, "\n          - ")+"\n")
}

func planSession(t *testing.T, c reuse.Context, sql string) (*plans.Plan, *refuse.Refusal) {
	t.Helper()
	list, refusal := parse.Parse(sql)
	if refusal != nil {
		t.Fatal(refusal)
	}
	return Build(list[0], []policy.Value{}, c)
}

const onlineText = "{kind: online, name: o, columns: [sex, {column: income, step: 10000}], epsilon: 1, updates: 20, insist: true}"

// TestOnlineReleasesAnswerTheirCells: what is a function of the release's cells, at wider steps, in any form, and
// nothing else.
func TestOnlineReleasesAnswerTheirCells(t *testing.T) {
	c := testContext(t, instancePolicy(t, onlineText))
	c.Settings.Epsilon = epsilon(t, "1")
	for sql, online := range map[string]bool{
		"SELECT count(*) FROM people WHERE income < 50000":                                          true,
		"SELECT count(*) FROM people WHERE income >= 20000 AND sex = 'Female' OR income IS NULL":    true,
		"SELECT sex, count(*) FROM people WHERE income BETWEEN 10000 AND 29999.99 GROUP BY 1":       false, // ends within a step
		"SELECT sex, count(*), count(*) FILTER (WHERE income < 10000) FROM people GROUP BY 1":       true,
		"SELECT width_bucket(income, 0, 200000, 20), count(*) FROM people GROUP BY 1":               true,
		"SELECT count(*) FROM people WHERE income < 51000":                                          false,
		"SELECT count(*) FROM people WHERE income < 50000 AND age > 3":                              false,
		"SELECT sum(kids) FROM people WHERE income < 50000":                                         false,
		"SELECT count(*) FROM visits":                                                               false,
		"SELECT count(*) FROM people":                                                               false,
		"SELECT count(*) FROM people p JOIN visits v ON v.person_id = p.person_id WHERE sex <> 'x'": false,
	} {
		p, refusal := planSession(t, c, sql)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
			continue
		}
		if got := len(p.Measures) == 1 && mechanisms.Is[*mechanisms.Online](p.Measures[0].Spec); got != online {
			t.Errorf("%s: online %v, kind %s", sql, got, p.Measures[0].Kind)
		}
	}
	c.Dataset.Frequency = policy.Frequency{Units: 10, Beta: .05}
	p, refusal := planSession(t, c, "SELECT width_bucket(income, 0, 200000, 20), count(*) FROM people GROUP BY 1")
	if refusal != nil || mechanisms.Is[*mechanisms.Online](p.Measures[0].Spec) {
		t.Errorf("a model decides whether a group is shown: %v %+v", refusal, p)
	}
}

// TestOnlineReleasesStop: what is left of a held session decides, and nothing that another has; one that has stopped
// steps aside, also for what else is held.
func TestOnlineReleasesStop(t *testing.T) {
	const q = "SELECT count(*) FROM people WHERE income < 50000"
	c := testContext(t, instancePolicy(t, onlineText))
	c.Settings.Epsilon = epsilon(t, "1")
	left := 20
	c.Left = func(int64) int { return left }
	p, refusal := planSession(t, c, q)
	if refusal != nil || !p.Cost.Fits(p.Measures[0].Declared.Cost) || p.Measures[0].Shared {
		t.Fatalf("%v %+v", refusal, p)
	}
	c.Holdings.(*shelf).buy(p)
	c.Settings.Epsilon = epsilon(t, "0.1")
	if p, refusal = planSession(t, c, q); refusal != nil || !p.Cost.IsZero() || !strings.Contains(p.Measures[0].Why, "with 20 of 20 updates left") {
		t.Errorf("held: %v %+v", refusal, p)
	}
	left = 0
	p, refusal = planSession(t, c, q)
	if refusal != nil || mechanisms.Is[*mechanisms.Online](p.Measures[0].Spec) || p.Cost.IsZero() || !strings.Contains(strings.Join(p.Notes, " "), "has stopped") {
		t.Fatalf("stopped: %v %+v", refusal, p)
	}
	c.Holdings.(*shelf).buy(p)
	if p, refusal = planSession(t, c, q); refusal != nil || !p.Cost.IsZero() {
		t.Errorf("counted beside what has stopped: %v %+v", refusal, p)
	}
}

// arriving are holdings to which another of her statements adds a purchase while a plan is made: the first looks miss
// it.
type arriving struct {
	*shelf
	misses int
}

func (a *arriving) Held(d plans.Digest) []reuse.Holding {
	if a.misses--; a.misses >= 0 {
		return nil
	}
	return a.shelf.Held(d)
}

// TestOnlineReleasesBoughtMeanwhile: whenever another statement of hers opens the release while this one is planned, it
// is that release that is asked, or opened (for which the ledger then takes nothing), and no count is bought besides.
func TestOnlineReleasesBoughtMeanwhile(t *testing.T) {
	const q = "SELECT count(*) FROM people WHERE income < 50000"
	for misses := range 8 {
		c := testContext(t, instancePolicy(t, onlineText))
		c.Settings.Epsilon = epsilon(t, "1")
		p, refusal := planSession(t, c, q)
		if refusal != nil {
			t.Fatal(refusal)
		}
		held := c.Holdings.(*shelf)
		held.buy(p)
		c.Holdings = &arriving{held, misses}
		if p, refusal = planSession(t, c, q); refusal != nil || len(p.Measures) != 1 || !mechanisms.Is[*mechanisms.Online](p.Measures[0].Spec) {
			t.Errorf("seen from look %d on: %v, %+v", misses+1, refusal, p.Measures)
		}
	}
}

// TestOnlineReleasesThatAHistogramBeats are drawn as one, for the same cost, unless the policy insists; both figures
// are shown.
func TestOnlineReleasesThatAHistogramBeats(t *testing.T) {
	const q = "SELECT count(*) FROM people WHERE income < 50000"
	c := testContext(t, instancePolicy(t, strings.Replace(onlineText, ", insist: true", "", 1)))
	c.Settings.Epsilon, c.Settings.Release = epsilon(t, "1"), true
	p, refusal := planSession(t, c, q)
	if refusal != nil || mechanisms.Is[*mechanisms.Online](p.Measures[0].Spec) || p.Measures[0].Spec.Counts().Strategy.Kind != mechanisms.Identity || !p.Measures[0].Shared || !strings.Contains(p.Measures[0].Why, "a plain histogram of its 88 cells would be within ±") {
		t.Fatalf("%v %+v", refusal, p.Measures[0])
	}
	c.Holdings.(*shelf).buy(p)
	if p, refusal = planSession(t, c, "SELECT sex, count(*) FROM people WHERE income >= 50000 GROUP BY 1"); refusal != nil || !p.Cost.IsZero() {
		t.Errorf("held: %v %+v", refusal, p)
	}
}

// TestOnlineReleasesAreOpenedOnRequest: of a release that the worst question of a histogram is worse than, a session is
// opened with dp.release = on where nothing on offer is more exact, and answers whatever it can from then on; without
// it, what a count tells more exactly is counted.
func TestOnlineReleasesAreOpenedOnRequest(t *testing.T) {
	c := testContext(t, instancePolicy(t, "{kind: online, name: o, columns: [sex, {column: income, step: 1000}, active, age], epsilon: 1, updates: 2}"))
	c.Settings.Epsilon = epsilon(t, "1")
	const ranged = "SELECT count(*) FROM people WHERE age >= 30" // a range release answers this, for less
	const many, few = "SELECT count(*) FROM people WHERE income >= 1000 AND active", "SELECT sex, count(*) FROM people WHERE income < 2000 AND active GROUP BY 1"
	for _, q := range []string{few, many} {
		if p, refusal := planSession(t, c, q); refusal != nil || mechanisms.Is[*mechanisms.Online](p.Measures[0].Spec) || strings.Contains(strings.Join(p.Notes, " "), "release o") {
			t.Errorf("unasked: %v %+v %q", refusal, p.Measures[0], p.Notes)
		}
	}
	c.Settings.Release = true
	p, refusal := planSession(t, c, ranged)
	if refusal != nil || p.Measures[0].Kind != "range" {
		t.Errorf("%v %+v", refusal, p.Measures[0])
	}
	if p, refusal = planSession(t, c, many); refusal != nil || !mechanisms.Is[*mechanisms.Online](p.Measures[0].Spec) || !strings.Contains(p.Measures[0].Why, "would be within ±") {
		t.Fatalf("many cells: %v %+v", refusal, p.Measures[0])
	}
	c.Holdings.(*shelf).buy(p)
	for _, q := range []string{few, many} {
		if p, refusal = planSession(t, c, q); refusal != nil || !p.Cost.IsZero() {
			t.Errorf("%s: %v %+v", q, refusal, p.Measures[0])
		}
	}
}

// TestOnlineReleasesHeldAreExactEnough: where dp.max_error is wide enough, what a session that she holds answers is
// free.
func TestOnlineReleasesHeldAreExactEnough(t *testing.T) {
	c := testContext(t, instancePolicy(t, onlineText))
	c.Settings.Epsilon = epsilon(t, "1")
	left := 20
	c.Left = func(int64) int { return left }
	const q = "SELECT count(*) FROM people WHERE income < 50000"
	p, refusal := planSession(t, c, q)
	if refusal != nil {
		t.Fatal(refusal)
	}
	c.Holdings.(*shelf).buy(p)
	for _, by := range []struct {
		most   float64
		left   int
		online bool
	}{{1000, 20, true}, {100, 20, false}, {1000, 0, false}} {
		c.Settings.MaxError, left = by.most, by.left
		p, refusal := planSession(t, c, q)
		if refusal != nil || (mechanisms.Is[*mechanisms.Online](p.Measures[0].Spec)) != by.online || p.Cost.IsZero() != by.online {
			t.Errorf("%+v: %v %+v", by, refusal, p)
		}
	}
}

// TestMadeUpValues: of each cell, values that lie in it, spread over wider ones; the cells of NULL and 'other' are
// shown as that.
func TestMadeUpValues(t *testing.T) {
	p := instancePolicy(t, "{kind: synthetic, name: y, columns: [{column: income, step: 10000}, sex, active], epsilon: 1, rows: 10}")
	c := testContext(t, p)
	c.Settings.Epsilon = epsilon(t, "1")
	plan, refusal := planSession(t, c, "SELECT count(*) FROM dp.y")
	if refusal != nil {
		t.Fatal(refusal)
	}
	c.Holdings.(*shelf).buy(plan)
	c.Settings.Probes = plans.ProbesMadeUp
	if plan, refusal = planSession(t, c, "SELECT age, active, sex, income FROM people LIMIT 10"); refusal != nil {
		t.Fatal(refusal)
	}
	leaf := plan.Leaves[0]
	m, table := leaf.Synthetic, p.Datasets[0].Tables[0]
	seen := map[policy.Value]bool{}
	for cell := range plan.Measures[m.Measure].Spec.Cells {
		for row := range 30 {
			values := m.Values(row, int32(cell))
			if n := len(table.Shown()); len(values) != n+1 || values[0] != nil || fmt.Sprint(values[n]) != strconv.Itoa(row+1) { // the last is the key
				t.Fatalf("row %v", values)
			}
			for i, col := range table.Shown() {
				if _, ok := col.Domain.Cell(values[i]); !ok && values[i] != nil {
					t.Fatalf("cell %d: %s is %v", cell, col.Name, values[i])
				}
			}
			seen[values[1]] = true
			if v, ok := values[2].(policy.Numeric); ok {
				seen[v.String()] = true
			}
		}
	}
	if !seen["Female"] || !seen[policy.OtherValue] || !seen[nil] || len(seen) < 100 {
		t.Errorf("%d values seen", len(seen))
	}
}
