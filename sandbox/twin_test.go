package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

const twinOwner = "twin_owner"

// sharedTwin is the twin of the tests that leave it as it is.
var sharedTwin struct {
	sync.Once
	engine sandbox.Engine
	err    error
}

// makeOwner makes the role that owns twins.
func makeOwner(t testing.TB, s *pgtest.Server) {
	t.Helper()
	s.Exec(t, "postgres", `DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '`+twinOwner+`') THEN
		CREATE ROLE `+twinOwner+` LOGIN CREATEDB CREATEROLE; GRANT SET ON PARAMETER temp_file_limit TO `+twinOwner+`; END IF; END $$`)
}

// twinEngine is a twin of the census policy.
func twinEngine(t testing.TB) sandbox.Engine {
	t.Helper()
	server := pgtest.Shared(t)
	makeOwner(t, server)
	sharedTwin.Do(func() {
		sharedTwin.engine, sharedTwin.err = sandbox.Open(context.Background(), server.URLFor(twinOwner, "shared_twin"), sandbox.Options{Log: slog.Default()})
		if sharedTwin.err == nil {
			sharedTwin.err = sharedTwin.engine.Catalog(context.Background(), census())
		}
	})
	if sharedTwin.err != nil {
		t.Fatal(sharedTwin.err)
	}
	return sharedTwin.engine
}

// openTwin opens a test's own twin; it has no catalog yet.
func openTwin(t testing.TB, server *pgtest.Server, name string) sandbox.Engine {
	t.Helper()
	makeOwner(t, server)
	e, err := sandbox.Open(context.Background(), server.URLFor(twinOwner, name), sandbox.Options{Log: slog.Default(), Deadline: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// answered writes an engine's answer, or the SQLSTATE of its error, as onPostgreSQL does.
func answered(t testing.TB, e sandbox.Engine, query string, leaves []*planner.Leaf, tables []sandbox.Table) (answer, refusal string) {
	t.Helper()
	q, no := outer.Render(parse(t, query, leaves...), e.Dialect())
	if no != nil && no.SQLState == "DP002" {
		return "", no.Message
	}
	if no != nil {
		return "error " + no.SQLState, ""
	}
	rows, err := e.Query(context.Background(), session, q, tables)
	var fault *scalar.Error
	if errors.As(err, &fault) {
		if fault.SQLState == "DP002" {
			return "", fault.Message
		}
		return "error " + fault.SQLState, ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return written(rows.Value()), ""
}

func written(rows sandbox.Rows) string {
	var out strings.Builder
	for _, c := range rows.Columns {
		fmt.Fprintf(&out, "%s:%d ", c.Name, c.Type)
	}
	for _, row := range rows.Data {
		out.WriteString("| ")
		for i, v := range row {
			out.WriteString(shown(rows.Columns[i].Type, v) + " ")
		}
	}
	return out.String()
}

// TestTwinIsPostgreSQL: over the same released tables the twin gives what a table of PostgreSQL's own gives, byte for byte,
// with nothing refused.
func TestTwinIsPostgreSQL(t *testing.T) {
	leaves, tables, sql := released()
	server := pgtest.Shared(t)
	database := server.Database(t)
	server.Exec(t, database, sql)
	conn, err := pgx.Connect(context.Background(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	e, start, n := twinEngine(t), time.Now(), 0
	for _, query := range queriesOf(t, "testdata/outer.sql") {
		n++
		want := onPostgreSQL(conn, query)
		got, refusal := answered(t, e, query, leaves, tables)
		if refusal != "" || got != want {
			t.Errorf("%s\n    got  %s%s\n    want %s", query, got, refusal, want)
		}
	}
	t.Logf("%d queries, %v each on both", n, time.Since(start)/time.Duration(n))
}

// newServer is a server of a test's own: roles and databases that it makes are gone with it.
func newServer(t testing.TB) *pgtest.Server {
	t.Helper()
	server := pgtest.Start(t)
	makeOwner(t, server)
	return server
}
