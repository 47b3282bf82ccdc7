package main

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

const releaseReport = `-- a dashboard
SELECT count(*) FROM people;
SELECT city, count(*) AS n FROM people GROUP BY city;
SELECT city, hiv, count(*) FROM people GROUP BY city, hiv;
SELECT city, count(*) FROM people WHERE age >= 65 GROUP BY city;
SELECT age / 10 AS decade, count(*) FROM people GROUP BY 1 ORDER BY 1;
SELECT note, 100.0 * count(*) / sum(count(*)) OVER () FROM people GROUP BY note;
SELECT avg(income) FROM people;
SELECT city, note, count(*) FROM people GROUP BY CUBE (city, note);
SELECT nosuch FROM people;
`

// released runs `dpproxy release --json`.
func released(t *testing.T, want int, args ...string) batchReport {
	t.Helper()
	out := kit.Run(t, "", append([]string{"release", "--json"}, args...)...)
	var r batchReport
	if err := json.Unmarshal([]byte(out.Stdout), &r); err != nil || out.Code != want {
		t.Fatalf("%v: exit %d, want %d: %v\n%s%s", args, out.Code, want, err, out.Stdout, out.Stderr)
	}
	return r
}

// TestReleaseReport: a report is bought once for two users; its statements are free for both from then on, over the
// wire, the same numbers, and for nobody else; the cap pays once.
func TestReleaseReport(t *testing.T) {
	kit.Beside(t)
	path := kit.DuckDB(t, kit.Budgets{User: "3", Cap: "5"}, 0)
	file := writeScript(t, releaseReport)
	r := released(t, 0, "--policy", path, "--user", "alice", "--user", "bob", "--epsilon", "1.5", file)
	if r.Answered != 8 || r.Saving <= 1 || r.Unit != "epsilon" {
		t.Errorf("%d statements answered, saving %g: %+v", r.Answered, r.Saving, r)
	}
	p := kit.Serve(t, path)
	alice, bob, dba := p.Connect("alice", "lab"), p.Connect("bob", "lab"), p.Connect("dba", "lab")
	cost := r.Cost
	for _, w := range []*kit.Wire{alice, bob} {
		if got := w.Spent(); got != cost {
			t.Errorf("spent %s, the batch costs %s", got, cost)
		}
	}
	for _, s := range r.Statements {
		if s.Refusal != "" {
			continue
		}
		a, b := alice.Ask(s.Text), bob.Ask(s.Text)
		if a.Err != nil || b.Err != nil {
			t.Fatalf("%s: %v %v", s.Text, a.Err, b.Err)
		}
		if !slices.EqualFunc(a.Rows, b.Rows, slices.Equal) || len(a.Rows) == 0 {
			t.Errorf("%s: alice is told\n%v\nbob\n%v", s.Text, a.Rows, b.Rows)
		}
	}
	if a, b := alice.Spent(), bob.Spent(); a != cost || b != cost {
		t.Errorf("after asking, alice has spent %s and bob %s, want %s", a, b, cost)
	}
	if a := dba.Ask(r.Statements[0].Text); a.Err != nil || dba.Spent() == "0" {
		t.Errorf("a third user got it for nothing: %v, spent %s", a.Err, dba.Spent())
	}
	p.Stop(syscall.SIGTERM)
	again := kit.Run(t, "", "release", "--policy", path, "--user", "alice", "--user", "bob", "--epsilon", "1.5", file)
	if again.Code != 0 || strings.Count(again.Stdout, "has paid for it already") != 2 {
		t.Errorf("bought again: %d\n%s%s", again.Code, again.Stdout, again.Stderr)
	}
	if out := kit.Run(t, "", "budget", "--policy", path); !strings.Contains(out.Stdout, cost) {
		t.Errorf("budget: %s", out.Stdout)
	}
}
