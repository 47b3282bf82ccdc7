package clients

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/material"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/test/kit"
)

var updateReplay = flag.Bool("update-replay", false, "write testdata/replay/*.txt anew")

// recordedClients are the files of recorded statements.
var recordedClients = []string{"psql", "psql-session", "psycopg2", "psycopg3", "asyncpg", "sqlalchemy", "pandas", "pgjdbc", "pgjdbc-session", "psqlodbc",
	"node-postgres", "pgx", "dbeaver", "metabase", "superset", "grafana", "redash", "tableau", "bi-shapes"}

// shopTables are the tables that the recorded statements name.
var shopTables = []string{
	`CREATE TABLE public.users (id integer PRIMARY KEY, name text, age integer, active boolean, balance numeric(12,2), born date, created_at timestamptz,
		updated_at timestamp, weight real, email varchar(80))`,
	`CREATE TABLE public.orders (id bigint PRIMARY KEY, user_id integer REFERENCES public.users, amount numeric(10,2), placed_at timestamptz, status text, qty smallint)`,
	`CREATE TABLE public.events (id bigint, user_id integer REFERENCES public.users, ts timestamptz, kind text, v double precision)`,
	`INSERT INTO users SELECT i, 'n' || i, i % 90, i % 2 = 0, i, '2000-01-01', '2024-02-01', '2024-02-01', 60, 'e' FROM generate_series(1, 300) s(i)`,
	`INSERT INTO orders SELECT i, 1 + i % 300, i % 100, timestamptz '2024-01-01 00:00:00Z' + i * interval '3 hours', (ARRAY['new', 'paid', 'shipped'])[1 + i % 3], i % 20
		FROM generate_series(1, 2000) s(i)`,
	`INSERT INTO events SELECT i, 1 + i % 300, timestamptz '2024-01-01 00:00:00Z' + i * interval '1 hour', (ARRAY['click', 'view'])[1 + i % 2], i % 100 FROM generate_series(1, 2000) s(i)`,
}

// shopProxy serves the tables above from a PostgreSQL server.
func shopProxy(t *testing.T, server *pgtest.Server, more ...string) *kit.Program {
	t.Helper()
	const role = "reader"
	server.Exec(t, "postgres", "CREATE ROLE reader LOGIN", "CREATE DATABASE shop")
	server.Exec(t, "shop", append(slices.Clone(shopTables), append(more, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)...)...)
	text, err := os.ReadFile("testdata/replay/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(memory.Dir(t), "policy.yaml")
	filled := strings.NewReplacer("BACKEND", server.URLFor(role, "shop"), "VERIFIER", kit.Verifier(t, "analyst")).Replace(string(text))
	if err := os.WriteFile(path, []byte(filled), 0o600); err != nil {
		t.Fatal(err)
	}
	return kit.Serve(t, path)
}

// outcome is how one statement ended: its results' columns and tags, or an error.
type outcome struct {
	results []string
	err     *pgconn.PgError
	params  string
	rows    string // exact, for comparisons of two proxies
	notices string
}

var dollar = regexp.MustCompile(`\$\d`)

// replay runs one block as its client did: with parameters by the extended protocol, each NULL, otherwise both ways.
func replay(t *testing.T, conn *pgconn.PgConn, text string, extended bool) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var o outcome
	var failed error
	if extended || dollar.MatchString(text) {
		d, err := conn.Prepare(ctx, "", text, nil)
		if failed = err; err == nil {
			o.params = fmt.Sprint(d.ParamOIDs)
			failed = o.read(conn.ExecPrepared(ctx, "", make([][]byte, len(d.ParamOIDs)), nil, nil))
		}
	} else {
		all := conn.Exec(ctx, text)
		for all.NextResult() {
			_ = o.read(all.ResultReader()) // Close tells it
		}
		failed = all.Close()
	}
	if failed != nil && !errors.As(failed, &o.err) {
		t.Fatalf("%.200s: %v", text, failed)
	}
	return o
}

