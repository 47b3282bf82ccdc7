package durability

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestLedgerBehindPoolers: where pgbouncer gives each transaction another session, a proxy does not start, and says
// why; in its session mode it charges as ever.
func TestLedgerBehindPoolers(t *testing.T) {
	const passed = "\nignore_startup_parameters = extra_float_digits, options, statement_timeout, idle_in_transaction_session_timeout, tcp_keepalives_idle, tcp_keepalives_interval, tcp_keepalives_count, " +
		"search_path, plan_cache_mode, enable_seqscan, enable_bitmapscan, enable_hashjoin, enable_mergejoin, jit, lock_timeout"
	for lines, answered := range map[string]bool{"pool_mode = session\ndefault_pool_size = 20": true, "default_pool_size = 20": false, "default_pool_size = 1": false, "default_pool_size = 20\nserver_round_robin = 1": false} {
		t.Run(lines, func(t *testing.T) {
			server := pgtest.Start(t, "fsync=on", "full_page_writes=on")
			path := kit.DuckDBIn(t, t.TempDir(), plenty, 0)
			role, ledger := server.Role(t, ""), server.Database(t)
			server.Exec(t, "postgres", "GRANT CREATE ON DATABASE "+ledger+" TO "+role)
			url := kit.Pooler(t, strings.Replace(server.URLFor(role, ledger), role+"@", role+":"+role+"@", 1), lines+passed, role)
			if url == "" {
				t.Skip("pgbouncer is not installed")
			}
			kit.Edit(t, path, "sqlite:ledger.db", url)
			if answered {
				w := kit.Serve(t, path).Connect("alice", "lab")
				for i := range 3 {
					if a := w.Ask(fmt.Sprintf("SELECT count(*) FROM people WHERE age > 3%d", i)); a.Err != nil {
						t.Error(a.Err)
					}
				}
				return
			}
			if out := kit.Run(t, "", "serve", "--policy", path); out.Code != 1 || !strings.Contains(out.Stderr, "a pooler stands before it that gives each transaction another session") {
				t.Errorf("exit %d: %s", out.Code, out.Stderr)
			}
		})
	}
}
