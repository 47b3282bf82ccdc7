package main

import (
	"os"
	"strings"
	"testing"
)

// onlineFixture is the fixture with an online release, at most so many updates.
func onlineFixture(t *testing.T, without int, releases string) string {
	t.Helper()
	path := duckFixture(t, budgets{"10", "20"}, without)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(string(data)+releases), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const onlineRelease = "          - {kind: online, name: o, columns: [{column: age, step: 10}, hiv, city], epsilon: 1, updates: 6, insist: true}\n"

func TestX(t *testing.T) {
	p := serveProcess(t, onlineFixture(t, 0, onlineRelease))
	w := p.connect("alice", "lab")
	for _, q := range []string{
		"SELECT * FROM dp.releases", "EXPLAIN SELECT count(*) FROM people WHERE age < 40 AND city = 'c1'", "SET dp.epsilon = 1",
		"EXPLAIN SELECT count(*) FROM people WHERE age < 40 AND city = 'c1'",
		"SELECT count(*) FROM people WHERE age < 40 AND city = 'c1'",
		"SELECT count(*) FROM people WHERE age < 40 AND city = 'c1'",
		"EXPLAIN SELECT count(*) FROM people WHERE age < 40 AND city = 'c1'",
		"SELECT city, count(*) FROM people WHERE age < 60 GROUP BY 1",
		"SELECT count(*) FROM people WHERE age < 45",
		"SELECT * FROM dp.releases", "SELECT spent FROM dp.budget",
	} {
		a := w.ask(q)
		t.Logf("%s\n%v %v\n%s", q, a.err, a.rows, strings.Join(a.notes, "\n"))
	}
}
