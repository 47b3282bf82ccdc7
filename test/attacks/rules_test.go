package attacks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// The tests here are named after the rules of privacy.md that bind the main job, and drive a real proxy over the wire.

// TestRule1NobodysChoicesLeak: bob asks much on one proxy and nothing on the other; what alice sees is the same, byte
// for byte, but for noised cells and her own clock. So too where each of them is of a group of one account.
func TestRule1NobodysChoicesLeak(t *testing.T) {
	for name, groups := range map[string]string{"alone": "", "of two groups": "groups:\n  - {name: hers, members: [alice]}\n  - {name: his, members: [bob, dba]}\n"} {
		t.Run(name, func(t *testing.T) {
			kit.Beside(t)
			serve := func() *kit.Program {
				path := kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0)
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(strings.Replace(string(text), "\ndatasets:\n", "\n"+groups+"datasets:\n", 1)), 0o600); err != nil {
					t.Fatal(err)
				}
				return kit.Serve(t, path)
			}
			nobodysChoicesLeak(t, serve(), serve())
		})
	}
}

func nobodysChoicesLeak(t *testing.T, busy, idle *kit.Program) {
	bob := busy.Connect("bob", "lab")
	bob.Ask(`SET dp.epsilon = 1`)
	for age := range 4 {
		if a := bob.Ask(fmt.Sprintf(`SELECT count(*) FROM people WHERE age > %d`, age*13)); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	p := pair{busy.Connect("alice", "lab"), idle.Connect("alice", "lab")}
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
		a, b := p.with.Ask(sql), p.without.Ask(sql)
		if !strings.Contains(sql, "FROM people") && fmt.Sprint(a.Rows) != fmt.Sprint(b.Rows) {
			t.Errorf("%s:\n  busy %v\n  idle %v", sql, a.Rows, b.Rows)
		}
	}
}

// TestRule2FirstUsePays: a declared release costs each user its cost once, a dearer one than dp.epsilon is not bought,
// and statements without an aggregate buy nothing.
func TestRule2FirstUsePays(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0))
	for _, user := range []string{"alice", "bob"} {
		w := p.Connect(user, "lab")
		w.Ask(`SELECT count(*) FROM people WHERE age BETWEEN 20 AND 30`)
		if s := w.Spent(); s != "0.1" {
			t.Errorf("%s spent %s on a fresh count at 0.1", user, s)
		}
		w.Ask(`SET dp.epsilon = 0.5`)
		w.Ask(`SELECT count(*) FROM people WHERE age BETWEEN 21 AND 33`)
		if s := w.Spent(); s != "0.6" {
			t.Errorf("%s spent %s after the first use of a release of 0.5", user, s)
		}
		for age := range 20 {
			w.Ask(fmt.Sprintf(`SELECT count(*) FROM people WHERE age BETWEEN %d AND 60`, age))
		}
		w.Ask(`SELECT DISTINCT city FROM people`)
		w.Ask(`\d`)
		if s := w.Spent(); s != "0.6" {
			t.Errorf("%s spent %s after ranges that her release answers", user, s)
		}
	}
	dba := p.Connect("dba", "lab")
	if a := dba.Ask(`SELECT spent FROM dp.budget WHERE user_name = '(cap)'`); len(a.Rows) != 1 || a.Rows[0][0] != "0.7" {
		t.Errorf("the cap holds %v, must hold two counts at 0.1 and one release of 0.5", a.Rows)
	}
}

// TestRule3SavedAnswerIsAsExactAsAsked: the same question is free and the same at the same or a smaller epsilon, and is
// refined for the difference at a larger one.
func TestRule3SavedAnswerIsAsExactAsAsked(t *testing.T) {
	kit.Beside(t)
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0))
	w := p.Connect("alice", "lab")
	const sql = `SELECT count(*) FROM people WHERE city = 'c1' AND income < 50000`
	w.Ask(`SET dp.epsilon = 0.2`)
	first := kit.Count(t, w.Ask(sql))
	w.Ask(`SET dp.epsilon = 0.1`)
	if again := kit.Count(t, w.Ask(`select COUNT(*) from public.people p where income < 50000 and (p.city) in ('c1')`)); again != first || w.Spent() != "0.2" {
		t.Errorf("the same question: %d, then %d, spent %s", first, again, w.Spent())
	}
	w.Ask(`SET dp.epsilon = 0.4`)
	w.Ask(sql)
	if w.Spent() != "0.4" {
		t.Errorf("spent %s: a more exact answer costs the difference", w.Spent())
	}
}

