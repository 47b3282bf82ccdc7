// Package mariadbtest starts throw-away MariaDB servers for tests: an own data directory, a free port of the loopback
// address, nothing written to the disk before it must be, root without a password from 127.0.0.1. A server belongs to
// one test (Start) or to one test binary (Shared, stopped by Main). It runs as a user that is not root and is stopped
// by signalling its own process. Without MariaDB's binaries the tests that need a server are skipped and say so. Only
// tests import this package.
package mariadbtest

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/dpproxy/dpproxy/internal/daemon"
	"github.com/dpproxy/dpproxy/internal/daemon/daemontest"
)

// ErrNoBinaries says that no MariaDB server is installed.
var ErrNoBinaries = errors.New("mariadbtest: no MariaDB server (mariadbd in PATH or /usr/sbin, and its scripts in /usr/share/mysql or /usr/share/mariadb)")

// Server is one running MariaDB server.
type Server struct {
	daemon.Process
	root *sql.DB
}

// Start starts a server that is stopped when the test ends. Options are further ones of the server, such as
// "sql_mode=ANSI".
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	daemontest.Wanted(t)
	s, err := launch(options)
	return daemontest.UntilTheEnd(t, s, err, ErrNoBinaries)
}

var shared daemontest.Shared[*Server]

// Shared returns the one server of this test binary, started by the first test that asks. The binary's TestMain must
// call Main.
func Shared(t testing.TB) *Server {
	t.Helper()
	return shared.Get(t, func() (*Server, error) { return launch(nil) }, ErrNoBinaries)
}

// Main stops the shared server, if there is one, and returns the exit code of a test binary whose tests ended with
// code.
func Main(code int) int { return shared.Stop(code) }

// binaries are the server, and the directory of the scripts that make its own tables.
func binaries() (server, scripts string, err error) {
	if server, err = exec.LookPath("mariadbd"); err != nil {
		server = "/usr/sbin/mariadbd"
	}
	for _, dir := range []string{"/usr/share/mysql", "/usr/share/mariadb"} {
		if _, err := os.Stat(filepath.Join(dir, "mysql_system_tables.sql")); err == nil && daemon.Executable(server) {
			return server, dir, nil
		}
	}
	return "", "", ErrNoBinaries
}

func launch(options []string) (*Server, error) {
	server, scripts, err := binaries()
	if err != nil {
		return nil, err
	}
	owner, err := daemon.Owner("mysql", "nobody")
	if err != nil {
		return nil, fmt.Errorf("mariadbtest: %w", err)
	}
	s := &Server{}
	if s.Dir, s.Remove, err = daemontest.Directory("dpproxy-mariadbtest-"); err != nil {
		return nil, fmt.Errorf("mariadbtest: %w", err)
	}
	if err = s.initialise(server, scripts, owner); err == nil {
		err = s.run(server, owner, options)
	}
	if err != nil {
		_ = s.Remove()
		return nil, fmt.Errorf("mariadbtest: %w", err)
	}
	return s, nil
}

// own are the options of each server. Its data are thrown away: nothing of them has to outlast the machine.
func (s *Server) own() []string {
	return []string{"--no-defaults", "--datadir=" + filepath.Join(s.Dir, "data"), "--tmpdir=" + s.Dir, "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M",
		"--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-flush-method=nosync", "--skip-log-bin"}
}

// initialise makes the server's own tables, as mariadb-install-db does, which needs another package.
func (s *Server) initialise(server, scripts string, owner *syscall.Credential) error {
	data := filepath.Join(s.Dir, "data")
	err := errors.Join(daemontest.Own(s.Dir, owner), os.Mkdir(data, 0o700), daemontest.Own(data, owner))
	if err != nil {
		return err
	}
	script := bytes.NewBufferString("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL, @current_hostname = 'localhost', @skip_auth_anonymous = 1;\n")
	for _, name := range []string{"mysql_system_tables.sql", "mysql_system_tables_data.sql"} {
		text, err := os.ReadFile(filepath.Join(scripts, name))
		if err != nil {
			return err
		}
		script.Write(text)
	}
	cmd := exec.Command(server, append(s.own(), "--bootstrap", "--max-allowed-packet=8M", "--net-buffer-length=16K")...)
	cmd.Dir, cmd.Stdin, cmd.SysProcAttr = s.Dir, script, daemon.Attr(owner, syscall.SIGTERM)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// run starts the server's process and waits until it answers.
func (s *Server) run(server string, owner *syscall.Credential, options []string) error {
	return s.Run(daemon.Attr(owner, syscall.SIGKILL), func() *exec.Cmd { // a shutdown takes its time, and nobody reads the data again
		args := append(s.own(), "--bind-address=127.0.0.1", "--port="+strconv.Itoa(s.Port), "--socket="+s.Socket(), "--skip-name-resolve", "--max-connections=80")
		for _, o := range options {
			args = append(args, "--"+o)
		}
		config := mysql.NewConfig()
		config.User, config.Net, config.Addr, config.MultiStatements = "root", "tcp", "127.0.0.1:"+strconv.Itoa(s.Port), true
		config.Logger = &mysql.NopLogger{}
		connector, err := mysql.NewConnector(config)
		if err != nil {
			panic(err) // nothing of it is anybody's choice
		}
		s.root = sql.OpenDB(connector)
		return exec.Command(server, args...)
	}, func() error { return s.root.Ping() })
}

// Stop ends the server and removes its directory.
func (s *Server) Stop() error {
	defer func() { _ = s.Remove() }()
	_ = s.root.Close()
	return s.End(syscall.SIGTERM)
}

// Exec runs statements as root.
func (s *Server) Exec(t testing.TB, statements ...string) {
	t.Helper()
	s.ExecIn(t, "mysql", statements...)
}

// ExecIn runs statements as root in a database, on a connection of their own.
func (s *Server) ExecIn(t testing.TB, database string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	conn, err := s.root.Conn(ctx)
	if err != nil {
		t.Fatalf("mariadbtest: %v", err)
	}
	defer func() { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }() // what they set is nobody else's
	for _, text := range append([]string{"USE " + database}, statements...) {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			t.Fatalf("mariadbtest: %v\n%s", err, text)
		}
	}
}

// DB runs statements as root.
func (s *Server) DB() *sql.DB { return s.root }

// Database creates an empty database with a name of its own, which is dropped at the test's end.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := shared.Name("test")
	s.Exec(t, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4")
	t.Cleanup(func() {
		if !s.Gone() {
			s.Exec(t, "DROP DATABASE IF EXISTS "+name)
		}
	})
	return name
}

// Role creates a user of a name of its own, who may read a database, and whose password is the name.
func (s *Server) Role(t testing.TB, database string) string {
	t.Helper()
	name := shared.Name("reader")
	s.Exec(t, "CREATE USER "+name+"@'127.0.0.1' IDENTIFIED BY '"+name+"'", "GRANT SELECT ON "+database+".* TO "+name+"@'127.0.0.1'")
	t.Cleanup(func() {
		if !s.Gone() {
			s.Exec(t, "DROP USER IF EXISTS "+name+"@'127.0.0.1'")
		}
	})
	return name
}

// URL connects a user of Role to a database.
func (s *Server) URL(role, database string) string {
	u := url.URL{Scheme: "mysql", User: url.UserPassword(role, role), Host: "127.0.0.1:" + strconv.Itoa(s.Port), Path: "/" + database}
	return u.String()
}

// Socket is the path of the Unix socket.
func (s *Server) Socket() string { return filepath.Join(s.Dir, "socket") }
