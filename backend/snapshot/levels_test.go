package snapshot

import (
	"testing"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/policy"
)

// TestLevelsOfSnapshots: who is at a level reads the copy that was made for the whole policy.
func TestLevelsOfSnapshots(t *testing.T) {
	t.Parallel()
	whole, err := policy.Parse([]byte(backendtest.LeveledPolicy), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	view := whole.For("dave")
	copies := []*Copied{{policies: map[*policy.Policy]bool{}}, {policies: map[*policy.Policy]bool{whole: true}}}
	if ofPolicy(copies, view)[0] != copies[1] {
		t.Error("her copy is another one than the whole policy's")
	}
}
