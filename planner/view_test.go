package planner

import (
	"os"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// viewPolicy is the test policy with one more table.
func viewPolicy(t *testing.T, table string) (*policy.Policy, error) {
	t.Helper()
	text, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return policy.Parse([]byte(strings.TrimRight(string(text), "\n")+"\n      - "+strings.ReplaceAll(table, "\n", "\n        ")+"\n"), "policy.yaml")
}

// TestCheckViews: a SELECT as source is accepted where an analyst's sub-query would be, or refused with its reason and
// place.
func TestCheckViews(t *testing.T) {
	const age = "\ncolumns: [{name: age, type: integer}]"
	for _, s := range []struct{ table, want string }{
		{"name: v\nsource: SELECT age FROM people" + age, ""},
		{"name: v\nsource: SELECT p.age, p.person_id FROM people p JOIN visits v ON v.person_id = p.person_id WHERE v.ward = 'A'" + age, ""},
		{"name: v\nsource: SELECT person_id, count(*) AS n FROM visits GROUP BY 1\ncolumns: [{name: n, type: bigint}]", ""},
		{"name: v\nsource: SELECT r.label AS place, v.day FROM visits v JOIN regions r ON r.code = v.ward\ncolumns: [{name: place, type: text}]", ""},
		{"name: v\nsource: SELECT 'all' AS who, age FROM people\ncolumns: [{name: who, type: text}, {name: age, type: integer}]", ""},
		{"name: v\nsource: " + strings.Repeat("SELECT CASE WHEN age > 3 THEN age ELSE 0 END AS age FROM (", 20) + "SELECT age FROM people" + strings.Repeat(") q", 20) + age, "takes more than the 1 MiB"},
		{"name: v\nsource: SELECT agee FROM people" + age, `character 8 of the SELECT: column "agee" does not exist`},
		{"name: v\nsource: SELECT age FROM" + age, "syntax error at end of input"},
		{"name: v\nsource: SELECT age FROM people; SELECT 1" + age, "one SELECT"},
		{"name: v\nsource: SELECT avg(age)::int AS age FROM people" + age, "passes no rows on"},
		{"name: v\nsource: SELECT sex, max(age) AS age FROM people GROUP BY sex" + age, "passes no rows on"},
		{"name: v\nsource: SELECT a.age FROM people a JOIN people b ON a.age = b.age" + age, "of different persons together"},
		{"name: v\nsource: SELECT age FROM people LIMIT 10" + age, "character 30 of the SELECT: LIMIT over private rows"},
		{"name: v\nsource: SELECT age FROM people WHERE income * income > 100" + age, "not constant within the steps"},
		{"name: v\nsource: SELECT age FROM people WHERE 100 / age > 3" + age, "division by zero"},
		{"name: v\nsource: SELECT age FROM people UNION ALL SELECT age FROM people" + age, "UNION ALL of private rows"},
		{"name: v\nsource: SELECT age FROM v" + age, "reads that table itself"},
		{"name: v\nsource: SELECT age FROM people WHERE age > $1" + age, "no parameter $1"},
		{"name: v\nsource: SELECT age AS a FROM people" + age, `shows no column "age"`},
		{"name: v\nsource: SELECT age + 0.5 AS age FROM people" + age, "declared as integer, and its source makes it numeric"},
		{"name: v\nsource: SELECT age FROM people\ncolumns: [{name: age, type: integer}, {name: person_id, type: bigint, keys: join}]", `shows no join key "person_id"`},
		{"name: v\nsource: SELECT age, random() AS r FROM people\ncolumns: [{name: age, type: integer}, {name: r, type: double precision}]", "random"},
		{"name: v\ntrusted: true\nsource: SELECT a.person_id, a.age FROM private.main.people a\nunit: v.person_id = people.person_id\nmax_rows_per_unit: 1\ncolumns: [{name: age, type: integer, domain: {min: 0, max: 9}}]", ""},
		{"name: v\ntrusted: true\nsource: WITH a AS (SELECT * FROM private.main.people) SELECT * FROM a, people\nunit: v.person_id = people.person_id\nmax_rows_per_unit: 1\ncolumns: [{name: age, type: integer, domain: {min: 0, max: 9}}]", `relation "people" is not written in full`},
		{"name: v\ntrusted: true\nsource: WITH a AS (DELETE FROM private.main.people RETURNING *) SELECT * FROM a\nunit: v.person_id = people.person_id\nmax_rows_per_unit: 1\ncolumns: [{name: age, type: integer, domain: {min: 0, max: 9}}]", "changes data"},
		{"name: v\ntrusted: true\nsource: SELECT * FROM private.main.people WHERE age > $1\nunit: v.person_id = people.person_id\nmax_rows_per_unit: 1\ncolumns: [{name: age, type: integer, domain: {min: 0, max: 9}}]", "no parameter $1"},
		{"name: v\ntrusted: true\nsource: SELECT 1) AS x, (SELECT 2\nunit: v.person_id = people.person_id\nmax_rows_per_unit: 1\ncolumns: [{name: age, type: integer, domain: {min: 0, max: 9}}]", "syntax error"},
	} {
		p, err := viewPolicy(t, s.table)
		if err != nil {
			t.Fatalf("%s: %v", s.table, err)
		}
		switch err = CheckSQL(p); {
		case s.want == "" && err != nil:
			t.Errorf("%s\n%v", s.table, err)
		case s.want != "" && err == nil:
			t.Errorf("%s\nis accepted, want %s", s.table, s.want)
		case s.want != "" && !strings.Contains(err.Error(), s.want):
			t.Errorf("%s\n%v\nwant %s", s.table, err, s.want)
		case s.want != "" && !strings.HasPrefix(err.Error(), "policy.yaml:"):
			t.Errorf("%s\n%v has no place", s.table, err)
		}
	}
}

// TestViewsMeanTheirTables: a statement over an analysed SELECT is the statement over the tables below: same measures,
// so that releases are shared, whatever the session's search path is; and a refusal points at the table's name.
func TestViewsMeanTheirTables(t *testing.T) {
	p, err := viewPolicy(t, "name: v\nsource: SELECT age AS years, sex, person_id FROM people WHERE sex = 'Female'\ncolumns: [{name: years, type: integer}, {name: sex, type: text}]")
	if err != nil {
		t.Fatal(err)
	}
	c := testContext(t, p)
	for view, table := range map[string]string{
		`SELECT years, count(*) FROM v GROUP BY 1`:                             `SELECT age, count(*) FROM people WHERE sex = 'Female' GROUP BY 1`,
		`SELECT count(*) FROM public.v WHERE public.v.years > 30`:              `SELECT count(*) FROM people WHERE sex = 'Female' AND age > 30`,
		`SELECT count(*) FROM v x JOIN visits y ON y.person_id = x.person_id`:  `SELECT count(*) FROM people x JOIN visits y ON y.person_id = x.person_id WHERE x.sex = 'Female'`,
		`WITH people AS (SELECT 1) SELECT count(*) FROM v WHERE sex = 'Other'`: `SELECT count(*) FROM people WHERE sex = 'Other' AND sex = 'Female'`,
	} {
		a, refusal := planned(t, c, view)
		if refusal != nil {
			t.Errorf("%s: %v", view, refusal)
			continue
		}
		b, refusal := planned(t, c, table)
		if refusal != nil {
			t.Fatal(refusal)
		}
		if len(a.Measures) != len(b.Measures) {
			t.Fatalf("%s: %d measures, want %d", view, len(a.Measures), len(b.Measures))
		}
		for i := range a.Measures {
			if a.Measures[i].Digest != b.Measures[i].Digest {
				t.Errorf("%s: another measure than %s", view, table)
			}
		}
	}
	for text, at := range map[string]int{`SELECT count(*) FROM v WHERE income > 3`: 30, `SELECT * FROM v`: 15, `SELECT count(*) FROM v a JOIN v b ON a.years = b.years`: 31} {
		if _, refusal := planned(t, c, text); refusal == nil || refusal.Position != at {
			t.Errorf("%s: %+v, want position %d", text, refusal, at)
		}
	}
}
