package snapshots

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// besideStatement has four leaves, of which each reads all visits.
const besideStatement = `SELECT 1, count(*) FROM visits UNION ALL SELECT 2, count(*) FROM visits v JOIN people p ON p.person_id = v.who WHERE p.sex = 'f'
	UNION ALL SELECT 3, count(DISTINCT who) FROM visits WHERE minutes > 30 UNION ALL SELECT 4, sum(fee) FROM visits`

// TestBenchBeside prints what a statement of several leaves takes where they run side by side, beside the same with one
// place in the database, and beside PostgreSQL. It asserts nothing of time.
func TestBenchBeside(t *testing.T) {
	if os.Getenv("DPPROXY_BENCH") == "" {
		t.Skip("a benchmark: make bench-snapshot")
	}
	server := pgtest.Start(t, "max_wal_size=8GB", "shared_buffers=2GB", "synchronous_commit=off", "max_parallel_workers_per_gather=0")
	database := server.Database(t)
	server.Exec(t, database, strings.Split(strings.NewReplacer("ROWS", "3000000", "KEY", "bigint").Replace(benchSQL), ";")...)
	role := server.Role(t, "")
	server.Exec(t, database, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)
	var conns [][]*pgconn.PgConn
	var names []string
	for _, snapshot := range []bool{false, true} {
		for _, conn := range []int{2, 8} {
			var users strings.Builder
			for i := range benchUsers {
				fmt.Fprintf(&users, "  - {name: u%d, password: %q}\n", i, kit.Verifier(t, fmt.Sprint("u", i)))
			}
			text := fmt.Sprintf(benchPolicy, server.URLFor(role, database)+fmt.Sprintf("&pool_max_conns=%d", conn), 1, users.String(), "bigint", 10)
			if !snapshot {
				text = strings.Replace(text, ", snapshot: {dir: snapshots, every: 1d, connections: 1}", "", 1)
			}
			path := t.TempDir() + "/policy.yaml"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			p := kit.Serve(t, path)
			var list []*pgconn.PgConn
			for i := range benchUsers {
				list = append(list, connect(t, p.URL(fmt.Sprint("u", i), "clinic")))
			}
			conns = append(conns, list)
			names = append(names, fmt.Sprintf("snapshot %t, %d connections", snapshot, conn))
		}
	}
	plain := connect(t, server.URLFor("postgres", database))
	own := timed(3, func(int) { ask(t, plain, besideStatement) })
	fmt.Printf("PostgreSQL %.0f ms\n", own)
	for k, list := range conns {
		ours := timed(benchUsers, func(i int) { ask(t, list[i], besideStatement) })
		fmt.Printf("%s: ours %.0f ms (%.2f ×)\n", names[k], ours, ours/own)
	}
}
