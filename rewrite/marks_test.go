package rewrite_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// inExpressions is PostgreSQL whose marks are sub-queries within expressions, as engines have them that do not say
// MarksByJoin.
var inExpressions = sync.OnceValue(func() dialect.Dialect {
	words := *dialect.PostgreSQL.Words
	words.MarksByJoin = false
	return dialect.Dialect{Words: &words}
})

// TestGoldenMarks shows a mark along a key.
func TestGoldenMarks(t *testing.T) {
	text := `SELECT kind, count(*) FROM calls c WHERE EXISTS (SELECT 1 FROM calls o WHERE o.visit = c.visit AND o.kind = 'out') GROUP BY 1`
	golden(t, "marks", measuresOf(t, variants(t, dialect.PostgreSQL)["add-remove"], text)[0])
}

var (
	subPlan    = regexp.MustCompile(`SubPlan \d+`)
	hashedPlan = regexp.MustCompile(`hashed SubPlan \d+`)
	byPairs    = regexp.MustCompile(`Nested Loop`)
	semiJoined = regexp.MustCompile(`(Hash|Merge) (Right )?(Semi|Anti) Join`)
)

// marksPlans are the plans of all texts of a query.
func marksPlans(t *testing.T, conn *pgx.Conn, q rewrite.Query) (list []string) {
	t.Helper()
	texts := [][]any{append([]any{q.SQL()}, q.Args()...)}
	for _, s := range q.Proven() {
		texts = append(texts, append([]any{s.SQL()}, s.Args()...))
	}
	for _, text := range texts {
		rows, err := conn.Query(t.Context(), "EXPLAIN (COSTS false) "+text[0].(string), append([]any{pgx.QueryExecModeExec}, text[1:]...)...)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%v\n%s", err, text[0])
		}
		list = append(list, strings.Join(lines, "\n"))
	}
	return list
}

// TestMarksTakeLinearWork: with as little work_mem as a server can have, no statement of the tests that joins rows
// reads a sub-query, or what is joined, anew for each row. The same statements with marks within expressions do, once
// their others are not expected to fit.
func TestMarksTakeLinearWork(t *testing.T) {
	t.Parallel()
	conn := postgresConn(t, append(slices.Clone(neighbourTables),
		"INSERT INTO clinic.people SELECT i, i % 10, CASE i % 2 WHEN 0 THEN 'f' ELSE 'm' END FROM generate_series(1, 5000) i",
		"INSERT INTO clinic.visits SELECT i, 1 + i * 7919 % 5000, substr('ABC', 1 + i % 3, 1), i % 15 - 5, (i % 1000) / 100.0, DATE '2025-01-01' + i % 90, i % 10, 1 FROM generate_series(1, 20000) i",
		"INSERT INTO clinic.doses SELECT i, CASE i % 3 WHEN 0 THEN 'x' ELSE 'y' END FROM generate_series(1, 20000) i",
		"INSERT INTO clinic.buys SELECT 1 + i * 7907 % 5000, i % 2000, i % 1000, i % 12 - 2, (i % 1000) / 100.0 FROM generate_series(1, 20000) i",
		"INSERT INTO clinic.calls SELECT 1 + i * 7907 % 5000, i, i % 60, i % 2000 - 1000, TIMESTAMP '2025-01-01' + i % 160 * interval '1 hour', CASE i % 2 WHEN 0 THEN 'in' ELSE 'out' END, 1 FROM generate_series(1, 20000) i",
		"ANALYZE"))
	if _, err := conn.Exec(t.Context(), "SET work_mem = '64kB'"); err != nil {
		t.Fatal(err)
	}
	again := 0
	for _, m := range measures(t, variants(t, dialect.PostgreSQL)["add-remove"], inExpressions(), everyStatement(), privacy.MicroEpsilon(100_000)) {
		for _, plan := range marksPlans(t, conn, m.query) {
			again += len(subPlan.FindAllString(plan, -1)) - len(hashedPlan.FindAllString(plan, -1))
		}
	}
	if t.Logf("within expressions: %d sub-queries are read for each row", again); again == 0 {
		t.Error("the memory is not small, or what is to be avoided does not happen")
	}
	if _, err := conn.Exec(t.Context(), "SET enable_nestloop = off"); err != nil { // as package backend does for queries that join rows
		t.Fatal(err)
	}
	joined := 0
	for _, variant := range []string{"add-remove", "add-remove, no units", "replace-one, unique"} {
		for _, m := range measures(t, variants(t, dialect.PostgreSQL)[variant], dialect.PostgreSQL, everyStatement(), privacy.MicroEpsilon(100_000)) {
			if !m.query.Joins() || strings.Contains(m.statement, "CROSS JOIN") { // which is with each of a public list
				continue
			}
			for _, plan := range marksPlans(t, conn, m.query) {
				if len(subPlan.FindAllString(plan, -1)) != len(hashedPlan.FindAllString(plan, -1)) || byPairs.MatchString(plan) {
					t.Errorf("%s (%s): what is read for each row\n%s\n%s", m.statement, variant, plan, m.query.SQL())
				}
				joined += len(semiJoined.FindAllString(plan, -1))
			}
		}
	}
	if t.Logf("%d semi-joins and anti-joins", joined); joined < 20 {
		t.Error("which is too few")
	}
}

