package attacks

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/test/kit"
)

// longPlanned is a statement whose planning takes some ten seconds of a core: each condition is looked at on each cell
// of three columns.
func longPlanned() string {
	var parts []string
	for i := range 200 {
		parts = append(parts, fmt.Sprintf("count(*) FILTER (WHERE (age * %d + length(city) * 7 + length(note)) %% 977 = %d)", i+3, i))
	}
	return "SELECT " + strings.Join(parts, ", ") + " FROM people"
}

// TestPlanningIsCancelled: a cancel request, a statement_timeout and a lost connection end planning while it goes on,
// for free, and the session goes on; a second statement of the user has the place at once.
func TestPlanningIsCancelled(t *testing.T) {
	kit.Beside(t)
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0)
	kit.Edit(t, path, "server: {", "server: {limits: {statement_cpu: 300s}, ", "max: 119", "max: 9999")
	p := kit.Serve(t, path)
	connect := func() *pgconn.PgConn { return kit.Bare(t, p) }
	code := func(err error) string {
		if e, ok := err.(*pgconn.PgError); ok {
			return e.Code + " " + e.Message
		}
		return fmt.Sprint(err)
	}
	const soon = 5 * time.Second // after it has been ended: planning itself takes several times as long
	within := func(what, want string, from time.Time, err error) {
		t.Helper()
		if got := code(err); !strings.HasPrefix(got, want) || time.Since(from) > soon {
			t.Errorf("%s: %s after %v, want %s at once", what, got, time.Since(from), want)
		}
	}
	c, ended := connect(), make(chan error, 1)
	go func() { ended <- c.Exec(t.Context(), longPlanned()).Close() }()
	time.Sleep(300 * time.Millisecond)
	if len(ended) > 0 {
		t.Fatalf("planning ended by itself: %s", code(<-ended))
	}
	from := time.Now()
	if err := c.CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	within("cancelled", "57014 canceling statement due to user request", from, <-ended)
	within("afterwards", "<nil>", time.Now(), c.Exec(t.Context(), "SELECT 1; SET statement_timeout = '300ms'").Close())
	from = time.Now()
	within("timed out", "57014 canceling statement due to statement timeout", from, c.Exec(t.Context(), longPlanned()).Close())
	lost := connect()
	go func() { ended <- lost.Exec(context.Background(), longPlanned()).Close() }()
	time.Sleep(300 * time.Millisecond)
	_ = lost.Conn().Close()
	<-ended
	from = time.Now()
	within("behind one that was lost", "<nil>", from, connect().Exec(t.Context(), "EXPLAIN SELECT count(*) FROM people").Close())
	if spent := p.Connect("alice", "lab").Spent(); spent != "0" {
		t.Errorf("spent %s", spent)
	}
}
