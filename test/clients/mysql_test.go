package clients

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestMySQLSession: the dialect as a setting, from the statement behind it on, in one message and in several, in
// transactions, at start-up and by the policy; and answers with MySQL's meaning.
func TestMySQLSession(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "100", Cap: "200"}, 0)
	kit.Edit(t, path, "- {name: bob, ", "- {name: bob, settings: {dialect: mysql}, ")
	p := kit.Serve(t, path)
	w := p.Connect("alice", "lab")
	rows := func(sql string) string {
		t.Helper()
		a := w.Ask(sql)
		if a.Err != nil {
			return "error " + a.Err.Error()
		}
		return fmt.Sprint(a.Rows)
	}
	for _, c := range []struct{ sql, want string }{
		{"SHOW dp.dialect", "[[postgres]]"},
		{"SELECT 7/2", "[[3]]"},
		{"SET dp.dialect = mysql; SELECT 7/2", "[[3.5000]]"},
		{"SELECT `x`.a FROM (SELECT 7 DIV 2 AS a) `x` # comment", "[[3]]"},
		{"SELECT 5--3, \"it's\", 1/0", "[[8 it's NULL]]"},
		{"SHOW dp.dialect", "[[mysql]]"},
		{"RESET dp.dialect; SELECT 7/2", "[[3]]"},
		{"BEGIN; SET LOCAL dp.dialect = mysql; SELECT 7/2; COMMIT", "[[3.5000]]"},
		{"SELECT 7/2", "[[3]]"},
		{"BEGIN; SET LOCAL dp.dialect = mysql", "[]"},
		{"COMMIT; SELECT 7/2", "[[3]]"},
		{"SET dp.dialect = mysql", "[]"},
		{"SELECT COUNT(*) > 500 AS enough FROM people WHERE NOTE = 'N1' OR age > 3", "[[1]]"},
		{"SELECT set_config('dp.dialect', 'postgres', false)", "error"},
		{"SET dp.dialect = oracle", "error"},
		{"SELECT 1; SELECT FROM people WHERE", "error"},
		{"DELETE FROM people", "error"},
	} {
		if got := rows(c.sql); got != c.want && !(c.want == "error" && strings.HasPrefix(got, "error")) {
			t.Errorf("%s: %s, want %s", c.sql, got, c.want)
		}
	}
	if got := rows("EXPLAIN SELECT `City`, COUNT(*) FROM people GROUP BY city"); !strings.Contains(got, "Read as: SELECT city AS \"City\", count(*)") {
		t.Errorf("EXPLAIN: %s", got)
	}
	for _, c := range []struct{ sql, want string }{ // statements that hold a SELECT
		{"BEGIN; DECLARE c CURSOR FOR SELECT 7/2 AS `q` UNION ALL SELECT 9 DIV 2; FETCH 1 FROM c; FETCH ALL c; COMMIT", "[[3.5000] [4]]"},
		{"PREPARE p (int) AS SELECT COUNT(*) DIV 2 > 200, \"it's\" FROM people WHERE age > $1 || NOTE = 'N1'; EXECUTE p (3)", "[[1 it's]]"},
		{"EXECUTE p (700)", "[[0 it's]]"},
		{"PREPARE n AS SELECT COUNT(*) > 500 AS enough FROM people WHERE NOTE = 'N1' OR age > 3; EXECUTE n; DEALLOCATE n", "[[1]]"},
		{"SELECT COUNT(*) > 500 AS enough FROM people WHERE NOTE = 'N1' OR age > 3", "[[1]]"},
		{"BEGIN; DECLARE c CURSOR WITH HOLD FOR WITH t AS (SELECT 7/2 AS `q`) SELECT q FROM t; " +
			"COMMIT; FETCH 1 FROM c; CLOSE c", "[[3.5000]]"},
		{"PREPARE w AS WITH t AS (SELECT 7 DIV 2 AS a) SELECT a + $1 FROM t; EXECUTE w (4)", "[[7]]"},
		{"PREPARE p FROM 'SELECT 1'", "error"},
		{"DELETE FROM people", "error"},
	} {
		if got := rows(c.sql); got != c.want && !(c.want == "error" && strings.HasPrefix(got, "error")) {
			t.Errorf("%s: %s, want %s", c.sql, got, c.want)
		}
	}
	if got := copied(t, w, "COPY (SELECT 7/2 AS `Q`, CONCAT('a', NULL), \"it's\") TO STDOUT (FORMAT csv, HEADER)"); got != "Q,\"CONCAT('a', NULL)\",it's\n3.5000,,it's\n" {
		t.Errorf("COPY: %q", got)
	}
	with := "COPY (WITH t AS (SELECT 1 AS a UNION ALL SELECT 2) " +
		"SELECT a, ROW_NUMBER() OVER (ORDER BY a DESC) AS n FROM t ORDER BY a) TO STDOUT"
	if got := copied(t, w, with); got != "1\t2\n2\t1\n" {
		t.Errorf("COPY of WITH: %q", got)
	}
	account := p.Connect("alice", "lab")
	spent := account.Spent()
	for _, sql := range []string{"SELECT GROUP_CONCAT(city) FROM people", "SELECT city FROM people WHERE city > 'a'", "SELECT COUNT(*) FROM people WHERE nosuch = 3"} {
		if got := rows(sql); !strings.HasPrefix(got, "error") {
			t.Errorf("%s: %s", sql, got)
		}
	}
	if now := account.Spent(); now != spent {
		t.Errorf("refusals cost: %s, then %s", spent, now)
	}
	once := w.Ask("SELECT city, COUNT(*) n FROM people GROUP BY city ORDER BY city")
	again := p.Connect("alice", "lab").Ask("SELECT city, count(*) FROM people GROUP BY city ORDER BY city NULLS FIRST")
	if once.Err != nil || fmt.Sprint(once.Rows) != fmt.Sprint(again.Rows) {
		t.Errorf("one question in two dialects: %v %v, %v", once.Err, once.Rows, again.Rows)
	}
	if b := p.Connect("bob", "lab"); fmt.Sprint(b.Ask("SELECT 7/2").Rows) != "[[3.5000]]" {
		t.Error("a user whose policy says mysql")
	}
}

