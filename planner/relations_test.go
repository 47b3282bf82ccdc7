package planner

import (
	"regexp"
	"testing"
)

// TestNearestTable: the hint names the table so that the session's search_path finds it.
func TestNearestTable(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for _, e := range []struct {
		path []string
		want string
	}{
		{nil, `Perhaps you meant "people".`},
		{[]string{"public"}, `Perhaps you meant "people".`},
		{[]string{"foo"}, `Perhaps you meant "public.people".`},
		{[]string{"foo", "public"}, `Perhaps you meant "people".`},
	} {
		c.Settings.SearchPath = e.path
		if r := refused(c, "SELECT count(*) FROM poeple"); r == nil || r.ID != "unknown-table" || r.Hint != e.want {
			t.Errorf("search_path %v: %+v, want the hint %s", e.path, r, e.want)
		}
	}
	c.Settings.SearchPath = []string{"foo"}
	if r := refused(c, "SELECT count(*) FROM people"); r == nil || r.Hint != `Perhaps you meant "public.people".` {
		t.Errorf("the exact name outside search_path: %+v", r)
	}
}

// TestEmptySearchPath: of an empty search_path, as pg_dump sets it, bare names are the catalogs' alone; a policy's own
// SELECTs read as they did.
func TestEmptySearchPath(t *testing.T) {
	c := testContext(t, testPolicy(t))
	c.Settings.SearchPath = []string{}
	for _, text := range []string{"SELECT count(*) FROM people",
		"SELECT count(*) FROM public.visits v JOIN people p ON p.person_id = v.person_id", "SELECT * FROM tables"} {
		if r := refused(c, text); r == nil || r.SQLState != "42P01" {
			t.Errorf("%s: %+v", text, r)
		}
	}
	for _, text := range []string{"SELECT count(*) FROM public.people", "SELECT count(*) FROM pg_class",
		"SELECT relname FROM pg_catalog.pg_class", "WITH people AS (SELECT 1 AS a) SELECT a FROM people", "SELECT * FROM dp.tables"} {
		if r := refused(c, text); r != nil {
			t.Errorf("%s: %+v", text, r)
		}
	}
}

// TestSeriesOfCountsAreNoisy: a series whose ends depend on counts has rows and values that do.
func TestSeriesOfCountsAreNoisy(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for text, want := range map[string]bool{
		"SELECT g FROM (SELECT count(*) / 50 AS n FROM people) t, generate_series(1, t.n) g":                                true,
		"SELECT g FROM generate_series(1, (SELECT count(*) / 50 FROM people)) g":                                            true,
		"SELECT g + 1 AS g FROM (SELECT count(*) AS n FROM people) t CROSS JOIN LATERAL generate_series(1, t.n, 2) AS s(g)": true,
		"SELECT count(*) AS g FROM (SELECT count(*) AS n FROM people) t, generate_series(1, t.n)":                           true,
		"SELECT g FROM (SELECT sex, age, count(*) AS n FROM people GROUP BY 1, 2) t, generate_series(1, t.age) g":           false,
		"SELECT g FROM (SELECT count(*) / 50 AS n FROM people) t, generate_series(1, 3) g":                                  false,
	} {
		p, refusal := planned(t, c, text)
		if refusal != nil || len(p.Columns) != 1 || p.Columns[0].Noisy != want {
			t.Errorf("%s: %+v, %+v; want noisy: %v", text, p, refusal, want)
		}
	}
}

// TestCollations: COLLATE "C" changes nothing of how cells compare; what another would change is refused.
func TestCollations(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for _, text := range []string{`SELECT count(*) FROM people WHERE sex COLLATE "C" < 'N'`,
		`SELECT count(*) FROM people WHERE 'Male' COLLATE pg_catalog."default" = sex`, `SELECT sex COLLATE "POSIX", count(*) FROM people WHERE sex COLLATE "C" LIKE 'F%' GROUP BY sex`} {
		plain, refusal := planned(t, c, collate.ReplaceAllString(text, ""))
		if refusal != nil {
			t.Fatal(refusal.Message)
		}
		p, refusal := planned(t, c, text)
		if refusal != nil || len(p.Measures) != len(plain.Measures) || len(p.Measures) > 0 &&
			p.Measures[0].Digest != plain.Measures[0].Digest {
			t.Errorf("%s: %+v", text, refusal)
		}
	}
	for _, text := range []string{`SELECT count(*) FROM people WHERE sex COLLATE "de_DE" = 'f'`,
		`SELECT count(*) FROM people WHERE lower(sex COLLATE "C") = 'f'`, `SELECT count(*) FROM people WHERE sex COLLATE "C" ILIKE 'F%'`, `SELECT count(*) FROM people WHERE regexp_like(sex COLLATE "C", 'f', 'i')`, `SELECT count(*) FROM people WHERE age COLLATE "C" = 3`,
		`SELECT count(*) FROM (SELECT sex COLLATE "C" AS s FROM people) t WHERE upper(s) = 'F'`} {
		if r := refused(c, text); r == nil || r.SQLState != "DP002" {
			t.Errorf("%s: %+v", text, r)
		}
	}
}

var collate = regexp.MustCompile(` COLLATE [\w."]+`)
