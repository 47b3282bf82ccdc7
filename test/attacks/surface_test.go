package attacks

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// watched is a proxy before a PostgreSQL whose log holds every statement that reaches it.
type watched struct {
	*kit.Program
	t        *testing.T
	server   *pgtest.Server
	database string
}

func watch(t *testing.T) *watched {
	t.Helper()
	server := pgtest.Start(t, kit.Logged...)
	path, database := kit.Postgres(t, server, kit.Budgets{User: "100000", Cap: "100000"}, 0)
	return &watched{kit.Serve(t, path), t, server, database}
}

// logged is how much the database has logged.
func (w *watched) logged() int64 {
	w.t.Helper()
	info, err := os.Stat(w.server.Log())
	if err != nil {
		w.t.Fatal(err)
	}
	return info.Size()
}

// since is what the database logged after from.
func (w *watched) since(from int64) string {
	w.t.Helper()
	text, err := os.ReadFile(w.server.Log())
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text[from:])
}

// owner has the database's owner ask for a column of texts.
func (w *watched) owner(sql string) []string {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.server.URLFor("postgres", w.database))
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(w.t.Context(), sql)
	if err != nil {
		w.t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(list) == 0 {
		w.t.Fatalf("%d rows, %v", len(list), err)
	}
	return list
}

// refuses asks each form, in both protocols, wants a refusal, and of the database and the account that nothing
// happened.
func (w *watched) refuses(t *testing.T, forms []string) (refused int) {
	t.Helper()
	alice := w.Connect("alice", "lab")
	spent, before := alice.Spent(), w.logged()
	for _, sql := range forms {
		a, err := alice.TryAsk(sql)
		if err != nil {
			t.Errorf("%s: the connection ended: %v", sql, err)
			alice = w.Connect("alice", "lab")
			continue
		}
		alice.Ask(`ROLLBACK`)
		b := alice.Extended(sql)
		if a.Err == nil || b.Err == nil {
			t.Errorf("%s: answered %v, and by the extended protocol %v", sql, a.Rows, b.Rows)
			continue
		}
		for _, canary := range canaries {
			if strings.Contains(fmt.Sprint(a.Frames, b.Frames), canary) && !strings.Contains(sql, canary) {
				t.Errorf("%s: %q in %v", sql, canary, a.Frames)
			}
		}
		refused++
	}
	if text := w.since(before); text != "" {
		t.Errorf("the database was asked: %.600s", text)
	}
	if now := alice.Spent(); now != spent {
		t.Errorf("spent %s, then %s", spent, now)
	}
	return refused
}

// rowAggregates are aggregates whose value is a row's, or a function of few: %s is a column.
var rowAggregates = []string{"string_agg(%s::text, ',')", "array_agg(%s)", "json_agg(%s)", "jsonb_agg(%s)", "json_object_agg(uid, %s)", "xmlagg(xmlelement(name x, %s))",
	"mode() WITHIN GROUP (ORDER BY uid, %s)", "range_agg(int4range(1, 2)) FILTER (WHERE %s IS NULL)", "any_value(%s)", "first(%s)", "last(%s)", "list(%s)", "list(%s)[7]",
	"arg_max(%s, uid)", "arg_min(%s, uid)", "max_by(%s, uid)", "histogram(%s)", "group_concat(%s)", "array_agg(DISTINCT %s ORDER BY %s)", "percentile_cont(0.5) WITHIN GROUP (ORDER BY md5(%s::text))",
	"entropy(%s)", "approx_count_distinct(%s)", "quantile_cont(%s, 0.5)", "reservoir_quantile(%s, 0.5)", "(array_agg(%s))[1]", "concat(array_agg(%s))", "to_json(array_agg(%s))"}

// rowForms are other ways to have rows.
var rowForms = []string{`TABLE people`, `SELECT * FROM people`, `SELECT people FROM people`, `SELECT (people).* FROM people`, `SELECT p.* FROM people p`, `SELECT row_to_json(people) FROM people`,
	`SELECT row_to_json(p) FROM people p WHERE uid = 7`, `SELECT note FROM people`, `SELECT DISTINCT uid FROM people WHERE hiv`,
	`VALUES ((SELECT note FROM people WHERE hiv))`, `SELECT (SELECT note FROM people WHERE uid = 7)`, `SELECT ARRAY(SELECT note FROM people)`, `SELECT EXISTS (SELECT FROM people WHERE hiv AND uid = 7)`,
	`SELECT 1 FROM people`, `SELECT uid FROM people ORDER BY income LIMIT 1`, `SELECT row_number() OVER () FROM people`, `SELECT lag(note) OVER (ORDER BY uid) FROM people`,
	`SELECT first_value(note) OVER (ORDER BY uid) FROM people`, `SELECT count(*) OVER () FROM people`, `SELECT sum(income) OVER (ORDER BY uid) FROM people`, `FROM people`, `FROM people SELECT note`,
	`SELECT max(note) FROM people`, `SELECT min(city) FROM people WHERE hiv`, `SELECT bool_or(hiv) FROM people WHERE uid = 7`, `SELECT uid, count(*) FROM people GROUP BY uid`,
	`SELECT note || city FROM people`, `SELECT * FROM (SELECT * FROM people) x`, `WITH x AS (SELECT * FROM people) SELECT * FROM x`,
	`WITH RECURSIVE x AS (SELECT uid, note FROM people UNION SELECT uid, note FROM x) SELECT * FROM x`, `SELECT * FROM people UNION ALL SELECT * FROM people`,
	`SELECT * FROM people TABLESAMPLE SYSTEM (1)`, `SELECT * FROM people FOR UPDATE`,
	`SELECT unnest(array_agg(note)) FROM people`, `SELECT (SELECT string_agg(note, ',') FROM people)`, `SELECT jsonb_object_agg(uid, note) FROM people`, `SELECT count(*), note FROM people GROUP BY city`,
	`SELECT * FROM people, LATERAL (SELECT note) x`, `SELECT * FROM people CROSS JOIN people b`, `SELECT query_to_xml('SELECT note FROM people', true, false, '')`, `SELECT table_to_xml('people', true, false, '')`,
	`SELECT * FROM json_to_recordset((SELECT json_agg(people) FROM people)) AS x(note text)`, `COPY people TO STDOUT`, `COPY (SELECT note FROM people) TO STDOUT`, `COPY people (note) TO STDOUT CSV`,
	`SELECT note FROM ONLY people`, `SELECT current_setting('x') FROM people`, `SELECT random() FROM people`, `SELECT 1 FROM people WHERE uid = 7 LIMIT 1`, `SELECT pg_typeof(people) FROM people`,
	`SELECT hiv FROM people WHERE uid = 7`, `SELECT CASE WHEN hiv THEN note END FROM people`, `SELECT age::text FROM people`, `SELECT count(*) FROM people GROUP BY md5(uid::text)`,
	`SELECT max(uid) FROM people`, `SELECT sum(uid) FROM people WHERE hiv`, `SELECT avg(uid) FROM people WHERE hiv`}

// TestRowsAreRefused is threat T44.
func TestRowsAreRefused(t *testing.T) {
	kit.Beside(t)
	forms := slices.Clone(rowForms)
	for _, aggregate := range rowAggregates {
		for _, column := range []string{"note", "income", "hiv"} {
			forms = append(forms, `SELECT `+strings.ReplaceAll(aggregate, "%s", column)+` FROM people`)
		}
	}
	refused := watch(t).refuses(t, forms)
	threats.Reached(t, "T44", "%d of %d forms refused by both protocols, 0 charged, 0 statements at the database", refused, len(forms))
}

// TestRowPickersAreRefused is threat T46: what names a row by its place or its key is no column.
func TestRowPickersAreRefused(t *testing.T) {
	kit.Beside(t)
	var forms []string
	for i, column := range []string{"uid", "people.uid", `"uid"`, "ctid", "xmin", "xmax", "cmin", "cmax", "tableoid", "oid", "rowid", "people.ctid", "people.*", "people"} {
		if i > 2 { // that a unit is not NULL holds of every row that is counted
			forms = append(forms, `SELECT count(*) FROM people WHERE `+column+` IS NOT NULL`)
		}
		forms = append(forms, `SELECT `+column+`, count(*) FROM people GROUP BY 1`, `SELECT count(DISTINCT `+column+`) FROM people WHERE hiv AND md5(`+column+`::text) > ''`)
	}
	forms = append(forms, `SELECT count(*) FROM people WHERE ctid = '(0,7)'`, `SELECT md5(uid::text), count(*) FROM people GROUP BY 1`, `SELECT count(*) FROM people WHERE uid = 7`,
		`SELECT count(*) FROM people WHERE uid IN (7)`, `SELECT count(*) FROM people WHERE hashtext(uid::text) % 2 = 0`, `SELECT count(*) FROM people WHERE (uid, hiv) = (7, true)`,
		`SELECT count(*) FROM people ORDER BY uid`, `SELECT count(*) FILTER (WHERE uid = 7) FROM people`, `SELECT uid % 2, count(*) FROM people GROUP BY 1`)
	refused := watch(t).refuses(t, forms)
	threats.Reached(t, "T46", "%d of %d forms refused, 0 statements at the database", refused, len(forms))
}

