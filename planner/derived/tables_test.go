package derived

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// TestDerivedNames: the name of a derived table stays short, however many tables it is made of: the ledger keeps it.
func TestDerivedNames(t *testing.T) {
	long := &policy.Table{Name: strings.Repeat("é", 31)}
	if got := derivedName(long, long); got != long.Name+" with "+long.Name {
		t.Errorf("of two: %q", got)
	}
	name := derivedName(slices.Repeat([]*policy.Table{long}, 100)...)
	if got := derivedName(&policy.Table{Name: name}, long); len(got) > maxName+4 || !strings.HasPrefix(got, long.Name) {
		t.Errorf("of a hundred: %d bytes, %q", len(got), got)
	}
}
