// Package sparktest starts throw-away Thrift servers of Spark for tests: an own directory, a metastore in memory, a
// free port of the loopback address; executors within the server's process, or each a process of its own (Cluster). A
// server belongs to one test (Start, Cluster) or to one test binary (Shared, stopped by Main), and is stopped by
// signalling its own process. `make spark` puts Spark's jars into bin/spark, starts one server, and runs the tests of
// all packages that need one against it; others skip them and say so. Only tests import this package.
package sparktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/hive"
	"github.com/dpproxy/dpproxy/internal/daemon"
	"github.com/dpproxy/dpproxy/internal/daemon/daemontest"
)

// ErrNoBinaries says that Spark is not installed.
var ErrNoBinaries = errors.New("sparktest: no Spark (`make spark` installs it into bin/spark, and runs these tests with DPPROXY_SPARK=1; it needs java in PATH)")

// Environment is the variable that asks for tests against Spark: 1, or the port of a server that is there (Lend).
const Environment = "DPPROXY_SPARK"

// Server is one running server.
type Server struct {
	daemon.Process
	kind   kind
	lent   bool // it is another process's, which ends it
	binary string
	home   string // bin/spark
}

// kind is what a server is like.
type kind struct {
	login     bool // it takes users by name and password, whoever they are
	executors int  // that are processes of their own; 0 means they are threads of the server's
	slow      bool // it is to run long: the code is compiled as well as Java can
}

// Start starts a server that is stopped when the test ends. It takes users by name and password, whoever they are, if
// login is true.
func Start(t testing.TB, login bool) *Server {
	t.Helper()
	s, err := launch(kind{login: login})
	return daemontest.UntilTheEnd(t, s, err, ErrNoBinaries)
}

// Cluster starts a server with so many executors, each a process with one processor and a gigabyte.
func Cluster(t testing.TB, executors int) *Server {
	t.Helper()
	s, err := launch(kind{executors: executors, slow: true})
	return daemontest.UntilTheEnd(t, s, err, ErrNoBinaries)
}

var shared daemontest.Shared[*Server]

// Shared returns the one server of this test binary, started by the first test that asks. The binary's TestMain must
// call Main.
func Shared(t testing.TB) *Server {
	t.Helper()
	return shared.Get(t, func() (*Server, error) {
		if port, err := strconv.Atoi(os.Getenv(Environment)); err == nil && port > 1 {
			s := &Server{lent: true}
			s.Port, s.Exited = port, make(chan struct{})
			return s, nil
		}
		return launch(kind{})
	}, ErrNoBinaries)
}

// Lend is the value of Environment by which other test binaries share the server.
func (s *Server) Lend() string { return strconv.Itoa(s.Port) }

// Main stops the shared server, if there is one, and returns the exit code of a test binary whose tests ended with
// code.
func Main(code int) int { return shared.Stop(code) }

// Installed reports whether Spark's jars are where `make spark` puts them.
func Installed() bool {
	_, err := home()
	return err == nil
}

// home is the directory of Spark's own: bin/spark beside go.mod, whose jars are all of Spark, and whose tables read
// formats of tables.
func home() (string, error) {
	at, err := os.Getwd()
	for ; err == nil && at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, missing := os.Stat(filepath.Join(at, "go.mod")); missing == nil {
			dir := filepath.Join(at, "bin", "spark")
			if _, missing := os.Stat(filepath.Join(dir, "jars")); missing == nil {
				return dir, nil
			}
			break
		}
	}
	return "", ErrNoBinaries
}

// Formats skips a test where the jars of Iceberg and Delta are not there.
func Formats(t testing.TB) {
	t.Helper()
	if dir, err := home(); err == nil && !formatted(dir) {
		t.Skip("sparktest: no jars of Iceberg and Delta (scripts/spark puts them into bin/spark/tables)")
	}
}

// formatted reports whether the jars of Iceberg and Delta are there, of which there are three.
func formatted(home string) bool {
	list, _ := filepath.Glob(filepath.Join(home, "tables", "*.jar"))
	return len(list) >= 3
}

// Lake is the catalog of the server in which tables of Iceberg are. Those of Delta are in Spark's own.
const Lake = "lake"

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

func launch(k kind) (*Server, error) {
	if os.Getenv(Environment) == "" {
		return nil, ErrNoBinaries
	}
	dir, err := home()
	if err != nil {
		return nil, err
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, ErrNoBinaries
	}
	s := &Server{kind: k, binary: java, home: dir}
	s.Wait = 5 * time.Minute // a dozen seconds where nothing else runs
	if s.Dir, err = os.MkdirTemp("", "dpproxy-sparktest-"); err != nil {
		return nil, fmt.Errorf("sparktest: %w", err)
	}
	s.Remove = func() error { return os.RemoveAll(s.Dir) }
	err = errors.Join(os.Mkdir(filepath.Join(s.Dir, "tmp"), 0o700), os.Mkdir(filepath.Join(s.Dir, "conf"), 0o700),
		os.WriteFile(filepath.Join(s.Dir, "conf", "log4j2.properties"), []byte(logging), 0o600))
	if err == nil {
		err = s.Run(daemon.Attr(nil, syscall.SIGKILL), s.command, s.answers)
	}
	if err != nil {
		_ = s.Remove()
		return nil, fmt.Errorf("sparktest: %w", err)
	}
	return s, nil
}

// Again starts a server that was killed once more, at the same port. Its metastore was in memory: the tables are to be
// named anew.
func (s *Server) Again(t testing.TB) {
	t.Helper()
	if err := s.Process.Again(daemon.Attr(nil, syscall.SIGKILL), s.command, s.answers); err != nil {
		t.Fatalf("sparktest: %v", err)
	}
}

