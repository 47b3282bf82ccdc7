package rewrite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/citustest"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// citusShapes are one statement for each shape of leaf that Citus's words write otherwise, and those around it.
var citusShapes = []string{
	`SELECT count(*) FROM visits`,
	`SELECT ward, count(*), sum(minutes) FROM visits WHERE cost > 2 GROUP BY 1`,
	`SELECT p.sex, v.ward, count(*) FROM people p LEFT JOIN visits v ON p.person_id = v.who GROUP BY 1, 2`,
	`SELECT sex, count(*) FROM people WHERE person_id IN (SELECT who FROM visits WHERE ward = 'B') GROUP BY 1`,
	`SELECT sex, count(*) FROM people WHERE person_id NOT IN (SELECT who FROM calls WHERE paid < 0) AND person_id IN (SELECT who FROM visits) GROUP BY 1`,
	`SELECT kind, count(*) FROM calls c WHERE EXISTS (SELECT 1 FROM calls o WHERE o.visit = c.visit AND o.kind = 'out') GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) t GROUP BY n`,
	`SELECT (SELECT count(*) FROM visits WHERE minutes > 0), (SELECT count(*) FROM visits WHERE ward = 'A'), (SELECT sum(minutes) FROM visits WHERE room > 2)`,
	// Marks and counts of others along a key beside the unit, one within another.
	`SELECT kind, count(*) FROM calls c WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.who = c.who AND v.visit = c.visit AND v.ward = 'A') GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE visit IN (SELECT visit FROM calls WHERE kind = 'in') GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM calls c WHERE c.who = v.who AND c.visit = v.visit AND c.paid < 0) AND minutes > 2 GROUP BY 1`,
	`SELECT n, ward, count(*) FROM (SELECT v.ward, (SELECT count(*) FROM calls c WHERE c.who = v.who AND c.visit = v.visit AND c.secs > 20) AS n FROM visits v) t GROUP BY 1, 2`,
	`SELECT sex, count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v JOIN calls c ON c.who = v.who AND c.visit = v.visit WHERE v.who = p.person_id AND c.kind = 'out') GROUP BY 1`,
	`SELECT sex, count(*) FROM people p WHERE person_id NOT IN (SELECT v.who FROM visits v LEFT JOIN calls c ON c.who = v.who AND c.visit = v.visit WHERE c.paid > 0) GROUP BY 1`,
	`SELECT p.sex, v.ward, count(*) FROM people p JOIN visits v ON v.who = p.person_id WHERE EXISTS (SELECT 1 FROM calls c WHERE c.who = v.who AND c.visit = v.visit) GROUP BY 1, 2`,
}

// TestCitusGolden shows the SQL of each of them.
func TestCitusGolden(t *testing.T) {
	got := ""
	for _, m := range measures(t, variants(t, dialect.Citus)["add-remove"], dialect.Citus, citusShapes, privacy.MicroEpsilon(100_000)) {
		got += fmt.Sprintf("-- %s\n%s\n-- arguments %q\n\n", m.statement, m.query.SQL(), m.query.Args())
	}
	asWritten(t, "citus.sql", got)
}

// What a statement must not hold for Citus to send it to where the rows lie: a sub-query within an expression, numbered
// rows that are kept, windows and groups below the top that are not within a unit.
var (
	citusWithin    = regexp.MustCompile(`ANY \(SELECT`)
	citusCondition = regexp.MustCompile(`(?:WHERE|AND|OR) "?t"?\."[a-z_]+" OPERATOR\(pg_catalog\.=\) ANY \(SELECT t\.`) // of a window of days, a join to PostgreSQL
	citusWindow    = regexp.MustCompile(`PARTITION BY ([a-z][0-9]*\.[a-z][0-9]*)`)
	citusGroup     = regexp.MustCompile(`\n  GROUP BY ([^\n]*)`)
	citusKept      = regexp.MustCompile(`(?s)^WITH scan AS \(.*row_number\(\).*\)\nSELECT 0`)
)

