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
	"github.com/dpproxy/dpproxy/backend/internal/link"
	"github.com/dpproxy/dpproxy/backend/sparktest"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// What needs a server runs in `make spark`.

// TestSparkLinks: what a url may say, and that a way over a network is protected or said not to be.
func TestSparkLinks(t *testing.T) {
	for text, want := range map[string]string{
		"spark://127.0.0.1:10000/warehouse":                                "",
		"spark://me:secret@localhost":                                      "",
		"spark://me@db.example:10000/w?ssl-mode=VERIFY_IDENTITY&queries=9": "",
		"spark://me@db.example:10000/w?ssl-mode=DISABLED":                  "",
		"spark://me:secret@db.example/w":                                   link.ErrLink.Error(),
		"spark://me@127.0.0.1/w?auth=kerberos":                             "auth must be plain or nosasl",
		"spark://me@127.0.0.1/w?queries=0":                                 "queries must be",
		"spark://me@127.0.0.1/w?catalog=lake":                              "",
		"spark://me@127.0.0.1/w?catalog=la.ke":                             "catalog must be",
		"spark://me@127.0.0.1/w?catalog=%60":                               "catalog must be",
		"spark://me@127.0.0.1/w?secret=1":                                  errURL.Error(),
		"spark://me@127.0.0.1/w/x":                                         errURL.Error(),
		"spark:///w":                                                       errURL.Error(),
		"hive://127.0.0.1/w":                                               errURL.Error(),
	} {
		link, err := linkOf(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err == nil && link.weak != strings.Contains(text, "DISABLED") {
			t.Errorf("%s: weak: %t", text, link.weak)
		}
		if err != nil && strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: the password is in %v", text, err)
		}
	}
}

// TestSparkTypes: a type with a collation, or one that is padded, is none that is accepted.
func TestSparkTypes(t *testing.T) {
	for kind, want := range map[string]string{"bigint": "bigint -1", "decimal(12,2)": "decimal 2", "varchar(20)": "varchar -1", "char(3)": "char(3) -1",
		"string collate UTF8_LCASE": "string collate UTF8_LCASE -1", "array<int>": "array<int> -1", "decimal(x": "decimal(x -1"} {
		if base, scale := typeOf(kind); fmt.Sprint(base, " ", scale) != want {
			t.Errorf("%s is %s %d, want %s", kind, base, scale, want)
		}
	}
}

// TestSparkChecks: what check says of tables that a query could not be right over, and what it says of those that it
// can.
func TestSparkChecks(t *testing.T) {
	server := sparktest.Shared(t)
	h := backendtest.SparkHouseOn(t, server)
	d := h.Policy.Datasets[0]
	database := d.Tables[0].Source.Schema
	got := backendtest.Inspect(t, h)
	for _, want := range []string{"table people: Spark enforces no constraint, so that none proves one row per person", "fatal=false table visits: no constraint proves the rows per person", "table people: that its files never change is assumed"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "fatal=true") {
		t.Errorf("the tables are refused:\n%s", got)
	}
	server.Exec(t, "CREATE VIEW "+database+".seen AS SELECT * FROM "+database+".people",
		"CREATE TABLE "+database+".lines (person_id BIGINT, age INT, sex STRING, income DECIMAL(10,2)) USING CSV",
		"CREATE TABLE "+database+".folded (person_id STRING COLLATE UTF8_LCASE, age INT, sex CHAR(6), income DECIMAL(10,2)) USING PARQUET")
	for source, want := range map[string]string{"seen": "is a view on Spark", "lines": "is stored as csv", "folded": "the key person_id is string collate UTF8_LCASE", "nowhere": "does not exist"} {
		d.Tables[0].Source.Name = source
		if got := backendtest.Inspect(t, h); !strings.Contains(got, want) || !strings.Contains(got, "fatal=true") {
			t.Errorf("%s: no fatal %q in\n%s", source, want, got)
		}
	}
	d.Tables[0].Source.Name = "people"
	d.Tables[1].UnitColumn, d.Tables[1].Via = "", &policy.Via{Column: "person_id", Table: d.Tables[0], Key: "person_id"}
	if got := backendtest.Inspect(t, h); !strings.Contains(got, "Spark enforces no constraint") {
		t.Errorf("a path over a key:\n%s", got)
	}
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits"), h)
	if err := h.Ready(t.Context(), q); err == nil {
		t.Error("a query whose units hang on a key is ready")
	}
	if got := backendtest.Counts(t, h, q); len(got) != 0 {
		t.Errorf("it ran: %v", got)
	}
}

// TestSparkBoundsAreEnforced: a table that says its key is primary has its rows bounded all the same.
func TestSparkBoundsAreEnforced(t *testing.T) {
	server := sparktest.Shared(t)
	h := backendtest.SparkHouseOn(t, server)
	database := h.Policy.Datasets[0].Tables[0].Source.Schema
	server.Exec(t, "CREATE TABLE "+database+".twice (person_id BIGINT NOT NULL, age INT, sex STRING, income DECIMAL(10,2)) USING PARQUET TBLPROPERTIES ('primary_key' = 'person_id')",
		"INSERT INTO "+database+".twice SELECT person_id, age, sex, income FROM "+database+".people UNION ALL SELECT person_id, age, sex, income FROM "+database+".people")
	m := backendtest.Measure(t, h.Policy, "people")
	m.Table.Source.Name = "twice"
	if got := backendtest.Counts(t, h, backendtest.Render(t, m, h)); !slices.Equal(got, []string{"[]: [40]"}) {
		t.Errorf("got %v", got)
	}
}

