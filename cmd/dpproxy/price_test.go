package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

func writeScript(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.sql")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// priced runs `dpproxy price --json`.
func priced(t *testing.T, want int, args ...string) pricedReport {
	t.Helper()
	out := kit.Run(t, "", append([]string{"price", "--json"}, args...)...)
	var r pricedReport
	if err := json.Unmarshal([]byte(out.Stdout), &r); err != nil || out.Code != want {
		t.Fatalf("%v: exit %d, want %d: %v\n%s%s", args, out.Code, want, err, out.Stdout, out.Stderr)
	}
	return r
}

func (r pricedReport) outcomes() string {
	var out []string
	for _, s := range r.Statements {
		text := fmt.Sprintf("%d %s", s.Line, s.Status)
		if s.Cost != "" {
			text += " " + s.Cost
		}
		if s.Refusal != nil && s.Refusal.ID != "" {
			text += fmt.Sprintf(" %s@%d:%d", s.Refusal.ID, s.Refusal.Line, s.Refusal.Column)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

const report = `-- a report
SELECT city, count(*) FROM people GROUP BY city;
SELECT city, count(*) AS again FROM people GROUP BY city;
SET dp.epsilon = 0.3;
SELECT count(*) FROM people
  WHERE nosuch = 3;
SELECT count(*) FROM people WHERE hiv;
EXPLAIN SELECT count(*) FROM people;
SELEC 1;
SELECT c.city, n * 100.0 / sum(n) OVER () FROM (SELECT city, count(*) n FROM people GROUP BY city) c;
`

// TestPrice: what a report would cost without a database that could be reached, with nothing charged: statements follow
// each other or are alone, refusals have their place, and a proxy charges just what was said.
func TestPrice(t *testing.T) {
	kit.Beside(t)
	path := kit.DuckDB(t, kit.Budgets{User: "1", Cap: "2"}, 0)
	dir := filepath.Dir(path)
	if err := os.Rename(filepath.Join(dir, "lab.duckdb"), filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	file := writeScript(t, report)
	r := priced(t, 3, "--policy", path, "--user", "alice", file)
	want := "2 answered 0.1, 3 answered 0, 4 session, 5 refused unknown-column@6:9, 7 answered 0.3, 8 session, 9 refused syntax-error@9:1, 10 answered 0.2" // the first one, refined from 0.1
	if got := r.outcomes(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if r.Total.Cost != "0.6" || r.Total.Share != 0.6 || r.Total.Answered != 4 || r.Total.Free != 1 || r.Total.Refused != 2 || r.Unit != "epsilon" {
		t.Errorf("total %+v", r.Total)
	}
	if s := r.Statements[0]; len(s.Leaves) != 1 || !strings.Contains(s.Leaves[0].Mechanism, "discrete Laplace") || !strings.Contains(s.Error, "±30") {
		t.Errorf("the first statement: %+v", s)
	}
	each := priced(t, 3, "--policy", path, "--user", "alice", "--each", "--fresh", file)
	want = "2 answered 0.1, 3 answered 0.1, 4 session, 5 refused unknown-column@6:9, 7 answered 0.3, 8 session, 9 refused syntax-error@9:1, 10 answered 0.3"
	if got := each.outcomes(); got != want || each.Total.Cost != "0.8" {
		t.Errorf("each: %s (%s)\nwant  %s", got, each.Total.Cost, want)
	}
	dear := priced(t, 3, "--policy", path, "--user", "alice", "--set", "dp.epsilon=0.7", writeScript(t, "SELECT count(*) FROM people; SELECT count(*) FROM people WHERE hiv; SELECT count(*) FROM people"))
	if got := dear.outcomes(); got != "1 answered 0.7, 1 over budget 0.7, 1 answered 0" {
		t.Errorf("over the budget: %s", got)
	}
	if err := os.Rename(filepath.Join(dir, "away"), filepath.Join(dir, "lab.duckdb")); err != nil {
		t.Fatal(err)
	}
	p := kit.Serve(t, path)
	w := p.Connect("alice", "lab")
	for _, sql := range []string{"SELECT city, count(*) FROM people GROUP BY city", "SET dp.epsilon = 0.3", "SELECT count(*) FROM people WHERE hiv",
		"SELECT c.city, n * 100.0 / sum(n) OVER () FROM (SELECT city, count(*) n FROM people GROUP BY city) c"} {
		if a := w.Ask(sql); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	if got := w.Spent(); got != r.Total.Cost {
		t.Errorf("the proxy charged %s, and %s was said", got, r.Total.Cost)
	}
	held := priced(t, 0, "--policy", path, "--user", "alice", writeScript(t, "SELECT city, count(*) FROM people GROUP BY city"))
	if held.outcomes() != "1 answered 0" || held.Left != "ε 0.4" || w.Spent() != "0.6" {
		t.Errorf("with the ledger: %s, %s left; spent %s", held.outcomes(), held.Left, w.Spent())
	}
	other := priced(t, 0, "--policy", path, "--user", "bob", writeScript(t, "SELECT city, count(*) FROM people GROUP BY city"))
	if other.outcomes() != "1 answered 0.1" || other.Left != "ε 1" {
		t.Errorf("another user's: %s, %s left", other.outcomes(), other.Left)
	}
}

// TestPriceDialects: reports for MySQL, by flag, by SET within the file, and by the user's setting.
func TestPriceDialects(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
	mysql := writeScript(t, "SELECT `city`, COUNT(*) FROM people GROUP BY `city`; # all\nSELECT COUNT(*) / 2 FROM people WHERE city = 'C1';\nSELECT GROUP_CONCAT(city) FROM people")
	r := priced(t, 3, "--policy", path, "--user", "alice", "--dialect", "mysql", mysql)
	if got := r.outcomes(); got != "1 answered 0.1, 2 answered 0, 3 refused mysql-construct@0:0" {
		t.Error(got)
	}
	if !strings.Contains(r.Statements[1].ReadAs, "round(count(*)::numeric / 2, 4)") || !strings.Contains(r.Statements[1].ReadAs, "city = 'c1'") {
		t.Errorf("read as %s", r.Statements[1].ReadAs)
	}
	both := priced(t, 0, "--policy", path, "--user", "alice", writeScript(t, "SELECT count(*) AS \"n\" FROM people; SET dp.dialect = mysql; SELECT COUNT(*) AS \"n\" FROM `people`; RESET dp.dialect; SELECT count(*) AS \"m\" FROM people"))
	if got := both.outcomes(); got != "1 answered 0.1, 1 session, 1 answered 0, 1 session, 1 answered 0" {
		t.Error(got)
	}
	kit.Edit(t, path, "- {name: bob, ", "- {name: bob, settings: {dialect: mysql}, ")
	if r := priced(t, 0, "--policy", path, "--user", "bob", writeScript(t, "SELECT COUNT(*) FROM `people`")); r.outcomes() != "1 answered 0.1" {
		t.Error(r.outcomes())
	}
}

// TestPriceTransactions: what a script sets, prepares and takes back holds for the statements behind it as it does in a
// session.
func TestPriceTransactions(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
	const ask = "SELECT count(*) FROM people WHERE hiv"
	for _, c := range []struct{ script, want string }{
		{"BEGIN; SET LOCAL dp.epsilon = 0.3; ASK; COMMIT; ASK", "session, session, answered 0.3, session, answered 0.1"},
		{"BEGIN; SET dp.epsilon = 0.3; ROLLBACK; ASK", "session, session, session, answered 0.1"},
		{"BEGIN; SET dp.epsilon = 0.3; COMMIT; ASK", "session, session, session, answered 0.3"},
		{"SET LOCAL dp.epsilon = 0.3; ASK", "session, answered 0.1"},
		{"BEGIN; SAVEPOINT a; SET dp.epsilon = 0.3; ROLLBACK TO a; ASK", "session, session, session, session, answered 0.1"},
		{"BEGIN; SAVEPOINT a; SET dp.epsilon = 0.3; RELEASE a; ASK", "session, session, session, session, answered 0.3"},
		{"SAVEPOINT a; ROLLBACK TO b; COMMIT AND CHAIN; BEGIN; ROLLBACK TO b; DISCARD ALL", "refused, refused, refused, session, refused, refused"},
		{"BEGIN; SET LOCAL dp.epsilon = 0.3; ROLLBACK AND CHAIN; ASK", "session, session, session, answered 0.1"},
		{"SELECT set_config('dp.epsilon', '0.3', false); ASK", "answered 0, answered 0.3"},
		{"SELECT set_config('dp.epsilon', '0.3', true); ASK", "answered 0, answered 0.1"},
		{"SELECT set_config('dp.epsilon', '9', false); ASK", "refused, answered 0.1"},
		{"COPY (ASK) TO STDOUT; DECLARE c CURSOR FOR ASK", "answered 0.1, refused"},
		{"BEGIN; DECLARE c CURSOR FOR ASK; FETCH c", "session, answered 0.1, session"},
		{"PREPARE p AS ASK; EXECUTE p; EXECUTE p; DEALLOCATE p; EXECUTE p", "session, answered 0.1, answered 0.1, session, refused"},
	} {
		script, code := strings.ReplaceAll(c.script, "ASK", ask), 0
		if strings.Contains(c.want, "refused") {
			code = 3
		}
		var got []string
		for _, one := range priced(t, code, "--policy", path, "--user", "alice", "--each", writeScript(t, script)).Statements {
			got = append(got, strings.TrimSpace(string(one.Status)+" "+one.Cost))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %s, want %s", c.script, strings.Join(got, ", "), c.want)
		}
	}
	kit.Edit(t, path, "- {name: bob, ", "- {name: bob, settings_scope: transaction, ")
	r := priced(t, 3, "--policy", path, "--user", "bob", "--each", writeScript(t, "SET dp.epsilon = 0.3; "+ask+"; BEGIN; SET dp.epsilon = 0.3; "+ask+"; COMMIT; "+ask))
	if got := r.outcomes(); got != "1 refused, 1 answered 0.1, 1 session, 1 session, 1 answered 0.3, 1 session, 1 answered 0.1" {
		t.Errorf("settings that end with the transaction: %s", got)
	}
}

// TestPriceUsage: exit codes and words of wrong usage, standard input, and the text form.
func TestPriceUsage(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
	file := writeScript(t, "SELECT count(*) FROM people")
	for _, c := range []struct {
		code int
		say  string
		args []string
	}{
		{2, "--user", []string{"--policy", path, file}},
		{2, "mallory", []string{"--policy", path, "--user", "mallory", file}},
		{2, "requires at least 1", []string{"--policy", path, "--user", "alice"}},
		{2, "nosuch", []string{"--policy", path, "--user", "alice", "--dataset", "nosuch", file}},
		{2, "dp.dialect", []string{"--policy", path, "--user", "alice", "--dialect", "oracle", file}},
		{2, "name=value", []string{"--policy", path, "--user", "alice", "--set", "x", file}},
		{1, "no such file", []string{"--policy", path, "--user", "alice", file + "x"}},
		{1, "no policy", []string{"--policy", path + "x", "--user", "alice", file}},
	} {
		if out := kit.Run(t, "", append([]string{"price"}, c.args...)...); out.Code != c.code || !strings.Contains(out.Stderr, c.say) {
			t.Errorf("%v: exit %d: %s", c.args, out.Code, out.Stderr)
		}
	}
	out := kit.Run(t, "SELECT count(*) FROM people; SELECT * FROM people", "price", "--policy", path, "--user", "alice", "-")
	for _, say := range []string{"standard input:1: SELECT count(*) FROM people", "answered, ε 0.1 (1 % of the budget); error ±30 a value at 95 %", "42501 raw-rows", "hint: ",
		"2 statements: 1 answered (0 of them free), 1 refused, 0 over budget.", "Nothing was charged."} {
		if !strings.Contains(out.Stdout, say) {
			t.Errorf("not said: %s\n%s", say, out.Stdout)
		}
	}
	if out.Code != 3 {
		t.Errorf("exit %d", out.Code)
	}
}
