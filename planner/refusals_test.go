package planner

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// refused runs the text as a session would, up to the first refusal.
func refused(c reuse.Context, text string) *refuse.Refusal {
	dialect := parse.PostgreSQL
	if rest, ok := strings.CutPrefix(text, "SET dp.dialect = mysql; "); ok {
		dialect, text = parse.MySQL, rest
	}
	if rest, ok := strings.CutPrefix(text, "SET dp.max_error = "); ok {
		fmt.Sscan(rest, &c.Settings.MaxError)
		_, text, _ = strings.Cut(rest, "; ")
	}
	statements, r := parse.ParseAs(text, dialect, c.Dataset)
	if r != nil {
		return r
	}
	for _, s := range statements {
		if s.Kind == parse.KindOther {
			return parse.Refuse(s)
		}
		if s.Kind == parse.KindSelect {
			if _, r := Build(s, nil, c); r != nil {
				return r
			}
		}
	}
	return nil
}

// TestRefusalExamples: each example of the catalogue is refused for its reason, with a hint and never with a code that
// makes a driver drop the connection or try again.
func TestRefusalExamples(t *testing.T) {
	c := testContext(t, testPolicy(t))
	c.Public = regionRows{}
	ids := map[string]bool{}
	for _, e := range catalogue() {
		if ids[e.ID] {
			t.Errorf("%s occurs twice", e.ID)
		}
		ids[e.ID] = true
		for _, bad := range []string{"0A", "08", "53", "57P", "58", "XX", "40"} {
			if strings.HasPrefix(e.SQLState, bad) {
				t.Errorf("%s: SQLSTATE %s", e.ID, e.SQLState)
			}
		}
		if e.Example == "" {
			continue
		}
		r := refused(c, e.Example)
		if r == nil || r.ID != e.ID {
			t.Errorf("%s: %s gives %v (%+v)", e.ID, e.Example, r, r)
			continue
		}
		if r.Hint == "" && e.ID != "syntax-error" {
			t.Errorf("%s: no hint", e.ID)
		}
		if strings.Contains(r.Message+r.Hint, "%!") {
			t.Errorf("%s: %s / %s", e.ID, r.Message, r.Hint)
		}
	}
}

// TestRefusalsDocument holds docs/refusals.md equal to the catalogue.
func TestRefusalsDocument(t *testing.T) {
	const file = "../docs/refusals.md"
	c := testContext(t, testPolicy(t))
	var b strings.Builder
	b.WriteString(`# Refusals

What dpproxy does not answer, it refuses before anything is charged and before the database is asked. Each refusal has a
word, an SQLSTATE, a position in the statement where there is one, and a hint. This page is generated from the planner's
catalogue (` + "`go test ./planner -run TestRefusalsDocument -update`" + `).

`)
	for _, e := range catalogue() {
		state := e.SQLState
		if state == "" {
			state = "PostgreSQL's own"
		}
		fmt.Fprintf(&b, "## %s (%s)\n\n", e.ID, state)
		message, hint := strings.NewReplacer("%s", "…", "%d", "…").Replace(e.Text), e.Hint
		if e.Example != "" {
			if r := refused(c, e.Example); r != nil {
				message, hint = r.Message, r.Hint
			}
			fmt.Fprintf(&b, "```sql\n%s\n```\n\n", e.Example)
		}
		fmt.Fprintf(&b, "%s.\n", strings.TrimSuffix(message, "."))
		if hint != "" {
			fmt.Fprintf(&b, "Hint: %s\n", hint)
		}
		b.WriteString("\n")
	}
	got := strings.TrimRight(b.String(), "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s is not what the catalogue says (%v); run with -update\n%s", file, err, firstDifference(string(want), got))
	}
}

// TestPasswordHint: psql's \password leads to the command that changes a password, other changes of users do not.
func TestPasswordHint(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for text, want := range map[string]bool{
		"ALTER USER alice PASSWORD 'SCRAM-SHA-256$4096:x'": true, "ALTER ROLE alice WITH LOGIN PASSWORD 'x'": true,
		"ALTER USER alice PASSWORD NULL": true, "ALTER USER alice CREATEDB": false, "ALTER TABLE people ADD x int": false,
	} {
		r := refused(c, text)
		if r == nil || r.ID != "no-definitions" || strings.Contains(r.Hint, "dpproxy user add") != want || strings.Contains(r.Message+r.Hint, "SCRAM") {
			t.Errorf("%s: %+v", text, r)
		}
	}
}
