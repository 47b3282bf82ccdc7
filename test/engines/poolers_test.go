package engines

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// behind lays tables into PostgreSQL as inPostgres does, with pgbouncer between it and dpproxy; lines are of its configuration.
func behind(lines, more string) func(*testing.T, string, []*table) string {
	return func(t *testing.T, dir string, tables []*table) string {
		server := pgtest.Shared(t)
		role := server.Role(t, "")
		database := server.Database(t)
		server.Exec(t, database, "SET timezone = 'UTC'; "+strings.Join(statements(tables, nil, true), ";\n"), "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role, "ANALYZE")
		url := kit.Pooler(t, strings.Replace(server.URLFor(role, database), role+"@", role+":"+role+"@", 1), lines, role)
		if url == "" {
			t.Skip("pgbouncer is not installed")
		}
		return fmt.Sprintf("{url: %q%s}", url, more)
	}
}

// TestPoolers asks what TestConformance asks, where pgbouncer hands sessions of PostgreSQL from one transaction of dpproxy's to another.
func TestPoolers(t *testing.T) {
	plain := truth(t, shop(false))
	want := map[string][][]string{}
	for _, s := range shapes {
		for _, statement := range s.statements {
			want[statement] = plain(statement)
		}
	}
	for name, e := range map[string]engine{
		"by transaction":         {"", behind("default_pool_size = 20", "")},
		"by session":             {"", behind("default_pool_size = 20\npool_mode = session", "")},
		"by transaction, copied": {"", behind("default_pool_size = 20", ", snapshot: {dir: snapshots, every: 1d}")},
	} {
		t.Run(name, func(t *testing.T) {
			with, without := lay(t, e, shop(true)), lay(t, e, shop(false))
			found := map[string]string{}
			with.settle(t, found)
			without.settle(t, nil)
			with.serve(t)
			without.serve(t)
			for _, s := range shapes {
				askAll(t, s, with, without, want, found)
			}
			for shape, said := range found {
				if strings.HasPrefix(said, "refused") {
					t.Errorf("%s: %s", shape, said)
				}
			}
		})
	}
}
