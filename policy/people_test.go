package policy

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPeople edits files of several layouts: who is removed is gone from users, groups and budgets, who is disabled
// says so, and the rest is as it was, to the byte where the lists are laid out in lines.
func TestPeople(t *testing.T) {
	v := mustVerifier(t, "x")
	line := func(name string) string {
		return "  - {name: " + name + ", password: \"" + v + "\"}   # " + name + "\n"
	}
	head, tail := "# top\nusers:\n", "groups:\n  - {name: team, members: [alice, bob, carol]}   # three\ndatasets:\n  - id: d\n    budgets:\n      bob: {epsilon: 1}   # his\n      \"*\": {epsilon: 2}\n\n# end\n"
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole := head + line("alice") + line("bob") + line("carol") + tail
	for _, c := range []struct {
		title, text string
		do          func(path string) error
		want        string
	}{
		{"removed", whole, func(p string) error { return RemoveUser(p, "bob") },
			head + line("alice") + line("carol") + "groups:\n  - {name: team, members: [alice, carol]}   # three\ndatasets:\n  - id: d\n    budgets:\n      \"*\": {epsilon: 2}\n\n# end\n"},
		{"the last of a list removed", whole, func(p string) error { return RemoveUser(p, "carol") },
			strings.Replace(strings.Replace(whole, line("carol"), "", 1), ", carol]", "]", 1)},
		{"an entry of several lines removed", "users:\n  - name: bob\n    password: \"" + v + "\"\n    admin: true\n  - name: eve\n    password: x\n", func(p string) error { return RemoveUser(p, "bob") }, "users:\n  - name: eve\n    password: x\n"},
		{"disabled", whole, func(p string) error { return DisableUser(p, "bob", true) }, strings.Replace(whole, "{name: bob", "{disabled: true, name: bob", 1)},
		{"disabled, lines", "users:\n  - name: bob\n    password: x\n", func(p string) error { return DisableUser(p, "bob", true) }, "users:\n  - disabled: true\n    name: bob\n    password: x\n"},
		{"enabled again", strings.Replace(whole, "{name: bob", "{disabled: true, name: bob", 1), func(p string) error { return DisableUser(p, "bob", false) }, strings.Replace(whole, "{name: bob", "{disabled: false, name: bob", 1)},
		{"a new password", "users:\n  - {name: bob, password: \"" + mustVerifier(t, "old") + "\"}\n", func(p string) error { return ChangePassword(p, "bob", v) }, "users:\n  - {name: bob, password: \"" + v + "\"}\n"},
	} {
		path := file(c.text)
		if err := c.do(path); err != nil {
			t.Errorf("%s: %v", c.title, err)
			continue
		}
		if got, _ := os.ReadFile(path); string(got) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.title, got, c.want)
		}
	}
	// Layouts that cannot be cut are written again, and say the same.
	path := file("users: [{name: alice, password: x}, {name: bob,\n  password: y}]\ngroups: [{name: g, members: [\"bob\", alice]}]\n")
	if err := RemoveUser(path, "bob"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); strings.Contains(string(got), "bob") || strings.Count(string(got), "alice") != 2 {
		t.Errorf("brackets:\n%s", got)
	}
	// What is refused leaves the file as it is.
	lone := "users:\n" + line("bob") + "groups:\n  - {name: team, members: [bob]}\n"
	for _, do := range []func(string) error{
		func(p string) error { return RemoveUser(p, "nobody") },
		func(p string) error { return DisableUser(p, "nobody", true) },
		func(p string) error { return ChangePassword(p, "nobody", v) },
	} {
		path := file(lone)
		if err := do(path); !errors.Is(err, ErrNoUser) {
			t.Errorf("nobody: %v", err)
		}
		if got, _ := os.ReadFile(path); string(got) != lone {
			t.Errorf("nobody: the file is\n%s", got)
		}
	}
	path = file(lone)
	if err := RemoveUser(path, "bob"); err == nil || !strings.Contains(err.Error(), "only member of group team") {
		t.Errorf("the last member: %v", err)
	}
	path = file(base(t)) // a whole policy must pass afterwards
	if err := RemoveUser(path, "alice"); err != nil {
		t.Error(err)
	}
	if p, err := Read(path); err != nil || p.User("alice") != nil {
		t.Errorf("after alice has gone: %v", err)
	}
}

