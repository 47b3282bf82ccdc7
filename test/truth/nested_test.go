package truth

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/nested"
	"github.com/dpproxy/dpproxy/internal/threats"
)

// keyed has keys of all kinds: of units, through which units are found, of several units, and with a domain as well.
func keyed(seed uint64) *schema {
	d := newDice(seed, 11)
	people := &table{name: "people", named: "person_id", bound: 1, keys: []string{"PRIMARY KEY (person_id)"}, columns: []column{
		{name: "person_id", stored: "integer", declared: "integer", rules: "keys: join, domain: {min: 1, max: 60}"},
		{name: "age", stored: "integer", declared: "integer", rules: "domain: {min: 0, max: 9}"},
		{name: "sex", stored: "text", declared: "text", rules: "domain: {values: [f, m]}"},
	}}
	visits := &table{name: "visits", named: "person_id", unit: "visits.person_id = people.person_id", bound: 4, kept: "t.person_id IS NOT NULL", keys: []string{"PRIMARY KEY (visit)"}, columns: []column{
		{name: "person_id", stored: "integer", declared: "integer", rules: "keys: join"},
		{name: "visit", stored: "integer", declared: "integer", rules: "keys: join"},
		{name: "referral", stored: "integer", declared: "integer", rules: "keys: join"},
		{name: "ward", stored: "text", declared: "text", rules: "domain: {values: [A, B, C]}"},
		{name: "minutes", stored: "integer", declared: "integer", rules: "domain: {min: -5, max: 9}"},
		{name: "day", stored: "date", declared: "date", rules: "domain: {min: 2025-01-01, max: 2025-01-31}"},
	}}
	items := &table{name: "items", named: "visit", unit: "items.visit = visits.visit", bound: 12, kept: "t.visit IN (SELECT visit FROM public.visits WHERE person_id IS NOT NULL)", columns: []column{
		{name: "visit", stored: "integer", declared: "integer", rules: "keys: join"},
		{name: "product", stored: "integer", declared: "integer", rules: "keys: join, domain: {min: 0, max: 5}"},
		{name: "n", stored: "integer", declared: "integer", rules: "domain: {min: 0, max: 9}"},
	}}
	calls := &table{name: "calls", named: "who", unit: "calls.who = people.person_id", bound: 3, kept: "t.who IS NOT NULL", columns: []column{
		{name: "who", stored: "integer", declared: "integer", rules: "keys: join"},
		{name: "referral", stored: "integer", declared: "integer", rules: "keys: join"},
		{name: "product", stored: "integer", declared: "integer", rules: "keys: join, domain: {min: 0, max: 5}"},
		{name: "ward", stored: "text", declared: "text", rules: "domain: {values: [A, B]}"},
	}}
	number := func(n int) string { return strconv.Itoa(d.IntN(n)) }
	visit := 0
	for id := 1; id <= 60; id++ {
		people.rows = append(people.rows, []string{strconv.Itoa(id), number(10), d.one("f", "m", null)})
		who := d.one(strconv.Itoa(id), strconv.Itoa(id), strconv.Itoa(id), strconv.Itoa(id), null)
		for range d.IntN(5) {
			visit++
			visits.rows = append(visits.rows, []string{who, strconv.Itoa(visit), d.one(strconv.Itoa(id*10+d.IntN(3)), strconv.Itoa(id*10+d.IntN(3)), null), d.one("A", "B", "C", null), d.one(strconv.Itoa(d.IntN(15)-5), null), day("2025-01-01", d.IntN(31))})
			for range d.IntN(4) {
				items.rows = append(items.rows, []string{strconv.Itoa(visit), d.one(number(6), null), number(10)})
			}
		}
		for range d.IntN(4) {
			calls.rows = append(calls.rows, []string{who, d.one(strconv.Itoa(id*10+d.IntN(3)), null), number(6), d.one("A", "B")})
		}
	}
	return &schema{name: "keyed", unit: "people.person_id", tables: []*table{people, visits, items, calls}}
}

// otherRows are notices that say that the answer is of other rows than plain SQL's.
var otherRows = []string{"are put together where they are of one", "are of one person each",
	"are counted within each person", nowhere, unlisted, "is taken to be NULL", "that nobody is in take part", "that name no person"}

