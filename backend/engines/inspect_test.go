package engines

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

func TestInspectAcceptsTheSchemaOfThePolicy(t *testing.T) {
	eachBackend(t, func(t *testing.T, h *backendtest.House) {
		got := backendtest.Inspect(t, h)
		if strings.Contains(got, "fatal=true") {
			t.Errorf("got\n%s", got)
		}
		people := "table people: a unique constraint on person_id proves one row per person"
		if h.Dialect().Name == "Spark" {
			people = "table people: Spark enforces no constraint, so that none proves one row per person"
		}
		if !strings.Contains(got, people) ||
			!strings.Contains(got, "table visits: no constraint proves the rows per person; each query keeps the first 3") {
			t.Errorf("nothing of the bounds:\n%s", got)
		}
	})
}

func TestInspectNamesWhatDiffers(t *testing.T) {
	eachBackend(t, func(t *testing.T, h *backendtest.House) {
		d := h.Policy.Datasets[0]
		people := d.Table("", "people")
		wide := *people.Column("income")
		wide.Name, wide.Source, wide.Typmod = "narrow", "income", 10<<16|1+4
		text := *people.Column("age")
		text.Name, text.Source = "noted", "note"
		gone := *people.Column("age")
		gone.Name, gone.Source = "height", "height_cm"
		people.Columns = append(people.Columns, &wide, &text, &gone)
		d.Table("", "visits").UnitColumn = "patient"
		d.Tables = append(d.Tables, &policy.Table{Dataset: d, Name: "beds", Source: policy.Source{Name: "beds"}, UnitColumn: "person_id", Columns: people.Columns[:1]})
		got := backendtest.Inspect(t, h)
		for _, want := range []string{
			"fatal=true table people, column narrow: the policy says numeric(10,1)", "fatal=true table people, column noted: the policy says integer",
			"fatal=true table people: column height (height_cm) does not exist", "fatal=true table visits: the unit's column patient does not exist",
			"fatal=true table beds: ",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no finding %q in\n%s", want, got)
			}
		}
		if strings.Contains(got, backendtest.Canary) {
			t.Error("a finding holds a value")
		}
	})
}

func TestInspectRefusesPublicViews(t *testing.T) {
	h := backendtest.PostgresHouse(t)
	h.Change(`ALTER TABLE regions RENAME TO old; CREATE VIEW regions AS SELECT * FROM old; GRANT SELECT ON regions TO PUBLIC`)
	if got := backendtest.Inspect(t, h); !strings.Contains(got, "fatal=true public table regions is a view") {
		t.Errorf("got\n%s", got)
	}
}

// TestRolesThatAreTooStrong (T51): each bad set-up of the role is found.
func TestRolesThatAreTooStrong(t *testing.T) {
	server := pgtest.Shared(t)
	refused, warned := 0, 0
	for _, c := range []struct{ options, grant, want string }{
		{"SUPERUSER", "", "fatal=true dpproxy's database role is a superuser"},
		{"BYPASSRLS", "", "fatal=true dpproxy's database role bypasses row-level security"},
		{"CREATEROLE", "", "fatal=true dpproxy's database role may create roles"},
		{"", "GRANT CREATE ON DATABASE %[2]s TO %[1]s", "fatal=true dpproxy's database role may create objects in database"},
		{"", "GRANT CREATE ON SCHEMA public TO %[1]s", "fatal=true dpproxy's database role may create objects in schema public"},
		{"", "ALTER TABLE people OWNER TO %[1]s", "fatal=true dpproxy's database role owns public.people"},
		{"", "GRANT INSERT ON people TO %[1]s", "fatal=true dpproxy's database role may change the rows of public.people"},
		{"", "GRANT pg_write_server_files TO %[1]s", "fatal=true dpproxy's database role is a member of pg_write_server_files"},
		{"", "GRANT pg_execute_server_program TO %[1]s", "fatal=true dpproxy's database role is a member of pg_execute_server_program"},
		{"", "GRANT pg_read_server_files TO %[1]s", "fatal=true dpproxy's database role is a member of pg_read_server_files"},
		{"", "GRANT pg_write_all_data TO %[1]s", "fatal=true dpproxy's database role is a member of pg_write_all_data"},
		{"", "REVOKE SELECT ON people FROM %[1]s", "fatal=true dpproxy's database role may not read all columns of public.people"},
		{"", "GRANT pg_read_all_data TO %[1]s", "fatal=false dpproxy's database role is a member of pg_read_all_data"},
		{"", "ALTER TABLE people ENABLE ROW LEVEL SECURITY", "fatal=true table people has row-level security"},
	} {
		t.Run(c.options+c.grant, func(t *testing.T) {
			role := server.Role(t, c.options)
			database := server.Database(t)
			for _, s := range backendtest.RowsSQL {
				server.Exec(t, database, fmt.Sprintf(s, "public."))
			}
			server.Exec(t, database, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)
			if c.grant != "" {
				server.Exec(t, database, strings.NewReplacer("%[1]s", role, "%[2]s", database).Replace(c.grant))
			}
			h := backendtest.Open(t, backendtest.TestPolicy(t, server.URLFor(role, database)))
			if got := backendtest.Inspect(t, h); !strings.Contains(got, c.want) {
				t.Errorf("no finding %q in\n%s", c.want, got)
				return
			}
			if strings.HasPrefix(c.want, "fatal=true") {
				refused++
			} else {
				warned++
			}
		})
	}
	threats.Reached(t, "T51", "%d roles refused at the start, %d more warned of", refused, warned)
}