// keyPolicy has two tables of people's rows that are compared by a key. What the policy calls a key's type is nothing
// that the SQL holds on to.
var keyPolicy = joinPolicy[:strings.Index(joinPolicy, "      - name: visits\n")] + `      - name: lefts
        source: clinic.lefts
        unit: lefts.who = people.person_id
        max_rows_per_unit: 40
        columns:
          - {name: n, type: integer, domain: {min: 0, max: 99, step: 1}}
          - {name: k, type: text, keys: join}
      - name: rights
        source: clinic.rights
        unit: rights.who = people.person_id
        max_rows_per_unit: 40
        columns:
          - {name: n, type: integer, domain: {min: 0, max: 99, step: 1}}
          - {name: k, type: text, keys: join}
`

// keyTypes are types of keys on both sides, and values of each. exact: those of which = and DISTINCT are equality of
// their texts, on both sides.
var keyTypes = []struct {
	name, left, right string
	values            []string
	exact             bool
}{
	{"integer", "int4", "int8", []string{"1", "2", "-1", "0", "2147483647"}, true},
	{"numeric", "numeric", "numeric", []string{"1", "1.0", "1.00", "1.000000000000000000001", "'NaN'", "0", "0.0", "-0.00"}, false},
	{"numeric of two scales", "numeric(9,2)", "numeric", []string{"1", "1.00", "1.001", "0.10", "0.1"}, false},
	{"floating", "float8", "float4", []string{"'0'", "'-0'", "'NaN'", "'Infinity'", "'0.5'", "'0.1'", "'1e-30'"}, false},
	{"text", "text", "varchar(9)", []string{"'a'", "'A'", "'a '", "''", "' '", "'é'", "E'e\\u0301'"}, true},
	{"text of blanks", "char(4)", "char(6)", []string{"'a'", "'A'", "'a '", "''", "' '", "'ab'"}, true},
	{"text and blanks", "text", "char(6)", []string{"'a'", "'A'", "'a '", "''", "' '", "'ab'"}, false},
	{"blanks and varchar", "char(6)", "varchar(6)", []string{"'a'", "'A'", "'a '", "''", "' '", "'ab'"}, false},
	{"varchar and blanks", "varchar(6)", "char(6)", []string{"'a'", "'A'", "'a '", "''", "' '", "'ab'"}, false},
	{"letters of either case", `public.citext`, `public.citext`, []string{"'a'", "'A'", "'aB'", "'Ab'", "''", "'a '"}, false},
	{"letters of either case and text", `public.citext`, "text", []string{"'a'", "'A'", "'aB'", "'Ab'", "''", "'a '"}, false},
	{"a loose collation", "text COLLATE clinic.loose", "text COLLATE clinic.loose", []string{"'a'", "'A'", "'aB'", "'Ab'", "'é'", "'É'"}, false},
	{"a loose collation and another", "text COLLATE clinic.loose", "text", []string{"'a'", "'A'", "'aB'", "'Ab'", "'é'", "'É'"}, false},
	{"another collation and a loose one", "text", "text COLLATE clinic.loose", []string{"'a'", "'A'", "'aB'", "'Ab'", "'é'", "'É'"}, false},
	{"interval", "interval", "interval", []string{"'1 month'", "'30 days'", "'720 hours'", "'1 day'", "'24 hours'"}, false},
	{"jsonb", "jsonb", "jsonb", []string{"'1'", "'1.0'", `'{"a": 1}'`, `'{"a": 1.00}'`, "'null'"}, false},
}