// TestCitusPushesDown holds all SQL that the tests write for Citus to that.
func TestCitusPushesDown(t *testing.T) {
	t.Parallel()
	var texts []string
	for _, f := range withRandom(t) {
		texts = append(texts, render(t, f.measure, dialect.Citus).SQL())
	}
	for _, variant := range []string{"add-remove", "add-remove, groups", "add-remove, no units"} {
		for _, m := range measures(t, variants(t, dialect.Citus)[variant], dialect.Citus, slices.Concat(everyStatement(), citusShapes), privacy.MicroEpsilon(100_000)) {
			texts = append(texts, m.query.SQL())
		}
	}
	marks := 0
	for _, text := range texts {
		marks += strings.Count(text, "SELECT DISTINCT b")
		if len(citusWithin.FindAllString(text, -1)) != len(citusCondition.FindAllString(text, -1)) {
			t.Fatalf("a sub-query within an expression:\n%s", text)
		}
		for _, m := range citusWindow.FindAllStringSubmatch(text, -1) {
			if !strings.HasSuffix(m[1], ".u") {
				t.Fatalf("a window that is not within a unit:\n%s", text)
			}
		}
		for _, m := range citusGroup.FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`^[a-z][0-9]*\.u\b`).MatchString(m[1]) {
				t.Fatalf("a group below the top that is not within a unit, by %s:\n%s", m[1], text)
			}
		}
		if citusKept.MatchString(text) && !strings.Contains(text, "GROUP BY") {
			t.Fatalf("numbered rows are kept:\n%s", text)
		}
	}
	if marks < 20 {
		t.Errorf("only %d marks by joins", marks)
	}
}

// citusRows are scripts of random and of hostile rows.
func citusRows() map[string]string {
	r := rand.New(rand.NewPCG(150, 1))
	rows := nobody(r, 40)
	for id := range 40 {
		rows.add(person(r, id, 6, false))
	}
	return map[string]string{"random": rows.script(r), "hostile": hostileScript(dialect.PostgreSQL)}
}

// TestMarksCountAlike: on one and the same PostgreSQL what is written for it and what is written for Citus counts what
// is written with marks within expressions, over random and hostile rows. So what is shown of PostgreSQL's SQL
// (TestAuditNeighbours, TestEnginesAgreeWithTheTwin) holds of Citus's.
func TestMarksCountAlike(t *testing.T) {
	t.Parallel()
	for name, script := range citusRows() {
		t.Run(name, func(t *testing.T) {
			run := postgresQueries(postgresConn(t, append(slices.Clone(neighbourTables), script)))
			ran := map[string]int{}
			for _, variant := range []string{"add-remove", "add-remove, groups", "add-remove, no units", "replace-one, unique"} {
				within := inExpressions()
				others := alone(measures(t, variants(t, within)[variant], within, everyStatement(), privacy.MicroEpsilon(100_000)))
				counted := map[int][][]int64{}
				for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.Citus} {
					for i, m := range alone(measures(t, variants(t, d)[variant], d, everyStatement(), privacy.MicroEpsilon(100_000))) {
						other := others[i]
						if m.query.SQL() == other.query.SQL() {
							continue
						}
						if counted[i] == nil {
							counted[i] = orderedRows(run(t, other.query.SQL(), other.query.Args()))
						}
						if got := orderedRows(run(t, m.query.SQL(), m.query.Args())); !slices.EqualFunc(got, counted[i], slices.Equal) {
							t.Errorf("%s (%s):\nfor %s %v\nwithin expressions %v", m.statement, variant, d, got, counted[i])
						}
						ran[d.Name]++
					}
				}
			}
			if t.Logf("measures that are written otherwise: %v", ran); ran["Citus"] < 50 || ran["PostgreSQL"] < 50 {
				t.Error("which are too few")
			}
		})
	}
}

// alone leaves out measures as they are read with others.
func alone(list []measured) []measured {
	return slices.DeleteFunc(list, func(m measured) bool { return len(m.query.Measures()) > 1 })
}

func orderedRows(rows [][]int64) [][]int64 {
	slices.SortFunc(rows, slices.Compare)
	return rows
}

// arrangement is how tables lie on a cluster.
type arrangement struct {
	name       string
	distribute []string
	notNull    map[string]string // rows with NULL there have no shard
	appended   []string          // tables whose rows are put into two shards by turns
	every      int               // of the statements, one in so many
}