// level brings both connections to a transaction that goes on, or to none.
func level(t *testing.T, theirs, ours *pgconn.PgConn) {
	t.Helper()
	do := func(conn *pgconn.PgConn, text string) {
		if _, err := conn.Exec(t.Context(), text).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range []*pgconn.PgConn{theirs, ours} {
		if conn.TxStatus() == 'E' {
			do(conn, "ROLLBACK")
		}
	}
	if theirs.TxStatus() == 'T' && ours.TxStatus() == 'I' {
		do(ours, "BEGIN")
	}
	if theirs.TxStatus() == 'I' && ours.TxStatus() == 'T' {
		do(ours, "ROLLBACK")
	}
}

// read takes one result, with its columns where it has no rows.
func (o *outcome) read(r *pgconn.ResultReader) error {
	var columns []string
	for _, f := range r.FieldDescriptions() {
		columns = append(columns, fmt.Sprintf("%s:%d", f.Name, f.DataTypeOID))
	}
	var rows [][]string
	for r.NextRow() {
		row := make([]string, len(r.Values()))
		for i, v := range r.Values() {
			row[i] = string(v)
		}
		rows = append(rows, row)
	}
	tag, err := r.Close()
	if err == nil {
		word, _, _ := strings.Cut(tag.String(), " ")
		o.results = append(o.results, word+" "+strings.Join(columns, " "))
	}
	o.rows += fmt.Sprintf("%s %v %q\n", tag, columns, rows)
	return err
}

// pgConnect opens a connection that the test's end closes.
func pgConnect(t *testing.T, url string) *pgconn.PgConn {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// TestReplay plays every recorded statement to dpproxy and to PostgreSQL and holds the outcome of those that differ:
// what PostgreSQL answers and dpproxy does not, and whose columns or parameters have other names or types.
func TestReplay(t *testing.T) {
	kit.Beside(t)
	if testing.Short() {
		t.Skip("plays every recorded statement to two servers")
	}
	server := pgtest.Start(t)
	material.Of(t, "psql")
	p := shopProxy(t, server)
	var report strings.Builder
	for _, client := range recordedClients {
		replayClient(t, p, server.URLFor("postgres", "shop"), client, &report)
	}
	const file = "testdata/replay/outcomes.txt"
	if *updateReplay {
		if err := os.WriteFile(file, []byte(report.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != report.String() {
		t.Errorf("outcomes changed; run with -update-replay and read the difference:\n%s", report.String())
	}
}

func replayClient(t *testing.T, p *kit.Program, url, client string, report *strings.Builder) {
	ours, theirs := pgConnect(t, p.URL("analyst", "shop")), pgConnect(t, url)
	asked, same := 0, 0
	var lines []string
	for i, text := range material.Of(t, client) {
		for _, extended := range []bool{false, true} {
			if extended && dollar.MatchString(text) {
				continue
			}
			want, got := replay(t, theirs, text, extended), replay(t, ours, text, extended)
			level(t, theirs, ours)
			if want.err != nil && !(want.err.Code == "26000" || want.err.Code == "34000") {
				continue // nor does PostgreSQL
			}
			asked++
			if want.err != nil && got.err != nil && want.err.Code == got.err.Code ||
				want.err == nil && got.err == nil && slices.Equal(want.results, got.results) && want.params == got.params {
				same++
				continue
			}
			lines = append(lines, fmt.Sprintf("  %d %s: %s", i+1, map[bool]string{false: "simple", true: "extended"}[extended], difference(want, got)))
			if os.Getenv("DPPROXY_VERBOSE") != "" {
				fmt.Printf("--- %s %s\n%s\n", client, lines[len(lines)-1], text)
			}
		}
	}
	fmt.Fprintf(report, "%s: %d of %d as PostgreSQL\n", client, same, asked)
	for _, l := range lines {
		report.WriteString(l + "\n")
	}
}

func difference(want, got outcome) string {
	switch {
	case got.err != nil && want.err != nil:
		return got.err.Code + " for " + want.err.Code
	case got.err != nil:
		return got.err.Code + " " + got.err.Message
	case want.err != nil:
		return "answered, PostgreSQL: " + want.err.Code
	case want.params != got.params:
		return fmt.Sprintf("parameters %s, PostgreSQL %s", got.params, want.params)
	}
	for i := range min(len(got.results), len(want.results)) {
		if got.results[i] != want.results[i] {
			return fmt.Sprintf("%.160s, PostgreSQL %.160s", got.results[i], want.results[i])
		}
	}
	return fmt.Sprintf("%d results, PostgreSQL %d", len(got.results), len(want.results))
}
