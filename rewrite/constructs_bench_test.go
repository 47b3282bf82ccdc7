package rewrite_test

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// constructColumns are of people with one row each, which a constraint proves: a column for each way in which values
// are brought into their domains.
const constructColumns = `
  - id: clinic
    unit: {name: person, key: people.person_id}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - name: people
        source: clinic.people
        max_rows_per_unit: 1
        columns:
          - {name: sex, type: text, domain: {values: [f, m]}}
          - {name: city, type: text, domain: {values: [aachen, berlin, bonn, bremen, dresden, essen, halle, hamburg, jena, kassel, kiel, koeln, leipzig, mainz, trier, ulm]}}
          - {name: age, type: bigint, domain: {min: 0, max: 119, step: 1}}
          - {name: income, type: "numeric(12,2)", domain: {min: 0, max: 100000, step: 100}}
          - {name: ratio, type: double precision, domain: {min: 0, max: 1, step: 0.01}}
          - {name: seen, type: timestamp, domain: {min: "2024-01-01 00:00:00", max: "2025-12-31 23:59:59.999999", step: 1 hour}}
          - {name: born, type: date, domain: {min: 1920-01-01, max: 2025-12-31, step: 1 day}}
`

const constructTable = `CREATE TABLE clinic.people AS SELECT i AS person_id, CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, CITIES AS city, (i * 7919 % 100)::bigint AS age,
  ((i * 104729 % 10000000) / 100.0)::numeric(12,2) AS income, ((i * 15485863 % 1000) / 1000.0)::double precision AS ratio,
  timestamp '2024-01-01' + (i * 32452843 % 63000000) * interval '1 second' AS seen, (date '1930-01-01' + (i * 49979687 % 30000)::int)::date AS born FROM SERIES`

var constructs = []string{
	`SELECT count(*) FROM people`,
	`SELECT count(*) FROM people WHERE age > 40`,
	`SELECT count(*) FROM people WHERE sex = 'f'`,
	`SELECT count(*) FROM people WHERE city IN ('berlin', 'bonn', 'kiel')`,
	`SELECT count(*) FROM people WHERE city LIKE 'b%'`,
	`SELECT count(*) FROM people WHERE income < 20000`,
	`SELECT count(*) FROM people WHERE seen >= '2025-03-01' AND seen < '2025-04-01'`,
	`SELECT count(*) FROM people WHERE CASE WHEN sex = 'f' THEN age < 30 ELSE age < 50 END`,
	`SELECT count(*) FILTER (WHERE age < 18), count(*) FILTER (WHERE age >= 65) FROM people`,
	`SELECT city, count(*) FROM people GROUP BY city`,
	`SELECT city, sex, count(*) FROM people GROUP BY city, sex`,
	`SELECT age / 10, count(*) FROM people GROUP BY 1`,
	`SELECT date_trunc('month', seen), count(*) FROM people GROUP BY 1`,
	`SELECT date_trunc('day', seen), count(*) FROM people GROUP BY 1`,
	`SELECT date_part('hour', seen), count(*) FROM people GROUP BY 1`,
	`SELECT date_part('year', born), count(*) FROM people GROUP BY 1`,
	`SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END, count(*) FROM people GROUP BY 1`,
	`SELECT sum(age) FROM people`,
	`SELECT sum(income) FROM people`,
	`SELECT sum(ratio) FROM people`,
	`SELECT city, avg(income) FROM people WHERE age > 40 GROUP BY city`,
	`SELECT sum(CASE WHEN sex = 'f' THEN income END) FROM people`,
	`SELECT variance(age) FROM people`,
	`SELECT sex, stddev(income) FROM people GROUP BY sex`,
}

// A measured way to run statements: what each is, how it is run, and how many milliseconds processors worked for that.
type way struct {
	text string
	args []any
	run  func(text string, args []any)
	cpu  func() float64
}

