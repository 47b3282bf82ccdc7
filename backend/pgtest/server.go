// Package pgtest starts throw-away PostgreSQL servers for tests: an own data directory, a free port of the loopback
// address, a Unix socket of its own, fsync off, trust authentication. A server belongs to one test (Start) or to one
// test binary (Shared, stopped by Main). Its directory is in memory where there is room, but for benchmarks. It is
// stopped by signalling its own process. Without PostgreSQL's binaries the tests that need a server are skipped and say
// so. Only tests import this package.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/internal/daemon"
	"github.com/dpproxy/dpproxy/internal/daemon/daemontest"
)

// ErrNoBinaries says that no PostgreSQL server is installed.
var ErrNoBinaries = errors.New("pgtest: no PostgreSQL server binaries (postgres, initdb) in PATH or /usr/lib/postgresql/*/bin")

const superuser = "postgres"

// Server is one running PostgreSQL server.
type Server struct{ daemon.Process }

// Start starts a server that is stopped when the test ends. Settings are further "name=value" server parameters.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	daemontest.Wanted(t)
	s, err := Launch(settings...)
	return daemontest.UntilTheEnd(t, s, err, ErrNoBinaries)
}

// Launch starts a server that the caller stops.
func Launch(settings ...string) (*Server, error) {
	return launch((*Server).initialise, settings)
}

func launch(initialise func(*Server, string, *syscall.Credential) error, settings []string) (*Server, error) {
	return made(func(s *Server, bin string, owner *syscall.Credential) error {
		if err := initialise(s, bin, owner); err != nil {
			return err
		}
		return s.run(bin, owner, settings)
	})
}

// made is a server in a directory of its own, which is removed where making it fails.
func made(do func(s *Server, bin string, owner *syscall.Credential) error) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	owner, err := daemon.Owner("postgres", "nobody")
	if err != nil {
		return nil, err
	}
	s := &Server{}
	if s.Dir, s.Remove, err = daemontest.Directory("dpproxy-pgtest-"); err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	if err = daemontest.Own(s.Dir, owner); err == nil {
		err = do(s, bin, owner)
	}
	if err != nil {
		_ = s.Remove()
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	return s, nil
}

// initialise makes the data directory: a copy of one that initdb has made, if this binary has one.
func (s *Server) initialise(bin string, owner *syscall.Credential) error {
	of, err := pristine.server()
	switch {
	case err != nil:
		return err
	case of == nil:
		return s.initdb(bin, owner)
	}
	if out, err := exec.Command("cp", "-a", of.data(), s.data()).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w\n%s", err, out)
	}
	return nil
}

func (s *Server) initdb(bin string, owner *syscall.Credential) error {
	cmd := exec.Command(filepath.Join(bin, "initdb"), "-D", s.data(), "-U", superuser, "--auth=trust", "--no-locale", "--encoding=UTF8", "--no-sync")
	cmd.Dir, cmd.SysProcAttr = s.Dir, daemon.Attr(owner, syscall.SIGINT)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// run starts the server's process and waits until it answers.
func (s *Server) run(bin string, owner *syscall.Credential, settings []string) error {
	return s.Run(daemon.Attr(owner, syscall.SIGINT), func() *exec.Cmd {
		args := []string{"-D", s.data(), "-k", s.Dir}
		for _, set := range append([]string{"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(s.Port), "fsync=off",
			"full_page_writes=off", "shared_buffers=32MB", "max_connections=80", "timezone=UTC"}, settings...) {
			args = append(args, "-c", set)
		}
		return exec.Command(filepath.Join(bin, "postgres"), args...)
	}, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, s.URL())
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
}

// Stop ends the server at once, disconnecting its clients, and removes its directory.
func (s *Server) Stop() error {
	defer func() { _ = s.Remove() }()
	return s.End(syscall.SIGINT)
}

// Crash ends the server's processes without a shutdown, as a fault would. The server stays down.
func (s *Server) Crash() error { return s.End(syscall.SIGQUIT) }

// URL connects the superuser to database postgres.
func (s *Server) URL() string { return s.URLFor(superuser, "postgres") }

// URLFor connects a role to a database.
func (s *Server) URLFor(role, database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(role), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)),
		Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }
