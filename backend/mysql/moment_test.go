package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/backend/mariadbtest"
	"github.com/dpproxy/dpproxy/backend/snapshot"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

const clinicTables = `

      - {name: people, max_rows_per_unit: 1, columns: [{name: age, type: integer, domain: {min: 0, max: 119, step: 1}}]}
      - {name: visits, unit: visits.who = people.id, max_rows_per_unit: 3, columns: [{name: minutes, type: integer, domain: {min: 0, max: 59, step: 1}}]}
`

var clinicSQL = []string{
	"CREATE TABLE people (id int PRIMARY KEY, age int)", "INSERT INTO people SELECT seq, seq % 100 FROM seq_1_to_50",
	"CREATE TABLE visits (visit int PRIMARY KEY, who int, minutes int)", "INSERT INTO visits SELECT seq, seq % 50 + 1, seq % 60 FROM seq_1_to_200",
}

func clinicHouse(t *testing.T, more ...string) (*backendtest.House, string) {
	t.Helper()
	return maria(t, "{name: person, key: people.id, type: integer}", clinicTables, append(slices.Clone(clinicSQL), more...)...)
}

func sourceOf(h *backendtest.House) *Source { return h.Backend.(*snapshot.Snapshots).Source.(*Source) }

// connected is a connection of a source's account.
func connected(t *testing.T, s *Source) *Conn {
	t.Helper()
	c, err := Connect(t.Context(), s.config, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// privateTables are the tables of the policy.
func privateTables(h *backendtest.House) []*policy.Table { return h.Policy.Datasets[0].Tables }

// TestMySQLOneMoment: both tables are of one moment, whatever is written while they are read, and no definition changes
// meanwhile.
func TestMySQLOneMoment(t *testing.T) {
	t.Parallel()
	h, database := clinicHouse(t)
	backendtest.Prepare(t, h)
	altered := make(chan error, 1)
	err := sourceOf(h).within(t.Context(), privateTables(h), true, func(r *reading) error {
		count := func(table string) string {
			rows, err := r.Texts(t.Context(), "SELECT count(*) FROM "+database+"."+table)
			if err != nil {
				t.Fatal(err)
			}
			return rows[0][0]
		}
		h.Source("DELETE FROM visits")
		h.Source("INSERT INTO people SELECT seq, 1 FROM seq_51_to_100")
		if people, visits := count("people"), count("visits"); people != "50" || visits != "200" {
			t.Errorf("people %s, visits %s", people, visits)
		}
		go func() {
			_, err := mariadbtest.Shared(t).DB().Exec("ALTER TABLE " + database + ".visits DROP COLUMN minutes")
			altered <- err
		}()
		select {
		case <-altered:
			t.Error("a table is altered while it is read")
		case <-time.After(500 * time.Millisecond):
		}
		if visits := count("visits"); visits != "200" {
			t.Errorf("visits %s", visits)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-altered; err != nil {
		t.Error(err)
	}
	if err := backendtest.Renewed(t, h, 3*time.Second); !errors.Is(err, backend.ErrDrift) {
		t.Errorf("a column is gone: %v", err)
	}
}

// meddler is a connection before each of whose statements somebody else does something.
type meddler struct {
	driver.Conn
	before func(text string)
}

func (m meddler) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	m.before(text)
	return m.Conn.(driver.ExecerContext).ExecContext(ctx, text, args)
}

func (m meddler) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	m.before(text)
	return m.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, text)
}

// TestMySQLDefinitionsOfOneMoment: no definition changes from before the moment of the rows on. The naive reader, which
// begins its snapshot first, sees a key that was made after it, over rows in which it does not hold.
func TestMySQLDefinitionsOfOneMoment(t *testing.T) {
	t.Parallel()
	h, database := clinicHouse(t)
	backendtest.Prepare(t, h)
	s := sourceOf(h)
	change := func(statement string) error {
		conn, err := mariadbtest.Shared(t).DB().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Raw(func(any) error { return driver.ErrBadConn })
		for _, text := range []string{"USE " + database, "SET SESSION lock_wait_timeout = 1", statement} {
			if _, err = conn.ExecContext(t.Context(), text); err != nil {
				return err
			}
		}
		return nil
	}
	guard, reader := connected(t, s), connected(t, s)
	tried := 0
	reader.Conn = meddler{reader.Conn, func(text string) {
		if strings.HasPrefix(text, "START TRANSACTION") || strings.Contains(text, "`visits` LIMIT 0") {
			if err := change("ALTER TABLE visits DROP PRIMARY KEY, ADD PRIMARY KEY (who, visit)"); err == nil {
				t.Errorf("a definition changes before %s", text)
			}
			tried++
		}
	}}
	r := &reading{Conn: reader, source: s}
	if err := r.begin(t.Context(), guard, privateTables(h), true); err != nil || tried != 2 {
		t.Fatalf("tried %d times: %v", tried, err)
	}

	naive := connected(t, s)
	if err := naive.Exec(t.Context(), "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"); err != nil {
		t.Fatal(err)
	}
	if err := change("CREATE TABLE later (a int PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	have, err := naive.Texts(t.Context(), mysqlPrimarySQL, database, "later")
	if err != nil || len(have) != 1 {
		t.Errorf("a catalog of the snapshot's moment: %v, %v", have, err)
	}
}

// TestMySQLGuardIsNeeded: what a guard that died holds is not believed.
func TestMySQLGuardIsNeeded(t *testing.T) {
	t.Parallel()
	h, _ := clinicHouse(t)
	backendtest.Prepare(t, h)
	s := sourceOf(h)
	guard, reader := connected(t, s), connected(t, s)
	r := &reading{Conn: reader, source: s}
	if err := r.begin(t.Context(), guard, privateTables(h), true); err != nil {
		t.Fatal(err)
	}
	dead, reader := connected(t, s), connected(t, s)
	dead.Close()
	r = &reading{Conn: reader, source: s}
	if err := r.begin(t.Context(), dead, privateTables(h), true); err == nil {
		t.Error("a copy is begun without its guard")
	}
}

// TestMySQLDrift: a table that is not the one that was inspected is not copied, and the last copy stays.
func TestMySQLDrift(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change string
		drift  bool
	}{
		"column of another type": {"ALTER TABLE people MODIFY age varchar(20)", true},
		"another engine":         {"ALTER TABLE people ENGINE = MyISAM", true},
		"no key":                 {"ALTER TABLE people DROP PRIMARY KEY", true},
		"no table":               {"DROP TABLE people", false},
		"a column more":          {"ALTER TABLE people ADD COLUMN height int", false},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := clinicHouse(t)
			backendtest.Prepare(t, h)
			was := h.AsOf(nil)
			h.Source(c.change)
			err := backendtest.Renewed(t, h, 3*time.Second)
			if errors.Is(err, backend.ErrDrift) != c.drift || (err == nil) != (name == "a column more") {
				t.Errorf("got %v", err)
			}
			if err != nil && (h.AsOf(nil) != was || len(backendtest.FilesIn(t, h.Backend.(*snapshot.Snapshots).Plan.Dir)) != 1) {
				t.Error("the last copy is gone, or something was left")
			}
		})
	}
}

