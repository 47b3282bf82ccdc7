package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/test/kit"
)

const postgresPeople = `CREATE TABLE public.people AS SELECT i::int AS person_id, (random() * 105)::int AS age,
  CASE WHEN random() < 0.507 THEN 'Female' ELSE 'Male' END AS sex, (ARRAY['none','school','college','bachelor','master'])[1 + (random() * 4)::int] AS education,
  CASE WHEN random() < 0.9 THEN (exp(random() * 4 + 8.5))::int END AS income, DATE '2026-06-30' - (random() * 9000)::int AS hired,
  (ARRAY['north','south','east','west','islands'])[1 + (random() * 4)::int] AS region FROM generate_series(1, %d) AS s(i)`

// TestBenchFreshLeafPostgres is TestBenchFreshLeaf on PostgreSQL.
func TestBenchFreshLeafPostgres(t *testing.T) {
	benchOnly(t)
	const rows = 10_000_000
	server := pgtest.Start(t, "max_wal_size=8GB", "shared_buffers=2GB", "synchronous_commit=off")
	role, database := server.Role(t, ""), server.Database(t)
	server.Exec(t, database, fmt.Sprintf(postgresPeople, rows), "ALTER TABLE public.people ADD PRIMARY KEY (person_id)", "GRANT SELECT ON public.people TO "+role, "VACUUM ANALYZE public.people")
	text := demoPolicy("127.0.0.1:0", "127.0.0.1:0", rows, kit.Verifier(t, "analyst"), kit.Verifier(t, "dba"))
	text, _, _ = strings.Cut(text, "      - name: visits")
	path := filepath.Join(t.TempDir(), "policy.yaml")
	text = strings.NewReplacer("duckdb:warehouse.duckdb", server.URLFor(role, database), "main.people", "public.people").Replace(text)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := kit.Serve(t, path)
	w := p.Connect("analyst", "demo")
	db, err := pgx.Connect(t.Context(), server.URLFor(role, database))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	loaded, err := policy.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, shape := range []string{
		`SELECT count(*) FROM people WHERE income >= %d AND sex = 'Female'`,
		`SELECT sex, education, count(*) FROM people WHERE income >= %d GROUP BY sex, education`,
	} {
		var through, direct, own []float64
		for i := range 9 {
			text := fmt.Sprintf(shape, 1000*(i+3))
			regenerated, args := measureSQL(t, loaded, text, dialect.PostgreSQL)
			own = append(own, timed(t, func() error { return drainRows(t, db, text) }))
			direct = append(direct, timed(t, func() error { return drainRows(t, db, regenerated, args...) }))
			through = append(through, timed(t, func() error {
				if a := w.Ask(text); a.Err != nil {
					return a.Err
				}
				return nil
			}))
		}
		freshRow("PostgreSQL", shape, through, direct, own)
	}
}

func drainRows(t *testing.T, db *pgx.Conn, text string, args ...any) error {
	rows, err := db.Query(t.Context(), text, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	return rows.Err()
}
