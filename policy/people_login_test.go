package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPasswordsOfOthers: a password for a user who logs in by something else is refused, and the file stays one that
// passes: a proxy that starts again must not find a policy that it refuses.
func TestPasswordsOfOthers(t *testing.T) {
	text := regexp.MustCompile(`(?m)^server:.*\n(  .*\n)*`).ReplaceAllString(strings.Replace(base(t), "users:\n", "users:\n  - {name: carol, login: ldap}\n", 1),
		"server:\n  login:\n    ldap: {url: \"ldaps://ldap.example.org\", bind: \"uid={user},dc=example\"}\n")
	if _, err := Parse([]byte(text), "policy.yaml"); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func(string) error{
		"password": func(p string) error { return ChangePassword(p, "carol", mustVerifier(t, "x")) },
		"add":      func(p string) error { return AddUser(p, "carol", mustVerifier(t, "x"), false) },
	} {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := do(path)
		got, _ := os.ReadFile(path)
		if _, after := Parse(got, path); after != nil {
			t.Errorf("user %s: %v, and the policy does not pass any more: %v", name, err, after)
		}
		if err == nil || string(got) != text {
			t.Errorf("user %s of a user who logs in by a directory: %v", name, err)
		}
	}
	// A directory takes names that differ in case, or in the spaces around and within them, for the same (RFC 4519:
	// caseIgnoreMatch).
	for _, same := range []string{"Carol", "CAROL"} {
		twice := strings.Replace(text, "users:\n", "users:\n  - {name: dave, login: ldap, identity: \""+same+"\"}\n", 1)
		if _, err := Parse([]byte(twice), "policy.yaml"); err == nil || !strings.Contains(err.Error(), "two budgets") {
			t.Errorf("carol and %s are one person with two budgets: %v", same, err)
		}
	}
}
