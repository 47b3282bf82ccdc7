package planner

import (
	"strings"
	"testing"

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
