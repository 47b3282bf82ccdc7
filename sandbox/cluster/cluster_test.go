package cluster

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start("", 64<<20, slog.New(slog.DiscardHandler))
	if errors.Is(err, ErrNoPrograms) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.process.Dir); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", s.process.Dir, err)
		}
	})
	return s
}

func dial(t *testing.T, s *Server) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.urlOf("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func one(t *testing.T, conn *pgx.Conn, query string) (text string) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), query).Scan(&text); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return text
}

// TestFence: nothing listens on a network, its role is no superuser and reaches no file or program, and nobody else
// may log in.
func TestFence(t *testing.T) {
	s := start(t)
	conn := dial(t, s)
	for query, want := range map[string]string{
		"SELECT current_user::text": Role,
		"SHOW listen_addresses":     "",
		"SHOW huge_pages":           "off",
		"SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user":      "false",
		"SELECT rolcreaterole::text FROM pg_roles WHERE rolname = current_user": "false",
	} {
		if got := one(t, conn, query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for _, query := range []string{"COPY (SELECT 1) TO PROGRAM 'true'", "SELECT pg_read_file('PG_VERSION')", "CREATE ROLE r", "CREATE EXTENSION dblink"} {
		if _, err := conn.Exec(t.Context(), query); err == nil {
			t.Errorf("%s is run", query)
		}
	}
	if _, err := pgx.Connect(t.Context(), strings.Replace(s.urlOf("postgres"), Role+"@", "postgres@", 1)); err == nil {
		t.Error("the superuser logs in")
	}
	if info, err := os.Stat(s.process.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory: %v %v", info.Mode(), err)
	}
	if os.Geteuid() == 0 {
		var stat syscall.Stat_t
		if err := syscall.Stat(s.data(), &stat); err != nil || stat.Uid == 0 || stat.Uid != s.owner.Uid {
			t.Errorf("its files are of user %d, %v", stat.Uid, err)
		}
	}
}

// TestBoundOfASession: a session that asks for more memory than it was granted gets an error, and others go on.
func TestBoundOfASession(t *testing.T) {
	s := start(t)
	conn, other := dial(t, s), dial(t, s)
	const large, within = "SELECT length(repeat('x', 100000000) || 'y')", "SELECT length(repeat('x', 10000000) || 'y')::text"
	if got := one(t, conn, within); got != "10000001" {
		t.Error(got)
	}
	if _, err := conn.Exec(t.Context(), large); err == nil || !strings.Contains(err.Error(), "53200") {
		t.Errorf("100 MB within 64: %v", err)
	}
	for _, c := range []*pgx.Conn{conn, other} {
		if got := one(t, c, "SELECT 'still'"); got != "still" {
			t.Error(got)
		}
	}
	s.Limit(512 << 20)
	if _, err := dial(t, s).Exec(t.Context(), large); err != nil {
		t.Errorf("100 MB within 512: %v", err)
	}
}

// dialAgain connects to a cluster that is about to start again.
func dialAgain(t *testing.T, s *Server) *pgx.Conn {
	t.Helper()
	for first, left := s.pid.Load(), 1000; s.pid.Load() == first && left > 0; left-- {
		time.Sleep(20 * time.Millisecond)
	}
	return dial(t, s)
}

// TestStartedAgain: a cluster that was killed is there again, with what was in it; a session that is killed ends
// others, and the cluster takes new ones.
func TestStartedAgain(t *testing.T) {
	s := start(t)
	if _, err := dial(t, s).Exec(t.Context(), "CREATE DATABASE kept"); err != nil {
		t.Fatal(err)
	}
	kept := func() bool {
		conn, err := pgx.Connect(t.Context(), s.urlOf("kept"))
		if err != nil {
			return false
		}
		return conn.Close(t.Context()) == nil
	}
	soon := func() bool {
		for range 300 {
			if kept() {
				return true
			}
			time.Sleep(50 * time.Millisecond)
		}
		return false
	}
	first := s.pid.Load()
	if err := syscall.Kill(int(first), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	conn := dialAgain(t, s)
	if s.pid.Load() == first || !soon() {
		t.Fatal("it was not started again")
	}
	s.End(conn.PgConn().PID(), 0)
	if _, err := conn.Exec(t.Context(), "SELECT 1"); err == nil {
		t.Error("a session that had to end goes on")
	}
	if !soon() {
		t.Error("it takes no sessions after one was killed")
	}
	s.End(uint32(os.Getpid()), 0) // no session of its own
}

// TestSessionThatIsLeft: a session that does not notice that its server was killed keeps another from starting until it
// is ended, which it is as any other.
func TestSessionThatIsLeft(t *testing.T) {
	s := start(t)
	pid, first := dial(t, s).PgConn().PID(), s.pid.Load()
	for _, kill := range []error{syscall.Kill(int(pid), syscall.SIGSTOP), syscall.Kill(int(first), syscall.SIGKILL)} {
		if kill != nil {
			t.Fatal(kill)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			_ = syscall.Kill(int(pid), syscall.SIGKILL)
		}
	})
	for s.has(pid) && syscall.Kill(int(first), 0) == nil {
		time.Sleep(20 * time.Millisecond)
	}
	s.End(pid, 0)
	dialAgain(t, s)
}

// TestTornTemplate: a kept template that does not start is made anew.
func TestTornTemplate(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	start(t)
	kept, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "dpproxy", "postgres-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%v %v", kept, err)
	}
	if err := os.Truncate(filepath.Join(kept[0], "global", "pg_control"), 0); err != nil {
		t.Fatal(err)
	}
	ofKilled := kept[0] + "-" + prefix + "0"
	if err := os.Mkdir(ofKilled, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := one(t, dial(t, start(t)), "SELECT 'healed'"); got != "healed" {
		t.Error(got)
	}
	if _, err := os.Stat(ofKilled); !os.IsNotExist(err) {
		t.Errorf("what a killed process was about to keep is left: %v", err)
	}
}

// TestOldPrograms: programs of a version that the sandbox does not run on are passed over, and named where there are no
// others.
func TestOldPrograms(t *testing.T) {
	old := t.TempDir()
	for _, name := range []string{"initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(old, name), []byte("#!/bin/sh\necho 'postgres (PostgreSQL) 12.22'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Programs(old); !errors.Is(err, ErrNoPrograms) || !strings.Contains(err.Error(), old) || !strings.Contains(err.Error(), "12.22") {
		t.Error(err)
	}
	t.Setenv("PATH", old+":"+os.Getenv("PATH"))
	if dir, err := Programs(""); dir == old || err != nil && !strings.Contains(err.Error(), "12.22") {
		t.Error(dir, err)
	}
}

// TestNameless: a user id without a name is given why no cluster starts under it.
func TestNameless(t *testing.T) {
	if me, err := nameOf(os.Geteuid()); err != nil || me == "" {
		t.Error(me, err)
	}
	id, err := ownUID()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nameOf(int(id)); err == nil || !strings.Contains(err.Error(), "has no name here") || !strings.Contains(err.Error(), "sandbox.url") {
		t.Error(err)
	}
}

// TestLinkInTemplate: a file that is a link in the template is written anew, and not what it names: the template is
// made by a user whose other processes are not this one's.
func TestLinkInTemplate(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	start(t)
	kept, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "dpproxy", "postgres-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%v %v", kept, err)
	}
	named, link := filepath.Join(t.TempDir(), "named"), filepath.Join(kept[0], "postgresql.auto.conf")
	err = errors.Join(os.WriteFile(named, []byte("as it was"), 0o600), os.Remove(link), os.Symlink(named, link))
	if err != nil {
		t.Fatal(err)
	}
	start(t)
	if text, err := os.ReadFile(named); err != nil || string(text) != "as it was" {
		t.Errorf("%q %v", text, err)
	}
}
