package planner

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/discovery"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

// openPolicyText has an open column; DELTA is for the δ of a budget.
var openPolicyText = policytest.Over("duckdb:x.duckdb") + `
  - id: census
    unit: {name: person, key: people.person_id}
    accountant: pure
    cap: {epsilon: 20, delta: 1e-4}
    budgets: {alice: {epsilon: 3DELTA}}
    tables:
      - name: people
        max_rows_per_unit: 1
        columns:
          - {name: zip, type: text, keys: discover}
          - {name: sex, type: text, domain: {values: [f, m]}}
          - {name: age, type: integer, domain: {min: 0, max: 9}}
`

// openContext is the test policy with an open column, and δ in the budget or not.
func openContext(t *testing.T, delta string) reuse.Context {
	t.Helper()
	p, err := policy.Parse([]byte(strings.Replace(openPolicyText, "DELTA", delta, 1)), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := testContext(t, p)
	c.Settings.SearchPath = nil
	return c
}

func planned(t *testing.T, c reuse.Context, text string) (*plans.Plan, *refuse.Refusal) {
	t.Helper()
	s, refusal := parse.Parse(text)
	if refusal != nil {
		t.Fatal(refusal)
	}
	return Build(s[0], nil, c)
}

// TestDeltaOfAStatement: dp.delta is what a statement may use to find keys, its discoveries together; with more of it
// keys of fewer people show. What is not in the budget, or too little for anything, is refused.
func TestDeltaOfAStatement(t *testing.T) {
	c := openContext(t, ", delta: 1e-6")
	c.Settings.Epsilon = epsilon(t, "1")
	shown := map[string]int64{}
	for _, text := range []string{"", "1e-6", "5e-7", "1e-9"} {
		c.Settings.Delta = privacy.Delta{}
		if text != "" {
			d, err := privacy.ParseDelta(text)
			if err != nil {
				t.Fatal(err)
			}
			c.Settings.Delta = d
		}
		p, refusal := planned(t, c, "SELECT zip, count(*) FROM people GROUP BY zip")
		if refusal != nil || len(p.Finds) != 1 {
			t.Fatal(text, refusal)
		}
		want := c.Settings.Delta
		if text == "" {
			want = privacy.AttoDelta(1e12 / 16)
		}
		if p.Cost.Delta != want {
			t.Errorf("dp.delta %q: it costs %s", text, p.Cost)
		}
		shown[text] = p.Finds[0].Finding.Half()
	}
	t.Logf("keys are shown from about so many people on: %v", shown)
	if shown["1e-6"] > shown["5e-7"] || shown["1e-6"] >= shown[""] || shown[""] >= shown["1e-9"] {
		t.Errorf("%v", shown)
	}
	for _, text := range []string{"1.1e-6", "1e-18"} {
		c.Settings.Delta, _ = privacy.ParseDelta(text)
		if _, refusal := planned(t, c, "SELECT zip, count(*) FROM people GROUP BY zip"); refusal == nil || refusal.ID != "delta-range" {
			t.Errorf("dp.delta %s: %v", text, refusal)
		}
		if p, refusal := planned(t, c, "SELECT count(*) FROM people WHERE zip = 'a'"); refusal != nil || p.Cost.Delta != (privacy.Delta{}) {
			t.Errorf("dp.delta %s where no key is found: %v", text, refusal)
		}
	}
}

// TestOpenColumns: what finding keys costs, and what each statement costs once they are found; all of it within
// dp.epsilon.
func TestOpenColumns(t *testing.T) {
	c := openContext(t, ", delta: 1e-5")
	const found = "ε 0.1, δ 6.25e-07"
	for _, s := range []struct {
		text        string
		finds, cost string // of the first plan
		then        string // of the plan with the keys
	}{
		{`SELECT zip, count(*) FROM people GROUP BY zip`, found, found, "ε 0"},
		{`SELECT left(zip, 2), count(*) FROM people GROUP BY 1`, found, found, "ε 0"},
		{`SELECT DISTINCT zip FROM people`, found, found, "ε 0"},
		{`SELECT zip, sex, count(*) FROM people GROUP BY 1, 2`, "ε 0.05, δ 6.25e-07", found, "ε 0.05"},
		{`SELECT zip, avg(age) FROM people GROUP BY 1`, "ε 0.05, δ 6.25e-07", found, "ε 0.05"},
		{`SELECT zip, count(*) FROM people WHERE sex = 'f' GROUP BY 1`, "ε 0.05, δ 6.25e-07", found, "ε 0.05"},
		{`SELECT zip, count(DISTINCT person_id) FROM people GROUP BY 1`, found, found, "ε 0"},
		{`SELECT count(*) FROM people WHERE zip = '1' OR zip IN ('2', '3') AND sex = 'f'`, "", "ε 0.1", "ε 0.1"},
		{`SELECT count(*) FILTER (WHERE zip <> '1'), count(zip) FROM people`, "", "ε 0.1", "ε 0.1"},
		{`SELECT sex, count(*) FROM people GROUP BY 1`, "", "ε 0.1", "ε 0.1"},
	} {
		p, refusal := planned(t, c, s.text)
		if refusal != nil {
			t.Errorf("%s: %s: %s", s.text, refusal.ID, refusal.Message)
			continue
		}
		finds := ""
		for _, m := range p.Finds {
			finds += m.Cost.String()
		}
		if finds != s.finds || p.Cost.String() != s.cost {
			t.Errorf("%s: finds %q, costs %s; want %q, %s", s.text, finds, p.Cost, s.finds, s.cost)
		}
		held := c
		own := discovery.KeysOf(c.Dataset.Tables[0].Column("zip"))
		d, err := mechanisms.NewDiscovery(c.Dataset.Tables[0].Contribution(), (&discovery.Keys{}).Share(c, true, 1))
		if err != nil {
			t.Fatal(err)
		}
		held.Holdings = &shelf{list: []reuse.Holding{{ID: 3, Digest: own.Digest, Spec: d.Spec(1), At: fixedNow}}}
		held.Found = func(id int64) (mechanisms.Noisy, bool) {
			return mechanisms.Noisy{Keys: []string{"=12", "=13", "n"}, Observations: []int64{70, 80, 90}}, id == 3
		}
		if p, refusal = planned(t, held, s.text); refusal != nil || len(p.Finds) > 0 || p.Cost.String() != s.then {
			t.Errorf("%s: with keys %v, %v; want %s", s.text, p, refusal, s.then)
		}
	}
}

// TestOpenColumnsRefuse: what the values decide that nobody knows is refused, and so are keys without δ.
func TestOpenColumnsRefuse(t *testing.T) {
	c, poor := openContext(t, ", delta: 1e-5"), openContext(t, "")
	for _, text := range []string{
		`SELECT count(*) FROM people WHERE zip > '1'`, `SELECT count(*) FROM people WHERE lower(zip) = 'a'`,
		`SELECT count(*) FROM people WHERE zip = sex`, `SELECT count(*) FROM people WHERE zip = 'other'`, `SELECT count(*) FILTER (WHERE length(zip) = 5) FROM people`,
		`SELECT count(DISTINCT zip) FROM people`, `SELECT sum(length(zip)) FROM people`, `SELECT mode() WITHIN GROUP (ORDER BY zip) FROM people`,
		`SELECT n, count(*) FROM (SELECT person_id, min(zip) AS n FROM people GROUP BY 1) t GROUP BY 1`, `SELECT count(*) FROM (SELECT DISTINCT person_id, zip FROM people) t`,
		`SELECT sex, count(*) FROM people GROUP BY sex HAVING count(*) FILTER (WHERE zip ~ '1') > 0`,
	} {
		if p, refusal := planned(t, c, text); refusal == nil {
			t.Errorf("%s: planned for %s", text, p.Cost)
		} else if refusal.ID != "open-column" && !strings.Contains("unit-aggregate no-private-form", refusal.ID) {
			t.Errorf("%s: %s: %s", text, refusal.ID, refusal.Message)
		}
	}
	if _, refusal := planned(t, poor, `SELECT zip, count(*) FROM people GROUP BY zip`); refusal == nil || refusal.ID != "no-delta" {
		t.Errorf("without δ: %v", refusal)
	}
	if p, refusal := planned(t, poor, `SELECT count(*) FROM people WHERE zip = '1'`); refusal != nil || p.Cost.String() != "ε 0.1" {
		t.Errorf("without δ a comparison is counted: %v", refusal)
	}
}

// TestCountsBesideConditionsOnKeys: what is counted beside a condition on a column whose values nobody declared is of
// all rows, of those too whose text the statement does not name, or that have none.
func TestCountsBesideConditionsOnKeys(t *testing.T) {
	c := openContext(t, "")
	c.Settings.Epsilon = epsilon(t, "1")
	for text, want := range map[string]string{
		"SELECT count(*) FILTER (WHERE zip = '805'), count(*) FROM people":                                                                  "0; 0 1 2",
		"SELECT count(*) FILTER (WHERE zip = '805'), count(*) FILTER (WHERE zip IS NULL), count(*) FILTER (WHERE zip <> '805') FROM people": "0; 2; 1",
		"SELECT count(*) FILTER (WHERE coalesce(zip, '805') = '805'), count(*) FILTER (WHERE (zip = '805') IS NOT TRUE) FROM people":        "0 2; 1 2",
		"SELECT sum(CASE WHEN zip NOT IN ('805') THEN 1 ELSE 0 END), count(zip), count(*) FROM people":                                      "1; 0 1; 0 1 2",
	} {
		p, refusal := planned(t, c, text)
		if refusal != nil {
			t.Errorf("%s: %s", text, refusal.Message)
			continue
		}
		var columns []string
		for _, column := range p.Leaves[0].Counts {
			if run := column.Runs[0]; run.Measure >= 0 {
				columns = append(columns, strings.Join(cellsCounted(p.Measures[run.Measure], run), " "))
			}
		}
		if got := strings.Join(columns, "; "); got != want {
			t.Errorf("%s counts the cells %s of zip, want %s", text, got, want)
		}
	}
}

// cellsCounted are the cells of a measure's only column that a run's first row adds up; a measure that tells them apart
// by its counter alone has the rows of them for which that holds.
func cellsCounted(m *plans.Measure, run plans.Run) (list []string) {
	column := m.Table.Column("zip")
	for cell := range column.Domain.Size() {
		at := func(*policy.Column) int { return cell }
		place := 0
		if len(m.Grain) > 0 {
			place = m.Place([]int32{int32(cell)}, run.Counter)
		}
		counted := place >= 0 && slices.ContainsFunc(run.Spans[0], func(s mechanisms.Span) bool { return s.From <= place && place < s.To })
		if counted && predicate.Satisfied(m.Where, at) && predicate.Satisfied(m.Counters[run.Counter], at) {
			list = append(list, strconv.Itoa(cell))
		}
	}
	return list
}

// TestOpenColumnsOfAnyRows: where no bound of rows is declared keys are found, of each person few; counts and sums by
// them, and by what functions make of them, are of totals.
func TestOpenColumnsOfAnyRows(t *testing.T) {
	for _, accountant := range []privacy.Accountant{privacy.Pure, privacy.ZCDP} {
		const people = "max_rows_per_unit: 1\n"
		visits := people + "        columns: [{name: kind, type: boolean}]\n" +
			"      - name: visits\n        unit: visits.who = people.person_id\n"
		text := strings.NewReplacer(people, visits, "accountant: pure", "accountant: "+accountant.String(),
			"DELTA", ", delta: 1e-5").Replace(openPolicyText)
		p, err := policy.Parse([]byte(text), "policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		c := testContext(t, p)
		c.Settings.SearchPath = nil
		for text, finds := range map[string]int{
			`SELECT zip, count(*) FROM visits GROUP BY zip`:                                       1,
			`SELECT zip, sex, avg(age) FROM visits GROUP BY 1, 2`:                                 1,
			`SELECT lower(left(zip, 2)), sum(age) FROM visits GROUP BY 1`:                         1,
			`SELECT zip = 'a', count(*) FROM visits GROUP BY 1`:                                   1,
			`SELECT zip, count(DISTINCT who) FROM visits GROUP BY 1`:                              1,
			`SELECT count(*) FILTER (WHERE zip = 'a'), count(*) FROM visits`:                      0,
			`SELECT kind, zip, count(*) FROM people JOIN visits ON person_id = who GROUP BY 1, 2`: 1,
		} {
			plan, refusal := planned(t, c, text)
			if refusal != nil || len(plan.Finds) != finds {
				t.Errorf("%s, %s: %v", accountant, text, refusal)
				continue
			}
			for _, m := range plan.Finds {
				if got := m.Finding.KeysEach(); got != mechanisms.FewKeys(m.Cost) {
					t.Errorf("%s, %s: %d keys of a person are counted", accountant, text, got)
				}
			}
		}
	}
}
