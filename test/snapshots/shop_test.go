package snapshots

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/test/kit"
)

// shopTables are TPC-H's, the ones that others refer to first.
var shopTables = []string{"region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem"}

// shopInPostgres makes examples/tpch in a PostgreSQL, with its keys, and returns the URL of the role that dpproxy reads
// it by.
func shopInPostgres(t *testing.T, server *pgtest.Server, database string, scale float64) (url string) {
	t.Helper()
	script, err := os.ReadFile("../../examples/tpch/generate.sql")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	db, err := sql.Open("duckdb", filepath.Join(dir, "tpch.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(fmt.Sprintf("SET VARIABLE scale = %g;\n%s", scale, script)); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, server.URLFor("postgres", database))
	defer conn.Close(context.Background())
	for _, table := range shopTables {
		var create, keys string
		if err := db.QueryRow("SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index) FROM duckdb_columns() WHERE table_name = $1", table).Scan(&create); err != nil {
			t.Fatal(err)
		}
		if err := db.QueryRow("SELECT array_to_string(constraint_column_names, ', ') FROM duckdb_constraints() WHERE table_name = $1 AND constraint_type = 'PRIMARY KEY'", table).Scan(&keys); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, table+".csv")
		if _, err := db.Exec("COPY " + table + " TO '" + file + "' (HEADER)"); err != nil {
			t.Fatal(err)
		}
		ask(t, conn, "CREATE TABLE "+table+" ("+create+")")
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.CopyFrom(context.Background(), f, "COPY "+table+" FROM STDIN (FORMAT csv, HEADER)"); err != nil {
			t.Fatal(err)
		}
		f.Close()
		ask(t, conn, "ALTER TABLE "+table+" ADD PRIMARY KEY ("+keys+")")
	}
	for _, key := range []string{"orders (o_custkey)", "lineitem (l_shipdate)", "lineitem (l_partkey, l_suppkey)", "lineitem (l_suppkey)", "partsupp (ps_suppkey)"} { // as an owner would: reports join by these
		ask(t, conn, "CREATE INDEX ON "+key)
	}
	role := server.Role(t, "")
	server.Exec(t, database, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role, "VACUUM ANALYZE")
	t.Cleanup(func() { server.Exec(t, database, "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM "+role) })
	return server.URLFor(role, database)
}

// shopPolicy is examples/tpch's over a PostgreSQL, whose keys go as far as the scale.
func shopPolicy(t *testing.T, backend string, scale float64) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/tpch/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var users strings.Builder
	for i := range benchUsers {
		fmt.Fprintf(&users, "  - {name: u%d, password: %q}\n", i, kit.Verifier(t, fmt.Sprint("u", i)))
	}
	lines := regexp.MustCompile(`(?m)^  - \{name: analyst.*\n`).ReplaceAllLiteralString(string(text), users.String())
	lines = strings.NewReplacer("127.0.0.1:6432", `"127.0.0.1:0"`, `{url: "duckdb:tpch.duckdb"}`, backend, "{analyst: {epsilon: 50}}", `{"*": {epsilon: 500}}`, "cap: {epsilon: 100}", "cap: {epsilon: 100000}",
		"max: 20000}", fmt.Sprintf("max: %d}", int(200000*scale)), "max: 1000}", fmt.Sprintf("max: %d}", int(10000*scale)),
		"        public: true\n", "        public: true\n        max_rows: 1000000\n").Replace(lines)
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBenchShop prints what the report statements of an order shop take over a snapshot, beside PostgreSQL itself. It
// asserts nothing of time.
func TestBenchShop(t *testing.T) {
	if os.Getenv("DPPROXY_BENCH") == "" {
		t.Skip("a benchmark: make bench-snapshot")
	}
	scale, err := strconv.ParseFloat(cmp.Or(os.Getenv("DPPROXY_BENCH_SCALE"), "0.5"), 64)
	if err != nil {
		t.Fatal(err)
	}
	server := pgtest.Start(t, "max_wal_size=8GB", "shared_buffers=2GB", "synchronous_commit=off")
	database := server.Database(t)
	url := shopInPostgres(t, server, database, scale)
	plain := connect(t, server.URLFor("postgres", database))
	for _, what := range strings.Fields(cmp.Or(os.Getenv("DPPROXY_BENCH_ON"), "snapshot")) { // or live
		backend := fmt.Sprintf("{url: %q, deadline: 10m}", url)
		if what == "snapshot" {
			backend = fmt.Sprintf("{url: %q, deadline: 10m, snapshot: {dir: snapshots, every: 1d}}", url)
		}
		p := kit.Serve(t, shopPolicy(t, backend, scale))
		var conns []*pgconn.PgConn
		for i := range benchUsers {
			conns = append(conns, connect(t, p.URL(fmt.Sprint("u", i), "tpch")))
		}
		var ratios []float64
		for _, file := range []string{"queries.sql", "instead.sql"} {
			text, err := os.ReadFile("../../examples/tpch/" + file)
			if err != nil {
				t.Fatal(err)
			}
			for _, block := range strings.Split(string(text), "\n-- ")[1:] {
				name, query, _ := strings.Cut(block, "\n")
				if _, err := conns[0].Exec(context.Background(), "EXPLAIN "+query).ReadAll(); err != nil {
					continue // it lists single rows, and is refused
				}
				ours := timed(benchUsers, func(i int) { ask(t, conns[i], query) })
				own := timed(3, func(int) { ask(t, plain, query) })
				ratios = append(ratios, ours/own)
				figures.Row("a shop of "+figures.Number(6_000_000*scale)+" lines, "+what, name, "ours", fmt.Sprintf("%.0f ms", ours), "PostgreSQL", fmt.Sprintf("%.0f ms", own), "ratio", fmt.Sprintf("%.2f ×", ours/own))
			}
		}
		slices.Sort(ratios)
		figures.Row("all of them, "+what, fmt.Sprint(len(ratios), " statements"), "median (aim 1)", fmt.Sprintf("%.2f ×", ratios[len(ratios)/2]), "most (aim 3)", fmt.Sprintf("%.2f ×", ratios[len(ratios)-1]))
		p.Stop(9)
	}
}
