package main

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"
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
	out := dpproxy(t, "", append([]string{"release", "--json"}, args...)...)
	var r batchReport
	if err := json.Unmarshal([]byte(out.stdout), &r); err != nil || out.code != want {
		t.Fatalf("%v: exit %d, want %d: %v\n%s%s", args, out.code, want, err, out.stdout, out.stderr)
	}
	return r
}

// TestReleaseReport: a report is bought once for two users; its statements are free for both from then on, over the wire,
// the same numbers, and for nobody else; the cap pays once.
func TestReleaseReport(t *testing.T) {
	beside(t)
	path := duckFixture(t, budgets{"3", "5"}, 0)
	file := writeScript(t, releaseReport)
	r := released(t, 0, "--policy", path, "--user", "alice", "--user", "bob", "--epsilon", "1.5", file)
	if r.Answered != 8 || r.Saving <= 1 || r.Unit != "epsilon" {
		t.Errorf("%d statements answered, saving %g: %+v", r.Answered, r.Saving, r)
	}
	p := serveProcess(t, path)
	alice, bob, dba := p.connect("alice", "lab"), p.connect("bob", "lab"), p.connect("dba", "lab")
	cost := r.Cost
	for _, w := range []*wire{alice, bob} {
		if got := w.spent(); got != cost {
			t.Errorf("spent %s, the batch costs %s", got, cost)
		}
	}
	for _, s := range r.Statements {
		if s.Refusal != "" {
			continue
		}
		a, b := alice.ask(s.Text), bob.ask(s.Text)
		if a.err != nil || b.err != nil {
			t.Fatalf("%s: %v %v", s.Text, a.err, b.err)
		}
		if !slices.EqualFunc(a.rows, b.rows, slices.Equal) || len(a.rows) == 0 {
			t.Errorf("%s: alice is told\n%v\nbob\n%v", s.Text, a.rows, b.rows)
		}
	}
	if a, b := alice.spent(), bob.spent(); a != cost || b != cost {
		t.Errorf("after asking, alice has spent %s and bob %s, want %s", a, b, cost)
	}
	if a := dba.ask(r.Statements[0].Text); a.err != nil || dba.spent() == "0" {
		t.Errorf("a third user got it for nothing: %v, spent %s", a.err, dba.spent())
	}
	p.stop(syscall.SIGTERM)
	again := dpproxy(t, "", "release", "--policy", path, "--user", "alice", "--user", "bob", "--epsilon", "1.5", file)
	if again.code != 0 || strings.Count(again.stdout, "has paid for it already") != 2 {
		t.Errorf("bought again: %d\n%s%s", again.code, again.stdout, again.stderr)
	}
	if out := dpproxy(t, "", "budget", "--policy", path); !strings.Contains(out.stdout, cost) {
		t.Errorf("budget: %s", out.stdout)
	}
}
