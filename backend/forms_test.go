package backend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/rewrite"
)

// TestEveryFormIsPlanned: whatever constraints the query's own snapshot proves, the text that runs is one that was planned before
// the charge.
func TestEveryFormIsPlanned(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, h *house) {
		q := render(t, measure(t, h.policy, "people"), h)
		if len(q.Proven()) == 0 && !h.Dialect().Ready {
			t.Fatal("the query has one text alone")
		}
		planned := map[string]bool{}
		for _, f := range (*cluster)(nil).forms(q) {
			planned[f.sql+fmt.Sprint(f.args)] = true
		}
		for _, holds := range []bool{false, true} {
			if f := shortest(q, func(rewrite.Shorter) bool { return holds }); !planned[f.sql+fmt.Sprint(f.args)] {
				t.Errorf("constraints prove the bound: %v; what runs then is not planned:\n%s", holds, f.sql)
			}
		}
		if err := h.Ready(t.Context(), q); err != nil {
			t.Error(err)
		}
	})
}

// TestNoSharedBitmaps (rule 24): the bitmap of a parallel scan lies in shared memory, and how much it takes is for the rows to
// say. No plan has one, not even where a server would choose nothing else.
func TestNoSharedBitmaps(t *testing.T) {
	t.Parallel()
	h, _, _ := settingsHouse(t, "",
		`CREATE TABLE visit AS SELECT i AS id, (i * 7919::bigint % 5000)::int AS place, repeat('x', 400) AS note FROM generate_series(1, 300000) AS g(i)`,
		`CREATE INDEX ON visit (place)`, `GRANT SELECT ON visit TO ROLE_`,
		`ALTER ROLE ROLE_ SET max_parallel_workers_per_gather = 4`, `ALTER ROLE ROLE_ SET parallel_setup_cost = 0`, `ALTER ROLE ROLE_ SET parallel_tuple_cost = 0`,
		`ALTER ROLE ROLE_ SET min_parallel_table_scan_size = 0`, `ALTER ROLE ROLE_ SET min_parallel_index_scan_size = 0`, `ALTER ROLE ROLE_ SET cpu_tuple_cost = 1`)
	h.change(`ANALYZE visit`)
	const sql = `EXPLAIN (COSTS false) SELECT count(*) FROM public.visit WHERE place BETWEEN 10 AND 60`
	plan := func(tx pgx.Tx) (string, error) {
		rows, err := tx.Query(t.Context(), sql)
		if err != nil {
			return "", err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		return strings.Join(lines, "\n"), err
	}
	pool := h.Backend.(*Postgres).pool
	var without, within string
	err := pgx.BeginTxFunc(t.Context(), pool, pgx.TxOptions{}, func(tx pgx.Tx) (err error) {
		without, err = plan(tx)
		return err
	})
	if err != nil || !strings.Contains(without, "Parallel Bitmap Heap Scan") {
		t.Fatalf("%v; the server itself plans\n%s", err, without)
	}
	err = transaction(t.Context(), pool, defaultDeadline, func(tx pgx.Tx) (err error) {
		within, err = plan(tx)
		return err
	})
	if err != nil || strings.Contains(within, "Bitmap") {
		t.Errorf("%v; dpproxy's transaction plans\n%s", err, within)
	}
}
