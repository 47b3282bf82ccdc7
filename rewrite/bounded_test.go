package rewrite_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// boundedPolicy has columns whose domains end at MOST, and after DAYS.
var boundedPolicy = policytest.Over("postgres://ro@127.0.0.1/shop") + `
  - id: shop
    unit: {name: person, key: people.person_id}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - name: people
        max_rows_per_unit: 1
        columns: [{name: born, type: date, domain: {min: 1950-01-01, max: LAST, step: 1 day}}]
      - name: stays
        unit: stays.person_id = people.person_id
        max_rows_per_unit: 4
        columns:
          - {name: x, type: bigint, domain: {min: 0, max: MOST, step: 1}}
          - {name: y, type: bigint, domain: {min: 0, max: MOST, step: 1}}
          - {name: price, type: "numeric(12,2)", domain: {min: 0, max: MOST, step: 1}}
          - {name: paid, type: "numeric(12,2)", domain: {min: 0, max: MOST, step: 1}}
          - {name: since, type: date, domain: {min: 1950-01-01, max: LAST, step: 1 day}}
          - {name: until, type: date, domain: {min: 1950-01-01, max: LAST, step: 1 day}}
          - {name: at, type: timestamptz, domain: {min: 1950-01-01, max: LAST, step: 1 hour}}
          - {name: wall, type: timestamp, domain: {min: 1950-01-01, max: LAST, step: 1 minute}}
`

// boundedTables are such a policy of so many values, and of days as far as dates go.
func boundedTables(t *testing.T, most int) *policy.Policy {
	last := time.Date(1950, 1, 1+min(most, 80_000), 0, 0, 0, 0, time.UTC)
	p, err := policy.Parse([]byte(strings.NewReplacer("MOST", fmt.Sprint(most), "LAST", last.Format(time.DateOnly)).Replace(boundedPolicy)), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// linearForm draws a comparison of columns by sums and whole numbers: what is sent for it is to be no longer over a
// large domain.
func linearForm(r *rand.Rand) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	op := pick(" < ", " <= ", " > ", " >= ")
	switch r.IntN(5) {
	case 0:
		return pick("x", "x + 7", "x - y", "3 * x", "x / 60", "(x + 5) / 7") + op + pick("y", "y - 4", "2 * y", "-3")
	case 1:
		return pick("price - paid", "3 * paid - price + 0.5", "price") + op + pick("0.25", "paid + 3", "2 * paid")
	case 2:
		return pick("until - since", "until - since + 1", "(until - since) * 2") + op + pick("30", "x", "-1")
	case 3:
		return pick("until", "at", "wall", "at::date", "wall::date") + op + pick("since + 14", "since")
	}
	return pick("at", "until::timestamp", "until") + op + pick("since + interval '36 hours'", "wall - interval '2 days'", "wall")
}

// keyForm draws a key of so many pieces, of which neighbouring ones have one length, or each value is one; K is a
// number that grows with the domain.
func keyForm(r *rand.Rand) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	switch r.IntN(3) {
	case 0:
		return pick("x", "x + 5", "(x - y)", "(2 * x - y + 3)", "(y - x - 1)") + " / K"
	case 1:
		return pick("(until - since) / 7", "(until - since + 3) / 10", "date_trunc('week', until)", "(since - until) / 30")
	}
	return pick("wall::date", "date_trunc('day', at)", "date_trunc('day', wall)")
}

// groupedForm groups rows by a key, or those of one unit.
func groupedForm(r *rand.Rand, key string) string {
	return []string{
		"SELECT " + key + " AS k, count(*) FROM stays GROUP BY 1",
		"SELECT n, count(*) FROM (SELECT person_id, " + key + " AS k, count(*) AS n FROM stays GROUP BY 1, 2) u GROUP BY 1",
		"SELECT count(*) FROM (SELECT DISTINCT person_id, " + key + " AS k FROM stays) u WHERE k IS NOT NULL",
	}[r.IntN(3)]
}

// placedForm puts a condition where the database must make it.
func placedForm(r *rand.Rand, condition string) string {
	return []string{
		"SELECT count(DISTINCT person_id) FROM stays WHERE " + condition,
		"SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM stays s WHERE s.person_id = p.person_id AND " + condition + ")",
		"SELECT count(*) FROM people p LEFT JOIN stays s ON s.person_id = p.person_id AND " + condition,
		"SELECT n, count(*) FROM (SELECT person_id, count(*) FILTER (WHERE " + condition + ") AS n FROM stays GROUP BY person_id) u GROUP BY 1",
		"SELECT n, count(*) FROM (SELECT person_id, count(*) AS n FROM stays WHERE " + condition + " GROUP BY person_id) u GROUP BY 1",
	}[r.IntN(5)]
}

