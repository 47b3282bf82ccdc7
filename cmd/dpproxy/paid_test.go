package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

// held is a proxy over PostgreSQL whose people are locked: what is asked is paid and waits.
func held(t *testing.T) (*program, *locker) {
	t.Helper()
	server := pgtest.Start(t)
	path, database := pgFixture(t, server, budgets{"5", "50"}, 0)
	edit(t, path, "sslmode=disable", "sslmode=disable&pool_max_conns=12") // of nine for paid queries one user has eight
	return serveProcess(t, path), lockPeople(t, server, database)
}

// bare is a connection of alice's that sends what it is told to, and can be cut off.
func bare(t *testing.T, p *program) *pgconn.PgConn {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), p.url("alice", "lab"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// TestPaidWorkGoesOn: whatever ends her wait (a cancel, her own timeout, a lost connection), the paid leaf runs on and is
// saved: asked again it is free, and it is what the table holds rather than the default of a fault.
func TestPaidWorkGoesOn(t *testing.T) {
	beside(t)
	p, l := held(t)
	wants := []string{`note = 'n1'`, `note = 'n2'`, `note = 'n3'`, `note = 'n4'`, `note = 'n0'`}
	sql := func(i int) string { return `SELECT count(*) FROM people WHERE ` + wants[i] }
	connect := func() *pgconn.PgConn { return bare(t, p) }
	code := func(err error) string {
		if e, ok := err.(*pgconn.PgError); ok {
			return e.Code
		}
		return fmt.Sprint(err)
	}
	cancelled, ended := connect(), make(chan error, 1)
	go func() { ended <- cancelled.Exec(t.Context(), sql(0)).Close() }()
	l.waiting()
	if err := cancelled.CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := code(<-ended); got != "57014" {
		t.Errorf("cancelled: %s, want 57014", got)
	}
	hasty := connect()
	if got := code(hasty.Exec(t.Context(), `SET statement_timeout = '1s'`).Close()); got != "<nil>" {
		t.Fatal(got)
	}
	if got := code(hasty.Exec(t.Context(), sql(1)).Close()); got != "57014" {
		t.Errorf("timed out: %s, want 57014", got)
	}
	for i, begun := range []string{"COPY (%s) TO STDOUT", "DECLARE c CURSOR WITH HOLD FOR %s"} {
		if got := code(hasty.Exec(t.Context(), fmt.Sprintf(begun, sql(3+i))).Close()); got != "57014" {
			t.Errorf("%s timed out: %s, want 57014", begun, got)
		}
	}
	if got := code(hasty.Exec(t.Context(), "FETCH c").Close()); got != "34000" {
		t.Errorf("a cursor whose declaration was cancelled: %s, want 34000", got)
	}
	lost := connect()
	ctx, drop := context.WithCancel(t.Context())
	go func() { ended <- lost.Exec(ctx, sql(2)).Close() }()
	w := p.connect("alice", "lab")
	eventually(t, "five questions are charged", func() bool { return w.spent() == "0.5" })
	drop() // closes the connection
	<-ended
	l.exec(`ROLLBACK`)
	for i := range wants {
		// P(|noise| > 210) < 10⁻⁹ at scale 10; 200 people have each note.
		if n := count(t, w.ask(sql(i))); n < 200-210 || n > 200+210 {
			t.Errorf("%s: %d", wants[i], n)
		}
	}
	if w.spent() != "0.5" {
		t.Errorf("asked again: spent %s", w.spent())
	}
	if strings.Contains(p.logText(), "a paid query failed") {
		t.Error("a paid leaf was given up with its client's wait")
	}
}

// TestShutdownSavesWhatIsPaid: on SIGTERM a paid question in flight is still answered to the client, and saved.
func TestShutdownSavesWhatIsPaid(t *testing.T) {
	beside(t)
	p, l := held(t)
	w := p.connect("alice", "lab")
	const sql = `SELECT count(*) FROM people WHERE hiv`
	answered := make(chan answer, 1)
	go func() {
		a, err := w.tryAsk(sql)
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	l.waiting()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is shutting down", func() bool { return strings.Contains(p.logText(), "shutting down") })
	l.exec(`ROLLBACK`)
	first := count(t, <-answered)
	<-p.exited
	p.restart()
	w = p.connect("alice", "lab")
	if again := count(t, w.ask(sql)); again != first || w.spent() != "0.1" {
		t.Errorf("%d, then %d; spent %s", first, again, w.spent())
	}
}

// TestRule4OneDrawsTheOthersWait: sessions that ask for one thing at a time get one draw; a question of her own is charged
// once, a declared release once to each user and once to the cap.
func TestRule4OneDrawsTheOthersWait(t *testing.T) {
	beside(t)
	p, l := held(t)
	type asked struct {
		user, sql string
		answer    answer
	}
	const own, shared = `SELECT count(*) FROM people WHERE note = 'n4'`, `SELECT count(*) FROM people WHERE age < 40`
	var all []*asked
	for _, user := range []string{"alice", "bob"} {
		for range 3 {
			all = append(all, &asked{user: user, sql: own}, &asked{user: user, sql: shared})
		}
	}
	done := make(chan error, len(all))
	for _, a := range all {
		w := p.connect(a.user, "lab")
		w.ask(`SET dp.epsilon = 0.5`)
		go func() {
			var err error
			a.answer, err = w.tryAsk(a.sql)
			done <- err
		}()
	}
	l.waiting()
	alice, bob, dba := p.connect("alice", "lab"), p.connect("bob", "lab"), p.connect("dba", "lab")
	eventually(t, "both have paid", func() bool { return alice.spent() != "0" && bob.spent() != "0" })
	l.exec(`ROLLBACK`)
	for range all {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	seen := map[string][]int{}
	for _, a := range all {
		n := count(t, a.answer)
		for _, key := range []string{a.user + " " + a.sql, a.sql} {
			if !slices.Contains(seen[key], n) {
				seen[key] = append(seen[key], n)
			}
		}
	}
	for key, values := range seen {
		if key != own && len(values) != 1 {
			t.Errorf("%s: %v, must be one draw", key, values)
		}
	}
	if a := dba.ask(`SELECT spent FROM dp.budget WHERE user_name = '(cap)'`); fmt.Sprint(a.rows) != "[[1.5]]" {
		t.Errorf("the cap holds %v, must hold two counts and one release at 0.5 each", a.rows)
	}
	if alice.spent() != "1" || bob.spent() != "1" {
		t.Errorf("spent %s and %s", alice.spent(), bob.spent())
	}
}

// TestNothingIsChargedThatFailsBefore: errors that come before the charge are free, in both protocols: parameters that do
// not fit, patterns and numbers that are none, settings beyond the policy, statements after an error in a transaction.
func TestNothingIsChargedThatFailsBefore(t *testing.T) {
	p := serveProcess(t, duckFixture(t, budgets{"5", "50"}, 0))
	conn, err := pgconn.Connect(t.Context(), p.url("alice", "lab"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, c := range []struct{ sql, value string }{
		{`SELECT count(*) FROM people WHERE age > $1`, "seventy"}, {`SELECT count(*) FROM people WHERE age > $1`, "99999999999999999999"},
		{`SELECT count(*) FROM people WHERE note LIKE $1`, `n\`}, {`SELECT count(*) FROM people WHERE age > 10 / $1::int`, "0"},
		{`SELECT count(*) FROM people WHERE hiv = $1`, "maybe"}, {`SELECT $1::int, count(*) FROM people GROUP BY 1`, "x"},
		{`SELECT count(*) FROM people WHERE note = $1`, "\xff"}, {`SELECT count(*) FROM people WHERE note = $1`, "a\x00b"},
		{`SELECT count(*) FROM people WHERE width_bucket(age, 0, 10, $1::int) = 1`, "0"},
	} {
		if _, err := conn.ExecParams(t.Context(), c.sql, [][]byte{[]byte(c.value)}, nil, nil, nil).Close(); err == nil {
			t.Errorf("answered: %s with %q", c.sql, c.value)
		}
	}
	w := p.connect("alice", "lab")
	for _, sql := range []string{`SET dp.epsilon = 2`, `SET dp.epsilon = 0`, `SET dp.epsilon = 'NaN'`, `SET dp.confidence = 1`, `SELECT count(*) FROM people LIMIT 'x'`,
		`SELECT count(*), 1/0 FROM people`, `SELECT count(*) FROM people ORDER BY 3`, `SELECT count(*)::nosuch FROM people`, `SELECT nosuch(count(*)) FROM people`,
		`BEGIN; SELECT nosuch; SELECT count(*) FROM people`, `SELECT count(*) FROM people`, `ROLLBACK`, `SELECT 1; SELECT (; SELECT count(*) FROM people`} {
		if a := w.ask(sql); a.err == nil && sql != `ROLLBACK` {
			t.Errorf("answered: %s: %v", sql, a.rows)
		}
	}
	if w.spent() != "0" {
		t.Errorf("charged %s", w.spent())
	}
}
