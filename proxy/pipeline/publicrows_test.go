package pipeline

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// TestKeptOfACopy: what was made of a copy of a public table is found as long as that copy is the table's, and what
// comes too late is not kept for the next one.
func TestKeptOfACopy(t *testing.T) {
	p, table := &PublicRows{}, &policy.Table{Name: "part", Dataset: &policy.Dataset{ID: "shop"}}
	one := [][]policy.Value{{int64(1)}}
	p.Cache(table, one, "by key", "early")
	p.Set(table, privacy.Published(one))
	if p.Cached(table, one, "by key") != nil {
		t.Error("something is kept of a copy that there was not")
	}
	p.Cache(table, one, "by key", "made")
	if p.Cached(table, one, "by key") != "made" || p.Cached(table, one, "by name") != nil {
		t.Error("what was made is not found under its name alone")
	}
	two := [][]policy.Value{{int64(1)}}
	p.Set(table, privacy.Published(two))
	p.Cache(table, one, "by key", "late")
	if p.Cached(table, two, "by key") != nil || p.Cached(table, one, "by key") != nil {
		t.Error("what was made of an earlier copy is found")
	}
	for i := range 3 * maxMade {
		p.Cache(table, two, string(rune('a'+i)), i)
	}
	if n := len(p.tables[nameOf(table)].made); n > maxMade {
		t.Errorf("%d are kept of one copy, at most %d may be", n, maxMade)
	}
}
