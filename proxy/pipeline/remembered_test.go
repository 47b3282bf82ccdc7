package pipeline

import (
	"strconv"
	"testing"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/policy"
)

// TestRememberedByUser: what one user's statements take of the room makes nothing of another's forgotten; another policy, and other holdings, find nothing.
func TestRememberedByUser(t *testing.T) {
	p := &policy.Policy{Users: []policy.User{{Name: "alice"}, {Name: "bob"}}}
	alice, bob := &Session{User: "alice", Policy: p}, &Session{User: "bob", Policy: p}
	held := []ledger.Release{{ID: 1}}
	m := remembered[int]{room: 20}
	m.keep(alice, "a", 7, 1, held)
	for i := range 1000 {
		m.keep(bob, strconv.Itoa(i), i, 3, held)
	}
	if v, ok := m.find(alice, "a", held); !ok || v != 7 {
		t.Error("what another has asked made alice's forgotten")
	}
	if v, ok := m.find(bob, "999", held); !ok || v != 999 {
		t.Error("bob's last is forgotten")
	}
	if size, known := m.of["bob"].size, len(m.of["bob"].known); size > 10 || known > 3 {
		t.Errorf("bob has %d in %d answers, more than half of the room", size, known)
	}
	for what, found := range map[string]bool{
		"another user":   second(m.find(bob, "a", held)),
		"other holdings": second(m.find(alice, "a", []ledger.Release{{ID: 2}})),
		"another policy": second(m.find(&Session{User: "alice", Policy: &policy.Policy{}}, "a", held)),
	} {
		if found {
			t.Errorf("found by %s", what)
		}
	}
}

func second[T any](_ T, ok bool) bool { return ok }
