package rewrite_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

const joinPolicy = `
version: 1
backend: {url: "duckdb:warehouse.duckdb"}
ledger: {url: "sqlite:l"}
users: [{name: alice, password: "SCRAM-SHA-256$4096:AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}]
datasets:
  - id: shop
    unit: {name: person, key: people.person_id}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - name: people
        source: clinic.people
        max_rows_per_unit: 1
        columns:
          - {name: age, type: integer, domain: {min: 0, max: 9, step: 1}}
          - {name: sex, type: text, domain: {values: [f, m]}}
      - name: visits
        source: clinic.visits
        unit: visits.who = people.person_id
        max_rows_per_unit: 4
        columns:
          - {name: ward, type: text, domain: {values: [A, B, C]}}
          - {name: minutes, type: integer, domain: {min: -5, max: 9, step: 1}}
          - {name: cost, type: "numeric(6,2)", domain: {min: 0, max: 10, step: 0.5}}
          - {name: day, type: date, domain: {min: 2025-01-01, max: 2025-03-31, step: 1 day}}
          - {name: room, type: integer, domain: {min: 0, max: 9, step: 1}}
          - {name: visit, type: integer, keys: join}
      - name: doses
        source: clinic.doses
        unit: doses.visit = visits.visit
        max_rows_per_unit: 9
        columns:
          - {name: drug, type: text, domain: {values: [x, y]}}
      - name: wards
        source: clinic.wards
        public: true
        columns: [{name: code, type: text}, {name: label, type: text}, {name: floor, type: integer}, {name: beds, type: "numeric(6,1)"}]
`