// TestDriftIsFoundBeforeACharge (T42): after a change of the inspected schema Ready refuses what reads the table, and
// nothing else; the operator is shown what it is.
func TestDriftIsFoundBeforeACharge(t *testing.T) {
	changes := []struct{ change, said string }{
		{"ALTER TABLE people RENAME COLUMN age TO old", "public.people.age is gone"},
		{"ALTER TABLE people ALTER COLUMN age TYPE text", "public.people.age is text, which was integer"},
		{"ALTER TABLE people RENAME TO old; CREATE VIEW people AS SELECT * FROM old; GRANT SELECT ON people TO PUBLIC", "public.people is another relation, a view, which was a table"},
		{"CREATE TABLE new (LIKE people); DROP TABLE people; ALTER TABLE new RENAME TO people; GRANT SELECT ON people TO PUBLIC", "public.people is another relation, a table, which was a table"},
		{"DROP TABLE people; CREATE TABLE people (person_id bigint)", "public.people.income is gone; public.people.sex is gone"},
		{"ALTER TABLE people DROP COLUMN sex; ALTER TABLE people ADD COLUMN sex bytea", "public.people.sex is bytea, which was text"},
		{"CREATE SCHEMA aside; ALTER TABLE people SET SCHEMA aside; GRANT USAGE ON SCHEMA aside TO PUBLIC", "public.people.person_id is gone; public.people.sex is gone"},
		{"ALTER TABLE people ALTER COLUMN income TYPE numeric(20,6)", "public.people.income has another scale or collation"},
		{"ALTER TABLE people ENABLE ROW LEVEL SECURITY", "row-level security of public.people was switched on or off"},
		{"ALTER TABLE people ALTER age SET NOT NULL", "public.people.age became or ceased to be NOT NULL"},
	}
	found := 0
	for _, c := range changes {
		t.Run(c.change[:30], func(t *testing.T) {
			h := backendtest.PostgresHouse(t)
			backendtest.Inspect(t, h)
			if err := h.Ready(context.Background()); err != nil {
				t.Fatal(err)
			}
			h.Change("ALTER TABLE people ADD COLUMN harmless integer")
			if err := h.Ready(context.Background()); err != nil {
				t.Fatalf("a column that the policy does not name: %v", err)
			}
			people, visits := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "age"), h), backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits", "clinic"), h)
			h.Change(c.change)
			for _, queries := range [][]rewrite.Query{nil, {people}, {visits, people}} {
				if err := h.Ready(context.Background(), queries...); err != backend.ErrDrift {
					t.Errorf("Ready says %v, want %v", err, backend.ErrDrift)
					return
				}
			}
			if err := h.Ready(context.Background(), visits); err != nil {
				t.Errorf("another table's query: %v", err)
			}
			if said := h.Log.String(); !strings.Contains(said, c.said) || strings.Contains(said, backendtest.Canary) {
				t.Errorf("the operator is told:\n%s", said)
			}
			found++
		})
	}
	threats.Reached(t, "T42", "%d of %d changes of a table refused before the next charge", found, len(changes))
}

func TestOpenSaysWhatIsWrongWithoutSecrets(t *testing.T) {
	for _, url := range []string{"postgres://u:" + backendtest.Canary + "@127.0.0.1:1/db?connect_timeout=2", "postgres://u:" + backendtest.Canary + "@127.0.0.1:bad/db", "duckdb:/nonexistent/x.duckdb"} {
		p := backendtest.TestPolicy(t, url)
		_, err := Open(context.Background(), p, backendtest.Discard())
		if err == nil || strings.Contains(err.Error(), backendtest.Canary) {
			t.Errorf("got %v", err)
		}
	}
}

