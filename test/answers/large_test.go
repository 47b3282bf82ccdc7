package answers

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// staysSQL are two stays of each person: half of them on one day and half on another, each for one price, and one
// person's where nobody else is.
const staysSQL = `CREATE TABLE stays AS SELECT i AS uid, CASE WHEN i = 7 THEN DATE '2011-01-01' WHEN i % 2 = 0 THEN DATE '2020-02-29' ELSE DATE '2021-03-01' END AS day,
  CASE WHEN i = 7 THEN 13 WHEN n = 2 THEN NULL WHEN i % 2 = 0 THEN 100 ELSE 250 END AS price FROM generate_series(1, 1000) AS s(i), generate_series(1, 2) AS r(n)`

const staysTable = `      - name: stays
        unit: stays.uid = people.uid
        max_rows_per_unit: 2
        columns:
          - {name: day, type: date, domain: {min: 2000-01-01, max: 2029-12-31}}
          - {name: price, type: integer, domain: {min: 0, max: 999}, nulls: cell}
`

// TestLargeProductsThroughSQL: on both engines, days by prices are more than an answer has room for. Without the
// policy's word they are refused, and nothing is charged; with it those are shown that enough people have, NULL among
// them, never one person's; the same question is free afterwards, its total another counter's.
func TestLargeProductsThroughSQL(t *testing.T) {
	kit.Beside(t)
	duck := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
	kit.ExecDuckDB(t, duck, staysSQL)
	server := pgtest.Shared(t)
	postgres, database := kit.Postgres(t, server, kit.Budgets{User: "10", Cap: "20"}, 0)
	server.Exec(t, database, staysSQL, `GRANT SELECT ON public.stays TO PUBLIC`)
	for engine, path := range map[string]string{"DuckDB": duck, "PostgreSQL": postgres} {
		t.Run(engine, func(t *testing.T) {
			appendPolicy(t, path, staysTable)
			const ask = `SELECT day, price, count(*) FROM stays GROUP BY day, price ORDER BY day, price`
			w := kit.Serve(t, path).Connect("alice", "lab")
			spent := func() string { return w.Ask(`SELECT spent FROM dp.budget`).Rows[0][0] }
			if a := w.Ask(ask); a.Err == nil || !strings.Contains(a.Err.Error(), "large_products: threshold") && !strings.Contains(a.Err.Hint, "large_products: threshold") || spent() != "0" {
				t.Fatalf("%v, spent %s", a.Err, spent())
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.NewReplacer("epsilon: 10, delta: 0", "epsilon: 10, delta: 1e-6", "epsilon: 20, delta: 0", "epsilon: 20, delta: 1e-5", "    tables:", "    large_products: threshold\n    tables:").Replace(string(data))
			if err := os.WriteFile(path, []byte(strings.Replace(changed, "ledger.db", "second.db", 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			w = kit.Serve(t, path).Connect("alice", "lab")
			w.Ask(`SET dp.epsilon = 1`)
			if a := w.Ask(`EXPLAIN ` + ask); a.Err != nil || spent() != "0" {
				t.Fatalf("%v, spent %s", a.Err, spent())
			} else if !strings.Contains(text(a), "combinations of day, price") {
				t.Errorf("%s", text(a))
			}
			first := w.Ask(ask)
			var keys []string
			for _, row := range first.Rows {
				keys = append(keys, row[0]+" "+row[1])
			}
			if want := []string{"2020-02-29 100", "2020-02-29 NULL", "2021-03-01 250", "2021-03-01 NULL"}; first.Err != nil || !slices.Equal(keys, want) || spent() != "1" {
				t.Fatalf("%v, found %q, spent %s", first.Err, keys, spent())
			}
			for _, free := range []string{ask, `SELECT day, price, count(*) FROM stays GROUP BY 1, 2 HAVING count(*) > -1000`, `SELECT count(*) FROM (SELECT DISTINCT day, price FROM stays) t`} {
				if a := w.Ask(free); a.Err != nil || len(a.Rows) == 0 || spent() != "1" {
					t.Errorf("%s: %v, %d rows, spent %s", free, a.Err, len(a.Rows), spent())
				}
			}
			if a := w.Ask(`SELECT day, price, count(DISTINCT uid), avg(price) FROM stays WHERE price > 50 OR price IS NULL GROUP BY 1, 2`); a.Err != nil || len(a.Rows) != 4 || !strings.HasPrefix(spent(), "1.49") {
				t.Errorf("%v, %v, spent %s", a.Err, a.Rows, spent())
			}
		})
	}
}
