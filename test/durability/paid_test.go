package durability

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// held is a proxy over PostgreSQL whose people are locked: what is asked is paid and waits.
func held(t *testing.T) (*kit.Program, *kit.Locker) {
	t.Helper()
	server := pgtest.Start(t)
	path, database := kit.Postgres(t, server, kit.Budgets{User: "5", Cap: "50"}, 0)
	kit.Edit(t, path, "sslmode=disable", "sslmode=disable&pool_max_conns=12") // of nine for paid queries one user has eight
	return kit.Serve(t, path), kit.LockPeople(t, server, database)
}

// TestPaidWorkGoesOn: whatever ends her wait (a cancel, her own timeout, a lost connection), the paid leaf runs on and
// is saved: asked again it is free, and it is what the table holds rather than the default of a fault.
func TestPaidWorkGoesOn(t *testing.T) {
	kit.Beside(t)
	p, l := held(t)
	wants := []string{`note = 'n1'`, `note = 'n2' AND NOT hiv`, `income >= 70000`, `income < 20000 AND NOT hiv`, `note = 'n0' AND income < 89000 AND NOT hiv`} // of five measures
	sql := func(i int) string { return `SELECT count(*) FROM people WHERE ` + wants[i] }
	connect := func() *pgconn.PgConn { return kit.Bare(t, p) }
	code := func(err error) string {
		if e, ok := err.(*pgconn.PgError); ok {
			return e.Code
		}
		return fmt.Sprint(err)
	}
	cancelled, ended := connect(), make(chan error, 1)
	go func() { ended <- cancelled.Exec(t.Context(), sql(0)).Close() }()
	l.Waiting()
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
	w := p.Connect("alice", "lab")
	kit.Eventually(t, "five questions are charged", func() bool { return w.Spent() == "0.5" })
	drop() // closes the connection
	<-ended
	l.Exec(`ROLLBACK`)
	for i := range wants {
		// P(|noise| > 170) < 10⁻⁷ at scale 10; some 200 people are each.
		if n := kit.Count(t, w.Ask(sql(i))); n < 200-210 || n > 200+210 {
			t.Errorf("%s: %d", wants[i], n)
		}
	}
	if w.Spent() != "0.5" {
		t.Errorf("asked again: spent %s", w.Spent())
	}
	if strings.Contains(p.LogText(), "a paid query failed") {
		t.Error("a paid leaf was given up with its client's wait")
	}
}

// TestShutdownSavesWhatIsPaid: on SIGTERM a paid question in flight is still answered to the client, and saved.
func TestShutdownSavesWhatIsPaid(t *testing.T) {
	kit.Beside(t)
	p, l := held(t)
	w := p.Connect("alice", "lab")
	const sql = `SELECT count(*) FROM people WHERE hiv`
	answered := make(chan kit.Answer, 1)
	go func() {
		a, err := w.TryAsk(sql)
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	l.Waiting()
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "it is shutting down", func() bool { return strings.Contains(p.LogText(), "shutting down") })
	l.Exec(`ROLLBACK`)
	first := kit.Count(t, <-answered)
	<-p.Exited
	p.Restart()
	w = p.Connect("alice", "lab")
	if again := kit.Count(t, w.Ask(sql)); again != first || w.Spent() != "0.1" {
		t.Errorf("%d, then %d; spent %s", first, again, w.Spent())
	}
}

// TestRule4OneDrawsTheOthersWait: sessions that ask for one thing at a time get one draw; a question of her own is
// charged once, a declared release once to each user and once to the cap.
func TestRule4OneDrawsTheOthersWait(t *testing.T) {
	kit.Beside(t)
	p, l := held(t)
	type asked struct {
		user, sql string
		answer    kit.Answer
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
		w := p.Connect(a.user, "lab")
		w.Ask(`SET dp.epsilon = 0.5`)
		go func() {
			var err error
			a.answer, err = w.TryAsk(a.sql)
			done <- err
		}()
	}
	l.Waiting()
	alice, bob, dba := p.Connect("alice", "lab"), p.Connect("bob", "lab"), p.Connect("dba", "lab")
	kit.Eventually(t, "both have paid", func() bool { return alice.Spent() != "0" && bob.Spent() != "0" })
	l.Exec(`ROLLBACK`)
	for range all {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	seen := map[string][]int{}
	for _, a := range all {
		n := kit.Count(t, a.answer)
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
	if a := dba.Ask(`SELECT spent FROM dp.budget WHERE user_name = '(cap)'`); fmt.Sprint(a.Rows) != "[[1.5]]" {
		t.Errorf("the cap holds %v, must hold two counts and one release at 0.5 each", a.Rows)
	}
	if alice.Spent() != "1" || bob.Spent() != "1" {
		t.Errorf("spent %s and %s", alice.Spent(), bob.Spent())
	}
}

// TestNothingIsChargedThatFailsBefore: errors that come before the charge are free, in both protocols: parameters that
// do not fit, patterns and numbers that are none, settings beyond the policy, statements after an error in a
// transaction.
func TestNothingIsChargedThatFailsBefore(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0))
	conn, err := pgconn.Connect(t.Context(), p.URL("alice", "lab"))
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
	w := p.Connect("alice", "lab")
	for _, sql := range []string{`SET dp.epsilon = 2`, `SET dp.epsilon = 0`, `SET dp.epsilon = 'NaN'`, `SET dp.confidence = 1`, `SELECT count(*) FROM people LIMIT 'x'`,
		`SELECT count(*), 1/0 FROM people`, `SELECT count(*) FROM people ORDER BY 3`, `SELECT count(*)::nosuch FROM people`, `SELECT nosuch(count(*)) FROM people`,
		`BEGIN; SELECT nosuch; SELECT count(*) FROM people`, `SELECT count(*) FROM people`, `ROLLBACK`, `SELECT 1; SELECT (; SELECT count(*) FROM people`} {
		if a := w.Ask(sql); a.Err == nil && sql != `ROLLBACK` {
			t.Errorf("answered: %s: %v", sql, a.Rows)
		}
	}
	if w.Spent() != "0" {
		t.Errorf("charged %s", w.Spent())
	}
}
