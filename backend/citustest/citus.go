// Package citustest gives tests databases on a Citus cluster that somebody else runs: DPPROXY_CITUS names its
// coordinator, as a superuser (postgres://postgres@127.0.0.1:5440/postgres). In that database Citus is installed and
// its workers are known. Each test has a database of its own, on the coordinator and on every worker, which is dropped
// at its end: nothing else of the cluster is touched but roles. Elsewhere tests that need one are skipped and say so.
// Citus comes from no package registry; docs/engines.md says with which version the tests ran. Only tests import this
// package.
package citustest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Database is a database on a coordinator and its workers.
type Database struct {
	name        string
	coordinator *pgx.ConnConfig
	workers     []node
}

type node struct {
	host string
	port int
}

var made atomic.Int64

// New makes a database, or skips the test.
func New(t testing.TB) *Database {
	t.Helper()
	d, _ := create(t, false)
	return d
}

// NewOverLine makes a database whose nodes reach the last worker by a line, and whose coordinator has no tables of its
// own: reference tables lie on the workers alone. The cluster must be on this machine.
func NewOverLine(t testing.TB) (*Database, *Line) {
	t.Helper()
	return create(t, true)
}

func create(t testing.TB, over bool) (d *Database, line *Line) {
	t.Helper()
	text := os.Getenv("DPPROXY_CITUS")
	if text == "" {
		t.Skip("citustest: no Citus (DPPROXY_CITUS names none's coordinator)")
	}
	config, err := pgx.ParseConfig(text)
	if err != nil {
		t.Fatal("citustest: DPPROXY_CITUS is no url of PostgreSQL's")
	}
	d = &Database{name: fmt.Sprintf("dpproxy_%d_%d", os.Getpid(), made.Add(1)), coordinator: config}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	first := connect(t, ctx, config)
	defer first.Close(ctx)
	rows, err := first.Query(ctx, "SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0 AND isactive ORDER BY 1, 2")
	if err == nil {
		d.workers, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (n node, err error) { return n, row.Scan(&n.host, &n.port) })
	}
	if err != nil || len(d.workers) == 0 {
		t.Fatalf("citustest: no workers: %v", err)
	}
	t.Cleanup(func() { d.drop(t) })
	for _, at := range d.nodes() {
		run(t, ctx, at, "postgres", "CREATE DATABASE "+d.name)
		run(t, ctx, at, d.name, "CREATE EXTENSION citus")
	}
	if !over {
		run(t, ctx, config, d.name, fmt.Sprintf("SELECT citus_set_coordinator_host('%s', %d)", config.Host, config.Port))
	}
	for i, w := range d.workers {
		if over && i == len(d.workers)-1 {
			line = newLine(t, net.JoinHostPort(w.host, strconv.Itoa(w.port)))
			t.Cleanup(line.close) // before the databases are dropped
			w = node{"127.0.0.1", line.port()}
		}
		run(t, ctx, config, d.name, fmt.Sprintf("SELECT citus_add_node('%s', %d)", w.host, w.port))
	}
	return d, line
}

// Settings are what package backend gives each transaction on a cluster, as far as plans depend on it
// (backend.TestCitusSettingsOfTests), for a session of a test.
var Settings = []string{"SET timezone = 'UTC'", "SET search_path = ''", "SET datestyle = 'ISO, YMD'", "SET citus.max_intermediate_result_size = '-1'", "SET citus.enable_repartition_joins = 'off'",
	"SET citus.enable_single_hash_repartition_joins = 'off'", "SET citus.local_table_join_policy = 'auto'",
	"SET citus.max_adaptive_executor_pool_size = 1"}

// nodes are the coordinator and the workers, in this order.
func (d *Database) nodes() []*pgx.ConnConfig {
	list := []*pgx.ConnConfig{d.coordinator}
	for _, w := range d.workers {
		at := d.coordinator.Copy()
		at.Host, at.Port = w.host, uint16(w.port)
		for _, other := range at.Fallbacks { // the same without TLS
			other.Host, other.Port = at.Host, at.Port
		}
		list = append(list, at)
	}
	return list
}

func (d *Database) drop(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, at := range d.nodes() {
		run(t, ctx, at, "postgres", "DROP DATABASE IF EXISTS "+d.name+" WITH (FORCE)")
	}
}

// Role makes a role that may log in, on all nodes, and drops it at the test's end.
func (d *Database) Role(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("dpproxy_role_%d_%d", os.Getpid(), made.Add(1))
	for _, at := range d.nodes() {
		run(t, t.Context(), at, "postgres", "SET citus.enable_ddl_propagation = off", "CREATE ROLE "+name+" LOGIN")
	}
	t.Cleanup(func() {
		d.drop(t) // with what the role was granted
		for _, at := range d.nodes() {
			run(t, context.Background(), at, "postgres", "SET citus.enable_ddl_propagation = off", "DROP ROLE "+name)
		}
	})
	return name
}

// Workers is how many workers there are.
func (d *Database) Workers() int { return len(d.workers) }

// Exec runs SQL as superuser on the coordinator; one text may hold several statements, which are then one transaction.
func (d *Database) Exec(t testing.TB, statements ...string) {
	t.Helper()
	d.run(t, d.coordinator, statements)
}

// ExecOn runs SQL as superuser on a worker.
func (d *Database) ExecOn(t testing.TB, worker int, statements ...string) {
	t.Helper()
	d.run(t, d.nodes()[worker+1], statements)
}

func (d *Database) run(t testing.TB, at *pgx.ConnConfig, statements []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	run(t, ctx, at, d.name, statements...)
}

// Connect connects the superuser to the coordinator, until the test ends.
func (d *Database) Connect(t testing.TB) *pgx.Conn {
	t.Helper()
	config := d.coordinator.Copy()
	config.Database = d.name
	conn := connect(t, t.Context(), config)
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// URLFor connects a role to the coordinator.
func (d *Database) URLFor(role string) string {
	u := url.URL{Scheme: "postgres", User: url.User(role), Host: net.JoinHostPort(d.coordinator.Host, strconv.Itoa(int(d.coordinator.Port))),
		Path: "/" + d.name, RawQuery: "sslmode=disable"}
	return u.String()
}

func connect(t testing.TB, ctx context.Context, config *pgx.ConnConfig) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatalf("citustest: %v", err)
	}
	return conn
}

func run(t testing.TB, ctx context.Context, at *pgx.ConnConfig, database string, statements ...string) {
	t.Helper()
	config := at.Copy()
	config.Database = database
	conn := connect(t, ctx, config)
	defer conn.Close(context.WithoutCancel(ctx))
	for _, sql := range statements {
		if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatalf("citustest: %v\n%.2000s", err, sql)
		}
	}
}
