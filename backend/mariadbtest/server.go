// Package mariadbtest starts throw-away MariaDB servers for tests: an own data directory, a free port of the loopback address,
// nothing written to the disk before it must be, root without a password from 127.0.0.1. A server belongs to one test (Start) or to one
// test binary (Shared, stopped by Main). It runs as a user that is not root and is stopped by signalling its own process. Without
// MariaDB's binaries the tests that need a server are skipped and say so. Only tests import this package.
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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/dpproxy/dpproxy/internal/daemon"
)

// ErrNoBinaries says that no MariaDB server is installed.
var ErrNoBinaries = errors.New("mariadbtest: no MariaDB server (mariadbd in PATH or /usr/sbin, and its scripts in /usr/share/mysql or /usr/share/mariadb)")

const (
	startWait = 60 * time.Second
	stopWait  = 30 * time.Second
)

// Server is one running MariaDB server.
type Server struct {
	dir    string
	remove func() error // removes dir
	port   int
	cmd    *exec.Cmd
	exited chan struct{} // closed when the server's process has ended
	root   *sql.DB
}

// Start starts a server that is stopped when the test ends. Options are further ones of the server, such as "sql_mode=ANSI".
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	s, err := launch(options)
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

var shared struct {
	sync.Mutex
	server  *Server
	err     error
	started bool
	names   int
}

// Shared returns the one server of this test binary, started by the first test that asks. The binary's TestMain must call Main.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.started {
		shared.server, shared.err = launch(nil)
		shared.started = true
	}
	if errors.Is(shared.err, ErrNoBinaries) {
		t.Skip(shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// Main stops the shared server, if there is one, and returns the exit code of a test binary whose tests ended with code.
func Main(code int) int {
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		return code
	}
	if err := shared.server.Stop(); err != nil {
		fmt.Println(err)
		return max(code, 1)
	}
	return code
}

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
	if s.dir, s.remove, err = daemon.Directory("dpproxy-mariadbtest-"); err != nil {
		return nil, fmt.Errorf("mariadbtest: %w", err)
	}
	if err = s.initialise(server, scripts, owner); err == nil {
		for try := 0; try < 3; try++ { // another process may take the free port first
			if err = s.run(server, owner, options); err == nil {
				return s, nil
			}
		}
	}
	_ = s.remove()
	return nil, err
}

// own are the options of each server. Its data are thrown away: nothing of them has to outlast the machine.
func (s *Server) own() []string {
	return []string{"--no-defaults", "--datadir=" + filepath.Join(s.dir, "data"), "--tmpdir=" + s.dir, "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M",
		"--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-flush-method=nosync", "--skip-log-bin"}
}

// initialise makes the server's own tables, as mariadb-install-db does, which needs another package.
func (s *Server) initialise(server, scripts string, owner *syscall.Credential) error {
	data := filepath.Join(s.dir, "data")
	if err := errors.Join(daemon.Own(s.dir, owner), os.Mkdir(data, 0o700), daemon.Own(data, owner)); err != nil {
		return fmt.Errorf("mariadbtest: %w", err)
	}
	script := bytes.NewBufferString("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL, @current_hostname = 'localhost', @skip_auth_anonymous = 1;\n")
	for _, name := range []string{"mysql_system_tables.sql", "mysql_system_tables_data.sql"} {
		text, err := os.ReadFile(filepath.Join(scripts, name))
		if err != nil {
			return fmt.Errorf("mariadbtest: %w", err)
		}
		script.Write(text)
	}
	cmd := exec.Command(server, append(s.own(), "--bootstrap", "--max-allowed-packet=8M", "--net-buffer-length=16K")...)
	cmd.Dir, cmd.Stdin, cmd.SysProcAttr = s.dir, script, daemon.Attr(owner, syscall.SIGTERM)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadbtest: %w\n%s", err, out)
	}
	return nil
}

