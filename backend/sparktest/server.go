// Package sparktest starts throw-away Thrift servers of Spark for tests: local executors, an own directory, a metastore in memory, a
// free port of the loopback address. A server belongs to one test (Start) or to one test binary (Shared, stopped by Main), and is stopped by
// signalling its own process. `make spark` puts Spark's jars into bin/spark and runs the tests that need a server, which takes minutes; others skip
// them and say so. Only tests import this package.
package sparktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/hive"
	"github.com/dpproxy/dpproxy/internal/daemon"
)

// ErrNoBinaries says that Spark is not installed.
var ErrNoBinaries = errors.New("sparktest: no Spark (`make spark` installs it into bin/spark, and runs these tests with DPPROXY_SPARK=1; it needs java in PATH)")

// Server is one running server.
type Server struct {
	daemon.Process
	bare bool
}

// Start starts a server that is stopped when the test ends. It takes users by name and password, whoever they are, if login is true.
func Start(t testing.TB, login bool) *Server {
	t.Helper()
	s, err := launch(login)
	return daemon.UntilTheEnd(t, s, err, ErrNoBinaries)
}

var shared daemon.Shared[*Server]

// Shared returns the one server of this test binary, started by the first test that asks. The binary's TestMain must call Main.
func Shared(t testing.TB) *Server {
	t.Helper()
	return shared.Get(t, func() (*Server, error) { return launch(false) }, ErrNoBinaries)
}

// Main stops the shared server, if there is one, and returns the exit code of a test binary whose tests ended with code.
func Main(code int) int { return shared.Stop(code) }

// jars is the directory of Spark's own: bin/spark/jars beside go.mod.
func jars() (string, error) {
	at, err := os.Getwd()
	if os.Getenv("DPPROXY_SPARK") == "" {
		return "", ErrNoBinaries
	}
	for ; err == nil && at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, missing := os.Stat(filepath.Join(at, "go.mod")); missing == nil {
			dir := filepath.Join(at, "bin", "spark", "jars")
			if _, missing := os.Stat(dir); missing == nil {
				return dir, nil
			}
			break
		}
	}
	return "", ErrNoBinaries
}

// opened are what Spark reads of Java's own, which Java hides since its version 17.
var opened = []string{"java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util", "java.util.concurrent",
	"java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"}

const logging = `rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
`

func launch(login bool) (*Server, error) {
	dir, err := jars()
	if err != nil {
		return nil, err
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, ErrNoBinaries
	}
	s := &Server{bare: !login}
	s.Wait = 5 * time.Minute // a dozen seconds where nothing else runs
	if s.Dir, err = os.MkdirTemp("", "dpproxy-sparktest-"); err != nil {
		return nil, fmt.Errorf("sparktest: %w", err)
	}
	s.Remove = func() error { return os.RemoveAll(s.Dir) }
	err = errors.Join(os.Mkdir(filepath.Join(s.Dir, "tmp"), 0o700), os.Mkdir(filepath.Join(s.Dir, "conf"), 0o700),
		os.WriteFile(filepath.Join(s.Dir, "conf", "log4j2.properties"), []byte(logging), 0o600))
	if err == nil {
		err = s.run(java, dir)
	}
	if err != nil {
		_ = s.Remove()
		return nil, fmt.Errorf("sparktest: %w", err)
	}
	return s, nil
}

// run starts the server's process and waits until it answers.
func (s *Server) run(java, jars string) error {
	authentication := map[bool]string{true: "NOSASL", false: "NONE"}[s.bare]
	return s.Run(daemon.Attr(nil, syscall.SIGKILL), func() *exec.Cmd {
		args := []string{"-Xmx1500m", "-Djava.io.tmpdir=" + filepath.Join(s.Dir, "tmp"), "-Dderby.system.home=" + s.Dir, "-Djdk.reflect.useDirectMethodHandle=false"}
		for _, name := range opened {
			args = append(args, "--add-opens=java.base/"+name+"=ALL-UNNAMED")
		}
		args = append(args, "-cp", filepath.Join(s.Dir, "conf")+":"+filepath.Join(jars, "*"), "org.apache.spark.deploy.SparkSubmit",
			"--master", "local[2]", "--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2")
		for _, pair := range [][2]string{
			{"spark.ui.enabled", "false"}, {"spark.driver.host", "127.0.0.1"}, {"spark.driver.bindAddress", "127.0.0.1"},
			{"spark.sql.shuffle.partitions", "2"}, {"spark.sql.warehouse.dir", filepath.Join(s.Dir, "warehouse")},
			{"spark.hadoop.javax.jdo.option.ConnectionURL", "jdbc:derby:memory:metastore;create=true"}, {"spark.hadoop.datanucleus.schema.autoCreateAll", "true"},
			{"spark.hadoop.hive.metastore.schema.verification", "false"}, {"spark.hadoop.hive.server2.thrift.bind.host", "127.0.0.1"},
			{"spark.hadoop.hive.server2.thrift.port", strconv.Itoa(s.Port)}, {"spark.hadoop.hive.server2.authentication", authentication},
		} {
			args = append(args, "--conf", pair[0]+"="+pair[1])
		}
		cmd := exec.Command(java, append(args, "spark-internal")...)
		cmd.Env = append(os.Environ(), "SPARK_LOCAL_IP=127.0.0.1", "SPARK_LOCAL_DIRS="+filepath.Join(s.Dir, "tmp"))
		return cmd
	}, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		session, err := hive.Open(ctx, s.Config())
		if err != nil {
			return err
		}
		return session.Close()
	})
}

// Config connects to the server.
func (s *Server) Config() hive.Config {
	return hive.Config{Address: "127.0.0.1:" + strconv.Itoa(s.Port), User: "tester", Password: "x", Bare: s.bare}
}

// URL is how a policy names a database of the server.
func (s *Server) URL(database string) string {
	auth := map[bool]string{true: "?auth=nosasl", false: ""}[s.bare]
	return "spark://tester:x@127.0.0.1:" + strconv.Itoa(s.Port) + "/" + database + auth
}

// Stop ends the server and removes its directory.
func (s *Server) Stop() error {
	defer func() { _ = s.Remove() }()
	if err := s.End(syscall.SIGKILL); err != nil { // nobody reads the data again
		return fmt.Errorf("sparktest: %w", err)
	}
	return nil
}

// Kill ends the server's process as a fault would. The server stays down.
func (s *Server) Kill() error {
	if err := s.End(syscall.SIGKILL); err != nil {
		return fmt.Errorf("sparktest: %w", err)
	}
	return nil
}

// Stall stops the server's process where it is: connections are taken, and nothing is said on them. Kill ends it.
func (s *Server) Stall() error { return s.Signal(syscall.SIGSTOP) }

// Query runs a statement in a session such as dpproxy's and hands out its rows.
func (s *Server) Query(t testing.TB, text string, take func(hive.Row) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	session, err := hive.Settled(ctx, s.Config())
	if err != nil {
		return err
	}
	defer session.Close()
	return session.Query(ctx, text, take)
}

// Exec runs statements, one session for each.
func (s *Server) Exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, text := range statements {
		if err := s.Query(t, text, func(hive.Row) error { return nil }); err != nil {
			t.Fatalf("sparktest: %v\n%s", err, text)
		}
	}
}

// Database creates an empty database with a name of its own, which is dropped at the test's end.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := shared.Name("test")
	s.Exec(t, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		if !s.Gone() {
			s.Exec(t, "DROP DATABASE IF EXISTS "+name+" CASCADE")
		}
	})
	return name
}