// TestMySQLAnswers: over the demo's own tables, what a statement for MySQL answers is what its translation answers, and
// its labels are MySQL's.
func TestMySQLAnswers(t *testing.T) {
	p := kit.Demo(t, t.TempDir()+"/demo", "5000")
	m, w := p.Connect("analyst", "demo"), p.Connect("analyst", "demo")
	m.Ask("SET dp.dialect = mysql")
	for _, c := range []struct{ mysql, postgres, labels string }{
		{"SELECT `sex`, COUNT(*) FROM `people` GROUP BY `sex` ORDER BY COUNT(*) DESC", "SELECT sex, count(*) FROM people GROUP BY sex ORDER BY 2 DESC NULLS LAST", "sex|COUNT(*)"},
		{"SELECT YEAR(hired) y, COUNT(*) n FROM people WHERE sex = 'FEMALE' GROUP BY y ORDER BY y LIMIT 2, 3",
			"SELECT extract(year FROM hired)::int y, count(*) FROM people WHERE sex = 'Female' GROUP BY 1 ORDER BY 1 NULLS FIRST LIMIT 3 OFFSET 2", "y|n"},
		{"SELECT IF(age < 18, 'minor', 'adult') g, AVG(income), COUNT(*) / 7 FROM people GROUP BY g ORDER BY g",
			"SELECT CASE WHEN age < 18 THEN 'minor' ELSE 'adult' END, round(avg(income), 4), round(count(*)::numeric / 7, 4) FROM people GROUP BY 1 ORDER BY 1", "g|AVG(income)|COUNT(*) / 7"},
		{"SELECT kind, SUM(minutes) FROM visits v JOIN people p USING (person_id) WHERE p.sex = 'male' GROUP BY kind ORDER BY kind",
			"SELECT kind, sum(minutes) FROM visits v JOIN people p USING (person_id) WHERE p.sex = 'Male' GROUP BY kind ORDER BY kind NULLS FIRST", "kind|SUM(minutes)"},
		{"WITH t AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex), u (total) AS (SELECT SUM(n) FROM t) " +
			"SELECT sex, 100 * n / total AS share FROM t, u ORDER BY n DESC",
			"WITH t AS (SELECT sex, count(*) AS n FROM people GROUP BY sex), u (total) AS (SELECT sum(n) FROM t) " +
				"SELECT sex, round((100 * n)::numeric / nullif(total, 0), 4) FROM t, u ORDER BY n DESC NULLS LAST",
			"sex|share"},
		{"SELECT YEAR(hired) y, COUNT(*) n, RANK() OVER (ORDER BY COUNT(*) DESC) r, LAG(COUNT(*)) OVER w, " +
			"SUM(COUNT(*)) OVER (w ROWS UNBOUNDED PRECEDING) FROM people GROUP BY y " +
			"WINDOW w AS (ORDER BY YEAR(hired)) ORDER BY y",
			"SELECT extract(year FROM hired)::int y, count(*), rank() OVER (ORDER BY count(*) DESC NULLS LAST), " +
				"lag(count(*)) OVER w, sum(count(*)) OVER (w ROWS UNBOUNDED PRECEDING) FROM people GROUP BY 1 " +
				"WINDOW w AS (ORDER BY extract(year FROM hired)::int NULLS FIRST) ORDER BY 1 NULLS FIRST",
			"y|n|r|LAG(COUNT(*)) OVER w"},
		{"SELECT sex, SUM(2) FROM people GROUP BY sex ORDER BY sex", "SELECT sex, sum(2) FROM people GROUP BY sex ORDER BY sex NULLS FIRST", "sex|SUM(2)"},
	} {
		a, b := m.Ask(c.mysql), w.Ask(c.postgres)
		if a.Err != nil || b.Err != nil || fmt.Sprint(a.Rows) != fmt.Sprint(b.Rows) || len(a.Rows) == 0 {
			t.Errorf("%s:\n%v %v\n%s:\n%v %v", c.mysql, a.Rows, a.Err, c.postgres, b.Rows, b.Err)
		}
		for _, label := range strings.Split(c.labels, "|") {
			if !strings.Contains(fmt.Sprint(a.Frames), strings.Trim(fmt.Sprint([]byte(label)), "[]")) {
				t.Errorf("%s: no label %s in %.300q", c.mysql, label, a.Frames)
			}
		}
	}
}

// copied is what COPY TO STDOUT writes.
func copied(t *testing.T, w *kit.Wire, sql string) string {
	t.Helper()
	w.Send(&pgproto3.Query{String: sql})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	for text := ""; ; {
		m, err := w.Receive()
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *pgproto3.CopyData:
			text += string(m.Data)
		case *pgproto3.ErrorResponse:
			text += "error " + m.Message
		case *pgproto3.ReadyForQuery:
			return text
		}
	}
}
