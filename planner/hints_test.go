package planner

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/parse"
)

// pasteable are the statements of a hint: from SELECT, SET, EXPLAIN or RESET on, as far as it can be read. What has a …
// in it is a pattern to fill in.
func pasteable(hint string) (list []string) {
	for at := 0; at < len(hint); at++ {
		if at > 0 && hint[at-1] != ' ' && hint[at-1] != '(' {
			continue
		}
		word, _, _ := strings.Cut(hint[at:], " ")
		if word != "SELECT" && word != "WITH" && word != "SET" && word != "RESET" && word != "EXPLAIN" {
			continue
		}
		for end := len(hint); end > at; end-- {
			if end < len(hint) && !strings.ContainsRune(" .,;:)", rune(hint[end])) {
				continue
			}
			text := strings.TrimRight(hint[at:end], ".,;: ")
			if _, refusal := parse.Parse(text); refusal == nil {
				if !strings.Contains(text, "…") {
					list = append(list, text)
				}
				at += len(text)
				break
			}
		}
	}
	return list
}

// TestHintsArePlanned: each statement of a hint of the catalogue's examples is planned where its example was refused.
// test/answers runs those that are made of a statement.
func TestHintsArePlanned(t *testing.T) {
	c := testContext(t, testPolicy(t))
	dear := c
	dear.Settings.Epsilon = c.Dataset.Defaults.MaxEpsilon
	found := 0
	for _, e := range catalogue() {
		if e.Example == "" {
			continue
		}
		r := refused(c, e.Example)
		if r == nil {
			t.Errorf("%s: %s is answered", e.ID, e.Example)
			continue
		}
		for _, text := range pasteable(r.Hint) {
			found++
			if again := refused(dear, text); again != nil {
				t.Errorf("%s hints at %s\nwhich is refused: %s", e.ID, text, again.Message)
			}
		}
	}
	for _, text := range []string{"SELECT any_value(person_id) FROM visits", "SELECT array_agg(sex || $1) FROM people", "SELECT string_agg(sex, ',') FROM people p WHERE p.age > 30", "SELECT any_value(v.ward ORDER BY v.day) FROM people p JOIN visits v ON v.person_id = p.person_id WHERE p.sex = 'Male'",
		"WITH x AS (SELECT sex AS \"Sex\" FROM people) SELECT any_value(\"Sex\") FROM x", "WITH x AS (SELECT sex FROM people) SELECT * FROM (SELECT array_agg(sex) FROM x) q", "SELECT sum(age), json_agg(kids ORDER BY age) FROM people HAVING count(*) > 3", "SELECT regr_slope(DISTINCT age + 1, kids) FILTER (WHERE active) FROM people"} {
		r := refused(c, text)
		if r == nil {
			t.Errorf("%s is answered", text)
			continue
		}
		for _, hinted := range pasteable(r.Hint) {
			found++
			if again := refused(dear, hinted); again != nil {
				t.Errorf("%s hints at %s\nwhich is refused: %s", text, hinted, again.Message)
			}
		}
	}
	if found < 12 {
		t.Errorf("only %d statements were found", found)
	}
}

// steppedKeys are keys that mostly cut a column, in place of %[1]s, between its steps: C is a constant, R is released.
var steppedKeys = []string{"floor(%[1]s / C)", "round(%[1]s / (R + C))", "width_bucket(%[1]s, 0, C, 3)",
	"width_bucket(%[1]s, 0, R, 3)", "(%[1]s * C)::int / 7", "%[1]s * %[1]s > R", "sqrt(%[1]s) * C > 7", "%[1]s / C > R",
	"%[1]s::text LIKE '%%7'",
	"greatest(%[1]s, C)", "%[1]s %% 7 = 3", "floor(%[1]s / C) > R"}