// TestMarksAlongKeys: whatever = says of two keys, a row's mark is what it says, as often as the row is there. By a
// join with different keys it would be otherwise, which is why that is for exact ones alone (dialect.Citus).
func TestMarksAlongKeys(t *testing.T) {
	t.Parallel()
	statements := []string{
		`SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM rights r WHERE r.who = l.who AND r.k = l.k)), count(*) FROM lefts l`,
		`SELECT n, count(*) FROM lefts l WHERE NOT EXISTS (SELECT 1 FROM rights r WHERE r.who = l.who AND r.k = l.k AND r.n < 50) GROUP BY 1`,
		`SELECT count(*) FROM lefts l WHERE EXISTS (SELECT 1 FROM lefts r WHERE r.who = l.who AND r.k = l.k AND r.n > 3) AND EXISTS (SELECT 1 FROM rights r WHERE r.who = l.who AND r.k = l.k)`,
	}
	differ := map[string]bool{}
	for _, k := range keyTypes {
		t.Run(k.name, func(t *testing.T) {
			fill := []string{"CREATE SCHEMA clinic", "CREATE EXTENSION IF NOT EXISTS citext SCHEMA public",
				"CREATE COLLATION clinic.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
				"CREATE TABLE clinic.people (person_id int, age int, sex text)", "INSERT INTO clinic.people SELECT i, 1, 'f' FROM generate_series(0, 40) i",
				"CREATE TABLE clinic.lefts (who int, n int, k " + k.left + ")", "CREATE TABLE clinic.rights (who int, n int, k " + k.right + ")"}
			for who := range 1 << min(len(k.values), 5) { // each with some of the values on the right, and all on the left
				for i, v := range append(slices.Clone(k.values), "NULL") {
					fill = append(fill, fmt.Sprintf("INSERT INTO clinic.lefts VALUES (%d, %d, %s)", who, i, v))
					if who>>(i%5)&1 != 0 || v == "NULL" {
						fill = append(fill, fmt.Sprintf("INSERT INTO clinic.rights VALUES (%d, %d, %s)", who, i*20, v))
					}
				}
			}
			run := postgresQueries(postgresConn(t, fill))
			count := func(d dialect.Dialect) (all [][][]int64) {
				for _, m := range alone(measures(t, parsedFor(t, keyPolicy, d), d, statements, privacy.MicroEpsilon(100_000))) {
					all = append(all, orderedRows(run(t, m.query.SQL(), m.query.Args())))
				}
				return all
			}
			within, parted, joined := fmt.Sprint(count(inExpressions())), fmt.Sprint(count(dialect.PostgreSQL)), fmt.Sprint(count(dialect.Citus))
			if parted != within {
				t.Errorf("marks are %s\nand within expressions %s", parted, within)
			}
			if k.exact && joined != within {
				t.Errorf("by a join marks are %s\nand within expressions %s", joined, within)
			}
			differ[k.name] = joined != within
		})
	}
	t.Logf("by a join marks differ along keys of: %v", differ)
	for _, name := range []string{"blanks and varchar", "letters of either case"} {
		if !differ[name] {
			t.Errorf("by a join marks are the same along keys of %s, and nothing would be lost by it", name)
		}
	}
}

// marksServer has many rows, on a server of its own, and gives up after a minute.
func marksServer(b *testing.B) *pgx.Conn {
	server := pgtest.Start(b)
	server.Exec(b, "postgres", append(slices.Clone(neighbourTables),
		"INSERT INTO clinic.people SELECT i, i % 10, CASE i % 2 WHEN 0 THEN 'f' ELSE 'm' END FROM generate_series(1, 200000) i",
		"INSERT INTO clinic.visits SELECT i, 1 + i::bigint * 7919 % 200000, substr('ABC', 1 + i % 3, 1), i % 15 - 5, (i % 1000) / 100.0, DATE '2025-01-01' + i % 90, i % 10, 1 FROM generate_series(1, 1000000) i",
		"INSERT INTO clinic.calls SELECT 1 + i::bigint * 7919 % 200000, i, i % 60, i % 2000 - 1000, TIMESTAMP '2025-01-01' + i % 160 * interval '1 hour', CASE i % 2 WHEN 0 THEN 'in' ELSE 'out' END, 1 FROM generate_series(1, 1000000) i",
		"ANALYZE")...)
	conn, err := pgx.Connect(b.Context(), server.URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close(context.Background()) })
	for _, s := range []string{"SET statement_timeout = '1min'", "SET enable_nestloop = off"} {
		if _, err := conn.Exec(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
	return conn
}

// BenchmarkMarks times a mark along the unit and one along a key, over 200,000 people with a million visits and a
// million calls and the work_mem that a server has by default.
//
//	go test ./rewrite -run '^$' -bench Marks -benchtime 3x
func BenchmarkMarks(b *testing.B) {
	conn := marksServer(b)
	plain := inExpressions()
	for name, text := range map[string]string{
		"unit": `SELECT sex, count(*) FROM people WHERE person_id IN (SELECT who FROM visits WHERE ward = 'B') GROUP BY 1`,
		"key":  `SELECT ward, count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM calls c WHERE c.who = v.who AND c.visit = v.visit AND c.kind = 'out') GROUP BY 1`,
		"two":  `SELECT ward, count(*) FILTER (WHERE EXISTS (SELECT 1 FROM calls c WHERE c.who = v.who AND c.visit = v.visit)), count(*) FROM visits v GROUP BY 1`,
	} {
		for way, d := range map[string]dialect.Dialect{"within": plain, "join": dialect.Citus, "PostgreSQL": dialect.PostgreSQL} {
			m := measures(b, parsedFor(b, neighbourPolicy, d), d, []string{text}, privacy.MicroEpsilon(100_000))[0]
			b.Run(name+"/"+way, func(b *testing.B) {
				for range b.N {
					rows, err := conn.Query(b.Context(), m.query.SQL(), append([]any{pgx.QueryExecModeExec}, m.query.Args()...)...)
					if err != nil {
						b.Fatal(err)
					}
					for rows.Next() {
					}
					if rows.Err() != nil {
						b.Skip(rows.Err())
					}
				}
			})
		}
	}
}