// joinStatements are compared with what the same SQL says on the database itself, where no bound is exceeded.
var joinStatements = []string{
	`SELECT p.sex, count(*) FROM people p JOIN visits v ON p.person_id = v.who GROUP BY 1`,
	`SELECT p.sex, v.ward, count(*) FROM visits v JOIN people p ON v.who = p.person_id WHERE p.age > 3 AND v.minutes < 5 GROUP BY 1, 2`,
	`SELECT p.sex, count(*) FROM people p, visits v WHERE p.person_id = v.who AND v.ward = 'A' GROUP BY p.sex`,
	`SELECT v.ward, count(*), count(v.who) FROM people p LEFT JOIN visits v ON p.person_id = v.who GROUP BY 1`,
	`SELECT v.ward, count(*) FROM people p LEFT JOIN visits v ON p.person_id = v.who AND v.minutes > 2 GROUP BY 1`,
	`SELECT p.sex, count(*) FROM people p LEFT JOIN visits v ON p.person_id = v.who AND p.age > 4 WHERE v.who IS NULL GROUP BY 1`,
	`SELECT p.age, count(*) FROM visits v RIGHT JOIN people p ON p.person_id = v.who GROUP BY 1`,
	`SELECT a.ward, b.ward, count(*) FROM visits a JOIN visits b ON a.who = b.who WHERE a.minutes < b.minutes GROUP BY 1, 2`,
	`SELECT v.ward, d.drug, count(*) FROM visits v JOIN doses d ON d.visit = v.visit GROUP BY 1, 2`,
	`SELECT p.sex, v.ward, d.drug, count(*) FROM people p JOIN visits v ON p.person_id = v.who JOIN doses d USING (visit) GROUP BY 1, 2, 3`,
	`SELECT drug, count(*) FROM doses GROUP BY 1`,
	`SELECT sex, count(*) FROM people WHERE person_id IN (SELECT who FROM visits WHERE ward = 'B') GROUP BY 1`,
	`SELECT sex, count(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.who = p.person_id AND v.minutes > 3) GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM doses d WHERE d.visit = v.visit AND d.drug = 'x') GROUP BY 1`,
	`SELECT ward, count(*) FROM visits WHERE visit NOT IN (SELECT visit FROM doses) AND who IN (SELECT person_id FROM people WHERE age < 5) GROUP BY 1`,
	`SELECT sex, count(*) FILTER (WHERE EXISTS (SELECT 1 FROM visits v WHERE v.who = p.person_id)) FROM people p GROUP BY 1`,
	`SELECT count(*) FROM (SELECT who, sum(minutes) s FROM visits GROUP BY 1) t WHERE s > 3`,
	`SELECT n, count(*) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) t GROUP BY n`,
	`SELECT n, count(*) FROM (SELECT who, count(*) FILTER (WHERE ward = 'A') AS n FROM visits GROUP BY who HAVING max(minutes) > 2) t GROUP BY n`,
	`SELECT w, n, count(*) FROM (SELECT who, count(DISTINCT ward) AS w, min(minutes) AS n FROM visits WHERE cost > 2 GROUP BY who) t GROUP BY w, n`,
	`SELECT count(*) FROM (SELECT who, sum(cost) AS c FROM visits GROUP BY who) t WHERE c >= 7.25`,
	`SELECT m, n, count(*) FROM (SELECT who, extract(month FROM day)::int AS m, count(*) AS n FROM visits GROUP BY 1, 2) t GROUP BY 1, 2`,
	`SELECT ward, count(*) FROM (SELECT DISTINCT who, ward FROM visits) t GROUP BY 1`,
	`SELECT sex, n, count(*) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) t JOIN people p ON p.person_id = t.who GROUP BY 1, 2`,
	`SELECT sex, coalesce(n, 0) AS n, count(*) FROM people p LEFT JOIN (SELECT who, count(*) AS n FROM visits GROUP BY who) t ON p.person_id = t.who GROUP BY 1, 2`,
	`WITH big AS (SELECT who FROM visits WHERE minutes > 5) SELECT sex, count(*) FROM people WHERE person_id IN (SELECT who FROM big) GROUP BY 1`,
	`SELECT drugs, count(*) FROM (SELECT visit, count(*) AS drugs FROM doses GROUP BY visit) d GROUP BY 1`,
	`SELECT count(DISTINCT who), count(*), count(DISTINCT ward) FROM visits`,
	`SELECT ward, count(DISTINCT who), count(*) FROM visits WHERE minutes > 0 GROUP BY 1`,
	`SELECT extract(month FROM day)::int AS m, count(DISTINCT who) FILTER (WHERE ward = 'A'), count(DISTINCT CASE WHEN minutes > 3 THEN who END), count(DISTINCT who) FROM visits GROUP BY 1`,
	`SELECT p.sex, v.ward, count(DISTINCT p.person_id), count(*) FROM people p JOIN visits v ON p.person_id = v.who GROUP BY 1, 2`,
	`SELECT p.sex, count(DISTINCT v.who), count(*) FROM people p LEFT JOIN visits v ON p.person_id = v.who GROUP BY 1`,
	`SELECT p.sex, count(DISTINCT v.visit), count(*) FROM people p JOIN visits v ON p.person_id = v.who JOIN doses d ON d.visit = v.visit GROUP BY 1`,
	`SELECT count(DISTINCT person_id) FROM people WHERE sex = 'f'`,
	`SELECT ward, count(DISTINCT day), count(DISTINCT extract(month FROM day)), count(DISTINCT minutes) FILTER (WHERE cost > 4) FROM visits GROUP BY 1`,
	`SELECT count(DISTINCT (ward, extract(month FROM day)::int)), count(DISTINCT ward) FILTER (WHERE minutes = 9), count(*) FILTER (WHERE minutes > 3), count(*) FILTER (WHERE minutes <= 3) FROM visits`,
	`SELECT sex, count(DISTINCT age), count(DISTINCT age) FILTER (WHERE person_id IN (SELECT who FROM visits WHERE ward = 'B')) FROM people GROUP BY 1`,
	`SELECT ward, extract(month FROM day)::int AS m, grouping(ward, extract(month FROM day)::int) AS g, count(*), count(DISTINCT who), count(DISTINCT minutes) FROM visits GROUP BY ROLLUP (ward, extract(month FROM day)::int)`,
	`SELECT sex, ward, grouping(sex, ward) AS g, count(*), count(*) FILTER (WHERE minutes > 4) FROM people p JOIN visits v ON p.person_id = v.who GROUP BY CUBE (sex, ward)`,
	`SELECT sex, age, grouping(age) AS g, count(*) FROM people GROUP BY GROUPING SETS ((sex, age), sex)`,
	`SELECT ward, count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits o WHERE o.who = v.who AND o.minutes < o.room) GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT who, count(*) FILTER (WHERE minutes >= room OR day IS NULL) AS n FROM visits GROUP BY who) t GROUP BY n`,
	`SELECT sex, count(*) FROM people p LEFT JOIN visits v ON v.who = p.person_id AND NOT v.room > v.minutes WHERE v.who IS NULL GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT p.person_id, count(v.who) AS n FROM people p LEFT JOIN visits v ON v.who = p.person_id AND v.ward = 'A' GROUP BY 1) t GROUP BY n`,
	`SELECT ward, count(visit), count(*) FROM visits GROUP BY 1`,
}

