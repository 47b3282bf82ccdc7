package backend

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/jackc/pgx/v5/pgconn"

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

// canary stands in every row of the test data; no log line and no error may hold it.
const canary = "Zyxomma-4711"

// rowsSQL fills both databases alike: 40 people with a key, their visits with duplicates and NULL units, public regions.
var rowsSQL = []string{
	`CREATE TABLE %[1]speople (person_id bigint PRIMARY KEY, age integer, sex text, income numeric(10,2), note text)`,
	`INSERT INTO %[1]speople SELECT i, i * 3 %% 130, CASE WHEN i %% 5 = 0 THEN NULL WHEN i %% 2 = 0 THEN 'Female' WHEN i %% 7 = 0 THEN '` + canary + `' ELSE 'Male' END, i * 1000.5, '` + canary + `' FROM generate_series(1, 40) AS s(i)`,
	`CREATE TABLE %[1]svisits (person_id bigint, clinic text, minutes integer)`,
	`INSERT INTO %[1]svisits SELECT CASE WHEN i %% 11 = 0 THEN NULL ELSE i %% 10 END, CASE WHEN i %% 3 = 0 THEN 'north' ELSE 'south' END, i %% 60 FROM generate_series(1, 100) AS s(i)`,
	`CREATE TABLE %[1]sregions (code text, area integer, share double precision, since date, opened timestamptz, ratio numeric(5,2), open boolean)`,
	`INSERT INTO %[1]sregions VALUES ('north', 61000, 0.5, '2001-02-03', '2020-01-01 10:00:00.5+00', 1.50, true), ('it''s', -1, NULL, NULL, NULL, NULL, NULL)`,
}

// house is one private database for tests, and how to disturb it.
type house struct {
	Backend
	policy *policy.Policy
	log    *logBook
	change func(statement string) // runs a statement as the owner; nil where the database cannot change
	crash  func()
	source func(statement string) // change, of what a snapshot is of
	gone   func()                 // crash, of what a snapshot is of
	lock   func(table string) func()
	role   string
}

// opener and preparer are how the tests of a package open a backend, and have a policy's copy in force: a package of one engine cannot name the others.
var (
	opener   func(ctx context.Context, p *policy.Policy, log *slog.Logger) (Backend, error)
	preparer func(b Backend, p *policy.Policy) error
)

func (h *house) executor() *executor { return executorOf(h.Backend) }

func (h *house) logger() *slog.Logger { return slog.New(slog.NewTextHandler(h.log, nil)) }

// setDeadline changes the owner's deadline; no query runs meanwhile.
func (h *house) setDeadline(d time.Duration) { setDeadline(h.executor(), d) }

// logBook collects log lines of several goroutines.
type logBook struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines.String()
}

// testPolicy describes the tables of rowsSQL.
func testPolicy(t testing.TB, url string) *policy.Policy {
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
		testColumn(t, "age", "integer", policy.OutsideClamp, "0", "119", "1"),
		testColumn(t, "sex", "text", policy.OutsideOther, "Female", "Male"),
		testColumn(t, "income", "numeric(10,2)", policy.OutsideClamp, "0", "50000", "1000"))
	add("visits", "person_id", false,
		testColumn(t, "clinic", "text", policy.OutsideOther, "north", "south"),
		testColumn(t, "minutes", "integer", policy.OutsideClamp, "0", "59", "1"))
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

