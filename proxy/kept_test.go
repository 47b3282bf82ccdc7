package proxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

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

// TestSavepointsAreKept: the settings that savepoints would bring back count as the user's, and no longer once they are gone; savepoints
// over which nothing is set take little.
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