// lookupStatements join public tables.
var lookupStatements = []string{
	`SELECT w.label, count(*) FROM visits v JOIN wards w ON v.ward = w.code GROUP BY 1`,
	`SELECT label, floor, count(*) FROM wards, visits WHERE ward = code AND floor < 3 AND minutes > 0 GROUP BY 1, 2`,
	`SELECT w.label, count(*), count(w.code) FROM visits v LEFT JOIN wards w ON w.code = v.ward AND w.floor > 1 GROUP BY 1`,
	`SELECT w.floor, p.sex, count(*) FROM people p JOIN visits v ON v.who = p.person_id JOIN wards w ON w.code = v.ward GROUP BY 1, 2`,
	`SELECT upper(w.label), count(*) FROM wards w JOIN visits v ON w.code = upper(v.ward) WHERE w.label LIKE '%r%' GROUP BY 1`,
	`SELECT w.label, count(*) FROM visits v JOIN wards w ON v.minutes + 1 = w.floor GROUP BY 1`,
	`SELECT w.label, count(*) FROM visits v, wards w WHERE (w.code = v.ward AND w.floor = 1 AND v.minutes < 3) OR (v.minutes >= 5 AND w.code = v.ward AND w.floor > 1) GROUP BY 1`,
}

// publicWards are the rows of the public table.
type publicWards struct{}

func (publicWards) Rows(*policy.Table) ([][]policy.Value, bool) {
	tenths := func(n int64) policy.Value { return policy.Numeric{Coefficient: big.NewInt(n), Scale: 1} }
	return [][]policy.Value{{"A", "heart", int64(1), tenths(105)}, {"B", "bird", int64(2), tenths(5)}, {"D", "door", int64(3), nil}}, true
}

// sumStatements are compared value by value, in the groups that have rows.
var sumStatements = []string{
	`SELECT sex, sum(age), count(*), avg(age) FROM people GROUP BY 1`,
	`SELECT sum(minutes) FROM visits`,
	`SELECT ward, sum(minutes), avg(minutes), count(minutes), stddev(minutes), var_pop(minutes) FROM visits GROUP BY 1`,
	`SELECT ward, sum(cost), avg(cost), variance(cost), stddev_pop(cost) FROM visits WHERE minutes > -3 GROUP BY 1`,
	`SELECT ward, sum(cost) FILTER (WHERE minutes > 2), sum(CASE WHEN minutes > 2 THEN cost ELSE 0 END) FROM visits GROUP BY 1`,
	`SELECT sum(CASE WHEN ward = 'A' THEN 10 WHEN ward = 'B' THEN -3 ELSE 2 END), avg(minutes * minutes), sum(minutes * 2 + 1) FROM visits`,
	`SELECT corr(minutes, cost), covar_samp(minutes, cost), regr_slope(minutes, cost), regr_intercept(minutes, cost), regr_r2(cost, minutes), regr_count(minutes, cost) FROM visits`,
	`SELECT p.sex, sum(v.minutes), avg(v.cost), sum(p.age) FROM people p JOIN visits v ON p.person_id = v.who GROUP BY 1`,
	`SELECT ward, grouping(ward) AS g, sum(minutes), count(*), avg(minutes), count(DISTINCT who), count(DISTINCT ward) FROM visits GROUP BY ROLLUP (ward)`,
	`SELECT sum(minutes) FILTER (WHERE ward = 'A'), sum(minutes) FILTER (WHERE ward = 'B'), count(*) FILTER (WHERE ward = 'A'), count(*), sum(minutes) FROM visits`,
	`SELECT avg(s), sum(s) FROM (SELECT who, sum(minutes) AS s FROM visits GROUP BY who) t`,
	`SELECT sum(n * age) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) t JOIN people p ON p.person_id = t.who`,
	`SELECT sum(w.beds * v.minutes), avg(w.floor) FROM visits v JOIN wards w ON v.ward = w.code`,
	`SELECT ward, round(100.0 * sum(minutes) / nullif(count(*), 0), 1), sum(minutes) * 2 FROM visits GROUP BY ward HAVING avg(minutes) > -100`,
	`SELECT ward, sum(cost * (1 - minutes)), sum(-2 * cost), avg(cost * minutes), sum(CASE WHEN minutes > 2 THEN cost * (minutes + 3) ELSE 0 END) FROM visits GROUP BY 1`,
	`SELECT sum(a.cost * (2 - b.minutes) * (1 + p.age)) FROM people p JOIN visits a ON a.who = p.person_id JOIN visits b ON b.who = p.person_id`,
}

