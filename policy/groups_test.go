package policy

import (
	"strings"
	"testing"
)

// A member's budget is her group's; "*" means each group that has none of its own; her own settings come first.
func TestGroups(t *testing.T) {
	text := strings.NewReplacer("datasets:\n", "groups:\n  - {name: team, members: [alice, dba], settings: {epsilon: 0.05, confidence: 0.9}}\ndatasets:\n",
		"      alice: {", "      team: {", "admin: true", "admin: true\n    settings: {epsilon: 0.2}").Replace(base(t))
	p := parsed(t, text)
	d := p.Dataset("census")
	for _, user := range []string{"alice", "dba"} {
		if b, ok := d.Budget(user); !ok || b.Lifetime == nil || d.Holder(user) != "team" {
			t.Errorf("%s has %+v of %s", user, b, d.Holder(user))
		}
	}
	if p.User("alice").Settings["epsilon"] != "0.05" || p.User("dba").Settings["epsilon"] != "0.2" || p.User("dba").Settings["confidence"] != "0.9" {
		t.Errorf("settings %v and %v", p.User("alice").Settings, p.User("dba").Settings)
	}
	if b, ok := d.Budget("carol"); !ok || b.Lifetime != nil || d.Holder("carol") != "carol" {
		t.Errorf("who is in no group has %+v", b)
	}
	if notes := strings.Join(p.Notes(), "\n"); !strings.Contains(notes, "group team: alice, dba hold one account") {
		t.Error(notes)
	}
	if p.others(d) != 0 {
		t.Errorf("* stands for %d", p.others(d))
	}
	text = strings.Replace(text, "      team: {", "      gone: {", 1)
	if _, err := Parse([]byte(text), "policy.yaml"); err == nil || !strings.Contains(err.Error(), "no such user") {
		t.Error(err)
	}
}
