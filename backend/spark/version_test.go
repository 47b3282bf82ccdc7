package spark

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/hive"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/sparktest"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// format is a format of tables with versions, in tests.
type format struct {
	name, catalog string
	database      string
	h             *backendtest.House
	server        *sparktest.Server
	other         string // the database of the same rows in Parquet files
}

// formats are houses over tables of Iceberg and of Delta, filled with the rows of RowsSQL.
func formats(t *testing.T) []*format {
	t.Helper()
	server := sparktest.Shared(t)
	sparktest.Formats(t)
	other, _ := backendtest.SparkRows(t, server)
	list := []*format{{name: "iceberg", catalog: sparktest.Lake}, {name: "delta", catalog: "spark_catalog"}}
	for _, f := range list {
		f.server, f.other, f.database = server, other, server.Database(t)
		if f.catalog == sparktest.Lake {
			server.Exec(t, "CREATE NAMESPACE IF NOT EXISTS lake."+f.database)
		}
		for _, table := range []string{"people", "visits", "regions"} {
			server.Exec(t, "CREATE TABLE "+f.table(table)+" USING "+f.name+" AS SELECT * FROM "+other+"."+table)
		}
		f.open(t)
	}
	return list
}

func (f *format) table(name string) string { return f.catalog + "." + f.database + "." + name }

// open opens a house over the tables, and inspects them.
func (f *format) open(t *testing.T) {
	t.Helper()
	p := backendtest.TestPolicy(t, f.server.URL(f.database)+"&catalog="+f.catalog)
	for _, table := range p.Datasets[0].Tables {
		table.Source.Schema = f.database
	}
	f.h = backendtest.Open(t, p)
	f.h.SetDeadline(5 * time.Minute)
}

// statement begins one: the moment of its rows, and its end.
func (f *format) statement(t *testing.T, queries ...rewrite.Query) (moment int64, leave func()) {
	t.Helper()
	asOf, left, err := f.h.Admit(t.Context(), 0, f.h.Policy)
	if err != nil {
		t.Fatal(err)
	}
	return asOf(queries...), func() { left(time.Now()) }
}

func (f *format) ready(t *testing.T, queries ...rewrite.Query) {
	t.Helper()
	if err := f.h.Ready(t.Context(), queries...); err != nil {
		t.Fatalf("%s: %v\n%s", f.name, err, f.h.Log)
	}
}

// numbers are the numbers of a table's versions.
func (f *format) numbers(t *testing.T, name string) (list []string) {
	t.Helper()
	text := map[string]string{"iceberg": "SELECT snapshot_id FROM " + f.table(name) + ".snapshots", "delta": "DESCRIBE HISTORY " + f.table(name)}[f.name]
	if err := f.server.Query(t, text, func(r hive.Row) error { list = append(list, fmt.Sprint(r[0].Whole)); return nil }); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestSparkVersions: tables of both formats are read by version.
func TestSparkVersions(t *testing.T) {
	for _, f := range formats(t) {
		t.Run(f.name, func(t *testing.T) {
			for _, part := range []struct {
				name string
				test func(*testing.T, *format)
			}{{"nothing", versionsOfNothing}, {"moment", versionsOfAMoment}, {"gone", versionsThatAreGone}} {
				f.open(t)
				t.Run(part.name, func(t *testing.T) { part.test(t, f) })
			}
		})
	}
}

// versionsOfAMoment: all queries of a statement count the rows that were there when it was admitted, whatever is
// written meanwhile, and the next statement's count what is there then.
func versionsOfAMoment(t *testing.T, f *format) {
	h := f.h
	if got := backendtest.Inspect(t, h); strings.Contains(got, "fatal=true") || !strings.Contains(got, "table people: each statement reads the version that is current when it is admitted ("+f.name+")") {
		t.Fatalf("check says\n%s", got)
	}
	people, visits := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h), backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits", "clinic"), h)
	before := backendtest.Counts(t, h, visits)
	moment, leave := f.statement(t, people, visits)
	if moment == 0 {
		t.Fatal("the statement's rows are of no moment")
	}
	f.ready(t, people.Of(moment), visits.Of(moment))
	f.server.Exec(t, "INSERT INTO "+f.table("people")+" SELECT person_id + 1000, age, sex, income, note FROM "+f.table("people"), "DELETE FROM "+f.table("visits")+" WHERE clinic = 'north'")
	for range 2 {
		if got := backendtest.Counts(t, h, people.Of(moment)); !slices.Equal(got, []string{"[]: [40]"}) {
			t.Errorf("people of the statement's moment: %v", got)
		}
	}
	if got := backendtest.Counts(t, h, visits.Of(moment)); !slices.Equal(got, before) {
		t.Errorf("visits of the statement's moment: %v, before %v", got, before)
	}
	next, left := f.statement(t, people, visits)
	if next <= moment {
		t.Errorf("the next statement's moment is %d, after %d", next, moment)
	}
	f.ready(t, people.Of(next))
	if got := backendtest.Counts(t, h, people.Of(next)); !slices.Equal(got, []string{"[]: [80]"}) {
		t.Errorf("people of the next statement: %v", got)
	}
	if got := backendtest.Counts(t, h, visits.Of(next)); slices.Equal(got, before) {
		t.Errorf("visits of the next statement: %v", got)
	}
	leave()
	left()
	if b := h.Backend.(*DB); len(b.reads) != 0 {
		t.Errorf("%d statements are kept", len(b.reads))
	}
	if got := backendtest.Counts(t, h, people.Of(moment)); len(got) != 0 || !strings.Contains(h.Log.String(), "privacy rule 5") {
		t.Errorf("a statement that is over: %v", got)
	}
	if got := backendtest.Counts(t, h, people); !slices.Equal(got, []string{"[]: [80]"}) {
		t.Errorf("a query of no statement: %v", got)
	}
	for _, number := range append(f.numbers(t, "people"), f.numbers(t, "visits")...) {
		if len(number) > 6 && strings.Contains(h.Log.String(), number) {
			t.Errorf("the log has a version's number:\n%s", h.Log)
		}
	}
}

