// Package backendtest is what the tests of engines share: the same rows in each, and a house, which is one of them
// opened and how to disturb it.
package backendtest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/mariadbtest"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/backend/sparktest"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// Canary is in every row of the test data; no log line and no error may hold it.
const Canary = "Zyxomma-4711"

// RowsSQL fills both databases alike: 40 people with a key, their visits with duplicates and NULL units, public
// regions.
var RowsSQL = []string{
	`CREATE TABLE %[1]speople (person_id bigint PRIMARY KEY, age integer, sex text, income numeric(10,2), note text)`,
	`INSERT INTO %[1]speople SELECT i, i * 3 %% 130, CASE WHEN i %% 5 = 0 THEN NULL WHEN i %% 2 = 0 THEN 'Female' WHEN i %% 7 = 0 THEN '` + Canary + `' ELSE 'Male' END, i * 1000.5, '` + Canary + `' FROM generate_series(1, 40) AS s(i)`,
	`CREATE TABLE %[1]svisits (person_id bigint, clinic text, minutes integer)`,
	`INSERT INTO %[1]svisits SELECT CASE WHEN i %% 11 = 0 THEN NULL ELSE i %% 10 END, CASE WHEN i %% 3 = 0 THEN 'north' ELSE 'south' END, i %% 60 FROM generate_series(1, 100) AS s(i)`,
	`CREATE TABLE %[1]sregions (code text, area integer, share double precision, since date, opened timestamptz, ratio numeric(5,2), open boolean)`,
	`INSERT INTO %[1]sregions VALUES ('north', 61000, 0.5, '2001-02-03', '2020-01-01 10:00:00.5+00', 1.50, true), ('it''s', -1, NULL, NULL, NULL, NULL, NULL)`,
}

// House is one private database for tests, and how to disturb it.
type House struct {
	backend.Backend
	Policy *policy.Policy
	Log    *LogBook
	Change func(statement string) // runs a statement as the owner; nil where the database cannot change
	Crash  func()
	Source func(statement string) // change, of what a snapshot is of
	Gone   func()                 // crash, of what a snapshot is of
	Lock   func(table string) func()
	Role   string
}

// Opener is how the tests of a package open a backend: a package of one engine cannot name the others.
var Opener func(ctx context.Context, p *policy.Policy, log *slog.Logger) (backend.Backend, error)

// Executor is what runs its paid queries.
func (h *House) Executor() *execute.Executor { return execute.ExecutorOf(h.Backend) }

// Logger writes into its log.
func (h *House) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(h.Log, nil)) }

// SetDeadline changes the owner's deadline; no query runs meanwhile.
func (h *House) SetDeadline(d time.Duration) { execute.SetDeadline(h.Executor(), d) }

// LogBook collects log lines of several goroutines.
type LogBook struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (b *LogBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines.Write(p)
}

func (b *LogBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines.String()
}

// TestPolicy describes the tables of RowsSQL.
func TestPolicy(t testing.TB, url string) *policy.Policy {
	d := &policy.Dataset{ID: "clinic", Unit: policy.Unit{Name: "person", Table: "people", Column: "person_id"}, Neighbors: privacy.AddRemove}
	add := func(name, unit string, public bool, columns ...*policy.Column) {
		table := &policy.Table{Dataset: d, Name: name, Schema: "public", Source: policy.Source{Name: name}, UnitColumn: unit,
			MaxRowsPerUnit: 1, MaxRows: 100, Public: public, Columns: columns}
		for _, c := range columns {
			c.Table = table
		}
		d.Tables = append(d.Tables, table)
	}
	add("people", "person_id", false,
		TestColumn(t, "age", "integer", policy.OutsideClamp, "0", "119", "1"),
		TestColumn(t, "sex", "text", policy.OutsideOther, "Female", "Male"),
		TestColumn(t, "income", "numeric(10,2)", policy.OutsideClamp, "0", "50000", "1000"))
	add("visits", "person_id", false,
		TestColumn(t, "clinic", "text", policy.OutsideOther, "north", "south"),
		TestColumn(t, "minutes", "integer", policy.OutsideClamp, "0", "59", "1"))
	d.Tables[1].MaxRowsPerUnit = 3
	var open []*policy.Column
	for _, c := range [][2]string{{"code", "text"}, {"area", "integer"}, {"share", "double precision"}, {"since", "date"}, {"opened", "timestamptz"}, {"ratio", "numeric(5,2)"}, {"open", "boolean"}} {
		typ, typmod, err := policy.ParseType(c[1])
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, &policy.Column{Name: c[0], Source: c[0], Type: typ, Typmod: typmod})
	}
	add("regions", "", true, open...)
	return &policy.Policy{Backend: policy.Backend{URL: url, Deadline: 20 * time.Second}, Datasets: []*policy.Dataset{d}}
}