// run starts the server's process on a free port and waits until it answers.
func (s *Server) run(server string, owner *syscall.Credential, options []string) error {
	var err error
	if s.port, err = daemon.FreePort(); err != nil {
		return fmt.Errorf("mariadbtest: %w", err)
	}
	args := append(s.own(), "--bind-address=127.0.0.1", "--port="+strconv.Itoa(s.port), "--socket="+s.Socket(), "--skip-name-resolve", "--max-connections=80")
	for _, o := range options {
		args = append(args, "--"+o)
	}
	log, err := os.OpenFile(s.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("mariadbtest: %w", err)
	}
	defer log.Close()
	s.cmd = exec.Command(server, args...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir, log, log
	s.cmd.SysProcAttr = daemon.Attr(owner, syscall.SIGKILL) // a shutdown takes its time, and nobody reads the data again
	s.exited = make(chan struct{})
	if err := daemon.StartTied(s.cmd, s.exited); err != nil {
		return fmt.Errorf("mariadbtest: %w", err)
	}
	if err := s.await(); err != nil {
		_ = s.cmd.Process.Kill()
		<-s.exited
		text, _ := os.ReadFile(s.Log())
		return fmt.Errorf("%w\n%s", err, text)
	}
	return nil
}

// await returns when the server answers.
func (s *Server) await() error {
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.MultiStatements = "root", "tcp", "127.0.0.1:"+strconv.Itoa(s.port), true
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return fmt.Errorf("mariadbtest: %w", err)
	}
	s.root = sql.OpenDB(connector)
	for deadline := time.Now().Add(startWait); time.Now().Before(deadline); {
		select {
		case <-s.exited:
			return errors.New("mariadbtest: the server ended at its start")
		case <-time.After(20 * time.Millisecond):
		}
		if s.root.Ping() == nil {
			return nil
		}
	}
	return errors.New("mariadbtest: the server did not answer")
}

// Stop ends the server and removes its directory.
func (s *Server) Stop() error {
	defer func() { _ = s.remove() }()
	_ = s.root.Close()
	select {
	case <-s.exited:
		return nil
	default:
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("mariadbtest: %w", err)
	}
	select {
	case <-s.exited:
	case <-time.After(stopWait):
		return s.Kill()
	}
	return nil
}

// Kill ends the server's process as a fault would. The server stays down.
func (s *Server) Kill() error {
	if err := s.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("mariadbtest: %w", err)
	}
	<-s.exited
	return nil
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
	defer conn.Raw(func(any) error { return driver.ErrBadConn }) // what they set is nobody else's
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
	name := unused("test")
	s.Exec(t, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4")
	t.Cleanup(func() {
		select {
		case <-s.exited:
		default:
			s.Exec(t, "DROP DATABASE IF EXISTS "+name)
		}
	})
	return name
}

// Role creates a user of a name of its own, who may read a database, and whose password is the name.
func (s *Server) Role(t testing.TB, database string) string {
	t.Helper()
	name := unused("reader")
	s.Exec(t, "CREATE USER "+name+"@'127.0.0.1' IDENTIFIED BY '"+name+"'", "GRANT SELECT ON "+database+".* TO "+name+"@'127.0.0.1'")
	t.Cleanup(func() {
		select {
		case <-s.exited:
		default:
			s.Exec(t, "DROP USER IF EXISTS "+name+"@'127.0.0.1'")
		}
	})
	return name
}

func unused(kind string) string {
	shared.Lock()
	defer shared.Unlock()
	shared.names++
	return fmt.Sprintf("%s_%d", kind, shared.names)
}

// URL connects a user of Role to a database.
func (s *Server) URL(role, database string) string {
	u := url.URL{Scheme: "mysql", User: url.UserPassword(role, role), Host: "127.0.0.1:" + strconv.Itoa(s.port), Path: "/" + database}
	return u.String()
}

// Port is the TCP port on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// Socket is the path of the Unix socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, "socket") }

// Dir is the server's directory; its data lie in data.
func (s *Server) Dir() string { return s.dir }

// Log is the path of the server's log.
func (s *Server) Log() string { return filepath.Join(s.dir, "server.log") }