// TestLogins: a user has one way in, which is there; nobody else's identity; and what passwords and tokens go to is
// encrypted.
func TestLogins(t *testing.T) {
	good := strings.Replace(base(t), "users:\n", `users:
  - {name: carol, login: ldap, identity: c.jones}
  - {name: dave, login: oidc, identity: dave@example.org}
  - {name: erin, login: certificate, disabled: true}
`, 1)
	server := "server:\n  tls: {cert: a, key: b, clients: ca.pem}\n  login:\n    ldap: {url: \"ldaps://ldap.example.org\", bind: \"uid={user},dc=example\"}\n    oidc: {issuer: \"https://id.example.org\", audience: dpproxy, claim: email}\n"
	good = regexp.MustCompile(`(?m)^server:.*\n(  .*\n)*`).ReplaceAllString(good, server)
	p, err := Parse([]byte(good), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if u := p.User("carol"); u.Login != ByLDAP || u.Identity != "c.jones" {
		t.Errorf("carol: %+v", u)
	}
	if u := p.User("erin"); u.Login != ByCertificate || u.Identity != "erin" || !u.Disabled {
		t.Errorf("erin: %+v", u)
	}
	for _, c := range []struct{ from, to, want string }{
		{"login: ldap, identity: c.jones", "login: ldap, password: \"" + mustVerifier(t, "x") + "\"", "behind the other's back"},
		{"    ldap: {url", "    #ldap: {url", "there is no server.login.ldap"},
		{", clients: ca.pem", "", "there is no server.tls.clients"},
		{"ldaps://ldap.example.org", "ldap://ldap.example.org", "ldap:// is for a loopback address"},
		{"https://id.example.org", "http://id.example.org", "http:// is for a loopback address"},
		{"https://id.example.org", "https://u:p@id.example.org", "no address"},
		{"uid={user},dc", "uid=user,dc", "must have {user} once"},
		{"audience: dpproxy, ", "audience: \"\", ", "audience is empty"},
		{"{name: erin, login: certificate", "{name: erin, login: ldap, identity: c.jones", "two budgets"},
		{"login: oidc, identity", "identity", "password"},
	} {
		bad := strings.Replace(good, c.from, c.to, 1)
		if _, err := Parse([]byte(bad), "policy.yaml"); bad == good || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.to, err)
		}
	}
	if _, err := Parse([]byte(strings.Replace(good, "ldaps://ldap.example.org", "ldap://127.0.0.1:389", 1)), "policy.yaml"); err != nil {
		t.Errorf("a directory on this machine: %v", err)
	}
}

// TestReadForLedger: who looks after the ledger needs no variable that names something else, such as the database's
// password; serve does.
func TestReadForLedger(t *testing.T) {
	for _, url := range []string{"postgres://proxy:${DPPROXY_TEST_UNSET}@127.0.0.1/prod", "${DPPROXY_TEST_UNSET}"} {
		text := regexp.MustCompile(`(?m)^backend:.*\n(  .*\n)*`).ReplaceAllLiteralString(base(t), "backend: {url: \""+url+"\"}\n")
		text = regexp.MustCompile(`(?m)^server:.*\n(  .*\n)*`).ReplaceAllLiteralString(text, "server: {tls: {cert: \"${DPPROXY_TEST_UNSET}/a\", key: \"${DPPROXY_TEST_UNSET}/b\"}}\n")
		path := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "DPPROXY_TEST_UNSET is not set") {
			t.Errorf("%s: %v", url, err)
		}
		p, err := ReadForLedger(path)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		t.Setenv("DPPROXY_TEST_UNSET", "postgres://x@127.0.0.1/y")
		whole, err := Read(path)
		if err == nil && (whole.Digest != p.Digest || whole.Ledger != p.Ledger) {
			t.Errorf("%s: the ledger is another", url)
		}
		os.Unsetenv("DPPROXY_TEST_UNSET")
		ledger := regexp.MustCompile(`(?m)^ledger:.*\n(  .*\n)*`).ReplaceAllLiteralString(text, "") + "ledger: {url: \"sqlite:${DPPROXY_TEST_UNSET}\"}\n"
		if err := os.WriteFile(path, []byte(ledger), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadForLedger(path); err == nil || !strings.Contains(err.Error(), "DPPROXY_TEST_UNSET is not set") {
			t.Errorf("the ledger's own: %v", err)
		}
	}
}
