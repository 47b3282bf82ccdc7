package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/snapshot"
	"github.com/dpproxy/dpproxy/backend/units"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// TestSnapshotOfManyUnits: where the numbers of units have no room, the same rows are read again, in the same moment,
// and counted alike.
func TestSnapshotOfManyUnits(t *testing.T) {
	t.Parallel()
	h := backendtest.SnapshotHouse(t)
	b := h.Backend.(*snapshot.Snapshots)
	b.Source.(*DB).partPages = 1
	for i, most := range []int64{units.Memory, 0, 4096} {
		b.UnitsMost = most
		if err := backendtest.Renewed(t, h, 3*time.Second); err != nil {
			t.Fatal(err)
		}
		if got := backendtest.People(t, h); got != "[]: [40]" {
			t.Errorf("with %d bytes: %s", most, got)
		}
		again := strings.Count(h.Log.String(), "reading again")
		if want := max(i, 0); again != want {
			t.Errorf("with %d bytes: read again %d times, not %d", most, again, want)
		}
		if got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits", "minutes"), h)); len(got) == 0 {
			t.Error("no visits")
		}
	}
}

// TestRowsByTheirUnits: a table of which no unit has very many rows is known to be one, and no other is.
func TestRowsByTheirUnits(t *testing.T) {
	t.Parallel()
	var all snapshot.Counted
	if all.Light() {
		t.Error("what nobody has counted is light")
	}
	for range 2 {
		own := make(snapshot.UnitCounts, snapshot.CountsLength)
		for i := range 200000 {
			own.Of(uint64(i%1000), 1)
			own.Of(units.Hash(fmt.Append(nil, i%50000)), 1)
		}
		all.Add(own)
	}
	if !all.Light() {
		t.Error("500 rows of each unit are many")
	}
	heavy := make(snapshot.UnitCounts, snapshot.CountsLength)
	for range rewrite.MaxRanked/2 + 1 {
		heavy.Of(7, 1)
	}
	if all.Add(heavy); !all.Light() {
		t.Error("one half of the most rows is many")
	}
	if all.Add(heavy); all.Light() {
		t.Error("a unit with more than the most rows is light")
	}
}

// TestSnapshotOfHeavyUnits: a unit with very many rows has as many ranks.
func TestSnapshotOfHeavyUnits(t *testing.T) {
	t.Parallel()
	h := backendtest.SnapshotHouse(t)
	b := h.Backend.(*snapshot.Snapshots)
	h.Source(fmt.Sprintf("INSERT INTO visits SELECT 3, 'north', i %% 60 FROM generate_series(1, %d) AS s(i)", rewrite.MaxRanked+10000))
	if err := backendtest.RenewedBy(t, b, 3*time.Second, func() *policy.Policy { return h.Policy }); err != nil {
		t.Fatal(err)
	}
	table := `private.main."` + rewrite.Copied(h.Policy.Datasets[0].Tables[1]) + `"`
	var rows, ranks, most, units int64
	row := b.Copies[0].Pool.QueryRowContext(context.Background(), "SELECT count(*), count(DISTINCT r), max(r), count(DISTINCT u) FROM "+table+" WHERE u = (SELECT u FROM "+table+" GROUP BY u ORDER BY count(*) DESC LIMIT 1)")
	if err := row.Scan(&rows, &ranks, &most, &units); err != nil {
		t.Fatal(err)
	}
	if rows <= rewrite.MaxRanked || ranks != rows || most != rows || units != 1 {
		t.Errorf("%d rows of %d units with %d ranks up to %d", rows, units, ranks, most)
	}
}
