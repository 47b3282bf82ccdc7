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

const syntheticRelease = "          - {kind: synthetic, name: made, columns: [{column: age, step: 10}, hiv, city], mechanism: mwem, epsilon: 1, rows: 500}\n"

func TestMadeUpRowsThroughSQL(t *testing.T) {
	p := serveProcess(t, onlineFixture(t, 0, onlineRelease+syntheticRelease))
	w := p.connect("alice", "lab")
	for _, q := range []string{
		"SELECT * FROM people LIMIT 5", "SELECT * FROM dp.made", "SELECT count(*) FROM dp.made", "SET dp.epsilon=1", "SELECT * FROM people LIMIT 5",
		"SELECT DISTINCT age FROM dp.made", "EXPLAIN SELECT count(*) FROM dp.made", "SELECT count(*), avg(age) FROM dp.made",
		"SELECT * FROM people LIMIT 5",
		"SELECT age, city FROM people WHERE age < 40 AND hiv ORDER BY age DESC LIMIT 3",
		`SELECT "public"."people"."age" AS "age", "public"."people"."note" AS "note" FROM "public"."people" LIMIT 3`,
		`SELECT * FROM (SELECT age, upper(city) AS c FROM people) AS virtual_table WHERE c <> 'C1' LIMIT 3`,
		`SELECT age FROM people WHERE note = 'n1' LIMIT 3`,
		`SELECT * FROM people LIMIT 0`,
		`SELECT count(*) FROM (SELECT * FROM people LIMIT 10) t`,
		`SELECT city, avg(age), count(*) FROM dp.made m GROUP BY 1 ORDER BY 1`,
		`SELECT a.age FROM people a JOIN people b ON a.age = b.age LIMIT 3`,
		`EXPLAIN SELECT * FROM people LIMIT 5`,
		"SELECT * FROM dp.o LIMIT 5", "SELECT count(*) FROM people WHERE age < 40 AND city = 'c1' AND NOT hiv", "SELECT hiv, count(*) FROM dp.o GROUP BY 1",
		"SELECT * FROM dp.releases", "SELECT spent FROM dp.budget",
	} {
		a := w.ask(q)
		t.Logf("%s\n%v %v\n%s", q, a.err, a.rows, strings.Join(a.notes, "\n"))
		if a.err != nil {
			t.Log(a.err.Hint)
		}
	}
}
