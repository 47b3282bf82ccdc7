package attacks

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// canary is in whatever a client can write. It must be nowhere in what the operator is shown; the number is one
// that nothing else is.
const (
	canary       = "Kanarienvogel"
	canaryNumber = "7318"
)

// wordsOfClients are statements that are answered, refused, or fail at each stage, with a canary wherever a client may
// put one.
var wordsOfClients = []string{
	`SELECT count(*) FROM people WHERE city = 'Kanarienvogel'`,
	`SELECT count(*) AS "Kanarienvogel" FROM people WHERE income > 7318 AND note <> 'Kanarienvogel'`,
	`SELECT city, count(*), rank() OVER (ORDER BY count(*) DESC), 'Kanarienvogel' FROM people WHERE income < 7318 GROUP BY city`,
	`SELECT 'Kanarienvogel'::int + count(*) FROM people`,
	`SELECT count(*) / 0, 'Kanarienvogel' FROM people WHERE income > 7318`,
	`SELECT date_bin('1 day', 'Kanarienvogel', now())`,
	`SELECT * FROM people WHERE city = 'Kanarienvogel'`,
	`SELECT "Kanarienvogel" FROM people`,
	`SELECT count(*) FROM "Kanarienvogel" WHERE x = 7318`,
	`SELECT Kanarienvogel(7318)`,
	`SELECT count(*) FROM people WHERE Kanarienvogel 7318`,
	`EXPLAIN SELECT count(*) FROM people WHERE city = 'Kanarienvogel' AND income > 7318`,
	`SET application_name = 'Kanarienvogel'`,
	`SET Kanarienvogel.x = '7318'`,
	`SET dp.epsilon = Kanarienvogel`,
	`PREPARE "Kanarienvogel" AS SELECT count(*) FROM people WHERE city = $1 AND income > $2`,
	`EXECUTE "Kanarienvogel"('Kanarienvogel', 7318)`,
	`DECLARE "Kanarienvogel" CURSOR FOR SELECT 'Kanarienvogel'`,
	`WITH "Kanarienvogel" AS (SELECT city, count(*) AS n FROM people WHERE income > 7318 GROUP BY city) SELECT string_agg(city || 'Kanarienvogel', ',') FROM "Kanarienvogel"`,
	`SELECT json_build_object('Kanarienvogel', count(*)) FROM people WHERE income > 7318`,
	`SELECT regexp_replace(city, '(Kanarienvogel', '7318') FROM people GROUP BY city`,
	"SELECT 'Kanarienvogel' -- \n level=ERROR msg=\"Kanarienvogel\"",
	`DELETE FROM people WHERE city = 'Kanarienvogel'`,
	`COPY (SELECT count(*) FROM people WHERE city = 'Kanarienvogel') TO STDOUT`,
}