var arrangements = []arrangement{
	{"by the unit", []string{`SELECT create_distributed_table('clinic.people', 'person_id', shard_count => 4)`, `SELECT create_distributed_table('clinic.visits', 'who', colocate_with => 'clinic.people')`,
		`SELECT create_distributed_table('clinic.calls', 'who', colocate_with => 'clinic.people')`, `SELECT create_distributed_table('clinic.buys', 'who', colocate_with => 'clinic.people')`, `SELECT create_reference_table('clinic.doses')`},
		map[string]string{"people": "person_id", "visits": "who", "calls": "who", "buys": "who"}, nil, 1},
	{"reference", []string{`SELECT create_reference_table('clinic.people')`, `SELECT create_reference_table('clinic.visits')`, `SELECT create_reference_table('clinic.calls')`,
		`SELECT create_reference_table('clinic.buys')`, `SELECT create_reference_table('clinic.doses')`}, nil, nil, 4},
	{"local", nil, nil, nil, 4},
	{"mixed", []string{`SELECT create_reference_table('clinic.people')`, `SELECT create_distributed_table('clinic.visits', 'who', shard_count => 4)`}, map[string]string{"visits": "who"}, nil, 3},
	{"by something else", []string{`SELECT create_distributed_table('clinic.people', 'person_id', shard_count => 4)`, `SELECT create_distributed_table('clinic.visits', 'visit', shard_count => 3)`,
		`SELECT create_distributed_table('clinic.calls', 'kind', shard_count => 3)`, `SELECT create_distributed_table('clinic.buys', 'who', shard_count => 3)`, `SELECT create_distributed_table('clinic.doses', 'drug', shard_count => 3)`},
		map[string]string{"people": "person_id", "calls": "kind", "buys": "who", "doses": "drug"}, nil, 3},
	{"append", []string{`SELECT create_reference_table('clinic.doses')`, `SELECT create_reference_table('clinic.buys')`}, nil, []string{"people", "visits", "calls"}, 3},
}

// TestCitusLeaves (DPPROXY_CITUS): every leaf of the tests counts on a cluster what it counts on PostgreSQL alone,
// however the tables lie, or is not planned, which is known before any charge. Where all tables are distributed by the
// unit and co-located each is planned, and what comes to the coordinator is counted already.
func TestCitusLeaves(t *testing.T) {
	for rows, script := range citusRows() {
		for _, a := range arrangements {
			t.Run(a.name+", "+rows, func(t *testing.T) { a.compare(t, script) })
		}
	}
}