// TestSparkSeesDrift: a table that was made anew with other columns is not asked.
func TestSparkSeesDrift(t *testing.T) {
	h := backendtest.SparkHouse(t)
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "sex"), h)
	backendtest.Inspect(t, h)
	if err := h.Ready(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	h.Change("ALTER TABLE " + h.Policy.Datasets[0].Tables[0].Source.Schema + ".people ADD COLUMN more INT")
	if err := h.Ready(t.Context(), q); err != backend.ErrDrift {
		t.Errorf("Ready says %v", err)
	}
}

// slowSpark is a query that takes hours: it counts numbers before it reads a row.
func slowSpark(t *testing.T, h *backendtest.House, server *sparktest.Server) rewrite.Query {
	t.Helper()
	database := h.Policy.Datasets[0].Tables[0].Source.Schema
	server.Exec(t, "CREATE VIEW "+database+".slow AS SELECT p.* FROM "+database+".people AS p JOIN (SELECT count(*) AS n FROM range(100000000000000) WHERE id % 1000003 = 17) AS r ON r.n <> p.age")
	m := backendtest.Measure(t, h.Policy, "people")
	m.Table.Source.Name = "slow"
	defer func() { m.Table.Source.Name = "people" }()
	return backendtest.Render(t, m, h)
}

// TestSparkDeadline: a query that runs into the owner's deadline is cancelled on the server: it would keep both of its
// threads for hours.
func TestSparkDeadline(t *testing.T) {
	server := sparktest.Shared(t)
	h := backendtest.SparkHouseOn(t, server)
	q := slowSpark(t, h, server)
	h.SetDeadline(4 * time.Second)
	begun := time.Now()
	if got := backendtest.Counts(t, h, q); len(got) != 0 || !strings.Contains(h.Log.String(), "privacy rule 5") || !strings.Contains(h.Log.String(), "cause=deadline") {
		t.Errorf("got %v and the log %s", got, h.Log)
	}
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
	h.SetDeadline(time.Minute)
	free := execute.Occupy(h.Executor()) // a slot is free again when the server has let go
	free()
	if got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)); !slices.Equal(got, []string{"[]: [40]"}) {
		t.Errorf("afterwards: %v", got)
	}
}

// TestSparkErrorsAreNotHandedOn: what Spark says of a row that fails a statement quotes the row; none of it comes out.
func TestSparkErrorsAreNotHandedOn(t *testing.T) {
	server := sparktest.Shared(t)
	h := backendtest.SparkHouseOn(t, server)
	database := h.Policy.Datasets[0].Tables[0].Source.Schema
	server.Exec(t, "CREATE VIEW "+database+".broken AS SELECT person_id, CAST(note AS INT) AS age, sex, income FROM "+database+".people")
	m := backendtest.Measure(t, h.Policy, "people", "age")
	m.Table.Source.Name = "broken"
	if got := backendtest.Counts(t, h, backendtest.Render(t, m, h)); len(got) != 0 || !strings.Contains(h.Log.String(), "SQLSTATE class 22") {
		t.Errorf("got %v and the log %s", got, h.Log)
	}
	err := server.Query(t, "SELECT CAST(note AS INT) FROM "+database+".people", func(hive.Row) error { return nil })
	if err == nil || strings.Contains(err.Error(), backendtest.Canary) {
		t.Errorf("the error is %v", err)
	}
	s, err := hive.Settled(t.Context(), server.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, text := range []string{"SELECT nothing", "SELECT", backendtest.Canary} {
		if err := plans(t.Context(), s, text); err != backend.ErrUnplanned {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestSparkBytesThatAreNoText: different bytes that a client would be sent as one text are NULL, in cells and among
// keys.
func TestSparkBytesThatAreNoText(t *testing.T) {
	server := sparktest.Shared(t)
	h := backendtest.SparkHouseOn(t, server)
	database := h.Policy.Datasets[0].Tables[0].Source.Schema
	server.Exec(t, "CREATE TABLE "+database+".bytes (person_id BIGINT, age INT, sex STRING, income DECIMAL(10,2)) USING PARQUET",
		"INSERT INTO "+database+".bytes VALUES (1, 1, CAST(X'ff' AS STRING), 1), (2, 1, CAST(X'fe' AS STRING), 1), (3, 1, CAST(X'46ff' AS STRING), 1), (4, 1, 'Male', 1), (5, 1, CAST(X'eda080' AS STRING), 1)")
	h.SetDeadline(2 * time.Minute)
	m := backendtest.Measure(t, h.Policy, "people", "sex")
	m.Table.Source.Name = "bytes"
	if got := backendtest.Counts(t, h, backendtest.Render(t, m, h)); !slices.Equal(got, []string{"[1]: [1]", "[3]: [4]"}) {
		t.Errorf("got %v, and the log %s", got, h.Log)
	}
}