// TestLogHasNoWords: no word of a statement, of a parameter, of a name that a client makes up and no answer is in the
// log, at its most talkative, or in the metrics, whatever becomes of the statement: answered, refused, failed in the
// outer query, away from the database, past its deadline. What the log has of a statement has its number, and where a
// client is shown an error of the inside she is sent the same one. A line of the log is one event, whatever names
// clients send.
func TestLogHasNoWords(t *testing.T) {
	server := pgtest.Start(t)
	path, database := kit.Postgres(t, server, kit.Budgets{User: "1000", Cap: "1000"}, 0)
	admin := kit.FreeAddress(t)
	kit.Edit(t, path, `listen: "127.0.0.1:0"`, fmt.Sprintf(`listen: "127.0.0.1:0", admin: %q`, admin), "backend: {", "backend: {deadline: 1s, ")
	p := kit.Serve(t, path, "--log-level", "debug")
	for _, name := range []string{canary, canary + "\nlevel=ERROR msg=forged", `x" level=ERROR msg="forged`} {
		for _, user := range []string{name, "alice"} {
			c, err := pgconn.ParseConfig(p.URL("alice", "lab"))
			if err != nil {
				t.Fatal(err)
			}
			if c.User = user; user == "alice" {
				c.Database = name
			}
			c.RuntimeParams["application_name"] = name
			if conn, err := pgconn.ConnectConfig(t.Context(), c); err == nil {
				t.Errorf("%q is let in", name)
				conn.Close(t.Context())
			}
		}
	}
	w := p.Connect("alice", "lab")
	for _, sql := range wordsOfClients {
		w.Ask(sql)
	}
	w.Send(&pgproto3.Parse{Query: `SELECT count(*) FROM people WHERE city = $1 AND income > $2`})
	w.Send(&pgproto3.Bind{Parameters: [][]byte{[]byte(canary), []byte(canaryNumber)}})
	w.Send(&pgproto3.Execute{})
	w.Send(&pgproto3.Sync{})
	if _, err := w.Hear(); err != nil {
		t.Fatal(err)
	}

	held := kit.LockPeople(t, server, database) // so that a paid query comes to its deadline
	if a := w.Ask(`SELECT count(*) FROM people WHERE income > 7318 AND city <> 'Kanarienvogel' AND hiv`); a.Err != nil {
		t.Logf("past the deadline: %v", a.Err)
	}
	held.Exec("ROLLBACK")
	server.Exec(t, "postgres", "ALTER DATABASE "+database+" ALLOW_CONNECTIONS false", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+database+"'")
	away := w.Ask(`SELECT count(*) FROM people WHERE income > 7318 AND city <> 'Kanarienvogel' AND note = 'n1'`)
	if away.Err == nil {
		t.Fatal("answered without a database")
	}
	number := regexp.MustCompile(`Request ([0-9a-f]{16}-\d+): `).FindStringSubmatch(away.Err.Detail)
	if number == nil {
		t.Fatalf("no number: %v, %s", away.Err, away.Err.Detail)
	}
	kit.Eventually(t, "the log has the number", func() bool { return strings.Contains(p.LogText(), " request="+number[1]+"\n") })

	metrics := scraped(t, admin)
	if !strings.Contains(metrics, "dpproxy_paid_faults_total{dataset=\"lab\"} 1\n") {
		t.Errorf("the operator is not told of the query that failed:\n%s", metrics)
	}
	lines, found := strings.Split(strings.TrimSpace(p.LogText()), "\n"), 0
	asWord := regexp.MustCompile(`\b` + canaryNumber + `\b`) // as a word: a client's port may be 37318
	for _, line := range append(lines, strings.Split(metrics, "\n")...) {
		if lower := strings.ToLower(line); strings.Contains(lower, strings.ToLower(canary)) || asWord.MatchString(line) && !strings.Contains(line, "pid="+canaryNumber) || strings.Contains(line, "forged") {
			found++
			t.Errorf("told to the operator: %s", line)
		}
	}
	whole := regexp.MustCompile(`^time=\S+ level=(DEBUG|INFO|WARN|ERROR) msg=`)
	session := number[1][:16]
	charged, failed := 0, 0
	for _, line := range lines {
		if !whole.MatchString(line) {
			t.Errorf("no line of one event: %q", line)
		}
		if strings.Contains(line, "msg=charged") {
			if charged++; !strings.Contains(line, " request="+session+"-") {
				t.Errorf("a charge without its statement's number: %s", line)
			}
		}
		if strings.Contains(line, `msg="a paid query failed`) {
			if failed++; !strings.Contains(line, " request="+session+"-") {
				t.Errorf("a failed query without its statement's number: %s", line)
			}
		}
	}
	if charged < 3 || failed == 0 {
		t.Errorf("%d charges and %d failed queries in the log:\n%s", charged, failed, p.LogText())
	}
	threats.Reached(t, "T78", "%d statements: %d of %d lines and metrics have a word of them; each of %d lines is one event", len(wordsOfClients)+3, found, len(lines)+strings.Count(metrics, "\n"), len(lines))
}

func scraped(t *testing.T, admin string) string {
	t.Helper()
	response, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response.Status, err)
	}
	return string(text)
}

// numbersOfAPlace are what lines and metrics have of a process, and of no row: times, sessions' numbers, pids,
// addresses.
var numbersOfAPlace = regexp.MustCompile(`time=\S+|(request|session)=\S+|pid=\d+|client=\S+|address=\S+|took=\S+|MiB|\d+\.\d+e\+\d+`)

// TestOperatorSeesEqualNeighbours: over two databases of which one lacks a person, the same statements leave the same
// metrics, and the same lines of the log but for times and numbers of sessions.
func TestOperatorSeesEqualNeighbours(t *testing.T) {
	var seen [2][]string
	for i, without := range []int{0, 7} {
		path, admin := kit.DuckDB(t, kit.Budgets{User: "3", Cap: "4"}, without), kit.FreeAddress(t)
		kit.Edit(t, path, `listen: "127.0.0.1:0"`, fmt.Sprintf(`listen: "127.0.0.1:0", admin: %q`, admin))
		p := kit.Serve(t, path, "--log-level", "debug")
		w := p.Connect("alice", "lab")
		for range 3 { // the last round finds the budget spent
			for _, sql := range wordsOfClients {
				w.Ask(sql)
			}
			for n := range 12 {
				w.Ask(fmt.Sprintf("SELECT count(*), sum(income) FROM people WHERE hiv AND age > %d", n))
			}
		}
		lines := strings.Split(scraped(t, admin), "\n")
		for _, line := range strings.Split(p.LogText(), "\n") {
			if !strings.Contains(line, "msg=\"ledger open\"") && !strings.Contains(line, "policy: ") {
				lines = append(lines, line)
			}
		}
		for _, line := range lines {
			seen[i] = append(seen[i], numbersOfAPlace.ReplaceAllString(strings.ReplaceAll(line, filepath.Dir(path), ""), "-"))
		}
	}
	differences := 0
	for i, line := range seen[0] {
		if i >= len(seen[1]) || seen[1][i] != line {
			differences++
			t.Errorf("with everybody the operator sees\n%s\nand without one\n%s", line, seen[1][min(i, len(seen[1])-1)])
		}
	}
	if len(seen[0]) != len(seen[1]) || len(seen[0]) < 60 {
		t.Errorf("%d lines, and %d", len(seen[0]), len(seen[1]))
	}
	threats.Reached(t, "T78", "%d lines of two neighbouring databases: %d differ", len(seen[0]), differences)
}
