package twin_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/cluster"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
	"github.com/dpproxy/dpproxy/sandbox/twin"
)

// hostileTexts are sent to the twin as they are, which no analyst can do: what reaches it is regenerated from a tree
// whose functions are allow-listed. They show what holds even if that failed. state is the SQLSTATE that ends them;
// those without one may answer, and leave nothing behind.
var hostileTexts = []struct{ sql, state string }{
	{"SELECT pg_sleep(60)", "57014"},
	{"SELECT count(*) FROM generate_series(1, 10000000000)", "57014 54000"},
	{"SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE (a * b) % 7 = 3", "57014"},
	{"WITH RECURSIVE r(i) AS (SELECT 1::bigint UNION ALL SELECT (i + 1) % 10 FROM r) SELECT count(*) FROM r", "57014 54000"},
	{"SELECT regexp_replace(repeat('a', 60000), '(a*)*(a*)*(a*)*b', 'x')", "57014 2201B 54000 54001 ok"},
	{"SELECT repeat('x', 100000000)", "54000 57014"},
	{"SELECT repeat('x', 2000000000)", "54000"},
	{"SELECT a FROM generate_series(1, 3000000) a", "54000 57014"},
	{"SELECT a, b FROM generate_series(1, 3000) a, generate_series(1, 3000) b ORDER BY a + b, md5(a::text)", "54000 57014"},
	{"SELECT pg_read_file('/etc/passwd')", "42501"},
	{"SELECT pg_ls_dir('/')", "42501"},
	{"SELECT pg_read_binary_file('PG_VERSION')", "42501"},
	{"SELECT lo_import('/etc/passwd')", "42501"},
	{"SELECT lo_export(1, '/tmp/x')", "42501"},
	{"SELECT dblink('dbname=postgres', 'SELECT 1')", "42883"},
	{"SELECT * FROM foreign_connections()", "42883"},
	{"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()", "42501 ok"},
	{"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'postgres'", "42501 ok"},
	{"SELECT pg_reload_conf()", "42501"}, {"SELECT pg_rotate_logfile()", "42501"}, {"SELECT pg_switch_wal()", "42501"},
	{"SELECT * FROM pg_authid", "42501"}, {"SELECT * FROM pg_statistic", "42501"}, {"SELECT * FROM pg_user_mapping", "42501"},
	{"SELECT set_config('transaction_read_only', 'off', false)", "XX000"},
	{"SELECT set_config('temp_file_limit', '-1', false)", "42501"},
	{"SELECT set_config('session_authorization', 'postgres', false)", "42501"},
	{"SELECT set_config('role', 'postgres', false)", "42501 22023"},
	{"SELECT query_to_xml('CREATE TABLE evil (x int)', true, true, '')", "XX000 0A000"},
	{"CREATE TABLE evil (x int)", "42601"}, {"CREATE TEMP TABLE evil (x int)", "42601"},
	{"INSERT INTO public.people VALUES (1, 'x')", "XX000 42501"}, {"DELETE FROM public.people", "XX000 42501"},
	{"COPY public.people TO '/tmp/x'", "42601"}, {"COPY (SELECT 1) TO PROGRAM 'id'", "42601"},
	{"DO $$ BEGIN PERFORM 1; END $$", "42601"}, {"VACUUM", "42601"}, {"CREATE EXTENSION dblink", "42601"},
	{"ALTER ROLE CURRENT_USER SUPERUSER", "42601"}, {"DROP DATABASE postgres", "42601"},
	{"SELECT 1; SELECT 2", "42601"}, {"SELECT 1; COMMIT; CREATE TABLE evil (x int)", "42601"}, {"COMMIT", "42601"}, {"ROLLBACK", "42601"},
	{"SET ROLE NONE", "42601"}, {"RESET ALL", "42601"}, {"SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", "42601"}, {"LISTEN x", "42601"},
	{"PREPARE evil AS SELECT 1", "42601"}, {"DECLARE c CURSOR WITH HOLD FOR SELECT 1", "42601"},
	{"SELECT set_config('search_path', 'pg_temp', false), set_config('statement_timeout', '0', false), set_config('work_mem', '1GB', false)", "ok"},
	{"SELECT set_config('role', 'none', false)", "ok"},
	{"SELECT pg_advisory_lock(1), pg_advisory_lock_shared(2), pg_try_advisory_lock(3)", "ok"},
	{"SELECT lo_create(4711)", "ok 42501 XX000"}, {"SELECT lo_from_bytea(4712, 'x')", "ok 42501 XX000"},
	{"SELECT pg_notify('x', 'y')", "ok XX000"}, {"SELECT txid_current(), pg_current_wal_lsn()", "ok"},
	{"SELECT nextval('evil')", "42P01"}, {"SELECT setseed(0.5)", "ok"},
}

