package planner

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

// textsContext is a policy with columns of `domain: any`.
func textsContext(t *testing.T) reuse.Context {
	t.Helper()
	text := policytest.Over("duckdb:x.duckdb") + `
  - id: census
    unit: {name: person, key: people.person_id}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - name: people
        expected_rows: 10000
        max_rows_per_unit: 1
        columns:
          - {name: phone, type: varchar(15), domain: any}
          - {name: mail, type: text, domain: any, nulls: exclude}
          - {name: sex, type: text, domain: {values: [f, m]}}
          - {name: age, type: integer, domain: {min: 0, max: 99}}
      - name: orders
        unit: orders.person_id = people.person_id
        expected_rows: 50000
        max_rows_per_unit: 8
        columns:
          - {name: order_id, type: integer, keys: join}
          - {name: note, type: text, domain: any}
          - {name: price, type: integer, domain: {min: 0, max: 1000, step: 10}}
`
	p, err := policy.Parse([]byte(text), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := testContext(t, p)
	c.Settings.SearchPath = nil
	return c
}

// TestTexts: what is asked of texts that nobody declared.
func TestTexts(t *testing.T) { runGolden(t, "testdata/texts/texts.txt", textsContext(t)) }

// TestTextsRefuse: what would show texts of rows, or what servers do not agree on, is refused.
func TestTextsRefuse(t *testing.T) {
	c := textsContext(t)
	for text, id := range map[string]string{
		`SELECT phone, count(*) FROM people GROUP BY phone`:                                                               "unnamed-texts",
		`SELECT left(phone, 2), count(*) FROM people GROUP BY 1`:                                                          "unnamed-texts",
		`SELECT DISTINCT left(phone, 2) FROM people`:                                                                      "unnamed-texts",
		`SELECT left(phone, 2), count(*) FROM people WHERE left(phone, 2) <> '13' GROUP BY 1`:                             "unnamed-texts",
		`SELECT left(phone, 2), count(*) FILTER (WHERE left(phone, 2) = '13') FROM people GROUP BY 1`:                     "unnamed-texts",
		`SELECT count(*) FROM people WHERE phone > '1'`:                                                                   "any-text",
		`SELECT count(*) FROM people WHERE phone = mail`:                                                                  "any-text",
		`SELECT count(*) FROM people WHERE left(phone, 2) = right(phone, 2)`:                                              "any-text",
		`SELECT count(*) FROM people WHERE mail ~ 'a'`:                                                                    "any-text",
		`SELECT count(*) FROM people WHERE mail SIMILAR TO 'a%'`:                                                          "any-text",
		`SELECT count(*) FROM people WHERE mail LIKE phone`:                                                               "any-text",
		`SELECT count(*) FROM people WHERE left(mail, age) = 'a'`:                                                         "any-text",
		`SELECT count(*) FROM people WHERE mail || 'x' = 'ax'`:                                                            "any-text",
		`SELECT count(DISTINCT phone) FROM people`:                                                                        "any-text",
		`SELECT mode() WITHIN GROUP (ORDER BY phone) FROM people`:                                                         "any-text",
		`SELECT min(phone) FROM people`:                                                                                   "",
		`SELECT string_agg(phone, ',') FROM people`:                                                                       "",
		`SELECT phone FROM people`:                                                                                        "",
		`SELECT "left(phone, 2)" FROM people WHERE left(phone, 2) = '13'`:                                                 "unknown-column",
		`SELECT count(*) FROM people WHERE mail ILIKE '%é%'`:                                                              "folded-text",
		`SELECT count(*) FROM people WHERE lower(mail) = 'é'`:                                                             "folded-text",
		`SELECT count(*) FROM people WHERE 'É' <> upper(mail)`:                                                            "folded-text",
		`SELECT count(*) FROM people WHERE lower(mail) IN ('e', 'é')`:                                                     "folded-text",
		`SELECT count(*) FROM people WHERE lower(mail) LIKE lower('%É%')`:                                                 "folded-text",
		`SELECT count(*) FROM people WHERE strpos(lower(mail), 'é') > 0`:                                                  "folded-text",
		`SELECT count(*) FROM people WHERE CASE upper(mail) WHEN 'É' THEN true END`:                                       "folded-text",
		`SELECT count(*) FROM people WHERE mail LIKE 'a\'`:                                                                "text-question",
		`SELECT count(*) FROM people WHERE mail LIKE '` + strings.Repeat("a", policy.MaxPattern+1) + `'`:                  "text-question",
		`SELECT count(*) FROM people WHERE left(lower(right(ltrim(rtrim(mail)), 3)), 2) = 'ab'`:                           "text-question",
		`SELECT count(*) FROM people WHERE mail = 'other'`:                                                                "any-text",
		`SELECT count(*) FROM people WHERE substring(mail FROM 1 FOR -1) = 'a'`:                                           "evaluation-error",
		`SELECT n, count(*) FROM (SELECT person_id, min(phone) AS n FROM people GROUP BY 1) t GROUP BY 1`:                 "",
		`SELECT count(*) FROM people p JOIN orders o ON o.person_id = p.person_id WHERE p.mail = o.note`:                  "any-text",
		`SELECT p.phone, count(*) FROM people p JOIN orders o ON o.person_id = p.person_id WHERE o.note = 'x' GROUP BY 1`: "unnamed-texts",
		`SELECT count(*) FROM people p FULL JOIN orders o ON o.person_id = p.person_id WHERE o.note = 'late'`:             "any-text",
		`SELECT count(*) FROM people p FULL JOIN orders o ON o.person_id = p.person_id WHERE p.mail LIKE '%a%'`:           "any-text",
		// Of a union's domain the values that a condition below it names would be all that there are.
		`SELECT count(*) FROM (SELECT person_id, left(phone, 2) AS c FROM people WHERE left(phone, 2) = '13' OR age > 3) p FULL JOIN orders o ON o.person_id = p.person_id WHERE c = '31'`: "any-text",
		`SELECT c, count(*) FROM (SELECT person_id, left(phone, 2) AS c FROM people WHERE left(phone, 2) = '13' OR age > 3) p FULL JOIN orders o ON o.person_id = p.person_id GROUP BY 1`:  "any-text",
		`SELECT count(o.order_id) FROM people p FULL JOIN orders o ON o.person_id = p.person_id`:                                                                                           "join-key-only",
	} {
		p, refusal := planned(t, c, text)
		switch {
		case refusal == nil:
			t.Errorf("%s: planned for %s", text, p.Cost)
		case id != "" && refusal.ID != id:
			t.Errorf("%s: %s: %s", text, refusal.ID, refusal.Message)
		}
	}
}

// TestTextsBesideFullJoins: a table with such a column is joined like others, by what its texts say too.
func TestTextsBesideFullJoins(t *testing.T) {
	c := textsContext(t)
	for _, text := range []string{
		`SELECT sex, count(*), count(p.person_id), sum(price) FROM people p FULL JOIN orders o ON o.person_id = p.person_id WHERE age > 20 OR price > 100 GROUP BY 1`,
		`SELECT count(*) FROM people p FULL JOIN orders o USING (person_id)`,
		`SELECT count(*) FROM (SELECT * FROM people) p FULL JOIN (SELECT * FROM orders) o ON o.person_id = p.person_id AND o.note LIKE '%late%' AND left(p.phone, 2) = '13' WHERE sex = 'f'`,
	} {
		if _, refusal := planned(t, c, text); refusal != nil {
			t.Errorf("%s: %s: %s", text, refusal.ID, refusal.Message)
		}
	}
}
