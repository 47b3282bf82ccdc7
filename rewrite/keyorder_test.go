package rewrite_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// TestJoinKeysAreOrderedByBytes: a collation may take different keys for equal. Which of a unit's rows are kept must
// not then depend on the order in which they are stored; ordered by the keys' collation, it would.
func TestJoinKeysAreOrderedByBytes(t *testing.T) {
	conn := postgresConn(t, []string{"CREATE SCHEMA clinic",
		`CREATE COLLATION clinic.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`,
		"CREATE TABLE clinic.calls (who int, visit text COLLATE clinic.loose, secs double precision, paid bigint, moment timestamp, kind text)",
		"CREATE TABLE clinic.visits (visit text, who int, ward text, minutes int, cost numeric(6,2), day date, room int)",
		"INSERT INTO clinic.visits VALUES ('a', 1, 'A', 1, 1, DATE '2025-01-01', 1)"})
	text := strings.Replace(neighbourPolicy, "max_rows_per_unit: 3\n        columns:\n          - {name: secs", "max_rows_per_unit: 1\n        columns:\n          - {name: secs", 1)
	text = strings.ReplaceAll(text, "{name: visit, type: integer, keys: join}", "{name: visit, type: text, keys: join}")
	m := measures(t, parsedFor(t, text, dialect.PostgreSQL), dialect.PostgreSQL,
		[]string{`SELECT count(*) FROM calls WHERE visit IN (SELECT visit FROM visits)`}, privacy.MicroEpsilon(100_000))[0]
	collated := regexp.MustCompile(`\(\((b\.j\d+)\)::pg_catalog\.text COLLATE pg_catalog\."C"\)`)
	hashed := regexp.MustCompile(`\((b\.j\d+)\)::pg_catalog\.text, 128\)`)
	compared := regexp.MustCompile(`OPERATOR\(pg_catalog\.=\) (a1\.e\d+)\)`)
	for _, loose := range []bool{false, true} {
		var counts []string
		for _, keys := range [][]string{{"a", "A"}, {"A", "a"}} {
			if _, err := conn.Exec(t.Context(), "TRUNCATE clinic.calls"); err != nil {
				t.Fatal(err)
			}
			for _, k := range keys {
				if _, err := conn.Exec(t.Context(), fmt.Sprintf("INSERT INTO clinic.calls VALUES (1, '%s', 1, 1, TIMESTAMP '2025-01-01', 'in')", k)); err != nil {
					t.Fatal(err)
				}
			}
			sql := m.query.SQL()
			if !collated.MatchString(sql) {
				t.Fatalf("no key is ordered by its bytes:\n%s", sql)
			}
			if loose { // ordered by the keys' collation alone, without the hash, which is of their bytes too
				sql = hashed.ReplaceAllString(collated.ReplaceAllString(sql, "$1"), "($1)::pg_catalog.text, 0)")
			}
			// The comparison of keys is made by bytes too, so that it tells which was kept.
			sql = compared.ReplaceAllString(sql, `OPERATOR(pg_catalog.=) $1 COLLATE pg_catalog."C")`)
			counts = append(counts, fmt.Sprint(postgresQueries(conn)(t, sql, m.query.Args())))
		}
		if slices.Equal(counts[:1], counts[1:]) == loose {
			t.Errorf("loose %t: %v", loose, counts)
		}
	}
}