// TestJoinsCountWhatTheSQLSays runs the generated SQL of derived tables, and the analyst's own, on both engines.
func TestJoinsCountWhatTheSQLSays(t *testing.T) {
	p, err := policy.Parse([]byte(joinPolicy), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const seed = 991
	t.Logf("seed %d", seed)
	fill := joinRows(rand.New(rand.NewPCG(seed, 1)))
	t.Run("DuckDB", func(t *testing.T) {
		joinsOn(t, p, rewrite.DuckDB, duckEngine(t, fill), duckTexts(t, fill))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		joinsOn(t, p, rewrite.PostgreSQL, postgresEngine(t, fill), postgresTexts(t, fill))
	})
}

// joinRows writes rows that no bound and no domain touches.
func joinRows(r *rand.Rand) []string {
	list := []string{"CREATE SCHEMA clinic", "CREATE TABLE clinic.people (person_id int PRIMARY KEY, age int, sex text)",
		"CREATE TABLE clinic.visits (visit int PRIMARY KEY, who int, ward text, minutes int, cost numeric(6,2), day date, room int)",
		"CREATE TABLE clinic.doses (visit int, drug text)",
		"CREATE TABLE clinic.wards (code text, label text, floor int, beds numeric(6,1))",
		"INSERT INTO clinic.wards VALUES ('A', 'heart', 1, 10.5), ('B', 'bird', 2, 0.5), ('D', 'door', 3, NULL)"}
	visit := 0
	for person := range 60 {
		sex := []string{"'f'", "'m'", "NULL"}[r.IntN(3)]
		list = append(list, fmt.Sprintf("INSERT INTO clinic.people VALUES (%d, %d, %s)", person, r.IntN(10), sex))
		doses := 0
		for range r.IntN(5) {
			visit++
			minutes := fmt.Sprint(r.IntN(15) - 5)
			if r.IntN(6) == 0 {
				minutes = "NULL"
			}
			list = append(list, fmt.Sprintf("INSERT INTO clinic.visits VALUES (%d, %d, '%s', %s, %d.%02d, DATE '2025-0%d-%02d', %d)",
				visit, person, string("ABC"[r.IntN(3)]), minutes, r.IntN(10), r.IntN(100), 1+r.IntN(3), 1+r.IntN(28), r.IntN(10)))
			for range r.IntN(3) {
				if doses++; doses <= 9 {
					list = append(list, fmt.Sprintf("INSERT INTO clinic.doses VALUES (%d, '%s')", visit, string("xy"[r.IntN(2)])))
				}
			}
		}
	}
	return list
}

// texts runs the analyst's SQL and returns each row's keys, joined, and its counts.
type texts func(t *testing.T, text string) [][]string

func joinsOn(t *testing.T, p *policy.Policy, d rewrite.Dialect, generated engine, own texts) {
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range slices.Concat(joinStatements, lookupStatements, sumStatements) {
		t.Run(text, func(t *testing.T) {
			statements, refusal := planner.Parse(text)
			if refusal != nil {
				t.Fatal(refusal)
			}
			plan, refusal := planner.Build(statements[0], nil, planner.Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: time.Unix(0, 0), Public: publicWards{},
				Settings: planner.Settings{Epsilon: p.Datasets[0].Defaults.Epsilon, Confidence: confidence, Zone: time.UTC}})
			if refusal != nil {
				t.Fatalf("%s: %s", refusal.ID, refusal.Message)
			}
			leaf := plan.Leaves[0]
			for _, proven := range []bool{false, true} {
				cells := make([][]int64, len(plan.Measures))
				for i, m := range plan.Measures {
					q, err := rewrite.Render(m, d)
					if err != nil {
						t.Fatal(err)
					}
					sql, args := q.SQL(), q.Args()
					if text, more, ok := q.Proven(); proven && ok {
						sql, args = text, more
					}
					cells[i] = trueCells(m, q, generated(t, sql, args))
				}
				got, want := leafCounts(leaf, plan, cells), ownCounts(own(t, text), len(leaf.Keys))
				if slices.Contains(sumStatements, text) {
					got, want = leafValues(t, plan, cells), ownValues(own(t, text), len(leaf.Keys))
				}
				if !maps.Equal(got, want) {
					t.Errorf("got %v\nwant %v", got, want)
				}
			}
		})
	}
}