// TestRefinedAtOnce: sessions of one user that refine the same answer at once, to levels of their own, are all
// answered, and what the finest costs is all that they cost: who is overtaken plans anew by what is held then.
func TestRefinedAtOnce(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0))
	const sql = `SELECT count(*) FROM people WHERE city = 'c1' AND income < 50000`
	w := p.Connect("alice", "lab")
	kit.Count(t, w.Ask(sql))
	var asked sync.WaitGroup
	for level := 2; level <= 9; level++ {
		session := p.Connect("alice", "lab")
		session.Ask(fmt.Sprintf(`SET dp.epsilon = 0.%d`, level))
		asked.Go(func() {
			if a := session.Ask(sql); a.Err != nil {
				t.Errorf("to 0.%d: %s %s", level, a.Err.Code, a.Err.Message)
			}
		})
	}
	asked.Wait()
	if w.Spent() != "0.9" {
		t.Errorf("spent %s, want 0.9", w.Spent())
	}
}

// TestRule4SavedBeforeSent: an answer that was seen is saved: it survives kill -9 (TestT25Kills does it at random
// moments).
func TestRule4SavedBeforeSent(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0))
	const sql = `SELECT count(*) FROM people WHERE hiv`
	seen := kit.Count(t, p.Connect("alice", "lab").Ask(sql))
	p.Stop(syscall.SIGKILL)
	p.Restart()
	w := p.Connect("alice", "lab")
	if again := kit.Count(t, w.Ask(sql)); again != seen || w.Spent() != "0.1" {
		t.Errorf("%d before, %d after the restart, spent %s", seen, again, w.Spent())
	}
}

// TestRule6DeltaIsSpentOnce: under zCDP the ρ of a budget is what (ε, δ/2) implies, and charges add up in ρ.
func TestRule6DeltaIsSpentOnce(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "1", Cap: "2"}, 0)
	kit.Edit(t, path, "accountant: pure", "accountant: zcdp", "delta: 0", "delta: 1e-6")
	w := kit.Serve(t, path).Connect("alice", "lab")
	answers := 0
	for age := range 30 {
		a := w.Ask(fmt.Sprintf(`SELECT count(*) FROM people WHERE age > %d`, age))
		if a.Err != nil {
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
	kit.Beside(t)
	for name, change := range map[string][]string{
		"a new dataset id over the same table": {"id: lab", "id: lab2"},
		"a new id and another spelling":        {"id: lab", "id: lab2", "main.people", "main.PEOPLE"},
		"another privacy unit":                 {"key: people.uid", "key: people.age"},
		"zcdp to pure":                         {"accountant: zcdp", "accountant: pure"},
	} {
		path := kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0)
		if name == "zcdp to pure" {
			kit.Edit(t, path, "accountant: pure", "accountant: zcdp", "delta: 0", "delta: 1e-6")
		}
		p := kit.Serve(t, path)
		p.Connect("alice", "lab").Ask(`SELECT count(*) FROM people`)
		p.Stop(syscall.SIGTERM)
		kit.Edit(t, path, change...)
		if startsAnyhow(t, path) {
			t.Errorf("%s: served all the same", name)
		}
	}
}