// TestTablesThatShareRows (rules 8, 9 and 13): a partition or child beside its parent, and a view beside what it reads,
// are found whatever they are called: their rows have one unit, one dataset, and are public in both or in neither.
func TestTablesThatShareRows(t *testing.T) {
	t.Parallel()
	const sent = `CREATE TABLE sent (sender bigint, receiver bigint, minutes integer, clinic text) PARTITION BY LIST (clinic);
		CREATE TABLE sent_north PARTITION OF sent FOR VALUES IN ('north'); CREATE TABLE kin () INHERITS (visits);
		CREATE VIEW of_sent AS SELECT sender AS person_id, minutes FROM sent_north; CREATE VIEW twice AS SELECT * FROM of_sent;
		CREATE FUNCTION all_sent() RETURNS SETOF sent STABLE LANGUAGE sql AS 'SELECT * FROM public.sent'; CREATE FUNCTION next(n integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT n + 1';
		CREATE VIEW by_call AS SELECT sender AS person_id, minutes FROM all_sent(); CREATE VIEW by_rule AS SELECT person_id, next(minutes) AS minutes FROM visits;
		GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC`
	duck := []string{`CREATE TABLE sent AS SELECT i AS sender, i + 1 AS receiver, i::INTEGER AS minutes FROM generate_series(1::BIGINT, 5) AS s(i)`,
		`CREATE VIEW of_sent AS SELECT sender AS person_id, minutes FROM main.sent`, `CREATE VIEW twice AS SELECT * FROM of_sent`}
	type listed struct{ name, unit, dataset string }
	for name, c := range map[string]struct {
		tables [2]listed
		want   string
		engine string // empty: both
	}{
		"a partition by another unit":     {[2]listed{{"sent", "sender", ""}, {"sent_north", "receiver", ""}}, "fatal=true table sent and table sent_north both show rows of public.sent_north, and name their persons differently", "PostgreSQL"},
		"a partition by the same unit":    {[2]listed{{"sent", "sender", ""}, {"sent_north", "sender", ""}}, "", "PostgreSQL"},
		"a child in another dataset":      {[2]listed{{"visits", "person_id", ""}, {"kin", "person_id", "other"}}, "fatal=true table visits and table kin both show rows of public.kin, the first in dataset clinic: two datasets", "PostgreSQL"},
		"a public partition":              {[2]listed{{"sent", "sender", ""}, {"sent_north", "", "public"}}, "fatal=true table sent and table sent_north both show rows of public.sent_north, and one is public", "PostgreSQL"},
		"a view of a view by another":     {[2]listed{{"twice", "person_id", ""}, {"sent", "receiver", ""}}, "name their persons differently", ""},
		"a view with the unit's name":     {[2]listed{{"twice", "person_id", ""}, {"of_sent", "person_id", ""}}, "fatal=false table twice and table of_sent both show rows of ", ""},
		"a view in another dataset":       {[2]listed{{"sent", "sender", ""}, {"of_sent", "person_id", "other"}}, "two datasets over the same rows", ""},
		"a view of what a function reads": {[2]listed{{"sent", "sender", ""}, {"by_call", "person_id", "other"}}, "since by_call calls the function all_sent, which may read any table unless it is declared IMMUTABLE", "PostgreSQL"},
		"a view that computes":            {[2]listed{{"sent", "sender", ""}, {"by_rule", "person_id", ""}}, "", "PostgreSQL"},
		"one relation by the same unit":   {[2]listed{{"sent", "sender", ""}, {"sent", "sender", ""}}, "", ""},
		"relations that have no row both": {[2]listed{{"visits", "person_id", ""}, {"sent", "sender", ""}}, "", ""},
	} {
		for _, engine := range []string{"PostgreSQL", "DuckDB"} {
			if c.engine != "" && c.engine != engine {
				continue
			}
			t.Run(name+", "+engine, func(t *testing.T) {
				var h *backendtest.House
				if engine == "DuckDB" {
					h = backendtest.DuckHouseWith(t, duck...)
				} else {
					h = backendtest.PostgresHouse(t)
					h.Change(sent)
				}
				clinic := h.Policy.Datasets[0]
				clinic.Tables = clinic.Tables[:1]
				for _, l := range c.tables {
					d := clinic
					if l.dataset == "other" {
						d = &policy.Dataset{ID: "other", Unit: clinic.Unit}
						h.Policy.Datasets = append(h.Policy.Datasets, d)
					}
					column := *backendtest.TestColumn(t, "minutes", "integer", policy.OutsideClamp, "0", "59", "1")
					table := &policy.Table{Dataset: d, Name: l.name, Schema: "public", Source: policy.Source{Name: l.name}, UnitColumn: l.unit, MaxRowsPerUnit: 1, MaxRows: 10,
						Public: l.dataset == "public", Columns: []*policy.Column{&column}}
					column.Table = table
					d.Tables = append(d.Tables, table)
				}
				var got strings.Builder
				for _, d := range h.Policy.Datasets {
					findings, err := h.Inspect(t.Context(), h.Policy, d)
					if err != nil {
						t.Fatal(err)
					}
					for _, f := range findings {
						fmt.Fprintf(&got, "fatal=%v %s\n", f.Fatal, f.Text)
					}
				}
				if c.want == "" && strings.Contains(got.String(), "both show") || !strings.Contains(got.String(), c.want) {
					t.Errorf("want %q in\n%s", c.want, got.String())
				}
			})
		}
	}
}