// TestMySQLOfAnotherPolicy: a policy that was looked at meanwhile, and needs other columns, does not keep the one in
// force from its copies; nor does it let through what check would refuse now.
func TestMySQLOfAnotherPolicy(t *testing.T) {
	t.Parallel()
	h, _ := clinicHouse(t)
	backendtest.Prepare(t, h)
	d := *h.Policy.Datasets[0]
	table := *d.Tables[0]
	d.Tables = []*policy.Table{&table}
	look := func() {
		if _, err := h.Inspect(t.Context(), &policy.Policy{Backend: h.Policy.Backend, Datasets: []*policy.Dataset{&d}}, &d); err != nil {
			t.Fatal(err)
		}
	}
	table.Columns = nil
	look()
	if err := backendtest.Renewed(t, h, 2*time.Second); err != nil {
		t.Error(err)
	}
	table.Columns = h.Policy.Datasets[0].Tables[0].Columns
	h.Source("ALTER TABLE people MODIFY age varchar(20)")
	look()
	if err := backendtest.Renewed(t, h, 2*time.Second); !errors.Is(err, backend.ErrDrift) {
		t.Errorf("got %v", err)
	}
}

// TestMySQLFindings: what check says of tables, accounts and links.
func TestMySQLFindings(t *testing.T) {
	t.Parallel()
	server := mariadbtest.Shared(t)
	for name, c := range map[string]struct {
		statement, want string
		fatal           bool
	}{
		"as it should be":   {"SELECT 1", "a unique constraint on id proves one row per person", false},
		"another engine":    {"ALTER TABLE visits ENGINE = MyISAM", "table visits is of the engine myisam, which has no snapshot", true},
		"computed":          {"ALTER TABLE visits DROP COLUMN minutes, ADD COLUMN minutes int AS (visit * 2) VIRTUAL", "table visits: minutes is computed when it is read", true},
		"a view":            {"RENAME TABLE visits TO old, people TO p; CREATE VIEW visits AS SELECT * FROM old; RENAME TABLE p TO people; GRANT SHOW VIEW ON DATABASE_.* TO ROLE_", "table visits is a view: that no value makes its SELECT fail", false},
		"a view's text":     {"RENAME TABLE visits TO old; CREATE VIEW visits AS SELECT * FROM old", "table people and table visits may both show the same rows, since visits reads the view DATABASE_.visits, which calls a stored function, or whose text", true},
		"a view of both":    {"RENAME TABLE visits TO old; CREATE VIEW visits AS SELECT old.* FROM old JOIN people ON people.id = old.who; GRANT SHOW VIEW ON DATABASE_.* TO ROLE_", "table people and table visits both show rows of DATABASE_.people, and name their persons differently", true},
		"a merged table":    {"ALTER TABLE visits ENGINE = MyISAM; RENAME TABLE visits TO old; CREATE TABLE visits LIKE old; ALTER TABLE visits ENGINE = MERGE UNION = (old)", "table visits is of the engine mrg_myisam, which may show rows of other tables", true},
		"unique alone":      {"ALTER TABLE people DROP PRIMARY KEY, ADD UNIQUE (id), MODIFY id int NOT NULL", "no constraint proves one row per person", false},
		"rights of writing": {"GRANT INSERT ON DATABASE_.* TO ROLE_", "dpproxy's account has the rights INSERT", true},
		"rights of files":   {"GRANT FILE ON *.* TO ROLE_", "dpproxy's account has the rights FILE", true},
		"PUBLIC elsewhere":  {"GRANT ALL ON `scratch\\_%`.* TO PUBLIC", "constraint on id proves one row per person", false},
		"PUBLIC there":      {"GRANT INSERT ON DATABASE_.* TO PUBLIC", "everybody has the rights INSERT where", false},
		"granting":          {"GRANT SELECT ON DATABASE_.* TO ROLE_ WITH GRANT OPTION", "the rights GRANT OPTION", true},
		"a role":            {"CREATE ROLE r_DATABASE_; GRANT r_DATABASE_ TO ROLE_", "dpproxy's account has a role", true},
		"one column alone":  {"REVOKE SELECT ON DATABASE_.* FROM ROLE_; GRANT SELECT (id) ON DATABASE_.people TO ROLE_; GRANT SELECT ON DATABASE_.visits TO ROLE_", "column age (age) does not exist in the database, or dpproxy's account may not see it", true},
		"another type":      {"ALTER TABLE people MODIFY age double", "column age: the policy says integer, the database says double", true},
	} {
		t.Run(name, func(t *testing.T) {
			h, database := clinicHouse(t)
			account := h.Role + "@'127.0.0.1'"
			for _, statement := range strings.Split(strings.NewReplacer("DATABASE_", database, "ROLE_", account).Replace(c.statement), "; ") {
				server.ExecIn(t, database, statement)
			}
			got := backendtest.Inspect(t, h)
			if !strings.Contains(got, strings.ReplaceAll(c.want, "DATABASE_", database)) || strings.Contains(got, "fatal=true") != c.fatal {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

// TestMySQLGone: a server that is killed while it is read, or does not answer, leaves the last copy in force and the
// directory clean, and nothing of its text is shown.
func TestMySQLGone(t *testing.T) {
	t.Parallel()
	server := mariadbtest.Start(t)
	h := backendtest.MariaHouseOf(t, server)
	backendtest.Prepare(t, h)
	was := backendtest.People(t, h)
	err := sourceOf(h).within(t.Context(), privateTables(h)[:2], true, func(r *reading) error {
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		_, err := r.Texts(t.Context(), "SELECT count(*) FROM information_schema.TABLES")
		if err == nil {
			t.Error("a server that is gone answers")
		}
		return err
	})
	if err == nil {
		t.Error("no error")
	}
	if err := backendtest.Renewed(t, h, 3*time.Second); err == nil || !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if got := backendtest.People(t, h); got != was {
		t.Errorf("got %s", got)
	}
	if names := backendtest.FilesIn(t, h.Backend.(*snapshot.Snapshots).Plan.Dir); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}

// TestMySQLCancel: a copy whose time is over ends on the server, too.
func TestMySQLCancel(t *testing.T) {
	t.Parallel()
	h, database := clinicHouse(t, "CREATE VIEW slow AS SELECT SLEEP(30) AS id, 1 AS age")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := sourceOf(h).within(ctx, nil, true, func(r *reading) error {
		_, err := r.Texts(ctx, "SELECT * FROM "+database+".slow")
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		var n int
		if err := mariadbtest.Shared(t).DB().QueryRow("SELECT count(*) FROM information_schema.PROCESSLIST WHERE USER = ? AND INFO LIKE '%slow%'", h.Role).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatal("the server goes on")
		}
	}
}

// TestMySQLSettingsOfOthers (rule 24): what a server sets for new sessions changes nothing of what is read.
func TestMySQLSettingsOfOthers(t *testing.T) {
	t.Parallel()
	plain := backendtest.MariaHouse(t)
	server := mariadbtest.Start(t, "character-set-server=latin1", "transaction-isolation=READ-UNCOMMITTED", "init-connect=SET sql_select_limit = 1, sql_auto_is_null = 1, "+
		"system_versioning_asof = '2001-01-01', character_set_results = NULL, autocommit = 0, completion_type = 2, lc_time_names = 'de_DE'")
	h := backendtest.MariaHouseOf(t, server)
	for name, value := range map[string]string{
		"time_zone": "'-11:00'", "max_statement_time": "0.01", "net_write_timeout": "1",
		"net_read_timeout": "1", "wait_timeout": "1", "lock_wait_timeout": "0", "max_join_size": "1", "sql_big_selects": "0", "group_concat_max_len": "4", "idle_transaction_timeout": "1",
		"idle_readonly_transaction_timeout": "1", "query_cache_type": "1", "div_precision_increment": "0", "sql_select_limit": "1", "old_mode": "'ZERO_DATE_TIME_CAST'", "big_tables": "1",
		"max_recursive_iterations": "0", "tmp_table_size": "1024", "max_heap_table_size": "16384", "sort_buffer_size": "1024", "max_sort_length": "64", "sql_safe_updates": "1",
	} {
		server.Exec(t, "SET GLOBAL "+name+" = "+value)
	}
	// The last one: in a session that is strict a value that the server would round is refused.
	server.Exec(t, "SET GLOBAL sql_mode = 'ANSI,PAD_CHAR_TO_FULL_LENGTH,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES,NO_ZERO_DATE'")
	backendtest.OfSnapshots(t, h)
	for _, grain := range [][]string{nil, {"age"}, {"sex"}, {"income"}} {
		want := backendtest.Counts(t, plain, backendtest.Render(t, backendtest.Measure(t, plain.Policy, "people", grain...), plain))
		if got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", grain...), h)); !slices.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", grain, got, want)
		}
	}
	want, err := plain.ReadPublic(t.Context(), plain.Policy.Datasets[0].Table("", "regions"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.ReadPublic(t.Context(), h.Policy.Datasets[0].Table("", "regions"))
	if err != nil || fmt.Sprint(got.Value()) != fmt.Sprint(want.Value()) {
		t.Errorf("got %v, want %v: %v", got.Value(), want.Value(), err)
	}
}

// TestMySQLProof: a primary key alone is believed, and one that is not among the columns is not.
func TestMySQLProof(t *testing.T) {
	d := &policy.Dataset{ID: "d"}
	table := &policy.Table{Dataset: d, Name: "t", Source: policy.Source{Schema: "s", Name: "t"}, UnitColumn: "Who"}
	have := inspect.Shape{inspect.ColumnOf("s", "t", "rank"): {More: Shape{Data: "int"}}, inspect.ColumnOf("s", "t", "half"): {More: Shape{Data: "decimal", Scale: 1}}}
	key := func(columns ...string) map[inspect.ColumnName]bool {
		keys := map[inspect.ColumnName]bool{}
		for _, c := range columns {
			keys[inspect.ColumnOf("s", "t", c)] = true
		}
		return keys
	}
	for i, c := range []struct {
		keys map[inspect.ColumnName]bool
		need rewrite.Unique
		want bool
	}{
		{key(), rewrite.Unique{Table: table, Columns: []string{"Who"}}, false},
		{key("who"), rewrite.Unique{Table: table, Columns: []string{"Who"}}, true},
		{key("who", "rank"), rewrite.Unique{Table: table, Columns: []string{"Who"}}, false},
		{key("who", "rank"), rewrite.Unique{Table: table, Columns: []string{"rank"}, Nullable: true, Whole: "rank"}, true},
		{key("who", "half"), rewrite.Unique{Table: table, Columns: []string{"half"}, Nullable: true, Whole: "half"}, false},
		{map[inspect.ColumnName]bool{inspect.ColumnOf("s", "other", "who"): true}, rewrite.Unique{Table: table, Columns: []string{"who"}}, false},
	} {
		if got := proven(have, c.keys, c.need); got != c.want {
			t.Errorf("case %d: %t", i, got)
		}
	}
}
