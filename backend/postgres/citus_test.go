package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/citustest"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/snapshot"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// Tests on a cluster of Citus, which DPPROXY_CITUS names (package citustest); without it they are skipped.

const citusByPerson = `DELETE FROM visits WHERE person_id IS NULL;
SELECT create_distributed_table('people', 'person_id', shard_count => 4);
SELECT create_distributed_table('visits', 'person_id', colocate_with => 'people');
SELECT create_reference_table('regions')`

// citusHouse is a house whose tables lie as statements of the owner say.
func citusHouse(t *testing.T, s *policy.Snapshot, distribute string) (*backendtest.House, *citustest.Database) {
	t.Helper()
	d := citustest.New(t)
	return houseOn(t, d, s, distribute), d
}

func houseOn(t *testing.T, d *citustest.Database, s *policy.Snapshot, distribute string) *backendtest.House {
	t.Helper()
	role := d.Role(t)
	for _, s := range backendtest.RowsSQL {
		d.Exec(t, fmt.Sprintf(s, "public."))
	}
	for _, s := range strings.Split(distribute, ";\n") {
		d.Exec(t, s)
	}
	d.Exec(t, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)
	p := backendtest.TestPolicy(t, d.URLFor(role))
	p.Backend.Snapshot = s
	h := backendtest.Open(t, p)
	h.Change, h.Role = func(statement string) { d.Exec(t, statement) }, role
	return h
}

// TestCitusSettingsOfTests: what tests elsewhere give a session on a cluster is what a transaction of dpproxy's has.
func TestCitusSettingsOfTests(t *testing.T) {
	given := map[string]string{"citus.max_adaptive_executor_pool_size": "1"} // of a cluster that is read singly
	for _, g := range slices.Concat(givens, givensOfCitus) {
		given[g.name] = g.value
	}
	for _, s := range citustest.Settings {
		name, value, _ := strings.Cut(strings.TrimPrefix(s, "SET "), " = ")
		if got, there := given[name]; !there || got != strings.Trim(value, "'") {
			t.Errorf("%s, and dpproxy gives it %q (%v)", s, got, there)
		}
	}
}

// grown is citusHouse over a line, with 4,000 people more.
func grown(t *testing.T, distribute string) (*backendtest.House, *citustest.Line) {
	t.Helper()
	d, line := citustest.NewOverLine(t)
	h := houseOn(t, d, nil, `DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET citus.task_assignment_policy = ''round-robin''', current_database()); END$$; -- reference tables are read here and there
`+distribute)
	h.Change("INSERT INTO people SELECT 1000 + i, i % 120, 'Male', i % 50 * 1000, '" + backendtest.Canary + "' FROM generate_series(1, 4000) i")
	return h, line
}

// TestCitusLostWorker: a worker that is away is found before the charge. One that is lost while it answers leaves a
// paid query without counts: never with some of its rows counted by two of the machines that have them.
func TestCitusLostWorker(t *testing.T) {
	for name, c := range map[string]struct {
		distribute string
		after      int64 // bytes
	}{
		"rows in one place":  {citusByPerson, 20_000},
		"before any answer":  {citusByPerson, 0},
		"rows in two places": {`SET citus.shard_replication_factor = 2; SELECT create_distributed_table('people', 'person_id', shard_count => 4)`, 20_000},
		"a reference table":  {`SELECT create_reference_table('people')`, 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			h, line := grown(t, c.distribute)
			q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "age", "income"), h)
			total := func() (n int64) {
				for _, g := range execute.Detached(t.Context(), h.Executor(), q, 0)[q.Number()] {
					n += g.Counts[0]
				}
				return n
			}
			if err := h.Ready(t.Context(), q); err != nil || total() != 4040 {
				t.Fatalf("%d people: %v", total(), err)
			}
			told := len(h.Log.String())
			for range 6 { // whichever place is asked first
				line.CutAfter(c.after)
				if n := total(); n != 0 && n != 4040 {
					t.Errorf("counted %d people of 4040", n)
				}
				line.CutAfter(0)
				if err := h.Ready(t.Context(), q); err != backend.ErrUnavailable {
					t.Errorf("a worker is away, and Ready says %v", err)
				}
				line.Mend()
				if err := h.Ready(t.Context(), q); err != nil {
					t.Errorf("the worker is back, and Ready says %v", err)
				}
			}
			if n := total(); n != 4040 {
				t.Errorf("counted %d people of 4040 afterwards", n)
			}
			log := h.Log.String()[told:]
			if !strings.Contains(log, "privacy rule 5") || strings.Contains(log, backendtest.Canary) {
				t.Errorf("the log: %s", log)
			}
		})
	}
}