// writingForms are statements that write, lock, run or listen, alone and hidden in others.
var writingForms = []string{`INSERT INTO people VALUES (1)`, `INSERT INTO people SELECT * FROM people`, `INSERT INTO people DEFAULT VALUES ON CONFLICT DO NOTHING`, `UPDATE people SET note = 'x'`,
	`UPDATE people SET hiv = NOT hiv RETURNING note`, `DELETE FROM people`, `DELETE FROM people USING people b RETURNING *`, `TRUNCATE people`, `MERGE INTO people USING people b ON true WHEN MATCHED THEN DELETE`,
	`WITH d AS (DELETE FROM people RETURNING *) SELECT count(*) FROM d`, `WITH d AS (UPDATE people SET note = '' RETURNING 1) SELECT count(*) FROM people`, `WITH d AS (INSERT INTO people VALUES (1) RETURNING 1) SELECT 1`,
	`SELECT * INTO copy FROM people`, `SELECT count(*) INTO x FROM people`, `CREATE TABLE x AS SELECT * FROM people`, `CREATE TABLE x (a int)`, `CREATE TEMP TABLE x AS SELECT 1`, `CREATE VIEW x AS SELECT * FROM people`,
	`CREATE MATERIALIZED VIEW x AS SELECT * FROM people`, `CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'`, `CREATE EXTENSION dblink`, `CREATE SCHEMA x`, `CREATE ROLE x SUPERUSER`, `CREATE INDEX ON people (uid)`,
	`CREATE TRIGGER t AFTER INSERT ON people EXECUTE FUNCTION f()`, `CREATE RULE r AS ON SELECT TO people DO INSTEAD SELECT 1`, `CREATE SEQUENCE s`, `CREATE SERVER s FOREIGN DATA WRAPPER w`, `CREATE PUBLICATION p FOR ALL TABLES`,
	`ALTER TABLE people ADD COLUMN x int`, `ALTER ROLE alice SUPERUSER`, `ALTER SYSTEM SET fsync = off`, `ALTER DATABASE lab SET search_path = x`, `DROP TABLE people`, `DROP OWNED BY alice`, `DROP ROLE alice`,
	`GRANT ALL ON people TO PUBLIC`, `REVOKE ALL ON people FROM PUBLIC`, `REASSIGN OWNED BY alice TO bob`, `COPY people FROM STDIN`, `COPY people TO '/tmp/x'`, `COPY people TO PROGRAM 'sh'`, `COPY people FROM PROGRAM 'sh'`,
	`COPY (DELETE FROM people RETURNING *) TO STDOUT`, `DO $$ BEGIN RAISE NOTICE 'x'; END $$`, `CALL p()`, `EXECUTE nothing`, `PREPARE p AS DELETE FROM people`, `PREPARE p AS SELECT * FROM people`, `NOTIFY c, 'x'`,
	`LOCK TABLE people`, `VACUUM people`, `ANALYZE people`, `CLUSTER people`, `REINDEX TABLE people`, `CHECKPOINT`, `LOAD 'x'`, `REFRESH MATERIALIZED VIEW x`, `COMMENT ON TABLE people IS 'x'`, `SECURITY LABEL ON TABLE people IS 'x'`,
	`IMPORT FOREIGN SCHEMA x FROM SERVER y INTO z`, `DECLARE c CURSOR WITH HOLD FOR SELECT * FROM people`, `DECLARE c CURSOR WITH HOLD FOR DELETE FROM people RETURNING *`, `EXPLAIN ANALYZE DELETE FROM people`, `EXPLAIN DELETE FROM people`,
	`SELECT count(*) FROM people FOR UPDATE`, `SELECT count(*) FROM people FOR SHARE NOWAIT`, `SELECT pg_advisory_lock(1)`, `SELECT pg_notify('c', 'x')`, `SELECT nextval('s')`, `SELECT setval('s', 1)`, `SELECT lo_create(1)`,
	`SELECT pg_reload_conf()`, `SELECT pg_create_restore_point('x')`, `PREPARE TRANSACTION 'x'`, `COMMIT PREPARED 'x'`, `SET ROLE dba`, `SET SESSION AUTHORIZATION dba`,
	`ATTACH 'x.db'`, `INSTALL httpfs`, `PRAGMA database_list`, `EXPORT DATABASE '/tmp/x'`, `select 1; select note from people`, `SELECT 1; DELETE FROM people`, `BEGIN; DROP TABLE people; COMMIT`}