// testColumn takes the values of an enumerated column, or least, most and step of an ordered one.
func testColumn(t testing.TB, name, kind string, outside policy.OutsideRule, domain ...string) *policy.Column {
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

// measure counts a table's rows by the cells of the named columns.
func measure(t testing.TB, p *policy.Policy, table string, grain ...string) *plans.Measure {
	m := &plans.Measure{Table: p.Datasets[0].Table("", table), Counters: []predicate.Pred{nil}, Kind: "count"}
	for _, g := range grain {
		m.Grain = append(m.Grain, m.Table.Column(g))
	}
	copy(m.Digest[:], table+strings.Join(grain, ","))
	m.Spec = mechanisms.Spec{Counters: 1, Cells: 1}
	return m
}

func render(t testing.TB, m *plans.Measure, b Backend) rewrite.Query {
	t.Helper()
	q, err := rewrite.Render(m, b.Dialect())
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// execute runs the query of one measure on its receipt.
func execute(t testing.TB, b Backend, q rewrite.Query, receipt *ledger.Receipt) (privacy.Sensitive[[]privacy.Group], error) {
	t.Helper()
	counted, err := b.Execute(t.Context(), q, []*ledger.Receipt{receipt}, 0)
	if err != nil {
		return privacy.Sensitive[[]privacy.Group]{}, err
	}
	return counted[0], nil
}

// counts runs a query as Execute does, without the seal, and writes its groups as "cells: counts", sorted.
func counts(t testing.TB, h *house, q rewrite.Query) []string {
	t.Helper()
	var list []string
	for _, g := range detached(t.Context(), h.executor(), q, 0)[q.Number()] {
		list = append(list, fmt.Sprintf("%v: %v", g.Cells, g.Counts))
	}
	slices.Sort(list)
	return list
}

func duckHouse(t *testing.T) *house { return duckHouseWith(t) }

// duckHouseWith has more in its file.
func duckHouseWith(t *testing.T, more ...string) *house {
	t.Helper()
	h := open(t, testPolicy(t, "duckdb:"+duckFileWith(t, more...)))
	h.crash = func() { h.Close() }
	return h
}

// duckFileWith is a file of the rows, and more.
func duckFileWith(t *testing.T, more ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "it's private.duckdb")
	db, err := sql.Open("duckdb", file)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range rowsSQL {
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

// ofSnapshots is a house of which a snapshot is in force.
func ofSnapshots(t *testing.T, h *house) *house {
	t.Helper()
	prepare(t, h)
	h.change, h.crash = nil, func() { h.Close() }
	return h
}

// duckSnapshotHouse is a snapshot of duckHouse's file.
func duckSnapshotHouse(t *testing.T) *house {
	t.Helper()
	file := duckFileWith(t)
	p := testPolicy(t, "duckdb:"+file)
	p.Backend.Snapshot = testSnapshot(t)
	h := open(t, p)
	h.source = func(statement string) { runDuck(t, file, statement) }
	h.gone = func() { remove(t, file) }
	return ofSnapshots(t, h)
}

// filesHouse is a snapshot of the same rows in a Parquet file and two of CSV; source writes them anew after a statement.
func filesHouse(t *testing.T) *house {
	t.Helper()
	file, dir := duckFileWith(t), t.TempDir()
	p := testPolicy(t, "duckdb:")
	p.Backend.Snapshot, p.Backend.Files = testSnapshot(t), map[string]string{}
	for _, table := range p.Datasets[0].Tables {
		table.Source.Schema, table.File = "main", filepath.Join(dir, table.Name+".csv")
		if table.Name == "people" {
			table.File = filepath.Join(dir, "people.parquet")
		}
		p.Backend.Files[table.Name] = table.File
	}
	write := func(statement string) {
		runDuck(t, file, statement)
		for name, to := range p.Backend.Files {
			runDuck(t, file, "COPY "+name+" TO '"+to+".new' (FORMAT "+strings.TrimPrefix(filepath.Ext(to), ".")+")")
			if err := os.Rename(to+".new", to); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("SELECT 1")
	h := open(t, p)
	h.source, h.gone = write, func() { remove(t, p.Backend.Files["people"]) }
	return ofSnapshots(t, h)
}

func testSnapshot(t *testing.T) *policy.Snapshot {
	return &policy.Snapshot{Dir: filepath.Join(t.TempDir(), "snapshots"), Every: 24 * time.Hour, Within: 3 * time.Second}
}

func runDuck(t *testing.T, file, statement string) {
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

// snapshotHouse is a snapshot of postgresHouse's database, which does not change.
func snapshotHouse(t *testing.T) *house {
	t.Helper()
	return ofSnapshots(t, postgresHouseOf(t, testSnapshot(t)))
}

func prepare(t *testing.T, h *house) {
	t.Helper()
	for _, d := range h.policy.Datasets {
		findings, err := h.Inspect(context.Background(), h.policy, d)
		if err != nil || fatal(findings) {
			t.Fatal(findings, err)
		}
	}
	if err := preparer(h.Backend, h.policy); err != nil {
		t.Fatal(err)
	}
	h.Adopt(h.policy)
}

func postgresHouse(t *testing.T) *house { return postgresHouseOf(t, nil) }

func postgresHouseOf(t testing.TB, s *policy.Snapshot) *house {
	t.Helper()
	server := pgtest.Shared(t)
	role := server.Role(t, "")
	database := server.Database(t)
	for _, s := range rowsSQL {
		server.Exec(t, database, fmt.Sprintf(s, "public."))
	}
	server.Exec(t, database, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)
	p := testPolicy(t, server.URLFor(role, database))
	p.Backend.Snapshot = s
	h := open(t, p)
	h.change = func(statement string) { server.Exec(t, database, statement) }
	h.crash = func() { // no connection is let in any more
		server.Exec(t, "postgres", "ALTER ROLE "+role+" NOLOGIN",
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+role+"'")
	}
	h.source, h.gone, h.role = h.change, h.crash, role
	h.lock = func(table string) func() {
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

func open(t testing.TB, p *policy.Policy) *house {
	t.Helper()
	h := &house{policy: p, log: &logBook{}}
	var err error
	if h.Backend, err = opener(context.Background(), p, h.logger()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Close()
		if strings.Contains(h.log.String(), canary) {
			t.Error("the log holds a value of the private database")
		}
	})
	return h
}

// sparkRows has a server read rowsSQL's tables from Parquet files that DuckDB writes, in a database of its own.
func sparkRows(t *testing.T, server *sparktest.Server) (database, dir string) {
	t.Helper()
	database, dir = server.Database(t), t.TempDir()
	file := duckFileWith(t)
	for _, table := range [][2]string{
		{"people", "person_id BIGINT, age INT, sex STRING, income DECIMAL(10,2), note STRING"},
		{"visits", "person_id BIGINT, clinic STRING, minutes INT"},
		{"regions", "code STRING, area INT, share DOUBLE, since DATE, opened TIMESTAMP, ratio DECIMAL(5,2), open BOOLEAN"},
	} {
		at := filepath.Join(dir, table[0])
		runDuck(t, file, "COPY "+table[0]+" TO '"+at+"' (FORMAT parquet, PER_THREAD_OUTPUT true)")
		server.Exec(t, "CREATE TABLE "+database+"."+table[0]+" ("+table[1]+") USING PARQUET LOCATION 'file:"+at+"'")
	}
	return database, dir
}

func sparkHouse(t *testing.T) *house {
	t.Helper()
	return sparkHouseOn(t, sparktest.Shared(t))
}

func sparkHouseOn(t *testing.T, server *sparktest.Server) *house {
	t.Helper()
	database, _ := sparkRows(t, server)
	p := testPolicy(t, server.URL(database))
	for _, table := range p.Datasets[0].Tables {
		table.Source.Schema, table.Static = database, !table.Public
	}
	h := open(t, p)
	h.setDeadline(5 * time.Minute) // a server that has just started, on a machine that has other work
	h.change = func(statement string) { server.Exec(t, statement) }
	h.crash = func() { h.Backend.(*Spark).config.Address = "127.0.0.1:1" }
	return h
}

// inspect returns the findings as lines, the fatal ones marked. The policy is in force then.
func inspect(t *testing.T, h *house) string {
	t.Helper()
	findings, err := h.Inspect(context.Background(), h.policy, h.policy.Datasets[0])
	if err != nil {
		t.Fatal(err)
	}
	h.Adopt(h.policy)
	var text strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&text, "fatal=%v %s\n", f.Fatal, f.Text)
	}
	return text.String()
}

// mariaHouse is a snapshot of the same rows in MariaDB.
func mariaHouse(t *testing.T) *house { return ofSnapshots(t, mariaHouseOf(t, mariadbtest.Shared(t))) }

// mariaHouseOf is one of which no snapshot is in force.
func mariaHouseOf(t *testing.T, server *mariadbtest.Server) *house {
	t.Helper()
	database := server.Database(t)
	role := server.Role(t, database)
	change := func(statement string) { server.ExecIn(t, database, statement) }
	for _, s := range mariaSQL {
		change(s)
	}
	p := testPolicy(t, server.URL(role, database))
	p.Backend.Snapshot = testSnapshot(t)
	for _, table := range p.Datasets[0].Tables {
		table.Source.Schema = database
	}
	h := open(t, p)
	h.source, h.role = change, role
	h.gone = func() { // no connection is let in any more
		server.Exec(t, "ALTER USER "+role+"@'127.0.0.1' ACCOUNT LOCK")
	}
	return h
}
