package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The tests here are named after the rules of privacy.md that bind the main job, and drive a real proxy over the wire.

func count(t *testing.T, a answer) int {
	t.Helper()
	if a.err != nil {
		t.Fatalf("no answer: %s %s", a.err.Code, a.err.Message)
	}
	n, err := strconv.Atoi(a.rows[0][0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// spent is what a user has spent, as dp.budget says.
func (w *wire) spent() string {
	w.t.Helper()
	a := w.ask(`SELECT spent FROM dp.budget WHERE user_name = current_user`)
	if a.err != nil {
		w.t.Fatal(a.err)
	}
	return a.rows[0][0]
}

// TestRule1NobodysChoicesLeak: bob asks much on one proxy and nothing on the other; what alice sees is the same, byte for
// byte, but for noised cells and her own clock.
func TestRule1NobodysChoicesLeak(t *testing.T) {
	beside(t)
	busy, idle := serveProcess(t, duckFixture(t, budgets{"5", "50"}, 0)), serveProcess(t, duckFixture(t, budgets{"5", "50"}, 0))
	bob := busy.connect("bob", "lab")
	bob.ask(`SET dp.epsilon = 1`)
	for age := range 4 {
		if a := bob.ask(fmt.Sprintf(`SELECT count(*) FROM people WHERE age > %d`, age*13)); a.err != nil {
			t.Fatal(a.err)
		}
	}
	p := pair{busy.connect("alice", "lab"), idle.connect("alice", "lab")}
	for _, sql := range []string{
		`SHOW dp.budget`, `SELECT * FROM dp.budget`, `SELECT * FROM dp.charges`, `SELECT name, kind, table_name, cells, cost, paid FROM dp.releases`,
		`EXPLAIN SELECT count(*) FROM people WHERE age > 13`, `EXPLAIN SELECT city, count(*) FROM people GROUP BY city`,
		`SELECT count(*) FROM people WHERE age > 13`, `SELECT count(*) FROM people WHERE age > 13`, `SET dp.epsilon = 0.5`,
		`SELECT count(*) FROM people WHERE age BETWEEN 20 AND 30`, `SELECT city, hiv, count(*) FROM people GROUP BY city, hiv`,
		`SELECT charge, kind, name, cost FROM dp.charges`, `SELECT * FROM dp.budget`, `SELECT count(*) FROM pg_stat_activity`,
	} {
		if d := p.sameShape(sql); d != "" {
			t.Error(d)
		}
		a, b := p.with.ask(sql), p.without.ask(sql)
		if !strings.Contains(sql, "FROM people") && fmt.Sprint(a.rows) != fmt.Sprint(b.rows) {
			t.Errorf("%s:\n  busy %v\n  idle %v", sql, a.rows, b.rows)
		}
	}
}

// TestRule2FirstUsePays: a declared release costs each user its cost once, a dearer one than dp.epsilon is not bought, and
// statements without an aggregate buy nothing.
func TestRule2FirstUsePays(t *testing.T) {
	p := serveProcess(t, duckFixture(t, budgets{"5", "50"}, 0))
	for _, user := range []string{"alice", "bob"} {
		w := p.connect(user, "lab")
		w.ask(`SELECT count(*) FROM people WHERE age BETWEEN 20 AND 30`)
		if s := w.spent(); s != "0.1" {
			t.Errorf("%s spent %s on a fresh count at 0.1", user, s)
		}
		w.ask(`SET dp.epsilon = 0.5`)
		w.ask(`SELECT count(*) FROM people WHERE age BETWEEN 21 AND 33`)
		if s := w.spent(); s != "0.6" {
			t.Errorf("%s spent %s after the first use of a release of 0.5", user, s)
		}
		for age := range 20 {
			w.ask(fmt.Sprintf(`SELECT count(*) FROM people WHERE age BETWEEN %d AND 60`, age))
		}
		w.ask(`SELECT DISTINCT city FROM people`)
		w.ask(`\d`)
		if s := w.spent(); s != "0.6" {
			t.Errorf("%s spent %s after ranges that her release answers", user, s)
		}
	}
	dba := p.connect("dba", "lab")
	if a := dba.ask(`SELECT spent FROM dp.budget WHERE user_name = '(cap)'`); len(a.rows) != 1 || a.rows[0][0] != "0.7" {
		t.Errorf("the cap holds %v, must hold two counts at 0.1 and one release of 0.5", a.rows)
	}
}

// TestRule3SavedAnswerIsAsExactAsAsked: the same question is free and the same at the same or a smaller epsilon, and is
// refined for the difference at a larger one.
func TestRule3SavedAnswerIsAsExactAsAsked(t *testing.T) {
	beside(t)
	p := serveProcess(t, duckFixture(t, budgets{"5", "50"}, 0))
	w := p.connect("alice", "lab")
	const sql = `SELECT count(*) FROM people WHERE city = 'c1' AND income < 50000`
	w.ask(`SET dp.epsilon = 0.2`)
	first := count(t, w.ask(sql))
	w.ask(`SET dp.epsilon = 0.1`)
	if again := count(t, w.ask(`select COUNT(*) from public.people p where income < 50000 and (p.city) in ('c1')`)); again != first || w.spent() != "0.2" {
		t.Errorf("the same question: %d, then %d, spent %s", first, again, w.spent())
	}
	w.ask(`SET dp.epsilon = 0.4`)
	w.ask(sql)
	if w.spent() != "0.4" {
		t.Errorf("spent %s: a more exact answer costs the difference", w.spent())
	}
}

// TestRule4SavedBeforeSent: an answer that was seen is saved: it survives kill -9 (TestT25Kills does it at random moments).
func TestRule4SavedBeforeSent(t *testing.T) {
	p := serveProcess(t, duckFixture(t, budgets{"5", "50"}, 0))
	const sql = `SELECT count(*) FROM people WHERE hiv`
	seen := count(t, p.connect("alice", "lab").ask(sql))
	p.stop(syscall.SIGKILL)
	p.restart()
	w := p.connect("alice", "lab")
	if again := count(t, w.ask(sql)); again != seen || w.spent() != "0.1" {
		t.Errorf("%d before, %d after the restart, spent %s", seen, again, w.spent())
	}
}

// TestRule6DeltaIsSpentOnce: under zCDP the ρ of a budget is what (ε, δ/2) implies, and charges add up in ρ.
func TestRule6DeltaIsSpentOnce(t *testing.T) {
	path := duckFixture(t, budgets{"1", "2"}, 0)
	edit(t, path, "accountant: pure", "accountant: zcdp", "delta: 0", "delta: 1e-6")
	w := serveProcess(t, path).connect("alice", "lab")
	answers := 0
	for age := range 30 {
		a := w.ask(fmt.Sprintf(`SELECT count(*) FROM people WHERE age > %d`, age))
		if a.err != nil {
			break
		}
		answers++
	}
	// The largest ρ for (1, 5e-7) is 0.0231…; a question at 0.1 costs 0.005.
	if answers != 4 {
		t.Errorf("%d answers at ρ 0.005 from a budget of (1, 1e-6), must be 4", answers)
	}
}

// TestRule8IdentityCannotBeReset: after something is spent, a policy that would reset the spending is refused.
func TestRule8IdentityCannotBeReset(t *testing.T) {
	beside(t)
	for name, change := range map[string][]string{
		"a new dataset id over the same table": {"id: lab", "id: lab2"},
		"a new id and another spelling":        {"id: lab", "id: lab2", "main.people", "main.PEOPLE"},
		"another privacy unit":                 {"key: people.uid", "key: people.age"},
		"zcdp to pure":                         {"accountant: zcdp", "accountant: pure"},
	} {
		path := duckFixture(t, budgets{"5", "50"}, 0)
		if name == "zcdp to pure" {
			edit(t, path, "accountant: pure", "accountant: zcdp", "delta: 0", "delta: 1e-6")
		}
		p := serveProcess(t, path)
		p.connect("alice", "lab").ask(`SELECT count(*) FROM people`)
		p.stop(syscall.SIGTERM)
		edit(t, path, change...)
		if startsAnyhow(t, path) {
			t.Errorf("%s: served all the same", name)
		}
	}
}

// TestRule12CellsAddUp: groups and their complement add up to the table up to noise, and NULL and outside values have cells:
// person 7's city and note are outside their domains.
func TestRule12CellsAddUp(t *testing.T) {
	w := serveProcess(t, duckFixture(t, budgets{"50", "50"}, 0)).connect("alice", "lab")
	w.ask(`SET dp.epsilon = 1`)
	groups := w.ask(`SELECT city, count(*) FROM people GROUP BY city ORDER BY city`)
	if groups.err != nil {
		t.Fatal(groups.err)
	}
	var keys []string
	total := 0
	for _, row := range groups.rows {
		keys = append(keys, row[0])
		n, _ := strconv.Atoi(row[1])
		total += n
	}
	if !slices.Equal(keys, []string{"c0", "c1", "c2", "c3", "other", "NULL"}) {
		t.Errorf("keys %q: every key of the domain, 'other' and NULL", keys)
	}
	// Six cells of scale 1: |error| > 60 has a probability below 10⁻⁹.
	if total < 940 || total > 1060 {
		t.Errorf("the groups add up to %d of 1000 people", total)
	}
}

// TestRule15LimitedRowsAreRefused: a leaf over a limited or sampled sub-query of private rows is refused and free.
func TestRule15LimitedRowsAreRefused(t *testing.T) {
	w := serveProcess(t, duckFixture(t, budgets{"5", "50"}, 0)).connect("alice", "lab")
	for _, sql := range []string{
		`SELECT count(*) FROM (SELECT * FROM people LIMIT 10) t`, `SELECT count(*) FROM (SELECT * FROM people ORDER BY age OFFSET 3) t`,
		`SELECT count(*) FROM (SELECT DISTINCT ON (age) * FROM people) t`, `SELECT count(*) FROM people TABLESAMPLE BERNOULLI (10)`,
		`WITH t AS (SELECT * FROM people FETCH FIRST 5 ROWS ONLY) SELECT count(*) FROM t`, `SELECT * FROM people LIMIT 100`,
	} {
		if a := w.ask(sql); a.err == nil {
			t.Errorf("answered: %s", sql)
		} else if a.err.Hint == "" {
			t.Errorf("no hint: %s: %s", sql, a.err.Message)
		}
	}
	if w.spent() != "0" {
		t.Errorf("refusals were charged: %s", w.spent())
	}
}

// edit replaces texts in a file, pairwise.
func edit(t *testing.T, path string, oldNew ...string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.NewReplacer(oldNew...).Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// startsAnyhow tells whether serve starts on a policy that it should refuse.
func startsAnyhow(t *testing.T, path string) bool {
	t.Helper()
	ctx, cancel := contextWithin(t)
	defer cancel()
	code := make(chan int, 1)
	go func() { code <- run(ctx, []string{"serve", "--policy", path}) }()
	select {
	case c := <-code:
		return c == 0
	case <-ctx.Done():
		<-code
		return true
	}
}

// TestQuestionsOfThePolicyAloneAreFree: a predicate that no cell satisfies counts nothing, and keys of a declared domain are
// public: both are answered exactly and free, with EXPLAIN and with error columns too.
func TestQuestionsOfThePolicyAloneAreFree(t *testing.T) {
	w := serveProcess(t, duckFixture(t, budgets{"5", "50"}, 0)).connect("alice", "lab")
	for range 2 {
		for sql, want := range map[string]string{
			`SELECT count(*) FROM people WHERE age > 200`:                                    "[[0",
			`SELECT count(*) FROM people WHERE age NOT IN (30, NULL)`:                        "[[0",
			`SELECT DISTINCT hiv FROM people ORDER BY hiv`:                                   "[[f] [t] [NULL]]",
			`SELECT hiv, count(*) FROM people WHERE false GROUP BY hiv ORDER BY hiv LIMIT 0`: "[]",
		} {
			if a := w.ask(sql); a.err != nil || fmt.Sprint(a.rows)[:min(len(want), len(fmt.Sprint(a.rows)))] != want {
				t.Errorf("%s: %v %v, want %s", sql, a.rows, a.err, want)
			}
			if a := w.ask("EXPLAIN " + sql); a.err != nil {
				t.Errorf("EXPLAIN %s: %v", sql, a.err)
			}
		}
		w.ask(`SET dp.error_columns = on`)
	}
	if a := w.ask(`SHOW dp.budget`); a.rows[0][0] != "ε 5 of ε 5 left" {
		t.Errorf("charged: %v", a.rows)
	}
}

// TestRule8OneFileOneDataset: another name for the same file does not give a second budget over its rows.
func TestRule8OneFileOneDataset(t *testing.T) {
	path := duckFixture(t, budgets{"5", "50"}, 0)
	dir := filepath.Dir(path)
	csv := "uid,age,income,city,note,hiv\n1,30,5000,c1,n1,true\n2,40,6000,c2,n2,false\n"
	if err := os.WriteFile(filepath.Join(dir, "people.csv"), []byte(csv), 0o600); err != nil {
		t.Fatal(err)
	}
	edit(t, path, `{url: "duckdb:lab.duckdb"}`, `{url: "duckdb:", files: {people: people.csv}}`)
	p := serveProcess(t, path)
	if a := p.connect("alice", "lab").ask(`SELECT count(*) FROM people`); a.err != nil {
		t.Fatal(a.err)
	}
	p.stop(syscall.SIGTERM)
	if err := os.Symlink("people.csv", filepath.Join(dir, "others.csv")); err != nil {
		t.Fatal(err)
	}
	edit(t, path, "id: lab", "id: lab2", "people.csv", "others.csv")
	if startsAnyhow(t, path) {
		t.Error("served all the same")
	}
}
