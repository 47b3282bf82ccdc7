package duckdb

import (
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/embedded"
	"github.com/dpproxy/dpproxy/backend/snapshot"
)

// instanceOf is the DB that a house's queries run on.
func instanceOf(h *backendtest.House) *embedded.Instance {
	switch b := h.Backend.(type) {
	case *DB:
		return b.Instance
	case *snapshot.Snapshots:
		return b.Copies[0].Instance
	}
	return nil
}

// TestPlannedOnce: on DB what is planned before the charge is what runs, on the connection that planned it, once; what
// was planned and never ran goes, the oldest first, and the answers are the same without it.
func TestPlannedOnce(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(*testing.T) *backendtest.House{"DuckDB": backendtest.DuckHouse, "snapshot": backendtest.DuckSnapshotHouse} {
		t.Run(name, func(t *testing.T) {
			h := of(t)
			i := instanceOf(h)
			q, other := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "sex"), h), backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits"), h)
			want := backendtest.Counts(t, h, q)
			if err := h.Ready(t.Context(), q, other, q); err != nil || len(i.Kept.List) != 3 {
				t.Fatal(err, len(i.Kept.List))
			}
			open := i.Pool.Stats().OpenConnections
			for left := 2; left > 0; left-- {
				if got := backendtest.Counts(t, h, q); !slices.Equal(got, want) {
					t.Errorf("planned before: %v, planned as it runs: %v", got, want)
				}
				if n := i.Pool.Stats().OpenConnections; len(i.Kept.List) != left || n != open-3+left {
					t.Errorf("%d statements are planned where %d are left, on %d of %d connections", len(i.Kept.List), left, n, open)
				}
			}
			if got := backendtest.Counts(t, h, q); !slices.Equal(got, want) || i.Pool.Stats().OpenConnections != open-2 {
				t.Errorf("planned as it runs again: %v, %v", got, want)
			}
			instead, err := i.Plan(t.Context(), "SELECT 4711::BIGINT")
			if err != nil {
				t.Fatal(err)
			}
			instead.Text = i.Kept.List[0].Text
			i.Kept.List = append(i.Kept.List, instead)
			if got := backendtest.Counts(t, h, other); !slices.Equal(got, []string{"[]: [4711]"}) {
				t.Errorf("the newest that was planned is not what runs: %v", got)
			}
			for range embedded.MaxKept {
				if err := h.Ready(t.Context(), q, other); err != nil {
					t.Fatal(err)
				}
			}
			if n := i.Pool.Stats().OpenConnections; len(i.Kept.List) != embedded.MaxKept || n > embedded.MaxKept+1 {
				t.Errorf("%d statements that never ran are kept, on %d connections", len(i.Kept.List), n)
			}
		})
	}
}

// TestUnplannedOnDuckDB: what DB does not plan is refused before the charge, and leaves nothing.
func TestUnplannedOnDuckDB(t *testing.T) {
	t.Parallel()
	h := backendtest.DuckHouse(t)
	i := instanceOf(h)
	m := backendtest.Measure(t, h.Policy, "people", "sex")
	good := backendtest.Render(t, m, h)
	m.Grain[0].Source = "gone"
	if err := h.Ready(t.Context(), good, backendtest.Render(t, m, h)); err != backend.ErrUnplanned {
		t.Error(err)
	}
	if n := i.Pool.Stats().OpenConnections; n != 1+len(i.Kept.List) {
		t.Errorf("%d connections, %d statements", n, len(i.Kept.List))
	}
}