// trueCells are a measure's cells without noise, of the rows that its SQL gives.
func trueCells(m *planner.Measure, q rewrite.Query, rows [][]int64) []int64 {
	cells, seen := make([]int64, m.Spec.Cells*m.Spec.Counters), map[[2]int]bool{}
	for _, row := range rows {
		at := make([]int32, q.Grain())
		for i := range at {
			at[i] = int32(row[i])
		}
		for c := range q.Counters() {
			cell, n := m.Place(at, c), row[q.Grain()+c]
			if cell < 0 {
				continue
			}
			if m.Weigh != nil {
				n *= m.Weigh(at, c)
			}
			if m.Sums != nil && m.Sums[c] != nil && m.Sums[c].Values > 0 {
				if n == 0 || seen[[2]int{c, cell}] {
					continue
				}
				seen[[2]int{c, cell}], n, cell = true, 1, cell/m.Sums[c].Values
			}
			cells[c*m.Spec.Cells+cell] += n
		}
	}
	return cells
}

// leafCount is a count of one row of a leaf.
func leafCount(c planner.CountColumn, row int, plan *planner.Plan, cells [][]int64) (n int64) {
	run, spans := c.At(row)
	for _, s := range spans {
		for cell := s.From; cell < s.To; cell++ {
			n += cells[run.Measure][run.Counter*plan.Measures[run.Measure].Spec.Cells+cell]
		}
	}
	return n
}

func leafCounts(leaf *planner.Leaf, plan *planner.Plan, cells [][]int64) map[string]string {
	out := map[string]string{}
	for row := range leaf.Rows {
		var keys, counts []string
		for _, k := range leaf.Keys {
			keys = append(keys, valueText(k.Values[row]))
		}
		some := false
		for _, c := range leaf.Counts {
			n := leafCount(c, row, plan, cells)
			some = some || n != 0
			counts = append(counts, fmt.Sprint(n))
		}
		if some {
			out[strings.Join(keys, "|")] = strings.Join(counts, "|")
		}
	}
	return out
}

// leafValues evaluates the direct form above the leaf on the exact counts.
func leafValues(t *testing.T, plan *planner.Plan, cells [][]int64) map[string]string {
	leaf, out := plan.Leaves[0], map[string]string{}
	if plan.Outer.Direct == nil {
		t.Fatal("not a direct form")
	}
	for r := range leaf.Rows {
		var row []policy.Value
		var keys []string
		for _, k := range leaf.Keys {
			row, keys = append(row, k.Values[r]), append(keys, valueText(k.Values[r]))
		}
		some := false
		for _, c := range leaf.Counts {
			n := leafCount(c, r, plan, cells)
			row, some = append(row, n), some || n != 0
		}
		var values []string
		for _, e := range plan.Outer.Direct.Items[len(leaf.Keys):] {
			v, err := e.Eval(row)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, rounded(valueText(v)))
		}
		if some {
			out[strings.Join(keys, "|")] = strings.Join(values, " ")
		}
	}
	return out
}

func ownValues(rows [][]string, keys int) map[string]string {
	out := map[string]string{}
	for _, row := range rows {
		var values []string
		for _, v := range row[keys:] {
			values = append(values, rounded(v))
		}
		out[strings.Join(row[:keys], "|")] = strings.Join(values, " ")
	}
	return out
}

// rounded writes numbers to six digits.
func rounded(text string) string {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return strconv.FormatFloat(f, 'g', 6, 64)
}

func valueText(v policy.Value) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprint(v)
}

func ownCounts(rows [][]string, keys int) map[string]string {
	out := map[string]string{}
	for _, row := range rows {
		if counts := strings.Join(row[keys:], "|"); strings.Trim(counts, "0|") != "" {
			out[strings.Join(row[:keys], "|")] = counts
		}
	}
	return out
}

func duckTexts(t *testing.T, statements []string) texts {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	for _, s := range append(statements, "SET schema = 'clinic'") {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%v\n%.300s", err, s)
		}
	}
	return func(t *testing.T, text string) [][]string {
		rows, err := db.Query(text)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		names, _ := rows.Columns()
		var list [][]string
		for rows.Next() {
			values, into := make([]any, len(names)), make([]any, len(names))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			list = append(list, textsOf(values))
		}
		return list
	}
}

func postgresTexts(t *testing.T, statements []string) texts {
	server := pgtest.Shared(t)
	database := server.Database(t)
	server.Exec(t, database, statements...)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(ctx) })
	if _, err := conn.Exec(ctx, "SET search_path = clinic"); err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, text string) [][]string {
		rows, err := conn.Query(ctx, text)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]string, error) {
			values, err := row.Values()
			return textsOf(values), err
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
}

func textsOf(values []any) []string {
	out := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case nil:
			out[i] = "NULL"
		case pgtype.Numeric:
			f, _ := v.Float64Value()
			out[i] = fmt.Sprint(f.Float64)
		case duckdb.Decimal:
			out[i] = fmt.Sprint(v.Float64())
		default:
			out[i] = fmt.Sprint(v)
		}
	}
	return out
}
