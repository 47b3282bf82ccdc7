package backend

import (
	"slices"
	"testing"
)

// instanceOf is the DuckDB that a house's queries run on.
func instanceOf(h *house) *instance {
	switch b := h.Backend.(type) {
	case *DuckDB:
		return b.instance
	case *Snapshots:
		return b.copies[0].instance
	}
	return nil
}

// TestPlannedOnce: on DuckDB what is planned before the charge is what runs, on the connection that planned it, once; what was planned and never ran
// goes, the oldest first, and the answers are the same without it.
func TestPlannedOnce(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(*testing.T) *house{"DuckDB": duckHouse, "snapshot": duckSnapshotHouse} {
		t.Run(name, func(t *testing.T) {
			h := of(t)
			i := instanceOf(h)
			q, other := render(t, measure(t, h.policy, "people", "sex"), h), render(t, measure(t, h.policy, "visits"), h)
			want := counts(t, h, q)
			if err := h.Ready(t.Context(), q, other, q); err != nil || len(i.kept.list) != 3 {
				t.Fatal(err, len(i.kept.list))
			}
			open := i.db.Stats().OpenConnections
			for left := 2; left > 0; left-- {
				if got := counts(t, h, q); !slices.Equal(got, want) {
					t.Errorf("planned before: %v, planned as it runs: %v", got, want)
				}
				if n := i.db.Stats().OpenConnections; len(i.kept.list) != left || n != open-3+left {
					t.Errorf("%d statements are planned where %d are left, on %d of %d connections", len(i.kept.list), left, n, open)
				}
			}
			if got := counts(t, h, q); !slices.Equal(got, want) || i.db.Stats().OpenConnections != open-2 {
				t.Errorf("planned as it runs again: %v, %v", got, want)
			}
			instead, err := i.plan(t.Context(), "SELECT 4711::BIGINT")
			if err != nil {
				t.Fatal(err)
			}
			instead.text = i.kept.list[0].text
			i.kept.list = append(i.kept.list, instead)
			if got := counts(t, h, other); !slices.Equal(got, []string{"[]: [4711]"}) {
				t.Errorf("the newest that was planned is not what runs: %v", got)
			}
			for range maxKept {
				if err := h.Ready(t.Context(), q, other); err != nil {
					t.Fatal(err)
				}
			}
			if n := i.db.Stats().OpenConnections; len(i.kept.list) != maxKept || n > maxKept+1 {
				t.Errorf("%d statements that never ran are kept, on %d connections", len(i.kept.list), n)
			}
		})
	}
}

// TestUnplannedOnDuckDB: what DuckDB does not plan is refused before the charge, and leaves nothing.
func TestUnplannedOnDuckDB(t *testing.T) {
	t.Parallel()
	h := duckHouse(t)
	i := instanceOf(h)
	m := measure(t, h.policy, "people", "sex")
	good := render(t, m, h)
	m.Grain[0].Source = "gone"
	if err := h.Ready(t.Context(), good, render(t, m, h)); err != ErrUnplanned {
		t.Error(err)
	}
	if n := i.db.Stats().OpenConnections; n != 1+len(i.kept.list) {
		t.Errorf("%d connections, %d statements", n, len(i.kept.list))
	}
}