// TestColumn takes the values of an enumerated column, or least, most and step of an ordered one.
func TestColumn(t testing.TB, name, kind string, outside policy.OutsideRule, domain ...string) *policy.Column {
	t.Helper()
	typ, typmod, err := policy.ParseType(kind)
	if err != nil {
		t.Fatal(err)
	}
	rules := policy.Rules{Nulls: policy.NullCell, Outside: outside}
	c := &policy.Column{Name: name, Source: name, Type: typ, Typmod: typmod, Nulls: rules.Nulls, Outside: outside}
	if typ.Textual() {
		c.Domain, err = policy.Enumerate(typ, domain, rules)
	} else {
		var ends [3]policy.Value
		for i := range ends {
			if ends[i], err = policy.ParseValue(typ, domain[i]); err != nil {
				t.Fatal(err)
			}
		}
		step := policy.Step{}
		step.Whole, _ = ends[2].(int64)
		step.Decimal, _ = ends[2].(policy.Numeric)
		c.Domain, err = policy.Steps(typ, typmod, ends[0], ends[1], step, rules)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Measure counts a table's rows by the cells of the named columns.
func Measure(t testing.TB, p *policy.Policy, table string, grain ...string) *plans.Measure {
	m := &plans.Measure{Table: p.Datasets[0].Table("", table), Counters: []predicate.Pred{nil}, Kind: "count"}
	for _, g := range grain {
		m.Grain = append(m.Grain, m.Table.Column(g))
	}
	copy(m.Digest[:], table+strings.Join(grain, ","))
	m.Spec = mechanisms.Spec{Counters: 1, Cells: 1}
	return m
}

// Render writes the query of a measure.
func Render(t testing.TB, m *plans.Measure, b backend.Backend) rewrite.Query {
	t.Helper()
	q, err := rewrite.Render(m, b.Dialect())
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// Execute runs the query of one measure on its receipt.
func Execute(t testing.TB, b backend.Backend, q rewrite.Query, receipt *ledger.Receipt) (privacy.Sensitive[[]privacy.Group], error) {
	t.Helper()
	counted, err := b.Execute(t.Context(), q, []*ledger.Receipt{receipt}, 0)
	if err != nil {
		return privacy.Sensitive[[]privacy.Group]{}, err
	}
	return counted[0], nil
}

// Counts runs a query as Execute does, without the seal, and writes its groups as "cells: counts", sorted.
func Counts(t testing.TB, h *House, q rewrite.Query) []string {
	t.Helper()
	var list []string
	for _, g := range execute.Detached(t.Context(), h.Executor(), q, 0)[q.Number()] {
		list = append(list, fmt.Sprintf("%v: %v", g.Cells, g.Counts))
	}
	slices.Sort(list)
	return list
}

// DuckHouse is a DuckDB file of the rows.
func DuckHouse(t *testing.T) *House { return DuckHouseWith(t) }

// DuckHouseWith has more in its file.
func DuckHouseWith(t *testing.T, more ...string) *House {
	t.Helper()
	h := Open(t, TestPolicy(t, "duckdb:"+DuckFileWith(t, more...)))
	h.Crash = func() { h.Close() }
	return h
}

// DuckFileWith is a file of the rows, and more.
func DuckFileWith(t *testing.T, more ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "it's private.duckdb")
	db, err := sql.Open("duckdb", file)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range RowsSQL {
		if _, err := db.Exec(fmt.Sprintf(s, "")); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range more {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// OfSnapshots is a house of which a snapshot is in force.
func OfSnapshots(t *testing.T, h *House) *House {
	t.Helper()
	Prepare(t, h)
	h.Change, h.Crash = nil, func() { h.Close() }
	return h
}

// DuckSnapshotHouse is a snapshot of DuckHouse's file.
func DuckSnapshotHouse(t *testing.T) *House {
	t.Helper()
	file := DuckFileWith(t)
	p := TestPolicy(t, "duckdb:"+file)
	p.Backend.Snapshot = TestSnapshot(t)
	h := Open(t, p)
	h.Source = func(statement string) { RunDuck(t, file, statement) }
	h.Gone = func() { remove(t, file) }
	return OfSnapshots(t, h)
}

// FilesHouse is a snapshot of the same rows in a Parquet file and two of CSV; source writes them anew after a
// statement.
func FilesHouse(t *testing.T) *House {
	t.Helper()
	file, dir := DuckFileWith(t), t.TempDir()
	p := TestPolicy(t, "duckdb:")
	p.Backend.Snapshot, p.Backend.Files = TestSnapshot(t), map[string]string{}
	for _, table := range p.Datasets[0].Tables {
		table.Source.Schema, table.File = "main", filepath.Join(dir, table.Name+".csv")
		if table.Name == "people" {
			table.File = filepath.Join(dir, "people.parquet")
		}
		p.Backend.Files[table.Name] = table.File
	}
	write := func(statement string) {
		RunDuck(t, file, statement)
		for name, to := range p.Backend.Files {
			RunDuck(t, file, "COPY "+name+" TO '"+to+".new' (FORMAT "+strings.TrimPrefix(filepath.Ext(to), ".")+")")
			if err := os.Rename(to+".new", to); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("SELECT 1")
	h := Open(t, p)
	h.Source, h.Gone = write, func() { remove(t, p.Backend.Files["people"]) }
	return OfSnapshots(t, h)
}

// TestSnapshot is how a policy of tests has copies made.
func TestSnapshot(t *testing.T) *policy.Snapshot {
	return &policy.Snapshot{Dir: filepath.Join(t.TempDir(), "snapshots"), Every: 24 * time.Hour, Within: 3 * time.Second}
}

// RunDuck runs a statement on a DuckDB file.
func RunDuck(t *testing.T, file, statement string) {
	t.Helper()
	db, err := sql.Open("duckdb", file)
	if err == nil {
		_, err = db.Exec(statement)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, file string) {
	if err := os.Remove(file); err != nil {
		t.Error(err)
	}
}

// SnapshotHouse is a snapshot of PostgresHouse's database, which does not change.
func SnapshotHouse(t *testing.T) *House {
	t.Helper()
	return OfSnapshots(t, PostgresHouseOf(t, TestSnapshot(t)))
}

// Prepare inspects the policy and puts its copy in force.
func Prepare(t *testing.T, h *House) {
	t.Helper()
	for _, d := range h.Policy.Datasets {
		findings, err := h.Inspect(context.Background(), h.Policy, d)
		if err != nil || slices.ContainsFunc(findings, func(f backend.Finding) bool { return f.Fatal }) {
			t.Fatal(findings, err)
		}
	}
	if err := Adopted(h.Backend, h.Policy); err != nil {
		t.Fatal(err)
	}
	h.Adopt(h.Policy)
}

// Adopted has a policy's copy in force.
func Adopted(b backend.Backend, p *policy.Policy) error {
	copies, err := b.(backend.Copies).Prepare(context.Background(), p)
	if err == nil {
		copies.PutInForce()
	}
	return err
}

// PostgresHouse is a PostgreSQL database of the rows.
func PostgresHouse(t *testing.T) *House { return PostgresHouseOf(t, nil) }

// PostgresHouseOf is one that is copied if s is not nil.
func PostgresHouseOf(t testing.TB, s *policy.Snapshot) *House {
	t.Helper()
	server := pgtest.Shared(t)
	role := server.Role(t, "")
	database := server.Database(t)
	for _, s := range RowsSQL {
		server.Exec(t, database, fmt.Sprintf(s, "public."))
	}
	server.Exec(t, database, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)
	p := TestPolicy(t, server.URLFor(role, database))
	p.Backend.Snapshot = s
	h := Open(t, p)
	h.Change = func(statement string) { server.Exec(t, database, statement) }
	h.Crash = func() { // no connection is let in any more
		server.Exec(t, "postgres", "ALTER ROLE "+role+" NOLOGIN",
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+role+"'")
	}
	h.Source, h.Gone, h.Role = h.Change, h.Crash, role
	h.Lock = func(table string) func() {
		conn, err := pgconn.Connect(context.Background(), server.URLFor("postgres", database))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(context.Background(), "BEGIN; LOCK TABLE "+table).ReadAll(); err != nil {
			t.Fatal(err)
		}
		return func() { conn.Close(context.Background()) }
	}
	return h
}

// Open opens the private database of a policy, by Opener.
func Open(t testing.TB, p *policy.Policy) *House {
	t.Helper()
	h := &House{Policy: p, Log: &LogBook{}}
	var err error
	if h.Backend, err = Opener(context.Background(), p, h.Logger()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Close()
		if strings.Contains(h.Log.String(), Canary) {
			t.Error("the log holds a value of the private database")
		}
	})
	return h
}

// SparkRows has a server read RowsSQL's tables from Parquet files that DB writes, in a database of its own.
func SparkRows(t *testing.T, server *sparktest.Server) (database, dir string) {
	t.Helper()
	database, dir = server.Database(t), t.TempDir()
	file := DuckFileWith(t)
	for _, table := range [][2]string{
		{"people", "person_id BIGINT, age INT, sex STRING, income DECIMAL(10,2), note STRING"},
		{"visits", "person_id BIGINT, clinic STRING, minutes INT"},
		{"regions", "code STRING, area INT, share DOUBLE, since DATE, opened TIMESTAMP, ratio DECIMAL(5,2), open BOOLEAN"},
	} {
		at := filepath.Join(dir, table[0])
		RunDuck(t, file, "COPY "+table[0]+" TO '"+at+"' (FORMAT parquet, PER_THREAD_OUTPUT true)")
		server.Exec(t, "CREATE TABLE "+database+"."+table[0]+" ("+table[1]+") USING PARQUET LOCATION 'file:"+at+"'")
	}
	return database, dir
}

// SparkHouse has the rows in Parquet files that Spark reads.
func SparkHouse(t *testing.T) *House {
	t.Helper()
	return SparkHouseOn(t, sparktest.Shared(t))
}

// SparkHouseOn has them on one of several servers.
func SparkHouseOn(t *testing.T, server *sparktest.Server) *House {
	t.Helper()
	database, _ := SparkRows(t, server)
	through, end := relay(t, server.Config().Address)
	p := TestPolicy(t, strings.Replace(server.URL(database), server.Config().Address, through, 1))
	for _, table := range p.Datasets[0].Tables {
		table.Source.Schema, table.Static = database, !table.Public
	}
	h := Open(t, p)
	h.SetDeadline(5 * time.Minute) // a server that has just started, on a machine that has other work
	h.Change = func(statement string) { server.Exec(t, statement) }
	h.Crash = end
	return h
}

// relay hands on what is said to an address, until it ends.
func relay(t *testing.T, to string) (address string, end func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				continue
			}
			hand := func(from, into net.Conn) {
				_, _ = io.Copy(into, from)
				into.Close()
			}
			go hand(client, server)
			go hand(server, client)
		}
	}()
	end = func() { l.Close() }
	t.Cleanup(end)
	return l.Addr().String(), end
}

// Inspect returns the findings as lines, the fatal ones marked. The policy is in force then.
func Inspect(t *testing.T, h *House) string {
	t.Helper()
	findings, err := h.Inspect(context.Background(), h.Policy, h.Policy.Datasets[0])
	if err != nil {
		t.Fatal(err)
	}
	h.Adopt(h.Policy)
	var text strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&text, "fatal=%v %s\n", f.Fatal, f.Text)
	}
	return text.String()
}

// MariaHouse is a snapshot of the same rows in MariaDB.
func MariaHouse(t *testing.T) *House { return OfSnapshots(t, MariaHouseOf(t, mariadbtest.Shared(t))) }

// MariaHouseOf is one of which no snapshot is in force.
func MariaHouseOf(t *testing.T, server *mariadbtest.Server) *House {
	t.Helper()
	database := server.Database(t)
	role := server.Role(t, database)
	change := func(statement string) { server.ExecIn(t, database, statement) }
	for _, s := range mariaSQL {
		change(s)
	}
	p := TestPolicy(t, server.URL(role, database))
	p.Backend.Snapshot = TestSnapshot(t)
	for _, table := range p.Datasets[0].Tables {
		table.Source.Schema = database
	}
	h := Open(t, p)
	h.Source, h.Role = change, role
	h.Gone = func() { // no connection is let in any more
		server.Exec(t, "ALTER USER "+role+"@'127.0.0.1' ACCOUNT LOCK")
	}
	return h
}

// mariaSQL is RowsSQL for MariaDB.
var mariaSQL = []string{
	"CREATE TABLE people (person_id bigint PRIMARY KEY, age int, sex text, income decimal(10,2), note text)",
	"INSERT INTO people SELECT seq, seq * 3 % 130, CASE WHEN seq % 5 = 0 THEN NULL WHEN seq % 2 = 0 THEN 'Female' WHEN seq % 7 = 0 THEN '" + Canary + "' ELSE 'Male' END, seq * 1000.5, '" + Canary + "' FROM seq_1_to_40",
	"CREATE TABLE visits (person_id bigint, clinic text, minutes int)",
	"INSERT INTO visits SELECT CASE WHEN seq % 11 = 0 THEN NULL ELSE seq % 10 END, CASE WHEN seq % 3 = 0 THEN 'north' ELSE 'south' END, seq % 60 FROM seq_1_to_100",
	"CREATE TABLE regions (code text, area int, share double, since date, opened timestamp(6) NULL, ratio decimal(5,2), open boolean)",
	"INSERT INTO regions VALUES ('north', 61000, 0.5, '2001-02-03', '2020-01-01 10:00:00.5', 1.50, true), ('it''s', -1, NULL, NULL, NULL, NULL, NULL)",
}

// LeveledPolicy has a level, at which users have policies of their own.
const LeveledPolicy = `version: 1
backend: {url: "duckdb:clinic.duckdb"}
ledger: {url: "sqlite:ledger.db"}
users: []
datasets:
  - id: clinic
    unit: {name: person, key: people.person_id}
    accountant: pure
    cap: {epsilon: 3}
    levels: {guests: 0.1}
    budgets: {"*": {epsilon: 1, level: guests}}
    tables:
      - name: people
        max_rows_per_unit: 1
        columns: [{name: age, type: integer, domain: {min: 0, max: 99, step: 1}}]
        releases: [{kind: histogram, columns: [age], epsilon: 0.5}]
`

// Discard writes no log.
func Discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