// command is the server's.
func (s *Server) command() *exec.Cmd {
	master, memory, authentication := "local[2]", "-Xmx1500m", map[bool]string{false: "NOSASL", true: "NONE"}[s.kind.login]
	if s.kind.executors > 0 {
		master = fmt.Sprintf("local-cluster[%d,1,1024]", s.kind.executors)
	}
	formats := filepath.Join(s.home, "tables", "*")
	args := []string{memory, "-Xss4m", "-XX:+UseSerialGC", "-Djava.io.tmpdir=" + filepath.Join(s.Dir, "tmp"), "-Dderby.system.home=" + s.Dir, "-Djdk.reflect.useDirectMethodHandle=false"}
	if !s.kind.slow { // plans are made of classes that run once: what compiles them twice would have most of the time
		args = append(args, "-XX:TieredStopAtLevel=1")
	}
	for _, name := range opened {
		args = append(args, "--add-opens=java.base/"+name+"=ALL-UNNAMED")
	}
	args = append(args, "-cp", strings.Join([]string{filepath.Join(s.Dir, "conf"), filepath.Join(s.home, "jars", "*"), formats}, ":"), "org.apache.spark.deploy.SparkSubmit",
		"--master", master, "--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2")
	settings := [][2]string{
		{"spark.ui.enabled", "false"}, {"spark.driver.host", "127.0.0.1"}, {"spark.driver.bindAddress", "127.0.0.1"},
		{"spark.sql.shuffle.partitions", strconv.Itoa(max(1, 2*s.kind.executors))}, {"spark.sql.warehouse.dir", filepath.Join(s.Dir, "warehouse")},
		{"spark.hadoop.javax.jdo.option.ConnectionURL", "jdbc:derby:memory:metastore;create=true"}, {"spark.hadoop.datanucleus.schema.autoCreateAll", "true"},
		{"spark.hadoop.hive.metastore.schema.verification", "false"}, {"spark.hadoop.hive.server2.thrift.bind.host", "127.0.0.1"},
		{"spark.hadoop.hive.server2.thrift.port", strconv.Itoa(s.Port)}, {"spark.hadoop.hive.server2.authentication", authentication},
		{"spark.executor.extraClassPath", formats}, {"spark.sql.sources.parallelPartitionDiscovery.parallelism", "2"},
	}
	if formatted(s.home) {
		settings = append(settings, [][2]string{
			{"spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension,org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
			{"spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"},
			{"spark.sql.catalog." + Lake, "org.apache.iceberg.spark.SparkCatalog"}, {"spark.sql.catalog." + Lake + ".type", "hadoop"},
			{"spark.sql.catalog." + Lake + ".warehouse", filepath.Join(s.Dir, "lake")}, {"spark.databricks.delta.snapshotPartitions", "1"},
		}...)
	}
	for _, pair := range settings {
		args = append(args, "--conf", pair[0]+"="+pair[1])
	}
	cmd := exec.Command(s.binary, append(args, "spark-internal")...)
	cmd.Env = append(os.Environ(), "SPARK_LOCAL_IP=127.0.0.1", "SPARK_LOCAL_DIRS="+filepath.Join(s.Dir, "tmp"), "SPARK_HOME="+s.home, "SPARK_SCALA_VERSION=2.13",
		"SPARK_WORKER_DIR="+filepath.Join(s.Dir, "work"), "SPARK_CONF_DIR="+filepath.Join(s.Dir, "conf"))
	return cmd
}

// answers reports whether the server does.
func (s *Server) answers() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	session, err := hive.Open(ctx, s.Config())
	if err != nil {
		return err
	}
	return session.Close()
}

// Executors are the processes of the server's executors, by their ids.
func (s *Server) Executors() (pids []int) {
	list, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, at := range list {
		stat, _ := os.ReadFile(at)
		_, rest, _ := strings.Cut(string(stat), ") ") // what is before it is the program's name
		fields := strings.Fields(rest)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(at), "cmdline"))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(at)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(s.Pid()) && strings.Contains(string(line), "CoarseGrainedExecutorBackend") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Config connects to the server.
func (s *Server) Config() hive.Config {
	return hive.Config{Address: "127.0.0.1:" + strconv.Itoa(s.Port), User: "tester", Password: "x", Bare: !s.kind.login}
}

// URL is how a policy names a database of the server.
func (s *Server) URL(database string) string {
	auth := map[bool]string{false: "?auth=nosasl", true: ""}[s.kind.login]
	return "spark://tester:x@127.0.0.1:" + strconv.Itoa(s.Port) + "/" + database + auth
}

// Stop ends the server and removes its directory.
func (s *Server) Stop() error {
	if s.lent {
		return nil
	}
	defer func() { _ = s.Remove() }()
	return s.End(syscall.SIGKILL) // nobody reads the data again
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

// Exec runs statements in one session.
func (s *Server) Exec(t testing.TB, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	session, err := hive.Settled(ctx, s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, text := range statements {
		if err := session.Query(ctx, text, func(hive.Row) error { return nil }); err != nil {
			t.Fatalf("sparktest: %v\n%s", err, text)
		}
	}
}

// Database creates an empty database with a name of its own, which is dropped at the test's end.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("%s_%d", shared.Name("test"), os.Getpid()) // the server may be another process's
	s.Exec(t, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		if !s.Gone() {
			s.Exec(t, "DROP DATABASE IF EXISTS "+name+" CASCADE")
		}
	})
	return name
}
