package clients

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestActs: what functions do to sessions: a user ends the waits and the sessions of her own, and
// learns nothing of the sessions of others.
func TestActs(t *testing.T) {
	kit.Beside(t)
	server := pgtest.Shared(t)
	path, _ := kit.Postgres(t, server, kit.Budgets{User: "100", Cap: "100"}, 0)
	p := kit.Serve(t, path)
	ownSessions(t, p)
	othersSessions(t, p)
	sleepsAlone(t, p.Connect("alice", "lab"))
}

// sleeping starts a statement that takes long, and returns when it runs.
func sleeping(t *testing.T, w, watcher *kit.Wire, pid string) {
	t.Helper()
	w.Send(&pgproto3.Query{String: "SELECT pg_sleep(600)"})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if fmt.Sprint(watcher.Ask("SELECT state FROM pg_stat_activity WHERE pid = "+pid).Rows) == "[[active]]" {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the sleeper does not run")
}

func pidOf(w *kit.Wire) string { return w.Ask("SELECT pg_backend_pid()").Rows[0][0] }

// stateOf is how an answer ended: its SQLSTATE, or its rows.
func stateOf(a kit.Answer, err error) string {
	switch {
	case err != nil:
		return "closed"
	case a.Err != nil:
		return a.Err.Code
	}
	return fmt.Sprint(a.Rows)
}

// ownSessions: Superset's Stop, and what it needs.
func ownSessions(t *testing.T, p *kit.Program) {
	w, stopper := p.Connect("alice", "lab"), p.Connect("alice", "lab")
	pid := pidOf(w)
	w.Ask("SET application_name = 'worker'")
	if got := fmt.Sprint(stopper.Ask("SELECT application_name, usename, datname, state FROM pg_stat_activity WHERE pid = " + pid).Rows); got != "[[worker alice lab idle]]" {
		t.Errorf("pg_stat_activity: %s", got)
	}
	for _, stop := range []struct{ sql, next string }{
		{"SELECT pg_cancel_backend(" + pid + ")", "[[1]]"},
		{"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'worker'", "[[1]]"},
		{"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid='" + pid + "'", "closed"},
	} {
		sleeping(t, w, stopper, pid)
		if got := stateOf(stopper.TryAsk(stop.sql)); got != "[[t]]" {
			t.Errorf("%s: %s", stop.sql, got)
		}
		want := map[string]string{"[[1]]": "57014", "closed": "closed"}[stop.next]
		if a, err := w.Hear(); stateOf(a, err) != want {
			t.Errorf("%s ends the wait with %s, not %s", stop.sql, stateOf(a, err), want)
		} else if want == "closed" && (a.Err == nil || a.Err.Code != "57P01") {
			t.Errorf("the last word is %v", a.Err)
		}
		if stop.next != "closed" {
			if got := stateOf(w.TryAsk("SELECT 1")); got != stop.next {
				t.Errorf("after %s: %s", stop.sql, got)
			}
		}
	}
	idle := p.Connect("alice", "lab")
	if got := stateOf(stopper.TryAsk("SELECT pg_terminate_backend(" + pidOf(idle) + ")")); got != "[[t]]" {
		t.Errorf("ending an idle session: %s", got)
	}
	if a, err := idle.Hear(); err == nil || a.Err == nil || a.Err.Code != "57P01" {
		t.Errorf("an idle session ends with %v %v", a.Err, err)
	}
	if got := stateOf(stopper.TryAsk("SELECT pg_cancel_backend(pg_backend_pid())")); got != "57014" {
		t.Errorf("cancelling oneself: %s", got)
	}
	if a, err := stopper.TryAsk("SELECT pg_terminate_backend(pg_backend_pid())"); err == nil || a.Err == nil || a.Err.Code != "57P01" {
		t.Errorf("ending oneself: %v %v", a.Err, err)
	}
}

// othersSessions: the pid of another user is answered as one that nobody has, byte for byte, and nothing happens to
// her.
func othersSessions(t *testing.T, p *kit.Program) {
	alice, bob, dba := p.Connect("alice", "lab"), p.Connect("bob", "lab"), p.Connect("dba", "lab")
	victim := pidOf(alice)
	last := len(victim) - 1
	nobody := victim[:last] + string('0'+(victim[last]-'0'+1)%10) // no session has it but by a chance of 2⁻³⁰
	for _, sql := range []string{"SELECT pg_cancel_backend(%s)", "SELECT pg_terminate_backend(%s)", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s",
		"SELECT count(*) FROM pg_stat_activity WHERE pid = %s"} {
		for _, other := range []*kit.Wire{bob, dba} {
			a, b := other.Ask(fmt.Sprintf(sql, victim)), other.Ask(fmt.Sprintf(sql, nobody))
			if got, want := strings.ReplaceAll(fmt.Sprint(a.Frames, a.Rows), victim, "PID"), strings.ReplaceAll(fmt.Sprint(b.Frames, b.Rows), nobody, "PID"); got != want {
				t.Errorf("%s of another's session:\n%s\nof none:\n%s", sql, got, want)
			}
		}
	}
	if got := stateOf(alice.TryAsk("SELECT 1")); got != "[[1]]" {
		t.Errorf("the other's session: %s", got)
	}
	if got := fmt.Sprint(bob.Ask("SELECT DISTINCT usename FROM pg_stat_activity").Rows); got != "[[bob]]" {
		t.Errorf("bob sees %s", got)
	}
}

// sleepsAlone: none of the functions is where an answer could depend on private rows, and such a statement costs
// nothing.
func sleepsAlone(t *testing.T, w *kit.Wire) {
	spent := w.Spent()
	for _, sql := range []string{
		"SELECT count(*), pg_sleep(0) FROM people", "SELECT pg_sleep(count(*)) FROM people", "SELECT count(*) FROM people WHERE pg_sleep(age) IS NULL",
		"SELECT pg_sleep((SELECT count(*) FROM people)::float8)", "SELECT CASE WHEN (SELECT count(*) FROM people) > 5 THEN pg_sleep(1) END",
		"SELECT pg_sleep(0) FROM people", "SELECT 1 WHERE pg_sleep(0) IS NULL", "SELECT pg_sleep(0) FROM generate_series(1, 10)", "SELECT * FROM pg_sleep(0)",
		"SELECT pg_sleep(0), (SELECT count(*) FROM people)",
		"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE (SELECT count(*) FROM people) > 5", "SELECT pg_cancel_backend(count(*)::int) FROM people",
		"SELECT pg_terminate_backend(age) FROM people", "WITH p AS (SELECT count(*) n FROM people) SELECT pg_terminate_backend(n::int) FROM p",
	} {
		if got := stateOf(w.TryAsk(sql)); got != "42501" && got != "DP002" {
			t.Errorf("%s: %s", sql, got)
		}
	}
	if got := stateOf(w.TryAsk("SELECT pg_sleep(3601)")); got != "22023" {
		t.Errorf("a long sleep: %s", got)
	}
	if got := stateOf(w.TryAsk("NOTIFY a, 'b'")); got != "42501" {
		t.Errorf("NOTIFY: %s", got)
	}
	if now := w.Spent(); now != spent {
		t.Errorf("it cost: %s, then %s", spent, now)
	}
}