// versionsThatAreGone: a version that is expired within a statement gives no groups and an alert after the charge, and
// a plain error before.
func versionsThatAreGone(t *testing.T, f *format) {
	h := f.h
	backendtest.Inspect(t, h)
	people := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "sex"), h)
	moment, leave := f.statement(t, people)
	defer leave()
	f.ready(t, people.Of(moment))
	f.server.Exec(t, "DELETE FROM "+f.table("people")+" WHERE sex = 'Male'")
	if f.name == "iceberg" {
		f.server.Exec(t, "CALL lake.system.expire_snapshots(table => '"+f.database+".people', older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)")
	} else {
		f.server.Exec(t, "SET spark.databricks.delta.retentionDurationCheck.enabled=false", "VACUUM "+f.table("people")+" RETAIN 0 HOURS")
	}
	if got := backendtest.Counts(t, h, people.Of(moment)); len(got) != 0 || !strings.Contains(h.Log.String(), "privacy rule 5") || strings.Contains(h.Log.String(), backendtest.Canary) {
		t.Errorf("it counts %v, and the log is\n%s", got, h.Log)
	}
	if f.name == "iceberg" { // Delta's plan looks for no file
		if err := h.Ready(t.Context(), people.Of(moment)); err != backend.ErrUnplanned {
			t.Errorf("before the charge: %v", err)
		}
	}
	next, left := f.statement(t, people)
	defer left()
	f.ready(t, people.Of(next))
	if got := backendtest.Counts(t, h, people.Of(next)); len(got) == 0 {
		t.Error("the next statement counts nothing")
	}
}

// versionsOfNothing: a table that nothing has been written to has no version in Iceberg, and is read as it was when the
// statement was admitted all the same.
func versionsOfNothing(t *testing.T, f *format) {
	f.server.Exec(t, "CREATE TABLE "+f.table("fresh")+" (person_id BIGINT, age INT, sex STRING, income DECIMAL(10,2)) USING "+f.name)
	h := f.h
	h.Policy.Datasets[0].Tables[0].Source.Name = "fresh"
	if got := backendtest.Inspect(t, h); strings.Contains(got, "fatal=true") {
		t.Fatal(got)
	}
	people := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)
	moment, leave := f.statement(t, people)
	defer leave()
	f.ready(t, people.Of(moment))
	f.server.Exec(t, "INSERT INTO "+f.table("fresh")+" VALUES (1, 2, 'Male', 3)")
	if got := backendtest.Counts(t, h, people.Of(moment)); !slices.Equal(got, []string{"[]: [0]"}) || strings.Contains(h.Log.String(), "privacy rule 5") {
		t.Errorf("it counts %v\n%s", got, h.Log)
	}
	if got := backendtest.Counts(t, h, people); !slices.Equal(got, []string{"[]: [1]"}) {
		t.Errorf("afterwards it counts %v", got)
	}
}

