package rewrite_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// aggregateForms are how an aggregate may be called over the rows of visits; AGG is its name.
var aggregateForms = []string{"AGG(*)", "AGG()", "AGG(minutes)", "AGG(minutes > 3)", "AGG(ward)", "AGG(cost)", "AGG(day)", "AGG(minutes, room)", "AGG(ward, ',')",
	"AGG() WITHIN GROUP (ORDER BY minutes)", "AGG(0.5) WITHIN GROUP (ORDER BY minutes)", "AGG(3) WITHIN GROUP (ORDER BY minutes)"}

// TestAuditHoldsEveryAggregate: each aggregate of PostgreSQL's own catalog that is answered over private rows is in
// a statement of the neighbour tests; so does each word that joins, bounds or chooses rows. What is planned but not
// audited would be found here, as the test's own example is.
func TestAuditHoldsEveryAggregate(t *testing.T) {
	rows, err := postgresConn(t, nil).Query(t.Context(), "SELECT DISTINCT proname::text FROM pg_catalog.pg_proc WHERE prokind = 'a' ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	var all, answered []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		all = append(all, name)
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	p := variants(t, dialect.PostgreSQL)["add-remove"]
	for _, name := range all {
		for _, form := range aggregateForms {
			if slices.ContainsFunc([]int{0, 2}, func(alarms int) bool {
				c := contextOf(t, p, privacy.MicroEpsilon(100_000))
				c.Settings.Alarms = alarms
				return measuredBy(t, "SELECT "+strings.Replace(form, "AGG", name, 1)+" FROM visits", c)
			}) {
				answered = append(answered, name)
				break
			}
		}
	}
	if len(all) < 40 || len(answered) < 20 || slices.Contains(answered, "string_agg") {
		t.Errorf("of %d aggregates %v are answered", len(all), answered)
	}
	for _, name := range answered {
		if !audited(`\b` + name + `\(`) {
			t.Errorf("%s is answered, and stands in no statement of the neighbour tests", name)
		}
	}
	for _, word := range []string{"JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "NATURAL JOIN", "USING", "IN \\(SELECT", "NOT IN \\(SELECT", "EXISTS", "NOT EXISTS", "DISTINCT who, ward",
		"count\\(DISTINCT", "sum\\(DISTINCT", "avg\\(DISTINCT", "variance\\(DISTINCT", "FILTER", "CASE", "OVER \\(\\)", "HAVING", "ROLLUP", "CUBE", "GROUPING SETS", "UNION ALL", "WITH "} {
		if !audited(word) {
			t.Errorf("%s stands in no statement of the neighbour tests", word)
		}
	}
	if audited(`\bstring_agg\(`) {
		t.Error("an aggregate that nobody audits is found")
	}
	t.Logf("%d of %d aggregates are answered over private rows, and audited: %s", len(answered), len(all), strings.Join(answered, " "))
}

// measuredBy reports whether a statement is answered from a measure of private rows.
func measuredBy(t *testing.T, text string, c reuse.Context) bool {
	t.Helper()
	statements, refusal := parse.Parse(text)
	if refusal != nil {
		return false
	}
	plan, refusal := planner.Build(statements[0], nil, c)
	return refusal == nil && len(plan.Measures) > 0
}

// audited reports whether a pattern is found in a statement whose releases are audited or compared between neighbours.
func audited(pattern string) bool {
	found := regexp.MustCompile(pattern)
	for _, s := range released {
		if found.MatchString(s.text) {
			return true
		}
	}
	for _, list := range [][]string{joinStatements, viewStatements, lookupStatements, matchStatements, usingStatements, sumStatements, moreStatements, unitStatements, windowStatements, tiedStatements, unionStatements, listStatements, listedStatements, fullStatements, alarmStatements} {
		if slices.ContainsFunc(list, found.MatchString) {
			return true
		}
	}
	return false
}