// TestHintsOfSteps: of a key that is refused for what its column's steps are, the hint is followed with constants and
// with released numbers, and answered.
func TestHintsOfSteps(t *testing.T) {
	c := testContext(t, testPolicy(t))
	c.Settings.Epsilon = c.Dataset.Defaults.MaxEpsilon
	r, found := rand.New(rand.NewPCG(1, 45)), 0
	hinted := regexp.MustCompile(`CASE WHEN (\w+) < … THEN … END`)
	drawn := func(text string) string { return filledIn(r, text, "(SELECT avg(income) FROM people)") }
	for range 120 {
		text := "SELECT " + drawn(fmt.Sprintf(steppedKeys[r.IntN(len(steppedKeys))],
			"income")) + " AS k, count(*) FROM people GROUP BY 1"
		refusal := refused(c, text)
		if refusal == nil || refusal.ID != "off-grid-expression" {
			continue
		}
		of := hinted.FindStringSubmatch(refusal.Hint)
		if found++; of == nil {
			t.Errorf("%s hints at no statement: %s", text, refusal.Hint)
			continue
		}
		for _, end := range []string{"C", "R"} {
			follow := "SELECT " + drawn(fmt.Sprintf("CASE WHEN %[1]s < %[2]s THEN 1 WHEN %[1]s < C THEN 2 END", of[1],
				end)) + " AS k, count(*) FROM people GROUP BY 1"
			if again := refused(c, follow); again != nil {
				t.Errorf("%s\n%s hints at\n%s which is refused: %s", text, refusal.Hint, follow, again.Message)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d keys were refused", found)
	}
}

// filledIn has a drawn number in place of each C of a text, and for R what is given, or another number, which may lie
// beyond the column's domain.
func filledIn(r *rand.Rand, text, released string) string {
	return regexp.MustCompile(`\b[CR]\b`).ReplaceAllStringFunc(text, func(what string) string {
		if what == "R" && released != "" {
			return released
		}
		if what == "R" && r.IntN(4) == 0 {
			return []string{"-0.5", "-12345.6", "200000", "234567.8"}[r.IntN(4)]
		}
		return fmt.Sprintf("%d.%d", 1+r.IntN(40_000), 1+r.IntN(99))
	})
}

// TestAwaitedIsPlannedAlike: what is planned before each R is answered is planned whatever number some of them become,
// the others being answered later. It may fail of it, as in plain SQL.
func TestAwaitedIsPlannedAlike(t *testing.T) {
	c := testContext(t, testPolicy(t))
	c.Settings.Epsilon = c.Dataset.Defaults.MaxEpsilon
	keys := append([]string{"%[1]s > R", "%[1]s BETWEEN R AND C", "%[1]s BETWEEN R AND R", "%[1]s < R OR %[1]s > C", "%[1]s >= greatest(R - 1000, C)",
		"CASE WHEN %[1]s < R THEN floor(%[1]s / 1000) END", "floor(%[1]s / (1 + R))"}, steppedKeys...)
	r, found := rand.New(rand.NewPCG(2, 45)), 0
	for range 400 {
		text := "SELECT " + filledIn(r, fmt.Sprintf(keys[r.IntN(len(keys))], "income"),
			"R") + " AS k, count(*) FROM people GROUP BY 1"
		released := []string{"(SELECT avg(income) FROM people)", "(SELECT count(*) FROM people)",
			"(SELECT count(*) / 7.0 FROM people)"}[r.IntN(3)]
		if !strings.Contains(text, "R ") && !strings.Contains(text, "R)") || refused(c, filledIn(r, text,
			released)) != nil {
			continue
		}
		found++
		for range 4 {
			known := filledIn(r, text, "")
			if r.IntN(2) == 0 && strings.Count(text, "R") > 1 {
				known = filledIn(r, strings.Replace(text, "R", filledIn(r, "R", ""), 1), released)
			}
			if refusal := refused(c, known); refusal != nil && !strings.HasPrefix(refusal.SQLState, "22") {
				t.Errorf("%s is planned, and not\n%s: %s", text, known, refusal.Message)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d were planned", found)
	}
}

// TestConditionsMayBeNULL: a condition that is NULL though no column of it is, by a constant or an empty answer, has a
// cell for that; each has cells for the truth values that it may have alone.
func TestConditionsMayBeNULL(t *testing.T) {
	const step = "max: 200000, step: 1000}"
	c := testContext(t, testPolicy(t, step, step+", outside: clamp, nulls: exclude"))
	for condition, cells := range map[string]string{
		"income > 20500.5": "f t", "income > 20500.5 AND income < 40500.5": "f t",
		"NOT (income > 20500.5 OR income < 500.5)": "f t", "income > 20500.5 OR NULL": "n t",
		"income IN (20500.5, NULL)": "n t", "income NOT BETWEEN 20500.5 AND NULL": "t n",
		"income > 20500.5 AND sex LIKE NULL": "f n", "income > 20500.5 OR income < 500.5 AND NULL": "n f t",
	} {
		plan, refusal := planned(t, c, "SELECT "+condition+" AS k, count(*) FROM people GROUP BY 1")
		if refusal != nil {
			t.Errorf("%s: %s", condition, refusal.Message)
		} else if got := strings.Join(plan.Measures[0].Table.Derived.(*derived.Tested).Cells, " "); got != cells {
			t.Errorf("%s has the cells %s, want %s", condition, got, cells)
		}
	}
}
