package rewrite_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/policy"
)

// joinRows writes rows that no bound and no domain touches.
func joinRows(r *rand.Rand) []string {
	list := []string{"CREATE SCHEMA clinic", "CREATE TABLE clinic.people (person_id int PRIMARY KEY, age int, sex text)",
		"CREATE TABLE clinic.visits (visit int PRIMARY KEY, who int, ward text, minutes int, cost numeric(6,2), day date, room int)",
		"CREATE TABLE clinic.doses (visit int, drug text)",
		"CREATE VIEW clinic.grown AS SELECT person_id, age, (age - age % 2) / 2 AS half, sex FROM clinic.people WHERE age > 2",
		"CREATE VIEW clinic.stays AS SELECT g.sex, l.ward, l.minutes, l.visit, l.who FROM clinic.grown AS g JOIN clinic.visits AS l ON l.who = g.person_id WHERE l.minutes >= 0",
		"CREATE VIEW clinic.frequent AS SELECT who AS person, count(*) AS n, max(minutes) AS longest FROM clinic.visits GROUP BY who HAVING count(*) > 1",
		"CREATE VIEW clinic.rooms AS SELECT who AS person, ward, min(room) AS room FROM clinic.visits GROUP BY who, ward",
		"CREATE TABLE clinic.wards (code text, label text, floor int, beds numeric(6,1))",
		"CREATE TABLE clinic.buys (who int, part int, maker int, amount int, price numeric(6,2))",
		"CREATE TABLE clinic.offers (part int, maker bigint, fee numeric(6,2), least int, grade text)",
		"INSERT INTO clinic.offers VALUES (0, 0, 1.25, 1, 'x'), (0, 1, -0.30, 4, 'y'), (1, 0, NULL, 2, 'x'), (2, 3, 9.99, NULL, NULL), (3, 1, 0, -7, 'z'), (1, 2, 2.50, 4, 'y'), (5000, 1, 50, 9, 'far'), (NULL, 1, 0.01, 1, 'none')",
		"CREATE TABLE clinic.tags (code text, tag text, least int, most int)",
		"INSERT INTO clinic.tags VALUES ('A', 'red', 0, 3), ('A', 'blue', 2, 5), ('A', 'blue', 2, 5), ('B', 'red', -5, 9), ('B', 'green', 4, 4), ('E', 'violet', 1, 1), (NULL, 'none', 0, 9)",
		"INSERT INTO clinic.wards VALUES ('A', 'heart', 1, 10.5), ('B', 'bird', 2, 0.5), ('D', 'door', 3, NULL)"}
	visit := 0
	for person := range 60 {
		sex := []string{"'f'", "'m'", "NULL"}[r.IntN(3)]
		list = append(list, fmt.Sprintf("INSERT INTO clinic.people VALUES (%d, %d, %s)", person, r.IntN(10), sex))
		for range r.IntN(5) {
			part := fmt.Sprint(r.IntN(4))
			if r.IntN(6) == 0 {
				part = "NULL"
			}
			list = append(list, fmt.Sprintf("INSERT INTO clinic.buys VALUES (%d, %s, %d, %d, %d.%02d)", person, part, r.IntN(4), r.IntN(12)-2, r.IntN(10), r.IntN(100)))
		}
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