func (a arrangement) compare(t *testing.T, script string) {
	cluster := citustest.New(t)
	fill := slices.Clone(neighbourTables)
	for i := range fill {
		fill[i] = strings.ReplaceAll(fill[i], " PRIMARY KEY", "") // of which a distributed table's must hold what it is distributed by
	}
	fill = append(fill, script)
	for table, column := range a.notNull {
		fill = append(fill, "DELETE FROM clinic."+table+" WHERE "+column+" IS NULL")
	}
	alike := postgresConn(t, fill)
	cluster.Exec(t, fill...)
	for _, table := range a.appended {
		appendRows(t, cluster, alike, table)
	}
	cluster.Exec(t, a.distribute...)
	conn := cluster.Connect(t)
	for _, s := range citustest.Settings {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	ours, theirs := postgresQueries(conn), postgresQueries(alike)
	ran, needs, unplanned, gathered := 0, 0, map[string]int{}, 0
	for i, variant := range []string{"add-remove", "add-remove, groups", "add-remove, other rules"} {
		var statements []string
		for k, text := range slices.Concat(citusShapes, askedOfTexts, everyStatement()) {
			if (k%a.every == 0 || k < len(citusShapes)) && (i == 0 || k%3 == i) {
				statements = append(statements, text)
			}
		}
		seen := map[string]bool{}
		for _, m := range measures(t, variants(t, dialect.Citus)[variant], dialect.Citus, statements, privacy.MicroEpsilon(100_000)) {
			if seen[m.query.SQL()+fmt.Sprint(m.query.Args())] {
				continue
			}
			seen[m.query.SQL()+fmt.Sprint(m.query.Args())] = true
			if len(m.query.Required()) > 0 {
				needs++ // a proof, which there is none of
				continue
			}
			if _, err := conn.Exec(t.Context(), "ROLLBACK; BEGIN; SET LOCAL citus.propagate_set_commands = 'local'"); err != nil {
				t.Fatal(err)
			}
			if m.query.Joins() { // as package backend does it
				if _, err := conn.Exec(t.Context(), "SET LOCAL enable_nestloop = off"); err != nil {
					t.Fatal(err)
				}
			}
			plan, err := explained(t.Context(), conn, m.query)
			if strings.Contains(plan, "Could not get remote plan") {
				t.Errorf("%s (%s): a worker does not plan its part:\n%s\n%s", m.statement, variant, m.query.SQL(), plan)
			}
			if err != nil {
				var refused *pgconn.PgError
				if !errors.As(err, &refused) || refused.Code != "0A000" && refused.Code != "XX000" {
					t.Fatalf("%v\n%s", err, m.query.SQL())
				}
				if unplanned[refused.Message+": "+refused.Detail]++; a.name == "by the unit" {
					t.Errorf("%s (%s) is not planned: %s %s\n%s", m.statement, variant, refused.Message, refused.Detail, m.query.SQL())
				}
				continue
			}
			if brings := gathers(plan); brings {
				if gathered++; a.name == "by the unit" {
					t.Errorf("%s (%s) gathers rows:\n%s\n%s", m.statement, variant, m.query.SQL(), plan)
				}
			}
			if got, want := orderedRows(ours(t, m.query.SQL(), m.query.Args())), orderedRows(theirs(t, m.query.SQL(), m.query.Args())); !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%s (%s):\nCitus      %v\nPostgreSQL %v\n%s", m.statement, variant, got, want, m.query.SQL())
			}
			ran++
		}
	}
	t.Logf("%d measures, of which %d gather rows; %d need a proof; not planned: %v", ran, gathered, needs, unplanned)
}

// appendRows makes a table distributed by appending, with the rows of another database's, in two shards by turns.
func appendRows(t *testing.T, cluster *citustest.Database, from *pgx.Conn, table string) {
	t.Helper()
	column := map[string]string{"people": "person_id"}[table]
	if column == "" {
		column = "who"
	}
	cluster.Exec(t, "TRUNCATE clinic."+table, "SELECT create_distributed_table('clinic."+table+"', '"+column+"', 'append')")
	if _, err := from.Exec(t.Context(), "SET datestyle = 'ISO, YMD'"); err != nil {
		t.Fatal(err)
	}
	conn := cluster.Connect(t)
	for half := range 2 {
		var rows bytes.Buffer
		if _, err := from.PgConn().CopyTo(context.Background(), &rows, fmt.Sprintf("COPY (SELECT * FROM (SELECT *, row_number() OVER () AS nth FROM clinic.%s) x WHERE nth %% 2 = %d) TO STDOUT", table, half)); err != nil {
			t.Fatal(err)
		}
		var shard int64
		if err := conn.QueryRow(t.Context(), "SELECT master_create_empty_shard('clinic."+table+"')").Scan(&shard); err != nil {
			t.Fatal(err)
		}
		lines := regexp.MustCompile(`\t[0-9]+\n`).ReplaceAll(rows.Bytes(), []byte("\n")) // without the number
		if _, err := conn.PgConn().CopyFrom(context.Background(), bytes.NewReader(lines), fmt.Sprintf("COPY clinic.%s FROM STDIN WITH (append_to_shard %d)", table, shard)); err != nil {
			t.Fatal(err)
		}
	}
}

// explained is a plan, without what the workers would do.
func explained(ctx context.Context, conn *pgx.Conn, q rewrite.Query) (string, error) {
	rows, err := conn.Query(ctx, "EXPLAIN (COSTS false) "+q.SQL(), append([]any{pgx.QueryExecModeExec}, q.Args()...)...)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
}

