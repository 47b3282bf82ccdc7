package policy

import (
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestAddUser edits files of several layouts: the user is there afterwards and the rest is as it was, to the byte where
// the list is laid out in lines.
func TestAddUser(t *testing.T) {
	old, fresh := mustVerifier(t, "old"), mustVerifier(t, "fresh")
	entry := `{name: bob, password: "` + fresh + `"}`
	for _, c := range []struct{ title, text, want string }{
		{"a list in lines", "# top\n\nusers:   # who\n  - {name: alice, password: \"" + old + "\"}   # first\n\n# end\nversion:   1\n",
			"# top\n\nusers:   # who\n  - {name: alice, password: \"" + old + "\"}   # first\n  - " + entry + "\n\n# end\nversion:   1\n"},
		{"a list without indentation, at the end, without a newline", "version: 1\nusers:\n- name: alice\n  password: " + old,
			"version: 1\nusers:\n- name: alice\n  password: " + old + "\n- " + entry + "\n"},
		{"no list", "version: 1   # one\n", "version: 1   # one\nusers:\n  - " + entry + "\n"},
		{"an empty list", "# top\nusers: []   # nobody\nversion: 1\n", "# top\nusers:   # nobody\n  - " + entry + "\nversion: 1\n"},
		{"a list in brackets", "users: [{name: alice, password: \"" + old + "\"}]\n", "users:\n  - {name: alice, password: \"" + old + "\"}\n  - " + entry + "\n"},
		{"an empty value", "users:\nversion: 1\n", "users:\n  - " + entry + "\nversion: 1\n"},
		{"a new password", "users:\n  - {name: bob,   password: \"" + old + "\"}  # he\n\nversion:   1\n", "users:\n  - {name: bob,   password: \"" + fresh + "\"}  # he\n\nversion:   1\n"},
		{"a new password after letters of two bytes", "users:\n  - {comment: \"für Böb\", name: bob, password: " + old + "}\n", "users:\n  - {comment: \"für Böb\", name: bob, password: " + fresh + "}\n"},
		{"a new password on a line of its own", "users:\n  - name: bob\n    password: \"" + old + "\"\n    admin: false\n", "users:\n  - name: bob\n    password: \"" + fresh + "\"\n    admin: false\n"},
	} {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o640); err != nil {
			t.Fatal(err)
		}
		if err := AddUser(path, "bob", fresh, false); err != nil {
			t.Errorf("%s: %v", c.title, err)
			continue
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.title, got, c.want)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: mode is %v, %v", c.title, info.Mode(), err)
		}
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".policy-*")); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v, %v", c.title, left, err)
		}
	}
}

// TestAddUserToWholePolicy adds users to a policy that must still pass.
func TestAddUserToWholePolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(base(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	names := []string{"carol", "no", "1234", "O'Brien", `a "b" \c`, "ünal", "x: y", "# z", "null", "- q", "alice", "1e3", "{}"}
	for i, name := range names {
		if err := AddUser(path, name, mustVerifier(t, name), i%2 == 0); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	}
	p, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		if u := p.User(name); u == nil || u.Admin != (i%2 == 0) {
			t.Errorf("%q is %+v", name, u)
		}
	}
	if len(p.Users) != len(names)+1 { // alice was there, and dba
		t.Errorf("%d users", len(p.Users))
	}
	if err := AddUser(path, "carol", mustVerifier(t, "again"), false); err != nil {
		t.Fatal(err)
	}
	if p, err = Read(path); err != nil || !p.User("carol").Admin {
		t.Errorf("a new password takes the right away: %v", err)
	}
}

func TestAddUserRefusals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good := mustVerifier(t, "x")
	for _, c := range []struct{ text, name, verifier string }{
		{"users: []\n", "bob", "plain"}, {"users: []\n", "", good}, {"users: []\n", "*", good}, {"users: []\n", "a\nb", good},
		{"users: {}\n", "bob", good}, {"- users\n", "bob", good}, {"users: [\n", "bob", good}, {"", "bob", good},
		{"a: |\n  text\nusers:\n  - name: alice\n    password: >\n      x\n    settings: {epsilon: \"1\n      2\"}\nusers: []\n", "bob", good},
	} {
		write(c.text)
		if err := AddUser(path, c.name, c.verifier, false); err == nil {
			t.Errorf("%q in %q passes", c.name, c.text)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != c.text {
			t.Errorf("%q was changed to %q, %v", c.text, got, err)
		}
	}
	if err := AddUser(filepath.Join(t.TempDir(), "none.yaml"), "bob", good, false); err == nil {
		t.Error("a file that is not there passes")
	}
}

func TestQuoteName(t *testing.T) {
	for _, name := range []string{"alice", "no", "yes", "null", "~", "1", "0x1", "2020-01-01", "a b", "a:b", "'", "\"", "\\", "ü", "x\u2028y", "=", "<<", "a#b", "\u00a0"} {
		var m map[string]string
		if err := yaml.Unmarshal([]byte("{name: "+quoteName(name)+"}"), &m); err != nil || m["name"] != name {
			t.Errorf("%q is written %s and read %q, %v", name, quoteName(name), m["name"], err)
		}
	}
}
