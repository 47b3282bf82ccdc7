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
	case <-time.After(20 * time.Second):
		t.Error("it runs on")
	}
}