// gathers reports whether rows come to the coordinator that are no counts of cells: what several tasks answer is not
// aggregated there.
//
//	HashAggregate                              WindowAgg
//	  ->  Custom Scan (Citus Adaptive)           ->  Sort
//	        Task Count: 4                              ->  Custom Scan (Citus Adaptive)
func gathers(plan string) bool {
	lines := strings.Split(plan, "\n")
	for i, line := range lines {
		if !strings.Contains(line, "Custom Scan (Citus Adaptive)") {
			continue
		}
		tasks := ""
		for _, below := range lines[i:] {
			if _, n, ok := strings.Cut(below, "Task Count: "); ok {
				tasks = n
				break
			}
		}
		above := ""
		for k := i - 1; k >= 0 && above == ""; k-- {
			if strings.Contains(lines[k], "->") || k == 0 {
				if !strings.Contains(lines[k], "Sort") {
					above = lines[k]
				}
			}
		}
		if tasks != "1" && !strings.Contains(above, "Aggregate") {
			return true
		}
	}
	return false
}

// BenchmarkCitus times a leaf of each shape on a cluster whose tables lie by the unit, and on PostgreSQL alone, over
// the same rows: 200,000 people and a million visits and calls.
//
//	DPPROXY_CITUS=postgres://… go test ./rewrite -run '^$' -bench Citus -benchtime 5x
func BenchmarkCitus(b *testing.B) {
	fill := slices.Clone(neighbourTables)
	for i := range fill {
		fill[i] = strings.ReplaceAll(fill[i], " PRIMARY KEY", "")
	}
	fill = append(fill, "INSERT INTO clinic.people SELECT i, i % 10, CASE i % 2 WHEN 0 THEN 'f' ELSE 'm' END FROM generate_series(1, 200000) i",
		"INSERT INTO clinic.visits SELECT i, 1 + i::bigint * 7919 % 200000, substr('ABC', 1 + i % 3, 1), i % 15 - 5, (i % 1000) / 100.0, DATE '2025-01-01' + i % 90, i % 10, 1 FROM generate_series(1, 1000000) i",
		"INSERT INTO clinic.calls SELECT 1 + i::bigint * 7907 % 200000, i, i % 60, i % 2000 - 1000, TIMESTAMP '2025-01-01' + i % 160 * interval '1 hour', CASE i % 2 WHEN 0 THEN 'in' ELSE 'out' END, 1 FROM generate_series(1, 1000000) i")
	cluster := citustest.New(b)
	cluster.Exec(b, fill...)
	cluster.Exec(b, arrangements[0].distribute...)
	server := pgtest.Start(b)
	server.Exec(b, "postgres", append(fill, "ALTER TABLE clinic.people ALTER person_id SET NOT NULL, ADD UNIQUE (person_id)", "ANALYZE")...)
	cluster.Exec(b, "ANALYZE")
	alone, err := pgx.Connect(b.Context(), server.URL())
	if err != nil {
		b.Fatal(err)
	}
	defer alone.Close(context.Background())
	conn := cluster.Connect(b)
	for _, s := range citustest.Settings {
		if _, err := conn.Exec(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := alone.Exec(b.Context(), "SET statement_timeout = '2min'"); err != nil {
		b.Fatal(err)
	}
	for i, text := range citusShapes[:7] {
		for name, d := range map[string]dialect.Dialect{"Citus": dialect.Citus, "PostgreSQL": dialect.PostgreSQL, "PostgreSQL, words for Citus": dialect.Citus} {
			m := measures(b, parsedFor(b, neighbourPolicy, d), d, []string{text}, privacy.MicroEpsilon(100_000))[0]
			sql, args, on := m.query.SQL(), m.query.Args(), conn
			if name != "Citus" {
				on = alone
				for _, s := range m.query.Proven() {
					if len(s.Ranks) == 0 && !slices.ContainsFunc(s.Needs, func(u rewrite.Unique) bool { return u.Table.Name != "people" }) {
						sql, args = s.SQL(), s.Args()
					}
				}
			}
			b.Run(fmt.Sprintf("%d/%s", i+1, name), func(b *testing.B) {
				for range b.N {
					rows, err := on.Query(b.Context(), sql, append([]any{pgx.QueryExecModeExec}, args...)...)
					if err != nil {
						b.Fatal(err)
					}
					for rows.Next() {
					}
					var ended *pgconn.PgError
					if errors.As(rows.Err(), &ended) && ended.Code == "57014" {
						b.Skip("not in two minutes")
					}
					if rows.Err() != nil {
						b.Fatal(rows.Err())
					}
				}
			})
		}
	}
}