// TestBenchConstructs prints what each construct costs as it is sent beside her own SQL, all by turns, in processor
// time: live where a constraint proves the bound, and over a snapshot, which is set beside her own SQL on both engines.
func TestBenchConstructs(t *testing.T) {
	benchRows(t)
	rows := cmp.Or(os.Getenv("DPPROXY_BENCH_ROWS"), "2000000")
	head, _, _ := strings.Cut(groupPolicy, "datasets:")
	cities := "(CASE i * 31 % 16"
	for i, c := range strings.Fields("aachen berlin bonn bremen dresden essen halle hamburg jena kassel kiel koeln leipzig mainz trier ulm") {
		cities += fmt.Sprintf(" WHEN %d THEN '%s'", i, c)
	}
	fill := strings.NewReplacer("CITIES", cities+" END)").Replace(constructTable)
	policies := map[dialect.Dialect]*policy.Policy{}
	for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.DuckDB} {
		policies[d] = parsedFor(t, head+"datasets:"+constructColumns, d)
		policies[d].Datasets[0].Buying.Cells = 0 // a condition is counted as it is, not with what lies around it
	}
	duck := constructsInDuckDB(t, policies[dialect.DuckDB], fill, rows)
	inDuckDB := func(text string, args []any) { duckLines(t, duck, text, args) }
	conn := constructsInPostgres(t, fill, rows)
	inPostgres := func(text string, args []any) {
		if _, err := conn.Exec(context.Background(), text, append([]any{pgx.QueryExecModeExec}, args...)...); err != nil {
			t.Fatal(err, text)
		}
	}
	byPostgres := func() float64 { return workedBy(t, conn.PgConn().PID()) }
	for _, text := range constructs {
		_, live, liveArgs := planned(t, policies[dialect.PostgreSQL], dialect.PostgreSQL, text)
		_, raw, rawArgs := planned(t, policies[dialect.DuckDB], dialect.DuckDB, text)
		copied, err := rewrite.Render(measureOf(t, policies[dialect.DuckDB], text), dialect.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		ways := []way{{live[0], nil, inPostgres, byPostgres}, {live[1], liveArgs[1], inPostgres, byPostgres}, {raw[0], nil, inDuckDB, worked}, {raw[1], rawArgs[1], inDuckDB, worked},
			{copied.SQL(), copied.Args(), inDuckDB, worked}}
		works := make([][]float64, len(ways))
		for range 9 {
			for i, w := range ways {
				before := w.cpu()
				w.run(w.text, w.args)
				works[i] = append(works[i], w.cpu()-before)
			}
		}
		median := func(i int) float64 { slices.Sort(works[i]); return max(works[i][len(works[i])/2], 0.01) }
		beside := func(own, ours int) string {
			return fmt.Sprintf("%s, %s ms: %.2f ×", figures.Number(median(own)), figures.Number(median(ours)), median(ours)/median(own))
		}
		figures.Row(rows+" people of one row, processor time", "`"+strings.TrimSuffix(text, " FROM people")+"`", "PostgreSQL: her own, what is sent", beside(0, 1), "DuckDB: her own, what is sent", beside(2, 3),
			"over a snapshot", fmt.Sprintf("%s ms: %.2f × DuckDB, %.2f × PostgreSQL", figures.Number(median(4)), median(4)/median(2), median(4)/median(0)))
	}
}

// constructsInDuckDB fills the table, and makes a snapshot of it beside it.
func constructsInDuckDB(t *testing.T, p *policy.Policy, fill, rows string) *sql.DB {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	exec(t, db, "ATTACH ':memory:' AS private; CREATE SCHEMA private.clinic; CREATE SCHEMA private.stage; USE private; "+strings.Replace(fill, "FROM SERIES", "FROM (SELECT range AS i FROM range(1, "+rows+"))", 1))
	table := p.Datasets[0].Tables[0]
	e, err := rewrite.Extract(table, dialect.DuckDB)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, db, "CREATE TABLE private.stage.t AS "+e.SQL(), e.Args()...)
	number, err := rewrite.Number(table, []rewrite.Staged{{Table: "private.stage.t", Field: "u"}}, "private.stage.units")
	if err != nil {
		t.Fatal(err)
	}
	exec(t, db, number)
	arrange, err := e.Arrange(rewrite.Arrangement{Staged: "private.stage.t", Numbers: "private.stage.units", Heavy: "private.stage.heavy", Single: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append(arrange, marginalsOf(t, e)...) {
		exec(t, db, text)
	}
	return db
}

func constructsInPostgres(t *testing.T, fill, rows string) *pgx.Conn {
	server := pgtest.Start(t, "max_wal_size=8GB", "shared_buffers=1GB", "synchronous_commit=off")
	name := server.Database(t)
	server.Exec(t, name, "CREATE SCHEMA clinic", strings.Replace(fill, "FROM SERIES", "FROM generate_series(1::bigint, "+rows+") AS s(i)", 1), "VACUUM ANALYZE clinic.people")
	conn, err := pgx.Connect(context.Background(), server.URLFor("postgres", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}