// nestedOnce are statements that were answered by another key, or ended the session.
var nestedOnce = []string{
	`SELECT count(DISTINCT y.referral) AS n FROM visits v JOIN (SELECT x.person_id, x.referral, (SELECT count(*) FROM people b WHERE b.person_id = x.person_id) AS s FROM visits x) y USING (person_id) WHERE v.ward = 'A'`,
	`SELECT count(DISTINCT y.visit) AS n FROM (SELECT x.visit, x.person_id, (SELECT count(*) FROM calls c WHERE c.who = x.person_id) AS s FROM visits x) y WHERE y.s > 1`,
	`SELECT s, count(*) AS n FROM (SELECT DISTINCT x.person_id, x.referral, (SELECT count(*) FROM calls c WHERE c.who = x.person_id) AS s FROM visits x) y GROUP BY 1 HAVING count(*) > 0`,
	`SELECT s, count(*) AS n FROM (SELECT x.person_id, x.referral, (SELECT count(*) FROM calls c WHERE c.who = x.person_id) AS s, max(x.minutes) AS m FROM visits x GROUP BY 1, 2, 3) y GROUP BY 1 HAVING count(*) > 0`,
	`SELECT count(*) AS n, count(v.ward) AS w, count(i.n) AS i FROM items i FULL JOIN visits v ON v.visit = i.visit`,
	`SELECT product, count(*) AS n FROM (SELECT who, product FROM calls EXCEPT SELECT v.person_id, i.product FROM items i JOIN visits v ON v.visit = i.visit) t GROUP BY 1 HAVING count(*) > 0`,
	`SELECT product, count(*) AS n FROM (SELECT who, product FROM calls INTERSECT SELECT v.person_id, i.product FROM items i JOIN visits v ON v.visit = i.visit) t GROUP BY 1 HAVING count(*) > 0`,
	`SELECT product, count(*) AS n FROM (SELECT who, product FROM calls UNION SELECT v.person_id, i.product FROM items i JOIN visits v ON v.visit = i.visit) t GROUP BY 1 HAVING count(*) > 0`,
	`SELECT count(p) AS n FROM people p LEFT JOIN visits v ON v.person_id = p.person_id`,
	`SELECT count(v.person_id) AS n, count(v) AS v, count(c) AS c FROM people p LEFT JOIN (calls c LEFT JOIN visits v ON v.person_id = c.who AND v.ward = 'A') ON c.who = p.person_id`,
	`SELECT count(*) AS n FROM people p LEFT JOIN (calls c LEFT JOIN visits v ON v.person_id = c.who AND v.ward = 'A') ON c.who = p.person_id WHERE v.person_id IS NULL`,
	`SELECT count(DISTINCT person_id) AS n FROM visits v LEFT JOIN (SELECT person_id FROM people WHERE age > 4) p USING (person_id)`,
	`SELECT count(*) AS n FROM (SELECT person_id, age FROM people EXCEPT SELECT person_id, age FROM people WHERE age > 4) t`,
}

// keyAlone is what a refusal says of a key that is asked for its value.
const keyAlone = "it may join, be counted with DISTINCT, and nothing else"

// noExtremes is what a refusal says of the least value of all units, which EXISTS with < asks for.
const noExtremes = "the policy does not declare extremes for it"

// inSteps are the columns that hold several values within a step: groups of them are groups of steps, which TestDrawn
// judges.
func (s *schema) inSteps() (names []string) {
	for _, t := range s.tables {
		for _, c := range t.columns {
			if c.step != "" {
				names = append(names, c.name)
			}
		}
	}
	return names
}

// TestNested asks drawn nested statements: each answer is PostgreSQL's, or a notice says that it is of other rows.
func TestNested(t *testing.T) {
	for i, engine := range []string{"postgres", "duckdb"} {
		for k, s := range []*schema{keyed(*seed), shop(*seed), hospital(*seed)} {
			if !chosen(s.name, engine) {
				continue
			}
			t.Run(s.name+"/"+engine, func(t *testing.T) {
				p := pairOver(t, s, engine, func(*schema) {})
				g, tl := nested.New(p.house.policy.Datasets[0], rand.NewPCG(*seed, uint64(20+3*i+k))).Without(s.inSteps()...), newTally()
				wrongs := 0
				for _, text := range nestedOnce {
					if s.name == "keyed" {
						v, _, _ := p.try(&statement{text: text})
						if tl.classes[v.class]++; v.bad() {
							t.Errorf("%s, %s: %s\n  %s;", engine, v.class, v.why, text)
						}
					}
				}
				for range *statements / threats.ByNight(6, 2) {
					text, columns := g.Statement()
					stmt := &statement{text: text}
					for _, c := range columns {
						role := windowRole
						if strings.HasPrefix(c, "sum(") {
							role = valueRole
						}
						stmt.outs = append(stmt.outs, output{sql: c, role: role})
					}
					v, got, want := p.try(stmt)
					if v.class == denied && (strings.Contains(v.why, keyAlone) || strings.Contains(v.why, noExtremes)) {
						v.class = refused
					}
					tl.asked++
					said := strings.Join(got.said, "\n")
					for _, n := range otherRows {
						if v.class == wrong && want.err == nil && strings.Contains(said, n) {
							v = verdict{unknown, ""}
						}
					}
					if tl.classes[v.class]++; v.class == refused {
						tl.refusals[brief(v.why)]++
					}
					if !v.bad() {
						continue
					}
					t.Errorf("%s on %s, %s: %s\n  %s;\n  notes: %q\n  dpproxy:    %s\n  PostgreSQL: %s", s.name, engine, v.class, v.why, text, got.said, text30(got), text30(want))
					if wrongs++; wrongs > enough()*3 {
						return
					}
				}
				t.Log(tl.line(p, 0))
			})
		}
	}
}
