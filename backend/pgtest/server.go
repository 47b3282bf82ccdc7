// Package pgtest starts throw-away PostgreSQL servers for tests: an own data directory, a free port of the loopback
// address, a Unix socket of its own, fsync off, trust authentication. A server belongs to one test (Start) or to one
// test binary (Shared, stopped by Main). Its directory is in memory where there is room, but for benchmarks. It is stopped
// by signalling its own process. Without PostgreSQL's binaries the
// tests that need a server are skipped and say so. Only tests import this package.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/internal/daemon"
)

// ErrNoBinaries says that no PostgreSQL server is installed.
var ErrNoBinaries = errors.New("pgtest: no PostgreSQL server binaries (postgres, initdb) in PATH or /usr/lib/postgresql/*/bin")

const (
	superuser = "postgres"
	startWait = 60 * time.Second
	stopWait  = 30 * time.Second
)

// Server is one running PostgreSQL server.
type Server struct {
	dir    string
	remove func() error // removes dir
	port   int
	cmd    *exec.Cmd
	exited chan struct{} // closed when the server's process has ended
}

// Start starts a server that is stopped when the test ends. Settings are further "name=value" server parameters.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := Launch(settings...)
	return s.until(t, err)
}

// until has a server stop at the test's end.
func (s *Server) until(t testing.TB, err error) *Server {
	t.Helper()
	if errors.Is(err, ErrNoBinaries) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Launch starts a server that the caller stops.
func Launch(settings ...string) (*Server, error) {
	return launch((*Server).initialise, settings)
}

func launch(initialise func(*Server, string, *syscall.Credential) error, settings []string) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	owner, err := daemon.Owner("postgres", "nobody")
	if err != nil {
		return nil, err
	}
	s := &Server{}
	if s.dir, s.remove, err = directory(); err != nil {
		return nil, err
	}
	if err := initialise(s, bin, owner); err != nil {
		_ = s.remove()
		return nil, err
	}
	// Another process may take the free port between our look and the server's bind; then the next try finds another.
	for try := 0; try < 3; try++ {
		if err = s.run(bin, owner, settings); err == nil {
			return s, nil
		}
	}
	_ = s.remove()
	return nil, err
}

// directory makes a directory for a server.
func directory() (dir string, remove func() error, err error) {
	if dir, remove, err = daemon.Directory("dpproxy-pgtest-"); err != nil {
		return "", nil, fmt.Errorf("pgtest: %w", err)
	}
	return dir, remove, nil
}

// initialise makes the data directory: a copy of one that initdb has made, if this binary has one.
func (s *Server) initialise(bin string, owner *syscall.Credential) error {
	if err := own(s.dir, owner); err != nil {
		return err
	}
	made, err := pristine.data(bin, owner)
	switch {
	case err != nil:
		return err
	case made == "":
		return s.initdb(bin, owner)
	}
	if out, err := exec.Command("cp", "-a", made, s.data()).CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: cp: %w\n%s", err, out)
	}
	return nil
}

// own gives a directory to the user that the server runs as.
func own(dir string, owner *syscall.Credential) error {
	if err := daemon.Own(dir, owner); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	return nil
}

func (s *Server) initdb(bin string, owner *syscall.Credential) error {
	return s.fill(bin, owner, "initdb", "-D", s.data(), "-U", superuser, "--auth=trust", "--no-locale", "--encoding=UTF8", "--no-sync")
}

// fill has a program of PostgreSQL's make the data directory.
func (s *Server) fill(bin string, owner *syscall.Credential, program string, args ...string) error {
	cmd := exec.Command(filepath.Join(bin, program), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = daemon.Attr(owner, syscall.SIGINT)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: %s: %w\n%s", program, err, out)
	}
	return nil
}

// run starts the server's process on a free port and waits until it answers.
func (s *Server) run(bin string, owner *syscall.Credential, settings []string) error {
	port, err := daemon.FreePort()
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	s.port = port
	args := []string{"-D", s.data(), "-k", s.dir}
	for _, set := range append([]string{"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(port), "fsync=off",
		"full_page_writes=off", "shared_buffers=32MB", "max_connections=80", "timezone=UTC"}, settings...) {
		args = append(args, "-c", set)
	}
	log, err := os.OpenFile(s.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	defer log.Close()
	s.cmd = exec.Command(filepath.Join(bin, "postgres"), args...)
	s.cmd.Dir = s.dir
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = daemon.Attr(owner, syscall.SIGINT)
	s.exited = make(chan struct{})
	if err := daemon.StartTied(s.cmd, s.exited); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	if err := s.await(); err != nil {
		_ = s.signal(syscall.SIGQUIT)
		<-s.exited
		text, _ := os.ReadFile(s.Log())
		return fmt.Errorf("%w\n%s", err, text)
	}
	return nil
}

// await returns when the server answers.
func (s *Server) await() error {
	deadline := time.Now().Add(startWait)
	for time.Now().Before(deadline) {
		select {
		case <-s.exited:
			return errors.New("pgtest: the server ended at its start")
		case <-time.After(20 * time.Millisecond):
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		conn, err := pgx.Connect(ctx, s.URL())
		if err == nil {
			_ = conn.Close(ctx)
			cancel()
			return nil
		}
		cancel()
	}
	return errors.New("pgtest: the server did not answer")
}

// Stop ends the server at once, disconnecting its clients, and removes its directory.
func (s *Server) Stop() error {
	defer func() { _ = s.remove() }()
	select {
	case <-s.exited:
		return nil
	default:
	}
	if err := s.signal(syscall.SIGINT); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	select {
	case <-s.exited:
	case <-time.After(stopWait):
		_ = s.signal(syscall.SIGQUIT)
		<-s.exited
	}
	return nil
}

// Crash ends the server's processes without a shutdown, as a fault would. The server stays down.
func (s *Server) Crash() error {
	if err := s.signal(syscall.SIGQUIT); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	<-s.exited
	return nil
}

func (s *Server) signal(sig syscall.Signal) error { return s.cmd.Process.Signal(sig) }

// URL connects the superuser to database postgres.
func (s *Server) URL() string { return s.URLFor(superuser, "postgres") }

// URLFor connects a role to a database.
func (s *Server) URLFor(role, database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(role), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// Port is the TCP port on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// SocketDir is the directory of the Unix socket.
func (s *Server) SocketDir() string { return s.dir }

// Log is the path of the server's log.
func (s *Server) Log() string { return filepath.Join(s.dir, "server.log") }

func (s *Server) data() string { return filepath.Join(s.dir, "data") }
