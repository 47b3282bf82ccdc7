package backend

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

// TestEnumsAreReadAsTheyAre: a column of an enumerated type, declared as one, has its labels for values, live and in a snapshot; of the
// database's other types it is told, and none of them is read.
func TestEnumsAreReadAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, s := range []*policy.Snapshot{nil, {Dir: t.TempDir(), Every: 24 * time.Hour, Within: 3 * time.Second}} {
		h := postgresHouseOf(t, s)
		h.source("CREATE TYPE seats AS ENUM ('south', 'north'); ALTER TABLE visits ALTER clinic TYPE seats USING clinic::seats; CREATE DOMAIN span AS integer CHECK (VALUE >= 0); ALTER TABLE visits ALTER minutes TYPE span")
		clinic := h.policy.Datasets[0].Tables[1].Columns[0]
		if got := inspect(t, h); !strings.Contains(got, "declare it as enum") || !strings.Contains(got, "fatal=true") {
			t.Errorf("declared as text:\n%s", got)
		}
		clinic.Enum = true
		h.source("CREATE DOMAIN seat AS seats; ALTER TABLE visits ALTER clinic TYPE seat")
		if got := inspect(t, h); !strings.Contains(got, "a domain over an enumerated type") || !strings.Contains(got, "fatal=true") {
			t.Errorf("of a domain:\n%s", got)
		}
		h.source("ALTER TABLE visits ALTER clinic TYPE seats")
		if got := inspect(t, h); strings.Contains(got, "fatal=true") {
			t.Errorf("declared as enum:\n%s", got)
		}
		if s != nil {
			prepare(t, h)
		}
		q := render(t, measure(t, h.policy, "visits", "clinic"), h)
		want := counts(t, h, q)
		if len(want) != 2 || !strings.HasPrefix(want[0], "[0]: [") {
			t.Errorf("by clinic: %v", want)
		}
		h.source("ALTER TABLE visits ALTER clinic TYPE text")
		if s != nil {
			if err := renewed(t, h, 3*time.Second); err == nil {
				t.Error("a column of another type is copied")
			}
		} else if got := counts(t, h, q); len(got) > 0 {
			t.Errorf("a column of another type is read: %v", got)
		}
		if got := inspect(t, h); !strings.Contains(got, "the policy says enum, the database says text") {
			t.Errorf("of text:\n%s", got)
		}
		clinic.Enum = false
		if s == nil {
			if got := counts(t, h, render(t, measure(t, h.policy, "visits", "clinic"), h)); !slices.Equal(got, want) {
				t.Errorf("as text %v, as enum %v", got, want)
			}
		}
	}
}