// TestSparkParquetMustBeStatic: of a table without versions whose rows may change nothing is asked.
func TestSparkParquetMustBeStatic(t *testing.T) {
	h := backendtest.SparkHouse(t)
	h.Policy.Datasets[0].Tables[0].Static = false
	if got := backendtest.Inspect(t, h); !strings.Contains(got, "fatal=true table people is of Parquet files, of which a query reads no one version") {
		t.Errorf("check says\n%s", got)
	}
	asOf, leave, err := h.Admit(t.Context(), 0, h.Policy)
	if err != nil || asOf() != 0 {
		t.Errorf("rows of files that do not change are of a moment: %v", err)
	}
	leave(time.Time{})
}

// TestSparkReadsTheStatementsVersion: what was looked up for a statement is what its queries name, and a statement that
// is over reads nothing.
func TestSparkReadsTheStatementsVersion(t *testing.T) {
	p := backendtest.TestPolicy(t, "spark://me@127.0.0.1/shop")
	for _, table := range p.Datasets[0].Tables {
		table.Source.Schema = "shop"
	}
	b := &DB{words: dialect.SparkIn("lake"), reads: map[int64]*reading{}}
	b.Executor = execute.NewExecutor(b.Dialect, b.groups, 0, nil, 1)
	q, err := rewrite.Render(backendtest.Measure(t, p, "people"), b.Dialect())
	if err != nil {
		t.Fatal(err)
	}
	key := keyOf(q.Table())
	b.pins.Note(p, q.Table().Dataset, map[string]relation{key: {provider: "iceberg"}})
	asOf, leave, err := b.Admit(t.Context(), 0, p)
	if err != nil {
		t.Fatal(err)
	}
	moment := asOf(q)
	if other := b.begin(); other <= moment || moment == 0 {
		t.Errorf("moments %d and %d", moment, other)
	}
	for version, want := range map[string]string{"42": "FROM `lake`.`shop`.`people` VERSION AS OF 42 AS t", "": "FROM (SELECT * FROM `lake`.`shop`.`people` WHERE false) AS t"} {
		b.reads[moment].versions[key] = version
		text, err := b.textOf(t.Context(), &hive.Session{}, q.Of(moment))
		if err != nil || !strings.Contains(text, want) || strings.Contains(q.SQL(), "VERSION") {
			t.Errorf("%v, and no %s in\n%s", err, want, text)
		}
	}
	leave(time.Time{})
	if _, err := b.textOf(t.Context(), &hive.Session{}, q.Of(moment)); err != errNoVersion {
		t.Errorf("a statement that is over: %v", err)
	}
	b.pins.Note(p, q.Table().Dataset, map[string]relation{key: {provider: "parquet"}})
	if text, err := b.textOf(t.Context(), &hive.Session{}, q); err != nil || text != q.SQL() {
		t.Errorf("files that do not change: %v %s", err, text)
	}
}

// TestSparkSchemaChanges: a version of Iceberg has the columns that the table had when it was written. After a change
// of columns a commit without rows makes queries over the new ones be planned, or not, whether or not one unit's rows
// were written before it; check says that it takes one.
func TestSparkSchemaChanges(t *testing.T) {
	f := formats(t)[0]
	said := map[bool]string{}
	for _, written := range []bool{false, true} {
		name := fmt.Sprintf("changed_%t", written)
		f.server.Exec(t, "CREATE TABLE "+f.table(name)+" (person_id BIGINT, age INT, sex STRING) USING iceberg")
		if written {
			f.server.Exec(t, "INSERT INTO "+f.table(name)+" VALUES (1, 2, 'Male')")
		}
		f.server.Exec(t, "ALTER TABLE "+f.table(name)+" ADD COLUMN income DECIMAL(10,2)", "INSERT INTO "+f.table(name)+" SELECT * FROM "+f.table(name)+" WHERE false")
		f.open(t)
		f.h.Policy.Datasets[0].Tables[0].Source.Name = name
		said[written] = backendtest.Inspect(t, f.h)
	}
	if said[true] != said[false] || strings.Contains(said[true], "fatal=true") || !strings.Contains(said[true], "after ALTER TABLE") {
		t.Errorf("check says\n%s\nand without one unit's rows\n%s", said[true], said[false])
	}
}