// TestRule12CellsAddUp: groups and their complement add up to the table up to noise, and NULL and outside values have
// cells: person 7's city and note are outside their domains.
func TestRule12CellsAddUp(t *testing.T) {
	w := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "50", Cap: "50"}, 0)).Connect("alice", "lab")
	w.Ask(`SET dp.epsilon = 1`)
	groups := w.Ask(`SELECT city, count(*) FROM people GROUP BY city ORDER BY city`)
	if groups.Err != nil {
		t.Fatal(groups.Err)
	}
	var keys []string
	total := 0
	for _, row := range groups.Rows {
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
	w := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0)).Connect("alice", "lab")
	for _, sql := range []string{
		`SELECT count(*) FROM (SELECT * FROM people LIMIT 10) t`, `SELECT count(*) FROM (SELECT * FROM people ORDER BY age OFFSET 3) t`,
		`SELECT count(*) FROM (SELECT DISTINCT ON (age) * FROM people) t`, `SELECT count(*) FROM people TABLESAMPLE BERNOULLI (10)`,
		`WITH t AS (SELECT * FROM people FETCH FIRST 5 ROWS ONLY) SELECT count(*) FROM t`, `SELECT * FROM people LIMIT 100`,
	} {
		if a := w.Ask(sql); a.Err == nil {
			t.Errorf("answered: %s", sql)
		} else if a.Err.Hint == "" {
			t.Errorf("no hint: %s: %s", sql, a.Err.Message)
		}
	}
	if w.Spent() != "0" {
		t.Errorf("refusals were charged: %s", w.Spent())
	}
}

// startsAnyhow reports whether serve starts on a policy that it should refuse: whether it does anything but end, and
// say why.
func startsAnyhow(t *testing.T, path string) bool {
	t.Helper()
	p := &kit.Program{T: t, Policy: path, Args: []string{"serve", "--policy", path}}
	err := p.TryStart()
	refused := err != nil && !p.Alive() && strings.Contains(p.LogText(), "dpproxy: ")
	if p.Stop(syscall.SIGKILL); !refused {
		t.Logf("%v\n%s", err, p.LogText())
	}
	return !refused
}

// TestQuestionsOfThePolicyAloneAreFree: a predicate that no cell satisfies counts nothing, and keys of a declared
// domain are public: both are answered exactly and free, with EXPLAIN and with error columns too.
func TestQuestionsOfThePolicyAloneAreFree(t *testing.T) {
	w := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0)).Connect("alice", "lab")
	for range 2 {
		for sql, want := range map[string]string{
			`SELECT count(*) FROM people WHERE age > 200`:                                    "[[0",
			`SELECT count(*) FROM people WHERE age NOT IN (30, NULL)`:                        "[[0",
			`SELECT DISTINCT hiv FROM people ORDER BY hiv`:                                   "[[f] [t] [NULL]]",
			`SELECT hiv, count(*) FROM people WHERE false GROUP BY hiv ORDER BY hiv LIMIT 0`: "[]",
		} {
			if a := w.Ask(sql); a.Err != nil || fmt.Sprint(a.Rows)[:min(len(want), len(fmt.Sprint(a.Rows)))] != want {
				t.Errorf("%s: %v %v, want %s", sql, a.Rows, a.Err, want)
			}
			if a := w.Ask("EXPLAIN " + sql); a.Err != nil {
				t.Errorf("EXPLAIN %s: %v", sql, a.Err)
			}
		}
		w.Ask(`SET dp.error_columns = on`)
	}
	if a := w.Ask(`SHOW dp.budget`); a.Rows[0][0] != "ε 5 of ε 5 left" {
		t.Errorf("charged: %v", a.Rows)
	}
}

// TestRule8OneFileOneDataset: another name for the same file does not give a second budget over its rows.
func TestRule8OneFileOneDataset(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0)
	dir := filepath.Dir(path)
	csv := "uid,age,income,city,note,hiv\n1,30,5000,c1,n1,true\n2,40,6000,c2,n2,false\n"
	if err := os.WriteFile(filepath.Join(dir, "people.csv"), []byte(csv), 0o600); err != nil {
		t.Fatal(err)
	}
	kit.Edit(t, path, `{url: "duckdb:lab.duckdb"}`, `{url: "duckdb:", files: {people: people.csv}}`)
	p := kit.Serve(t, path)
	if a := p.Connect("alice", "lab").Ask(`SELECT count(*) FROM people`); a.Err != nil {
		t.Fatal(a.Err)
	}
	p.Stop(syscall.SIGTERM)
	if err := os.Symlink("people.csv", filepath.Join(dir, "others.csv")); err != nil {
		t.Fatal(err)
	}
	kit.Edit(t, path, "id: lab", "id: lab2", "people.csv", "others.csv")
	if startsAnyhow(t, path) {
		t.Error("served all the same")
	}
}
