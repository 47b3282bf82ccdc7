package planner

import "testing"

// TestColumnsWithoutBounds: a column of domain: private is refused by name wherever a statement names it, with what its
// owner does about it, and is not there where names are not: neither SELECT * nor a list of aliases counts it. The rest
// of its table is answered.
func TestColumnsWithoutBounds(t *testing.T) {
	c := testContext(t, testPolicy(t))
	c.Public = regionRows{}
	for _, text := range []string{
		`SELECT avg(weight) FROM people`, `SELECT count(*) FROM people WHERE weight > 3`, `SELECT weight, count(*) FROM people GROUP BY 1`, `SELECT count(*) FROM people p WHERE p.weight IS NULL`,
		`SELECT sum(people.weight) FROM people`, `SELECT count(public.people.weight) FROM people`, `SELECT max(weight) FROM (SELECT * FROM people) t`, `SELECT w, count(*) FROM (SELECT weight AS w FROM people) t GROUP BY 1`,
		`SELECT ward, avg(weight) FROM people JOIN visits ON visits.person_id = people.person_id GROUP BY 1`, `SELECT avg(p.weight) FROM visits v LEFT JOIN people p ON v.person_id = p.person_id`,
		`SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY weight) FROM people`, `SELECT count(*) FROM people ORDER BY count(weight)`, `SELECT max(m) FROM (SELECT person_id, max(weight) AS m FROM people GROUP BY person_id) t`,
		`SET dp.dialect = mysql; SELECT avg(weight) FROM people`,
	} {
		r := refused(c, text)
		if r == nil || r.ID != "column-without-bounds" || r.SQLState != "DP002" || r.Message != `column "weight" of table people has no bounds yet, and nothing is answered over it` ||
			r.Hint != `The data owner finds them with dpproxy bounds --table people, and writes them in the place of "domain: private".` {
			t.Errorf("%s: %+v", text, r)
		}
	}
	for text, id := range map[string]string{
		`SELECT count(*), avg(age) FROM people WHERE income > 3000`: "", `SELECT count(*) FROM people p JOIN visits v ON v.person_id = p.person_id`: "",
		`SELECT x, count(*) FROM (SELECT age, sex FROM people) t(x, y) GROUP BY 1`: "", `SELECT x, count(*) FROM people t(x) GROUP BY 1`: "",
		`SELECT v.weight, count(*) FROM visits v GROUP BY 1`: "unknown-column", `SELECT count(weigt) FROM people`: "unknown-column",
	} {
		if r := refused(c, text); r == nil && id != "" || r != nil && r.ID != id {
			t.Errorf("%s: %+v", text, r)
		}
	}
}