// TestTwinHostileTexts: each ends in time with an error that tells nothing of the server, and the next query finds the
// twin as it was.
func TestTwinHostileTexts(t *testing.T) {
	server := sandboxtest.NewServer(t)
	e := sandboxtest.OpenTwin(t, server, "hostile_twin")
	if err := e.Catalog(context.Background(), sandboxtest.Census()); err != nil {
		t.Fatal(err)
	}
	look := func() string {
		rows, err := e.Query(context.Background(), sandboxtest.Session, outer.Query{SQL: twinState}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return sandboxtest.Written(rows.Value())
	}
	before := look()
	for _, c := range hostileTexts {
		start := time.Now()
		q := outer.Query{SQL: c.sql}
		if rest, found := strings.CutPrefix(c.sql, "WITH RECURSIVE "); found {
			q = outer.Query{With: "WITH RECURSIVE ", SQL: rest}
		}
		_, err := e.Query(context.Background(), sandboxtest.Session, q, nil)
		state := "ok"
		var fault *scalar.Error
		if errors.As(err, &fault) {
			state = fault.SQLState
			for _, word := range []string{"hostile_twin", "twin_owner", "session", "/etc", "postgres", "0x", "pg_catalog"} {
				if strings.Contains(fault.Message, word) {
					t.Errorf("%s: the error tells: %s", c.sql, fault.Message)
				}
			}
		} else if err != nil {
			t.Errorf("%s: %v", c.sql, err)
		}
		if !strings.Contains(c.state, state) {
			t.Errorf("%s: %s (%v), want %s", c.sql, state, err, c.state)
		}
		if took := time.Since(start); took > 20*time.Second { // the deadline is 2 s; the rest is this machine's
			t.Errorf("%s took %v", c.sql, took)
		}
		if after := look(); after != before {
			t.Fatalf("%s leaves something behind:\n    %s\n    %s", c.sql, before, after)
		}
	}
	for range 8 { // every connection of the pool
		if after := look(); after != before {
			t.Fatalf("something is left behind:\n    %s\n    %s", before, after)
		}
	}
}

// twinState is what a hostile text could have changed: the role, settings, locks, objects, rows.
const twinState = `SELECT current_user::text, pg_catalog.current_setting('transaction_read_only'), pg_catalog.current_setting('default_transaction_read_only'),
	pg_catalog.current_setting('statement_timeout'), pg_catalog.current_setting('work_mem'), pg_catalog.current_setting('search_path'),
	(SELECT count(*) FROM pg_catalog.pg_locks WHERE locktype = 'advisory'), (SELECT count(*) FROM pg_catalog.pg_largeobject_metadata),
	(SELECT count(*) FROM pg_catalog.pg_class WHERE relname = 'evil'), (SELECT count(*) FROM public.people),
	(SELECT count(*) FROM pg_catalog.pg_prepared_statements WHERE name = 'evil'), (SELECT count(*) FROM pg_catalog.pg_cursors WHERE name = 'c'),
	(SELECT count(*) FROM pg_catalog.pg_listening_channels())`

// TestTwinServesOthersMeanwhile: while one analyst's query takes all its time, others are answered.
func TestTwinServesOthersMeanwhile(t *testing.T) {
	e := sandboxtest.Twin(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := e.Query(ctx, sandboxtest.Session, outer.Query{SQL: "SELECT count(*) FROM generate_series(1, 10000000000)"}, nil)
		done <- err
	}()
	for range 20 {
		if _, err := sandboxtest.Planned(t, e, sandboxtest.Census(), "SELECT count(*) FROM pg_class"); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled query: %v", err)
	}
	if _, err := sandboxtest.Planned(t, e, sandboxtest.Census(), "SELECT count(*) FROM pg_class"); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// TestServerThatStaysAway: who asks while the sandbox's own server does not start again learns that, and not that her
// query takes too long.
func TestServerThatStaysAway(t *testing.T) {
	server, err := cluster.Start("", 512<<20, slog.New(slog.DiscardHandler))
	if errors.Is(err, cluster.ErrNoPrograms) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	e, err := twin.Own(server, sandbox.Options{Deadline: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Catalog(t.Context(), sandboxtest.Census()), server.Close()); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_, err = e.Query(t.Context(), sandboxtest.Session, outer.Query{SQL: "SELECT 1"}, nil)
	if !errors.Is(err, sandbox.ErrAway) {
		t.Error(err)
	}
}
