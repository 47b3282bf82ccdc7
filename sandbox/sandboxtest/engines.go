package sandboxtest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/cluster"
	"github.com/dpproxy/dpproxy/sandbox/twin"
)

// Main runs the tests of a binary that starts sandboxes, ends those that its tests shared and returns the exit code.
// The binary's TestMain must end with os.Exit(sandboxtest.Main(m)).
func Main(m *testing.M) int {
	if dir, remove := memory.Temporary(); dir != "" {
		_ = os.Setenv("TMPDIR", dir)
		defer func() { _ = remove() }()
	}
	code := pgtest.Main(m)
	for _, s := range []*shared{&sharedOwn, &sharedTwin} {
		if s.engine != nil {
			_ = s.engine.Close()
		}
	}
	return code
}

// shared is an engine of the policy Census, for the tests that leave it as it is.
type shared struct {
	once   sync.Once
	engine sandbox.Engine
	err    error
}

var sharedOwn, sharedTwin shared

func (s *shared) get(t testing.TB, open func() (sandbox.Engine, error)) sandbox.Engine {
	t.Helper()
	s.once.Do(func() {
		if s.engine, s.err = open(); s.err == nil {
			s.err = s.engine.Catalog(context.Background(), Census())
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.engine
}

// Own is an engine of the policy Census in a cluster of its own, shared by the tests of a binary.
func Own(t testing.TB) sandbox.Engine {
	t.Helper()
	return sharedOwn.get(t, func() (sandbox.Engine, error) { return own(t) })
}

// OpenOwn opens a test's own engine in a cluster of its own; it has no catalog yet.
func OpenOwn(t *testing.T) sandbox.Engine {
	t.Helper()
	e, err := own(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func own(t testing.TB) (sandbox.Engine, error) {
	server, err := cluster.Start("", 512<<20, slog.Default())
	if errors.Is(err, cluster.ErrNoPrograms) {
		t.Skip(err)
	}
	if err != nil {
		return nil, err
	}
	return twin.Own(server, sandbox.Options{Log: slog.Default(), Deadline: 2 * time.Second})
}

// Owner is the role that owns twins.
const Owner = "twin_owner"

// makeOwner makes the role that owns twins.
func makeOwner(t testing.TB, s *pgtest.Server) {
	t.Helper()
	s.Exec(t, "postgres", `DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '`+Owner+`') THEN
		CREATE ROLE `+Owner+` LOGIN CREATEDB CREATEROLE; GRANT SET ON PARAMETER temp_file_limit TO `+Owner+`; END IF; END $$`)
}

// Twin is a twin of the policy Census, on the server that the tests of a binary share, as they share it.
func Twin(t testing.TB) sandbox.Engine {
	t.Helper()
	server := pgtest.Shared(t)
	makeOwner(t, server)
	return sharedTwin.get(t, func() (sandbox.Engine, error) {
		return twin.Open(server.URLFor(Owner, "shared_twin"), sandbox.Options{Log: slog.Default()})
	})
}

// OpenTwin opens a test's own twin; it has no catalog yet.
func OpenTwin(t testing.TB, server *pgtest.Server, name string) sandbox.Engine {
	t.Helper()
	makeOwner(t, server)
	e, err := twin.Open(server.URLFor(Owner, name), sandbox.Options{Log: slog.Default(), Deadline: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// NewServer is a server of a test's own: roles and databases that it makes are gone with it.
func NewServer(t testing.TB) *pgtest.Server {
	t.Helper()
	server := pgtest.Start(t)
	makeOwner(t, server)
	return server
}