// TestWritingIsRefused is threat T47: nothing of it reaches the database, whose table stays as it is. Several
// statements in a message are allowed: the first that is refused ends it.
func TestWritingIsRefused(t *testing.T) {
	kit.Beside(t)
	w := watch(t)
	sum := func() string {
		return w.owner(`SELECT md5(string_agg(p::text, ',' ORDER BY uid)) FROM public.people p`)[0]
	}
	before := sum()
	refused := w.refuses(t, writingForms)
	if after := sum(); after != before || before == "" {
		t.Errorf("the table was %s and is %s", before, after)
	}
	threats.Reached(t, "T47", "%d of %d forms refused, 0 statements at the database, its table unchanged", refused, len(writingForms))
}

// TestSettingsStayInTheProxy is threat T48: no setting of a client reaches the database, and what settings make of
// answers is the same on neighbours.
func TestSettingsStayInTheProxy(t *testing.T) {
	kit.Beside(t)
	w := watch(t)
	alice, before := w.Connect("alice", "lab"), w.logged()
	values := map[string][]string{"timezone": {"'Asia/Tokyo'", "'nowhere'"}, "extra_float_digits": {"-15", "3"}, "statement_timeout": {"'10min'", "0"}, "datestyle": {"'German'", "'SQL, DMY'"},
		"search_path": {"canaryschema", "pg_catalog, public"}, "work_mem": {"'1GB'"}, "role": {"dba"}, "row_security": {"off"}, "default_transaction_isolation": {"'serializable'"},
		"intervalstyle": {"'iso_8601'"}, "bytea_output": {"'escape'"}, "standard_conforming_strings": {"off"}, "client_encoding": {"'LATIN1'"}, "lock_timeout": {"1"},
		"application_name": {"'canaryname'"}, "session_replication_role": {"replica"}, "log_statement": {"none"}, "temp_tablespaces": {"canaryspace"}, "enable_seqscan": {"off"}}
	sent := 0
	for name, list := range values {
		for _, value := range list {
			for _, form := range []string{"SET %s = %s", "SET LOCAL %s TO %s", "SET SESSION %s TO %s", "SELECT set_config('%s', %s::text, false)"} {
				alice.Ask(fmt.Sprintf(form, name, value))
				sent++
			}
		}
	}
	alice.Ask(`RESET ALL`)
	if a := alice.Ask(`SELECT count(*) FROM people WHERE age = 31`); a.Err != nil {
		t.Fatal(a.Err)
	}
	text := w.since(before)
	own := "pg_catalog.set_config(g.name, g.value, true)"
	foreign := 0
	for _, line := range strings.Split(text, "\n") {
		low := strings.ToLower(line)
		if strings.Contains(low, "canary") || strings.Contains(low, "statement: set ") || strings.Contains(low, "set_config") && !strings.Contains(line, "pg_catalog.set_config") {
			t.Errorf("the database saw %s", line)
			foreign++
		}
	}
	if !strings.Contains(text, own) {
		t.Error("the log shows no leaf: the test tested nothing")
	}
	b := kit.Budgets{User: "1000", Cap: "1000"}
	p := pair{kit.Serve(t, kit.DuckDB(t, b, 0)).Connect("alice", "lab"), kit.Serve(t, kit.DuckDB(t, b, 7)).Connect("alice", "lab")}
	different := 0
	for name, list := range values {
		for _, sql := range []string{`SET ` + name + ` = ` + list[0], `SHOW ` + name, `SELECT city, count(*), avg(income) FROM people WHERE age < 30 GROUP BY city`, `SELECT current_setting('` + name + `')`} {
			if d := p.sameShape(sql); d != "" {
				t.Error(d)
				different++
			}
		}
	}
	threats.Reached(t, "T48", "%d settings sent, %d SET of clients at the database; %d of %d answers differ between neighbours", sent, foreign, different, 4*len(values))
}
