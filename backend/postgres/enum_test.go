package postgres

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/policy"
)

// TestEnumsAreReadAsTheyAre: a column of an enumerated type, declared as one, has its labels for values, live and in a
// snapshot; the database's other types are reported, and none of them is read.
func TestEnumsAreReadAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, s := range []*policy.Snapshot{nil, {Dir: t.TempDir(), Every: 24 * time.Hour, Within: 3 * time.Second}} {
		h := backendtest.PostgresHouseOf(t, s)
		h.Source("CREATE TYPE seats AS ENUM ('south', 'north'); ALTER TABLE visits ALTER clinic TYPE seats USING clinic::seats; CREATE DOMAIN span AS integer CHECK (VALUE >= 0); ALTER TABLE visits ALTER minutes TYPE span")
		clinic := h.Policy.Datasets[0].Tables[1].Columns[0]
		if got := backendtest.Inspect(t, h); !strings.Contains(got, "declare it as enum") || !strings.Contains(got, "fatal=true") {
			t.Errorf("declared as text:\n%s", got)
		}
		clinic.Enum = true
		h.Source("CREATE DOMAIN seat AS seats; ALTER TABLE visits ALTER clinic TYPE seat")
		if got := backendtest.Inspect(t, h); !strings.Contains(got, "a domain over an enumerated type") || !strings.Contains(got, "fatal=true") {
			t.Errorf("of a domain:\n%s", got)
		}
		h.Source("ALTER TABLE visits ALTER clinic TYPE seats")
		if got := backendtest.Inspect(t, h); strings.Contains(got, "fatal=true") {
			t.Errorf("declared as enum:\n%s", got)
		}
		if s != nil {
			backendtest.Prepare(t, h)
		}
		q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits", "clinic"), h)
		want := backendtest.Counts(t, h, q)
		if len(want) != 2 || !strings.HasPrefix(want[0], "[0]: [") {
			t.Errorf("by clinic: %v", want)
		}
		h.Source("ALTER TABLE visits ALTER clinic TYPE text")
		if s != nil {
			if err := backendtest.Renewed(t, h, 3*time.Second); err == nil {
				t.Error("a column of another type is copied")
			}
		} else if got := backendtest.Counts(t, h, q); len(got) > 0 {
			t.Errorf("a column of another type is read: %v", got)
		}
		if got := backendtest.Inspect(t, h); !strings.Contains(got, "the policy says enum, the database says text") {
			t.Errorf("of text:\n%s", got)
		}
		clinic.Enum = false
		if s == nil {
			if got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits", "clinic"), h)); !slices.Equal(got, want) {
				t.Errorf("as text %v, as enum %v", got, want)
			}
		}
	}
}
