package pgtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/internal/daemon/daemontest"
)

var shared daemontest.Shared[*Server]

// Shared returns the one server of this test binary, started by the first test that asks. The binary's TestMain must
// end with os.Exit(pgtest.Main(m)).
func Shared(t testing.TB) *Server {
	t.Helper()
	return shared.Get(t, func() (*Server, error) { return Launch() }, ErrNoBinaries)
}

// pristine is a data directory as initdb makes it, of which the servers of a test binary with Main begin with copies.
var pristine copies

type copies struct {
	sync.Mutex
	wanted bool // Main removes it
	made   *Server
}

// server is what to copy, or nil.
func (c *copies) server() (of *Server, err error) {
	c.Lock()
	defer c.Unlock()
	if c.wanted && c.made == nil {
		c.made, err = made((*Server).initdb)
	}
	return c.made, err
}

// Main runs the tests, stops the shared server and returns the exit code.
func Main(m *testing.M) int {
	pristine.wanted = true
	code := m.Run()
	if pristine.made != nil {
		_ = pristine.made.Remove()
	}
	return shared.Stop(code)
}

// Database creates an empty database with a name of its own, drops it at the test's end, and returns its name.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := shared.Name("test")
	s.Exec(t, "postgres", "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	t.Cleanup(func() {
		if !s.Gone() {
			s.Exec(t, "postgres", "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
		}
	})
	return name
}

// Role creates a login role with a name of its own and the given options ("NOSUPERUSER BYPASSRLS"), drops it at the
// test's end, and returns its name. What it owns or was granted must be gone by then: create the role before the
// database.
func (s *Server) Role(t testing.TB, options string) string {
	t.Helper()
	name := shared.Name("role")
	s.Exec(t, "postgres", "CREATE ROLE "+pgx.Identifier{name}.Sanitize()+" LOGIN "+options)
	t.Cleanup(func() {
		if !s.Gone() {
			s.Exec(t, "postgres", "DROP ROLE IF EXISTS "+pgx.Identifier{name}.Sanitize())
		}
	})
	return name
}

// Exec runs SQL as superuser in a database; one text may hold several statements.
func (s *Server) Exec(t testing.TB, database string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URLFor(superuser, database))
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatalf("pgtest: %v\n%s", err, sql)
		}
	}
}