// TestWarningsOfLostWorkers: a transaction in which the server warns that a connection of its own was lost has failed,
// whatever it has read; one in which it warns of something else has not.
func TestWarningsOfLostWorkers(t *testing.T) {
	t.Parallel()
	h := backendtest.PostgresHouse(t)
	b := h.Backend.(*DB)
	for code, want := range map[string]error{"08006": errLost, "01000": nil} {
		for range 2 {
			err := transaction(t.Context(), b.pool, time.Minute, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), "DO $$BEGIN RAISE WARNING USING ERRCODE = '"+code+"', MESSAGE = 'lost'; END$$")
				return err
			}, "SELECT pg_catalog.set_config('client_min_messages', 'warning', true)")
			if err != want {
				t.Errorf("%s: %v, must be %v", code, err, want)
			}
		}
		if err := b.transactionAside(t.Context(), time.Minute, func(pgx.Tx) error { return nil }); err != nil {
			t.Errorf("the transaction after it: %v", err)
		}
	}
}

// TestCitusWorkersPlan: what no worker plans is refused before the charge, though the coordinator's EXPLAIN passes over
// it.
func TestCitusWorkersPlan(t *testing.T) {
	h, d := citusHouse(t, nil, citusByPerson)
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "sex"), h)
	if err := h.Ready(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for i := range d.Workers() {
		d.ExecOn(t, i, "SET citus.enable_ddl_propagation = off", "REVOKE USAGE ON SCHEMA public FROM PUBLIC")
	}
	if err := h.Ready(t.Context(), q); err != backend.ErrUnplanned {
		t.Errorf("Ready says %v", err)
	}
	if log := h.Log.String(); !strings.Contains(log, "a worker of the cluster does not plan its part") {
		t.Errorf("the log: %s", log)
	}
}

func TestCitusCounts(t *testing.T) {
	h, d := citusHouse(t, nil, citusByPerson)
	if h.Dialect().Name != "Citus" {
		t.Fatalf("the dialect is %s", h.Dialect())
	}
	if err := h.Ready(t.Context(), backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits", "clinic"), h)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		table string
		grain []string
		want  []string
	}{
		{"people", nil, []string{"[]: [40]"}},
		{"people", []string{"sex"}, []string{"[0]: [16]", "[1]: [14]", "[2]: [2]", "[3]: [8]"}},
		{"visits", nil, []string{"[]: [30]"}},
		{"visits", []string{"clinic"}, []string{"[0]: [9]", "[1]: [21]"}},
	} {
		if got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, c.table, c.grain...), h)); !slices.Equal(got, c.want) {
			t.Errorf("%s by %v: got %v, want %v", c.table, c.grain, got, c.want)
		}
	}
	// What a worker's role sets decides nothing (rule 24).
	for i := range d.Workers() {
		d.ExecOn(t, i, "ALTER ROLE "+h.Role+" SET statement_timeout = '20s'", "ALTER ROLE "+h.Role+" SET enable_seqscan = off", "ALTER ROLE "+h.Role+" SET work_mem = '64kB'")
	}
	h.Close()
	again := backendtest.Open(t, h.Policy)
	var timeout, memory, scan string
	err := again.Backend.(*DB).transactionAside(t.Context(), time.Minute, func(tx pgx.Tx) error {
		said := func(name string) string { // asked for each row, so that it is the worker that answers
			return fmt.Sprintf("max(pg_catalog.current_setting(pg_catalog.left('%s', %d + (0 * person_id)::int4)))", name, len(name))
		}
		return tx.QueryRow(t.Context(), "SELECT "+said("statement_timeout")+", "+said("work_mem")+", "+said("enable_seqscan")+" FROM public.people").Scan(&timeout, &memory, &scan)
	})
	if err != nil || timeout != "1min" || memory == "64kB" || scan != "on" {
		t.Errorf("on workers: statement_timeout %s, work_mem %s, enable_seqscan %s: %v", timeout, memory, scan, err)
	}
	for i := range d.Workers() {
		d.ExecOn(t, i, "ALTER ROLE "+h.Role+" RESET statement_timeout", "ALTER ROLE "+h.Role+" SET temp_file_limit = '1GB'")
	}
	if got := backendtest.Inspect(t, again); strings.Count(got, "temp_file_limit bounds") != d.Workers() {
		t.Errorf("a limit of workers is not found:\n%s", got)
	}
}