// aConstant is a quoted text, or a digit.
var aConstant = regexp.MustCompile(`'[^']*'|[0-9]`)

// lengthOf is how long the SQL of a statement is beside its constants, and the refusal where there is none.
func lengthOf(t *testing.T, p *policy.Policy, text string, d dialect.Dialect) (longest int, refused string) {
	t.Helper()
	statements, refusal := parse.Parse(text)
	if refusal != nil {
		t.Fatal(text, refusal)
	}
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	plan, refusal := planner.Build(statements[0], nil, reuse.Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: time.Unix(0, 0),
		Settings: plans.Settings{Epsilon: privacy.MicroEpsilon(1_000_000), Confidence: confidence, Zone: time.UTC}})
	if refusal != nil {
		return 0, refusal.ID
	}
	for _, m := range plan.Measures {
		q, err := rewrite.Render(m, d)
		if errors.Is(err, rewrite.ErrTooLong) || err == nil && q.TooLong() {
			return 0, "long-sql"
		}
		if err != nil {
			t.Fatal(text, err)
		}
		if len(q.SQL()) > rewrite.MaxConstants {
			t.Errorf("%s: %d bytes", text, len(q.SQL()))
		}
		longest = max(longest, len(aConstant.ReplaceAllString(q.SQL(), "")))
	}
	return longest, ""
}

// TestTextsDoNotGrow: what is sent for a comparison of columns, and for a key that is a quotient or a length of
// time, is bounded by the statement, and not by the columns' domains.
func TestTextsDoNotGrow(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(195, 1))
	var policies []*policy.Policy
	domains := []int{1_000, 30_000, 1_000_000, 100_000_000, 1_000_000_000}
	for _, most := range domains {
		policies = append(policies, boundedTables(t, most))
	}
	n := threats.ByNight(20, stattest.Length(60, 2000))
	for range n {
		text := placedForm(r, linearForm(r))
		grouped := r.IntN(2) == 0
		if grouped {
			text = groupedForm(r, keyForm(r))
		}
		for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.DuckDB} {
			least := 0
			for i, p := range policies {
				if grouped && (i == 0 || i == len(domains)-1 && strings.Contains(text, " - ")) {
					continue // a few columns' cells are looked at together; of more than 2^30 differences there are steps
				}
				text := strings.ReplaceAll(text, "K", fmt.Sprint(domains[i]/100))
				length, refused := lengthOf(t, p, text, d)
				if refused != "" {
					t.Fatalf("%s over the domain number %d: %s", text, i, refused)
				}
				if least == 0 {
					least = length
				}
				if length > least+least/10 {
					t.Fatalf("%s: %d bytes over the domain number %d, and %d over the least", text, length, i, least)
				}
			}
		}
	}
}

// TestLongTextsAreRefused: whatever is drawn is written within the bound, or not at all, and soon.
func TestLongTextsAreRefused(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(195, 2))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	long, short := 0, 0
	policies := []*policy.Policy{boundedTables(t, 1_000), boundedTables(t, 30_000), boundedTables(t, 200_000)}
	for range stattest.Length(60, 1500) {
		key := pick("x / 3", "x % 7", "x + 1", "x * x % 1000", "x - x % 60", "length(x::text)", "round(price)", "floor(price / 7)", "since + 3", "date_trunc('month', since)", "date_trunc('week', until)",
			"extract(dow FROM until)", "wall::date", "extract(hour FROM wall)", "date_trunc('hour', at)", "date_trunc('quarter', at)", "until - since + 1", "x - y", "mod(x, 90) / 7")
		text := pick("SELECT k, count(*) FROM (SELECT DISTINCT person_id, "+key+" AS k FROM stays) u WHERE k IS NULL GROUP BY 1",
			"SELECT n, count(*) FROM (SELECT person_id, "+key+", count(*) AS n FROM stays GROUP BY 1, 2) u GROUP BY 1",
			placedForm(r, key+" > "+pick("x % 100", "y / 9", "3", "y")),
			placedForm(r, "until"+pick(" > ", " = ")+"since + interval '"+pick("1 month", "3 months", "2 years")+"'"))
		if parsed, refusal := parse.Parse(text); refusal != nil || len(parsed) != 1 {
			t.Fatal(text, refusal)
		}
		begun := time.Now()
		length, refused := lengthOf(t, policies[r.IntN(len(policies))], text, dialect.DuckDB)
		switch {
		case refused == "long-sql":
			long++
		case refused == "":
			short++
		}
		if length > rewrite.MaxSQL || time.Since(begun) > 20*time.Second {
			t.Errorf("%s: %d bytes, after %v", text, length, time.Since(begun))
		}
	}
	t.Logf("%d are answered, %d too long", short, long)
	if long == 0 || short == 0 {
		t.Errorf("%d are answered, %d too long", short, long)
	}
}
