package planner

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/nested"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
)

var (
	nestedStatements = flag.Int("nested-statements", 300, "how many nested statements are planned over each policy; a night plans as many as there is time for")
	nestedSeed       = flag.Uint64("nested-seed", 45, "of the statements")
)

// keysPolicy has keys of all kinds: of units, through which units are found, of several units, and with a domain as
// well; rows that name no unit; and texts that nobody declared.
var keysPolicy = policytest.Over("duckdb:warehouse.duckdb") + `
  - id: shop
    unit: {name: person, key: people.person_id}
    accountant: pure
    cap: {epsilon: 20, delta: 0.01}
    budgets: {"*": {epsilon: 10, delta: 0.01}}
    defaults: {epsilon: 1, max_epsilon: 10, confidence: 0.95}
    tables:
      - name: people
        source: main.people
        max_rows_per_unit: 1
        columns:
          - {name: person_id, type: integer, keys: join, domain: {min: 1, max: 200}}
          - {name: age, type: integer, domain: {min: 0, max: 9}}
          - {name: sex, type: text, domain: {values: [f, m]}}
          - {name: city, type: text, keys: discover}
      - name: visits
        source: main.visits
        unit: visits.person_id = people.person_id
        max_rows_per_unit: 4
        columns:
          - {name: person_id, type: integer, keys: join}
          - {name: visit, type: integer, keys: join}
          - {name: referral, type: integer, keys: join}
          - {name: ward, type: text, domain: {values: [A, B, C]}}
          - {name: minutes, type: integer, domain: {min: -5, max: 9}}
          - {name: cost, type: "numeric(6,2)", domain: {min: 0, max: 10, step: 0.5}}
          - {name: day, type: date, domain: {min: 2025-01-01, max: 2025-03-31}}
          - {name: remark, type: text, domain: any}
      - name: items
        source: main.items
        unit: items.visit = visits.visit
        max_rows_per_unit: 8
        columns:
          - {name: visit, type: integer, keys: join}
          - {name: product, type: integer, keys: join, domain: {min: 0, max: 5}}
          - {name: n, type: integer, domain: {min: 0, max: 9}}
      - name: calls
        source: main.calls
        unit: calls.who = people.person_id
        max_rows_per_unit: 3
        columns:
          - {name: referral, type: integer, keys: join}
          - {name: product, type: integer, keys: join, domain: {min: 0, max: 5}}
          - {name: ward, type: text, domain: {values: [A, B]}, nulls: exclude}
`

// nestedContexts are what nested statements are planned over.
func nestedContexts(t testing.TB) (list []reuse.Context) {
	t.Helper()
	texts := []string{keysPolicy, strings.Replace(keysPolicy, "    accountant: pure\n", "    accountant: pure\n    null_unit: each\n", 1)}
	for _, file := range []string{"testdata/policy.yaml", "testdata/shop.yaml", "testdata/dashboard.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		p, err := policy.Parse([]byte(text), "policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, testContext(t, p))
	}
	return list
}

// nestedOnce are statements over the first of them that ended a session, or were answered by another key.
var nestedOnce = []string{
	`SELECT count(DISTINCT y.referral) FROM visits v JOIN (SELECT x.person_id, x.referral, (SELECT count(*) FROM people b WHERE b.person_id = x.person_id) AS s FROM visits x) y USING (person_id) WHERE v.ward = 'A'`,
	`SELECT count(*) FROM (SELECT DISTINCT x.person_id, x.referral, (SELECT count(*) FROM people b WHERE b.person_id = x.person_id) AS s FROM visits x) y`,
	`SELECT count(*) FROM (SELECT x.person_id, x.referral, (SELECT count(*) FROM people b WHERE b.person_id = x.person_id) AS s, max(x.minutes) FROM visits x GROUP BY 1, 2, 3) y`,
	`SELECT count(*) FROM items i FULL JOIN visits v ON v.visit = i.visit`,
	`SELECT count(*) FROM (SELECT who, product FROM calls EXCEPT SELECT v.person_id, i.product FROM items i JOIN visits v ON v.visit = i.visit) t`,
	`SELECT count(*) FROM (SELECT who, product FROM calls INTERSECT SELECT v.person_id, i.product FROM items i JOIN visits v ON v.visit = i.visit) t`,
	`SELECT count(*) FROM (SELECT DISTINCT ON (who) who, product FROM
		(SELECT who, product FROM calls UNION ALL SELECT who, product FROM calls) q ORDER BY who, product) t WHERE product = 0`,
	`SELECT count(*) FROM (SELECT p.person_id AS a, p.age FROM people p INTERSECT SELECT c.who, c.referral FROM calls c) t`,
}

