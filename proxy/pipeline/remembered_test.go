package pipeline

import (
	"strconv"
	"testing"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// asksOf is a statement that was looked up, with its parameter.
func asksOf(statement, value string, held []ledger.Release) *lookup {
	return &lookup{statement: []byte(statement), values: []byte(value), valued: true, held: held}
}

// told is an answer without rows.
func told(tag string) Result {
	return Result{Tag: tag, Rows: privacy.Published(sandbox.Rows{})}
}

// TestRememberedByUser: what one user's statements take of the room makes nothing of another's forgotten; another
// policy, and other holdings, find nothing.
func TestRememberedByUser(t *testing.T) {
	p := &policy.Policy{Users: []policy.User{{Name: "alice"}, {Name: "bob"}}}
	alice, bob := &Session{User: "alice", Policy: p}, &Session{User: "bob", Policy: p}
	held := []ledger.Release{{ID: 1}}
	m := remembered{room: 600}
	found := func(s *Session, statement, value string, held []ledger.Release) string {
		l := asksOf(statement, value, held)
		if m.find(s, l); !l.answered {
			return ""
		}
		return l.answer.Tag
	}
	m.keepAnswer(alice, asksOf("a", "1", held), told("first"))
	m.keepAnswer(alice, asksOf("a", "2", held), told("second"))
	for i := range 1000 {
		m.keepAnswer(bob, asksOf("b"+strconv.Itoa(i/7), strconv.Itoa(i), held), told(strconv.Itoa(i)))
	}
	if one, two := found(alice, "a", "1", held), found(alice, "a", "2", held); one != "first" || two != "second" {
		t.Errorf("what another has asked made alice's forgotten: %q, %q", one, two)
	}
	if v := found(bob, "b142", "999", held); v != "999" {
		t.Errorf("bob's last is forgotten: %q", v)
	}
	size := 0
	for _, known := range m.of["bob"].known {
		size += known.size
	}
	if own := m.of["bob"].size; own > 300 || own != size {
		t.Errorf("bob's answers take %d, more than half of the room, or not the %d of each together", own, size)
	}
	bought := []ledger.Release{{ID: 2}}
	for what, found := range map[string]string{
		"another user":      found(bob, "a", "1", held),
		"another statement": found(alice, "b142", "1", held),
		"another parameter": found(alice, "a", "3", held),
		"other holdings":    found(alice, "a", "1", bought),
		"another policy":    found(&Session{User: "alice", Policy: &policy.Policy{}}, "a", "1", held),
		"what has no key":   func() string { l := asksOf("a", "1", held); l.valued = false; m.find(alice, l); return l.answer.Tag }(),
	} {
		if found != "" {
			t.Errorf("found by %s: %q", what, found)
		}
	}
	before := m.of["alice"].size
	m.keepAnswer(alice, asksOf("a", "1", bought), told("third"))
	if v := found(alice, "a", "1", bought); v != "third" {
		t.Errorf("found by what she has bought since: %q", v)
	}
	if v := found(alice, "a", "2", held); v != "" || m.of["alice"].size >= before {
		t.Errorf("what was made from other holdings is found: %q; it took %d, now %d", v, before, m.of["alice"].size)
	}
}

// TestRememberedTemplates: a statement's template and its answers are kept side by side, and neither makes the other
// forgotten.
func TestRememberedTemplates(t *testing.T) {
	alice := &Session{User: "alice", Policy: &policy.Policy{Users: []policy.User{{Name: "alice"}}}}
	m, template := remembered{room: 1000}, &planner.Template{}
	m.keepAnswer(alice, asksOf("a", "1", nil), told("first"))
	m.keepTemplate(alice, asksOf("a", "2", nil), template)
	m.keepAnswer(alice, asksOf("a", "2", nil), told("second"))
	for value, tag := range map[string]string{"1": "first", "2": "second", "3": ""} {
		l := asksOf("a", value, nil)
		if m.find(alice, l); l.template != template || l.answer.Tag != tag {
			t.Errorf("%s: template %p, must be %p; answer %q, must be %q", value, l.template, template, l.answer.Tag, tag)
		}
	}
}

// TestAnswersMadeInMicroseconds are kept when they are asked a second time, each user's own.
func TestAnswersMadeInMicroseconds(t *testing.T) {
	p := &policy.Policy{Users: []policy.User{{Name: "alice"}, {Name: "bob"}}}
	a := &Answerer{remembered: remembered{room: 1 << 20}}
	for _, user := range []string{"alice", "bob"} {
		s := &Session{User: user, Policy: p}
		a.remembered.keepTemplate(s, asksOf("a", "1", nil), &planner.Template{})
		kept := func(value string, r Result) bool {
			a.keepAnswer(s, asksOf("a", value, nil), r)
			l := asksOf("a", value, nil)
			a.remembered.find(s, l)
			return l.answered
		}
		quick, slow, other := told("a"), told("b"), told("c")
		quick.repeatable, quick.quick, slow.repeatable = true, true, true
		if first, second := kept("1", quick), kept("1", quick); first || !second {
			t.Errorf("%s: kept when it was asked first: %v, then: %v", user, first, second)
		}
		if !kept("2", slow) {
			t.Errorf("%s: what took long is not kept when it was asked first", user)
		}
		if first, second := kept("3", other), kept("3", other); first || second {
			t.Errorf("%s: what would not be the same again is kept", user)
		}
	}
}
