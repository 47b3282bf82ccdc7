package proxy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
)

// TestKeptIsBounded: what a user's sessions keep counts, in all of them together, and what they give up no longer does.
func TestKeptIsBounded(t *testing.T) {
	b := start(t)
	b.limit(t, policy.Limits{Connections: 100, UserConnections: 100, UserStatements: 64, UserMemory: 20 << 20})
	login := func(user, password string) func(sql string) string {
		c, err := pgconn.Connect(t.Context(), b.url(user, password, "census", "sslmode=disable"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(context.Background()) })
		return func(sql string) string {
			var e *pgconn.PgError
			switch err := c.Exec(t.Context(), sql).Close(); {
			case err == nil:
				return ""
			case errors.As(err, &e):
				return e.Code
			default:
				return err.Error()
			}
		}
	}
	one, two, other := login("alice", "wonderland"), login("alice", "wonderland"), login("grafana", "panel")
	refused := ""
	for i := range 20 {
		if refused = one(fmt.Sprintf("DECLARE c%d CURSOR WITH HOLD FOR SELECT n FROM many", i)); refused != "" {
			break
		}
	}
	prepared := ""
	for i := 0; i < 20 && prepared == ""; i++ {
		prepared = other(fmt.Sprintf("/* %s */ PREPARE p%d AS SELECT 1", strings.Repeat("x", 40_000), i))
	}
	if got := other("DEALLOCATE ALL"); got != "" {
		t.Error(got)
	}
	for _, c := range []struct {
		what, got, want string
	}{
		{"cursors of 100,000 rows each", refused, "53200"},
		{"another session of hers", two("SELECT n FROM many"), "53200"},
		{"what takes little", two("SELECT 1"), ""},
		{"another user", other("SELECT n FROM many"), ""},
		{"CLOSE ALL", one("CLOSE ALL"), ""},
		{"after it", two("SELECT n FROM many"), ""},
		{"long prepared statements", prepared, "53200"},
		{"a short one", two("PREPARE p AS SELECT 1"), ""},
		{"DEALLOCATE ALL", two("DEALLOCATE ALL"), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
	for _, user := range []string{"alice", "grafana"} {
		if err := b.workers.Keep(user, 1, 1); err != nil {
			t.Errorf("%s is said to keep something: %v", user, err)
		}
	}
}

// TestSavepointsAreKept: the settings that savepoints would bring back count as the user's, and no longer once they are
// gone; savepoints over which nothing is set take little.
func TestSavepointsAreKept(t *testing.T) {
	b := start(t)
	b.limit(t, policy.Limits{Connections: 100, UserConnections: 100, UserStatements: 64, UserMemory: 4 << 20})
	c, err := pgconn.Connect(t.Context(), b.url("alice", "wonderland", "census", "sslmode=disable"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	ask := func(sql string) string {
		var e *pgconn.PgError
		if err := c.Exec(t.Context(), sql).Close(); errors.As(err, &e) {
			return e.Code
		} else if err != nil {
			t.Fatal(err)
		}
		return ""
	}
	kept := func() int64 {
		const room = 1 << 40
		low, high := int64(0), int64(room)
		for low < high { // the least that is not refused beside 1 byte more
			if middle := (low + high) / 2; b.workers.Keep("alice", 1, middle+1) == nil {
				_ = b.workers.Keep("alice", -1, 0)
				high = middle
			} else {
				low = middle + 1
			}
		}
		return low
	}
	for i := range 60 {
		ask(fmt.Sprintf("SET my.v%d = '%s'", i, strings.Repeat("x", 1000)))
	}
	before := kept()
	ask("BEGIN")
	for i := range 2000 {
		if got := ask("SAVEPOINT a"); got != "" {
			t.Fatalf("savepoint %d over unchanged settings: %s", i, got)
		}
	}
	ask("RELEASE a")
	few := kept() - before
	ask("ROLLBACK")
	if got := kept() - before; few < 1999*100 || few > 1<<20 || got != 0 {
		t.Errorf("1,999 savepoints keep %d bytes, none %d", few, got)
	}
	ask("BEGIN")
	refused, many := "", 0
	for ; many < 3000 && refused == ""; many++ {
		if refused = ask(fmt.Sprintf("SET LOCAL my.v%d = '%d'", many%60, many)); refused == "" {
			refused = ask("SAVEPOINT a")
		}
	}
	if refused != "53200" || kept() < 3<<20 {
		t.Errorf("after %d savepoints with settings between them: %q, %d bytes", many, refused, kept())
	}
	for _, end := range []string{"ROLLBACK TO a", "RELEASE a", "COMMIT"} {
		was := kept()
		if got := ask(end); got != "" || end != "ROLLBACK TO a" && kept() >= was {
			t.Errorf("%s: %q, %d bytes were kept, now %d", end, got, was, kept())
		}
	}
	if got := kept(); got != before {
		t.Errorf("%d bytes are kept, %d were", got, before)
	}
}

// TestLostClient: a statement whose client has gone ends.
func TestLostClient(t *testing.T) {
	b := start(t)
	ended := make(chan error, 1)
	b.pipeline.fixtures["select paid"] = fixture{columns: standardFixtures()["select 1"].columns,
		answer: func(ctx context.Context, _ *pipeline.Session, _ []policy.Value) ([][]policy.Value, error) {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, ctx.Err()
		}}
	r := b.raw(t)
	r.Send(query("select paid"))
	r.flush()
	time.Sleep(50 * time.Millisecond)
	_ = r.conn.Close()
	select {
	case err := <-ended:
		if !errors.Is(err, errLost) {
			t.Error(err)
		}
	case <-time.After(60 * time.Second):
		t.Error("it runs on")
	}
}

// TestContextsAreGivenOn: a message that was answered at once leaves its context to the next one; one that has begun
// something ends it, and what a cancel request or the server's end has ended is not given on.
func TestContextsAreGivenOn(t *testing.T) {
	base, abort := context.WithCancelCause(t.Context())
	c := &session{objects: objects{server: &Server{base: base}}}
	defer c.endSpare()
	run := func(during func()) (ctx context.Context) {
		t.Helper()
		if err := c.cancelable(func(of context.Context) error {
			ctx = of
			if of.Err() != nil && base.Err() == nil {
				t.Error("a message begins with a context that has ended")
			}
			during()
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return ctx
	}
	nothing := func() {}
	first := run(nothing)
	c.wait.interrupt(errCanceled) // too late: nothing runs
	if second := run(nothing); second != first || first.Err() != nil {
		t.Error("the context of what was answered at once has ended, or is not given on")
	}
	canceled := run(func() { c.wait.interrupt(errCanceled) })
	if context.Cause(canceled) != errCanceled {
		t.Errorf("a cancel request: %v", context.Cause(canceled))
	}
	begun := run(func() { c.waited = true })
	if begun == canceled || begun.Err() == nil {
		t.Error("what a message has begun does not end with it")
	}
	if after := run(nothing); after == begun || after.Err() != nil {
		t.Error("the context of what has ended is given on")
	}
	abort(errShutdown)
	if ended := run(nothing); context.Cause(ended) != errShutdown {
		t.Errorf("the server's end: %v", context.Cause(ended))
	}
}

// TestShortTexts: the last few short texts of a session are parsed once, whatever order they come in.
func TestShortTexts(t *testing.T) {
	b := start(t)
	var parses atomic.Int64
	own := b.parse
	b.parse = func(text string) ([]command, *refuse.Refusal) {
		parses.Add(1)
		return own(text)
	}
	r := b.raw(t)
	ask := func(text string) {
		r.play(text, []step{one(query("SET my.name = '"+text+"'"), "C(SET) Z(I)")})
	}
	for range 3 {
		for i := range shortTexts {
			ask(strconv.Itoa(i))
		}
	}
	if n := parses.Load(); n != shortTexts {
		t.Errorf("%d texts were parsed %d times", shortTexts, n)
	}
	for range 2 {
		for i := range shortTexts + 1 {
			ask("b" + strconv.Itoa(i))
		}
	}
	if n := parses.Load() - shortTexts; n != 2*(shortTexts+1) {
		t.Errorf("%d texts that are more than are kept were parsed %d times", 2*(shortTexts+1), n)
	}
	long := strings.Repeat("x", shortText)
	ask(long)
	ask(long)
	if n := parses.Load() - shortTexts - 2*(shortTexts+1); n != 2 {
		t.Errorf("a long text was parsed %d times of 2", n)
	}
}