// TestInspectSeesColumnsWithoutBounds: a column of domain: private is held against the database as any other is,
// whatever engine it is in.
func TestInspectSeesColumnsWithoutBounds(t *testing.T) {
	unbounded := func(c *policy.Column, name, source string, typmod int32) *policy.Column {
		own := *c
		own.Name, own.Source, own.Typmod, own.Private, own.Outside = name, source, typmod, true, policy.OutsideClamp
		var err error
		if own.Domain, err = policy.NewLadder(own.Type, typmod); err != nil {
			t.Fatal(err)
		}
		return &own
	}
	eachBackend(t, func(t *testing.T, h *backendtest.House) {
		people := h.Policy.Datasets[0].Table("", "people")
		age, income := people.Column("age"), people.Column("income")
		people.Columns = append(people.Columns, unbounded(age, "right", "age", -1))
		if got := backendtest.Inspect(t, h); strings.Contains(got, "fatal=true") {
			t.Errorf("a column that is as the policy says: %s", got)
		}
		people.Columns = append(people.Columns, unbounded(income, "narrow", "income", 10<<16|1+4), unbounded(age, "noted", "note", -1), unbounded(age, "height", "height_cm", -1))
		got := backendtest.Inspect(t, h)
		for _, want := range []string{"fatal=true table people, column narrow: the policy says numeric(10,1)", "fatal=true table people, column noted: the policy says integer", "fatal=true table people: column height (height_cm) does not exist"} {
			if !strings.Contains(got, want) {
				t.Errorf("no finding %q in\n%s", want, got)
			}
		}
	})
	t.Run("a right", func(t *testing.T) {
		h := backendtest.PostgresHouse(t)
		people := h.Policy.Datasets[0].Table("", "people")
		people.Columns = append(people.Columns, unbounded(people.Column("age"), "weight", "weight", -1))
		h.Change(`ALTER TABLE people ADD COLUMN weight integer`)
		h.Change(`DO $$ DECLARE r name; BEGIN FOR r IN SELECT rolname FROM pg_roles WHERE has_table_privilege(oid, 'people', 'SELECT') AND NOT rolsuper AND rolname NOT LIKE 'pg\_%' LOOP
		  EXECUTE format('REVOKE SELECT ON people FROM %I', r); EXECUTE format('GRANT SELECT (person_id, age, sex, income) ON people TO %I', r); END LOOP; END $$`)
		if got := backendtest.Inspect(t, h); !strings.Contains(got, "fatal=true dpproxy's database role may not read all columns of public.people") {
			t.Errorf("a column that may not be read: %s", got)
		}
	})
}

// TestJoinsTakeNoLoops: a query that joins rows is planned without nested loops, whatever few rows are expected, and
// one that does not is planned as ever. The view has rows where there are none.
func TestJoinsTakeNoLoops(t *testing.T) {
	t.Parallel()
	h := backendtest.PostgresHouse(t)
	h.Change("ALTER TABLE visits RENAME TO stays; CREATE VIEW visits AS SELECT * FROM stays WHERE current_setting('enable_nestloop') = 'off'; GRANT SELECT ON visits TO PUBLIC")
	d := h.Policy.Datasets[0]
	alone := backendtest.Measure(t, h.Policy, "visits")
	joined := backendtest.Measure(t, h.Policy, "visits")
	joined.Table = derived.NewMarked(&derived.Marked{From: d.Tables[1], Other: d.Tables[0]})
	for m, want := range map[*plans.Measure]string{alone: "[[]: [0]]", joined: "[[]: [30]]"} {
		if got := fmt.Sprint(backendtest.Counts(t, h, backendtest.Render(t, m, h))); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