// TestNestedStatements: none of many drawn statements ends a session, and each that is planned can be written for the
// engines.
func TestNestedStatements(t *testing.T) {
	for i, c := range nestedContexts(t) {
		t.Run(fmt.Sprintf("policy%d", i), func(t *testing.T) {
			for _, text := range nestedOnce {
				if _, fault := planNested(c, text); i == 0 && fault != "" {
					t.Errorf("%s\n%.6000s", text, fault)
				}
			}
			d, planned, ended := nested.New(c.Dataset, rand.NewPCG(*nestedSeed, uint64(i))), 0, map[string]int{}
			for range *nestedStatements {
				text, _ := d.Statement()
				ok, fault := planNested(c, text)
				if ok {
					planned++
				}
				if fault == "" {
					continue
				}
				if ended[placeOf(fault)]++; ended[placeOf(fault)] == 1 {
					t.Errorf("%s\n%.6000s", text, fault)
				}
			}
			t.Logf("of %d statements %d are planned, %v end", *nestedStatements, planned, ended)
		})
	}
}

// TestOwnRowsAreMarkedOnce: that a row has a unit is one mark of it, however often it is asked, where rows without one
// count too. Each asking was of the rows as they were marked by then, so that planning went on without end.
func TestOwnRowsAreMarkedOnce(t *testing.T) {
	for i, c := range nestedContexts(t)[:2] {
		for _, text := range []string{
			`SELECT count(*) FROM (SELECT person_id, ward, count(person_id) FILTER (WHERE person_id IS NOT NULL) AS n
				FROM visits GROUP BY 1, 2) t WHERE n > 1`,
			`SELECT count(*) FROM (SELECT sum(CASE WHEN person_id IS NOT NULL THEN 1 END) OVER (PARTITION BY person_id)
				AS n FROM visits) t WHERE n > 1`,
		} {
			if planned, fault := planNested(c, text); !planned {
				t.Errorf("policy %d: %s is not planned: %s", i, text, fault)
			}
		}
	}
}

// planNested plans a statement as a session does, and says what ended it.
func planNested(c reuse.Context, text string) (planned bool, fault string) {
	defer func() {
		if r := recover(); r != nil {
			fault = fmt.Sprint(r, "\n", string(debug.Stack()))
		}
	}()
	statements, refusal := parse.Parse(text)
	if refusal != nil {
		return false, "no SQL: " + refusal.Message
	}
	c.Work = reuse.NewWork(context.Background(), reuse.DefaultLimits)
	plan, refusal := Build(statements[0], nil, c)
	if refusal != nil {
		if nestedRefusals != nil {
			nestedRefusals[refusal.ID] = append(nestedRefusals[refusal.ID], text)
		}
		return false, ""
	}
	for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.DuckDB} {
		for _, m := range plan.Measures {
			if _, err := rewrite.Render(m, d); errors.Is(err, rewrite.ErrTooLong) || m.IsTooLong() {
				return false, "" // refused before it is charged
			} else if err != nil {
				return false, err.Error()
			}
		}
	}
	if plan.Outer.Tree != nil {
		outer.Render(plan) // it may be refused
	}
	return true, ""
}

var nestedRefusals map[string][]string

// placeOf is the function of the project that a fault's stack begins in.
func placeOf(fault string) string {
	lines := strings.Split(fault, "\n")
	at := 0 // a panic that was seen and goes on is above
	for i, line := range lines {
		if strings.HasPrefix(line, "panic(") {
			at = i
		}
	}
	for _, line := range lines[at:] {
		if name, ok := strings.CutPrefix(line, "github.com/dpproxy/dpproxy/"); ok {
			return name[:strings.LastIndexByte(name, '(')]
		}
	}
	return lines[0]
}

// FuzzNested draws nested statements by the bytes that it is given.
func FuzzNested(f *testing.F) {
	contexts := nestedContexts(f)
	for i := range 40 {
		f.Add(binary.LittleEndian.AppendUint64(nil, uint64(i)*0x9E3779B97F4A7C15))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := contexts[len(data)%len(contexts)]
		text, _ := nested.New(c.Dataset, &nested.Bytes{Data: data}).Statement()
		if _, fault := planNested(c, text); fault != "" {
			t.Fatalf("%s\n%s", text, fault)
		}
	})
}