// TestEverySettingOfCitusHasItsPlace (rule 24): what a session could set of Citus's own is set by dpproxy, or decides
// nothing; and it is set.
func TestEverySettingOfCitusHasItsPlace(t *testing.T) {
	h, d := citusHouse(t, nil, citusByPerson)
	rows, err := d.Connect(t).Query(t.Context(), "SELECT lower(name) FROM pg_settings WHERE context IN ('user', 'superuser') AND name LIKE 'citus.%'")
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(all) < 30 {
		t.Fatalf("%d settings: %v", len(all), err)
	}
	hidden := hiddenSettings(t, d)
	if all = append(all, hidden...); len(hidden) < 30 {
		t.Fatalf("%d settings that are not shown: %v", len(hidden), hidden)
	}
	for _, name := range all {
		if !slices.Contains(idleOfCitus, name) && !slices.ContainsFunc(givensOfCitus, func(g given) bool { return g.name == name }) {
			t.Errorf("%s has no place", name)
		}
	}
	d.Exec(t, "ALTER ROLE "+h.Role+" SET citus.max_intermediate_result_size = '1kB'", "ALTER ROLE "+h.Role+" SET citus.limit_clause_row_fetch_count = 1", "ALTER ROLE "+h.Role+" SET citus.log_remote_commands = on")
	again := backendtest.Open(t, h.Policy)
	err = again.Backend.(*DB).transactionAside(t.Context(), time.Minute, func(tx pgx.Tx) error {
		for _, g := range givensOfCitus {
			var value string
			if err := tx.QueryRow(t.Context(), "SELECT COALESCE(pg_catalog.current_setting($1, true), $2)", g.name, g.value).Scan(&value); err != nil || value != g.value {
				t.Errorf("%s is %q: %v", g.name, value, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// hiddenSettings are those settings of Citus's that a session could set and that pg_settings does not show: names that
// are in its library, as the server takes them.
func hiddenSettings(t *testing.T, d *citustest.Database) (list []string) {
	t.Helper()
	conn := d.Connect(t)
	rows, err := conn.Query(t.Context(), `SELECT DISTINCT lower(m[1]) FROM pg_config c, pg_read_binary_file(c.setting || '/citus.so') b,
  regexp_matches(encode(b, 'escape'), 'citus\.[a-z_0-9]+', 'gi') m WHERE c.name = 'PKGLIBDIR'`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		var value *string
		var shown bool
		if err := conn.QueryRow(t.Context(), "SELECT current_setting($1, true), EXISTS (SELECT FROM pg_settings WHERE lower(name) = $1)", name).Scan(&value, &shown); err != nil || value == nil || shown {
			continue
		}
		if _, err := conn.Exec(t.Context(), "SELECT set_config($1, $2, true)", name, *value); err == nil {
			list = append(list, name)
		}
	}
	return list
}

// believed is a query's shortest text, as it runs where constraints are believed, whether they say what it needs, and
// what it counts in a transaction between whose look at them and whose query something is done.
func believed(t *testing.T, h *backendtest.House, q rewrite.Query, between func()) (counted int64, holds bool) {
	t.Helper()
	b, s := h.Backend.(*DB), q.Proven()[0]
	err := b.transactionAside(t.Context(), time.Minute, func(tx pgx.Tx) error {
		holds = true
		for _, u := range s.Needs {
			var unique bool
			if err := tx.QueryRow(t.Context(), strings.Replace(uniqueSQL, onlyPostgres, "true", 1), uniqueArguments(u)...).Scan(&unique); err != nil {
				return err
			}
			holds = holds && unique
		}
		between()
		return tx.QueryRow(t.Context(), s.SQL(), s.Args()...).Scan(&counted)
	})
	if err != nil {
		t.Fatal(err)
	}
	return counted, holds
}

// TestCitusRace (rule 25): a constraint is dropped, and rows come, between the coordinator's snapshot, in which it
// holds, and those of the workers, in which the rows are. Who believes it counts three rows of one person where it said
// one. dpproxy believes none there, and its query bounds them.
func TestCitusRace(t *testing.T) {
	h, d := citusHouse(t, nil, citusByPerson)
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)
	counted, holds := believed(t, h, q, func() {
		d.Exec(t, "ALTER TABLE people DROP CONSTRAINT people_pkey; INSERT INTO people (person_id, age) VALUES (7, 1), (7, 2)")
	})
	if !holds || counted != 42 {
		t.Errorf("the race is not one: the constraint holds: %v; %d rows", holds, counted)
	}
	d.Exec(t, "DELETE FROM people WHERE person_id = 7 AND age < 3", "ALTER TABLE people ADD PRIMARY KEY (person_id)")
	owner := d.Connect(t)
	for _, s := range []string{"BEGIN", "ALTER TABLE people DROP CONSTRAINT people_pkey", "INSERT INTO people (person_id, age) VALUES (7, 1), (7, 2)"} {
		if _, err := owner.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan []string)
	go func() { done <- backendtest.Counts(t, h, q) }()
	watch := d.Connect(t)
	for waits := false; !waits; time.Sleep(5 * time.Millisecond) {
		if err := watch.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'people'::regclass)").Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := owner.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if got := <-done; !slices.Equal(got, []string{"[]: [40]"}) {
		t.Errorf("dpproxy counts %v, and a person has one row", got)
	}
}

// TestCitusAppend (rule 25): where a table is distributed by appending a primary key holds within each shard alone.
func TestCitusAppend(t *testing.T) {
	h, d := citusHouse(t, nil, `CREATE TABLE them AS TABLE people;
TRUNCATE people;
SELECT create_distributed_table('people', 'person_id', 'append')`)
	conn := d.Connect(t)
	for range 2 {
		var shard int64
		if err := conn.QueryRow(t.Context(), "SELECT master_create_empty_shard('people')").Scan(&shard); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.PgConn().CopyFrom(t.Context(), strings.NewReader("7\t1\t\\N\t\\N\t\\N\n8\t2\t\\N\t\\N\t\\N\n"), fmt.Sprintf("COPY people FROM STDIN WITH (append_to_shard %d)", shard)); err != nil {
			t.Fatal(err)
		}
	}
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)
	if counted, holds := believed(t, h, q, func() {}); !holds || counted != 4 {
		t.Errorf("the key holds: %v; %d rows", holds, counted)
	}
	if got := backendtest.Counts(t, h, q); !slices.Equal(got, []string{"[]: [2]"}) {
		t.Errorf("dpproxy counts %v, and each of two persons has one row", got)
	}
	if got := backendtest.Inspect(t, h); !strings.Contains(got, "table people is distributed by appending") {
		t.Errorf("check does not say so:\n%s", got)
	}
}

// TestCitusFindings: check says of each table how it lies, and which questions are counted where.
func TestCitusFindings(t *testing.T) {
	for name, c := range map[string]struct {
		distribute string
		want       []string
	}{
		"by the person": {citusByPerson, []string{"fatal=false table people is distributed by person_id, which names its persons, in 4 shards, beside visits: its questions are counted where the rows lie",
			"table people: no constraint proves one row per person", "table visits: counted where the rows lie: count(*); GROUP BY clinic; a sub-query per person; JOIN people; EXISTS in people"}},
		"by something else": {`SELECT create_distributed_table('people', 'person_id', shard_count => 4);
SELECT create_distributed_table('visits', 'clinic', shard_count => 4)`, []string{"table visits is distributed by clinic and not by what names its persons", "alter_distributed_table('\"public\".\"visits\"', distribution_column := 'person_id')",
			"table visits: brings rows to the coordinator"}},
		"not beside": {`DELETE FROM visits WHERE person_id IS NULL;
SELECT create_distributed_table('people', 'person_id', shard_count => 4);
SELECT create_distributed_table('visits', 'person_id', shard_count => 3, colocate_with => 'none')`, []string{"but not beside"}},
		"reference": {`SELECT create_reference_table('people');
SELECT create_reference_table('visits')`, []string{"table visits is a reference table", "table visits: counted where the rows lie: count(*)"}},
		"one schema": {`CREATE TABLE them AS TABLE people;
DROP TABLE people;
ALTER TABLE them RENAME TO people;
SELECT create_distributed_table('people', NULL, colocate_with => 'none');
SELECT create_distributed_table('visits', NULL, colocate_with => 'people')`, []string{"fatal=false table visits lies as a whole on one machine, as all tables of the dataset that are distributed do", "table visits: counted where the rows lie: count(*)"}},
		"local": {`SELECT 1`, []string{"table visits lies on the coordinator alone"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := citusHouse(t, nil, c.distribute)
			got := backendtest.Inspect(t, h)
			for _, want := range append(c.want, "the database is not PostgreSQL alone") {
				if !strings.Contains(got, want) {
					t.Errorf("no finding %q in\n%s", want, got)
				}
			}
			if strings.Contains(got, "fatal=true") || strings.Contains(got, "cost=") || strings.Contains(got, "rows=") {
				t.Errorf("found\n%s", got)
			}
		})
	}
}

// TestCitusNeedsProofs: what rests on a proof alone is refused.
func TestCitusNeedsProofs(t *testing.T) {
	h, _ := citusHouse(t, nil, citusByPerson)
	h.Policy.Datasets[0].Tables[1].UnitColumn, h.Policy.Datasets[0].Tables[1].Via = "", &policy.Via{Column: "person_id", Table: h.Policy.Datasets[0].Tables[0], Key: "person_id"}
	if got := backendtest.Inspect(t, h); !strings.Contains(got, "fatal=true table visits: its persons are found through people.person_id, which no unique") {
		t.Errorf("found\n%s", got)
	}
	if err := h.Ready(t.Context(), backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits"), h)); err != backend.ErrDrift {
		t.Errorf("Ready says %v", err)
	}
}

// TestCitusCopies: a copy has the rows of a worker in one moment, whichever table is read first, and the owner's
// TRUNCATE waits for it.
func TestCitusCopies(t *testing.T) {
	h, d := citusHouse(t, backendtest.TestSnapshot(t), citusByPerson)
	backendtest.Prepare(t, h)
	if got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits", "clinic"), h)); !slices.Equal(got, []string{"[0]: [9]", "[1]: [21]"}) {
		t.Errorf("got %v", got)
	}
	b := h.Backend.(*snapshot.Snapshots)
	want, err := b.ExtractionsOf(h.Policy)
	if err != nil {
		t.Fatal(err)
	}
	count := func(r snapshot.Reading, table string) (n int64) {
		if err := r.(*reading).first.QueryRow(t.Context(), "SELECT count(*) FROM public."+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	err = b.Source.Consistent(t.Context(), &snapshot.Maker{List: want.List}, func(r snapshot.Reading) error {
		people := count(r, "people")
		d.Exec(t, "INSERT INTO people (person_id) SELECT generate_series(100, 140)", "INSERT INTO visits (person_id) SELECT generate_series(100, 140)")
		if later, visits := count(r, "people"), count(r, "visits"); later != people || visits != 91 {
			t.Errorf("%d and then %d people, %d visits of 91", people, later, visits)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		owner, err := pgconn.Connect(t.Context(), d.URLFor("postgres"))
		if err != nil {
			return err
		}
		defer owner.Close(context.Background())
		if _, err := owner.Exec(ctx, "TRUNCATE visits").ReadAll(); err == nil {
			t.Error("a table was emptied while a copy was made of it")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
