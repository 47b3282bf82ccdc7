package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/rewrite"
)

// settingsHouse is a PostgreSQL house whose role and database the test knows.
func settingsHouse(t *testing.T, options string, statements ...string) (h *backendtest.House, role, database string) {
	t.Helper()
	server := pgtest.Shared(t)
	role, database = server.Role(t, ""), server.Database(t)
	for _, s := range backendtest.RowsSQL {
		server.Exec(t, database, fmt.Sprintf(s, "public."))
	}
	server.Exec(t, database, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)
	for _, s := range statements {
		server.Exec(t, database, strings.NewReplacer("ROLE_", role, "DATABASE_", database).Replace(s))
	}
	h = backendtest.Open(t, backendtest.TestPolicy(t, server.URLFor(role, database)+options))
	h.Change = func(s string) { server.Exec(t, database, s) }
	return h, role, database
}

// TestEverySettingHasItsPlace (rule 24): what a session of this server could set is set by dpproxy, looked at, or known
// to decide nothing.
func TestEverySettingHasItsPlace(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), pgtest.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	places := map[string]int{}
	for _, g := range givens {
		places[g.name]++
	}
	for _, list := range [][]string{computed, refused} {
		for _, name := range list {
			places[name]++
		}
	}
	for _, names := range idle {
		for _, name := range names {
			places[name]++
		}
	}
	rows, err := conn.Query(t.Context(), "SELECT lower(name) FROM pg_settings WHERE context IN ('user', 'superuser') AND name NOT LIKE '%.%'")
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(all) < 150 {
		t.Fatalf("%d settings: %v", len(all), err)
	}
	for _, name := range all {
		if places[name] == 0 {
			t.Errorf("%s has no place", name)
		}
	}
	for name, n := range places {
		if n != 1 {
			t.Errorf("%s has %d places", name, n)
		}
	}
}

// strange are values that settings may have, each of which would decide something.
var strange = map[string]string{
	"client_encoding": "LATIN1", "standard_conforming_strings": "off", "datestyle": "German, DMY", "intervalstyle": "iso_8601", "timezone": "Pacific/Chatham",
	"extra_float_digits": "-15", "bytea_output": "escape", "array_nulls": "off", "search_path": "public", "row_security": "off", "transform_null_equals": "on",
	"gin_fuzzy_search_limit": "1", "lock_timeout": "700", "statement_timeout": "30000", "idle_in_transaction_session_timeout": "30000", "exit_on_error": "on",
	"work_mem": "64kB", "hash_mem_multiplier": "1", "jit": "on", "jit_above_cost": "0", "plan_cache_mode": "force_generic_plan", "constraint_exclusion": "on",
	"from_collapse_limit": "1", "join_collapse_limit": "1", "enable_seqscan": "off", "enable_hashagg": "off", "enable_sort": "off", "enable_nestloop": "off",
	"enable_parallel_hash": "on", "default_transaction_isolation": "serializable", "default_transaction_read_only": "off", "client_min_messages": "debug5",
	"quote_all_identifiers": "on", "backslash_quote": "off", "lc_monetary": "POSIX", "timezone_abbreviations": "Australia", "default_transaction_deferrable": "on",
}

// TestSettingsOfOthersAreNotFollowed (rule 24): with each of the strange settings at each place where one can be set,
// every value in a transaction is dpproxy's, and the counts are the same.
func TestSettingsOfOthersAreNotFollowed(t *testing.T) {
	t.Parallel()
	plain, _, _ := settingsHouse(t, "")
	want := backendtest.Counts(t, plain, backendtest.Render(t, backendtest.Measure(t, plain.Policy, "visits", "clinic"), plain))
	values := func(h *backendtest.House) map[string]string {
		out := map[string]string{}
		err := h.Backend.(*DB).transactionAside(t.Context(), time.Minute, func(tx pgx.Tx) error {
			rows, err := tx.Query(t.Context(), "SELECT lower(name), setting FROM pg_catalog.pg_settings")
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var name, value string
				if err := rows.Scan(&name, &value); err != nil {
					return err
				}
				out[name] = value
			}
			return rows.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	usual := values(plain)
	var role, database, both, url []string
	for name, value := range strange {
		role = append(role, fmt.Sprintf("ALTER ROLE ROLE_ SET %s = '%s'", name, value))
		database = append(database, fmt.Sprintf("ALTER DATABASE DATABASE_ SET %s = '%s'", name, value))
		both = append(both, fmt.Sprintf("ALTER ROLE ROLE_ IN DATABASE DATABASE_ SET %s = '%s'", name, value))
		if name == "search_path" || name == "statement_timeout" || name == "lock_timeout" || name == "idle_in_transaction_session_timeout" {
			continue // those that would end pgx's own log-in are tried below
		}
		url = append(url, "&"+name+"="+strings.ReplaceAll(strings.ReplaceAll(value, " ", "%20"), "/", "%2F"))
	}
	slices.Sort(url)
	for name, h := range map[string]func() *backendtest.House{
		"role":     func() *backendtest.House { h, _, _ := settingsHouse(t, "", role...); return h },
		"database": func() *backendtest.House { h, _, _ := settingsHouse(t, "", database...); return h },
		"both":     func() *backendtest.House { h, _, _ := settingsHouse(t, "", both...); return h },
		"url":      func() *backendtest.House { h, _, _ := settingsHouse(t, strings.Join(url, "")); return h },
		"options": func() *backendtest.House {
			h, _, _ := settingsHouse(t, "&options=-cstatement_timeout%3D3000%20-clock_timeout%3D1%20-cgin_fuzzy_search_limit%3D1")
			return h
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := h()
			have := values(h)
			for _, g := range givens {
				if want, ok := usual[g.name]; ok && have[g.name] != want {
					t.Errorf("%s is %q, want %q", g.name, have[g.name], want)
				}
			}
			if got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits", "clinic"), h)); !slices.Equal(got, want) {
				t.Errorf("counts %v, want %v", got, want)
			}
			if got := backendtest.Inspect(t, h); strings.Contains(got, "fatal=true") || !strings.Contains(got, "dpproxy sets its own values in each transaction") {
				t.Errorf("got\n%s", got)
			}
			if err := h.Ready(t.Context(), backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWordsForSettings: what check says of each setting that it does not accept or follow.
func TestWordsForSettings(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name       string
		statements []string
		fatal      bool
	}{
		{"temporary files of the role", []string{"ALTER ROLE ROLE_ SET temp_file_limit = '64MB'"}, true},
		{"temporary files of the database", []string{"ALTER DATABASE DATABASE_ SET temp_file_limit = 1"}, true},
		{"temporary files of the role, lifted again", []string{"ALTER ROLE ROLE_ SET temp_file_limit = 1", "ALTER ROLE ROLE_ IN DATABASE DATABASE_ SET temp_file_limit = -1"}, false},
		{"connections of the role", []string{"ALTER ROLE ROLE_ CONNECTION LIMIT 4"}, true},
		{"memory", []string{"ALTER ROLE ROLE_ SET work_mem = '8GB'"}, false},
		{"another encoding of the client", []string{"ALTER ROLE ROLE_ SET client_encoding = 'LATIN1'"}, false},
		{"a setting of an extension", []string{"ALTER ROLE ROLE_ SET plan_filter.statement_cost_limit = 1000"}, false},
		{"no look at locks", []string{"REVOKE SELECT ON pg_locks FROM PUBLIC"}, true},
		{"no word of a row's newest version", []string{"REVOKE EXECUTE ON FUNCTION currtid2(text, tid) FROM PUBLIC"}, true},
		{"row security", []string{"ALTER TABLE people ENABLE ROW LEVEL SECURITY", "CREATE POLICY mine ON people FOR SELECT USING (1 / age > 0)"}, true},
		{"row security without a policy", []string{"ALTER TABLE people ENABLE ROW LEVEL SECURITY"}, true},
		{"row security of all rows", []string{"ALTER TABLE people ENABLE ROW LEVEL SECURITY", "CREATE POLICY all_rows ON people FOR SELECT USING (true)"}, false},
	}
	var text strings.Builder
	for _, c := range cases {
		h, role, database := settingsHouse(t, "", c.statements...)
		got := backendtest.Inspect(t, h)
		if c.fatal != strings.Contains(got, "fatal=true") {
			t.Errorf("%s: fatal must be %v:\n%s", c.name, c.fatal, got)
		}
		fmt.Fprintf(&text, "%s\n", c.name)
		for line := range strings.Lines(got) {
			if !strings.Contains(line, "constraint") {
				text.WriteString("  " + strings.NewReplacer(role, "dpproxy", database, "prod").Replace(line))
			}
		}
	}
	golden(t, "settings.txt", text.String())
}

// golden holds a text against a file of testdata; UPDATE=1 writes it anew.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != text {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestOtherEncodingsAreRefused: a database whose texts would have to be converted is refused at the start.
func TestOtherEncodingsAreRefused(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	for _, encoding := range []string{"LATIN1", "SQL_ASCII", "WIN1252", "EUC_JP"} {
		database, role := server.Database(t)+"_other", server.Role(t, "")
		server.Exec(t, "postgres", fmt.Sprintf("CREATE DATABASE %s ENCODING '%s' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0", database, encoding))
		p := backendtest.TestPolicy(t, server.URLFor(role, database))
		b, err := backendtest.Opener(t.Context(), p, backendtest.Discard())
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		findings, err := b.Inspect(t.Context(), p, p.Datasets[0])
		if err != nil || !inspect.Fatal(findings) || !strings.Contains(findings[0].Text, "the database's encoding is "+encoding) {
			t.Errorf("%s: %v %v", encoding, findings, err)
		}
		if err := b.Ready(t.Context()); err != backend.ErrSettings {
			t.Errorf("%s: Ready says %v", encoding, err)
		}
	}
}

// TestLimitsThatComeLater: a limit that is set while dpproxy runs is found before the next charge, though the sessions
// that are there do not have it yet.
func TestLimitsThatComeLater(t *testing.T) {
	t.Parallel()
	h, role, database := settingsHouse(t, "")
	backendtest.Inspect(t, h)
	if err := h.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Change(fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET temp_file_limit = '1MB'", role, database))
	if err := h.Ready(t.Context()); err != backend.ErrSettings {
		t.Errorf("Ready says %v", err)
	}
	h.Change(fmt.Sprintf("ALTER ROLE %s IN DATABASE %s RESET temp_file_limit", role, database))
	h.Change("REVOKE SELECT ON pg_locks FROM PUBLIC")
	if err := h.Ready(t.Context(), backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)); err != backend.ErrSettings {
		t.Errorf("Ready says %v", err)
	}
	h.Change("GRANT SELECT ON pg_locks TO PUBLIC")
	if err := h.Ready(t.Context()); err != nil {
		t.Errorf("Ready says %v", err)
	}
}

// TestAPlanMayBeLong: of a query whose plan is longer than a message may be nothing is said but that it is not planned:
// the database is there.
func TestAPlanMayBeLong(t *testing.T) {
	t.Parallel()
	h := backendtest.PostgresHouse(t)
	const columns = "person_id, age, sex, income, note"
	h.Change("ALTER TABLE people RENAME TO base; GRANT SELECT ON base TO PUBLIC")
	view := func(condition string) {
		h.Change("CREATE OR REPLACE VIEW people AS SELECT " + columns + " FROM base" + condition + "; GRANT SELECT ON people TO PUBLIC")
	}
	view(" WHERE note IS DISTINCT FROM repeat('x', 5000000)") // which a plan shows whole
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "age"), h)
	if err := h.Ready(t.Context(), q); err != backend.ErrUnplanned {
		t.Error(err)
	}
	view("")
	if err := h.Ready(t.Context(), q); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestPlanningReadsNoRows: a query that would fail at its first row is planned all the same.
func TestPlanningReadsNoRows(t *testing.T) {
	t.Parallel()
	h := backendtest.PostgresHouse(t)
	h.Change(`CREATE FUNCTION fail(bigint) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'read'; END $$;
		ALTER TABLE people RENAME TO base; CREATE VIEW people AS SELECT person_id, fail(person_id) AS age, sex, income, note FROM base; GRANT SELECT ON people TO PUBLIC`)
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "age"), h)
	if err := h.Ready(t.Context(), q); err != nil {
		t.Error(err)
	}
	if got := execute.Detached(t.Context(), h.Executor(), q, 0)[0]; len(got) != 0 || !strings.Contains(h.Log.String(), "SQLSTATE class P0") {
		t.Errorf("the query ran: %v", got)
	}
}

func BenchmarkReady(b *testing.B) {
	server := pgtest.Shared(b)
	role, database := server.Role(b, ""), server.Database(b)
	for _, s := range backendtest.RowsSQL {
		server.Exec(b, database, fmt.Sprintf(s, "public."))
	}
	server.Exec(b, database, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)
	p := backendtest.TestPolicy(b, server.URLFor(role, database))
	backend, err := backendtest.Opener(b.Context(), p, backendtest.Discard())
	if err != nil {
		b.Fatal(err)
	}
	defer backend.Close()
	if _, err := backend.Inspect(b.Context(), p, p.Datasets[0]); err != nil {
		b.Fatal(err)
	}
	q := backendtest.Render(b, backendtest.Measure(b, p, "visits", "clinic", "minutes"), backend)
	for name, queries := range map[string][]rewrite.Query{"alone": nil, "a query": {q}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := backend.Ready(b.Context(), queries...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("executed", func(b *testing.B) {
		for b.Loop() {
			if _, err := backend.(*DB).groups(b.Context(), q); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestRightsAreLookedAtBeforeTheCharge: a right that was taken from dpproxy's role is found without a row being read.
func TestRightsAreLookedAtBeforeTheCharge(t *testing.T) {
	t.Parallel()
	h, role, _ := settingsHouse(t, "")
	good := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "age"), h)
	backendtest.Inspect(t, h)
	if err := h.Ready(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	h.Change("REVOKE SELECT ON people FROM " + role + "; GRANT SELECT (person_id, sex, income) ON people TO " + role)
	if err := h.Ready(t.Context(), good); err != backend.ErrDrift {
		t.Errorf("without the right to read a column: %v", err)
	}
}

// TestNoSharedBitmaps (rule 24): the bitmap of a parallel scan lies in shared memory, and how much it takes is for the
// rows to say. No plan has one, not even where a server would choose nothing else.
func TestNoSharedBitmaps(t *testing.T) {
	t.Parallel()
	h, _, _ := settingsHouse(t, "",
		`CREATE TABLE visit AS SELECT i AS id, (i * 7919::bigint % 5000)::int AS place, repeat('x', 400) AS note FROM generate_series(1, 300000) AS g(i)`,
		`CREATE INDEX ON visit (place)`, `GRANT SELECT ON visit TO ROLE_`,
		`ALTER ROLE ROLE_ SET max_parallel_workers_per_gather = 4`, `ALTER ROLE ROLE_ SET parallel_setup_cost = 0`, `ALTER ROLE ROLE_ SET parallel_tuple_cost = 0`,
		`ALTER ROLE ROLE_ SET min_parallel_table_scan_size = 0`, `ALTER ROLE ROLE_ SET min_parallel_index_scan_size = 0`, `ALTER ROLE ROLE_ SET cpu_tuple_cost = 1`)
	h.Change(`ANALYZE visit`)
	const sql = `EXPLAIN (COSTS false) SELECT count(*) FROM public.visit WHERE place BETWEEN 10 AND 60`
	plan := func(tx pgx.Tx) (string, error) {
		rows, err := tx.Query(t.Context(), sql)
		if err != nil {
			return "", err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		return strings.Join(lines, "\n"), err
	}
	pool := h.Backend.(*DB).pool
	var without, within string
	err := pgx.BeginTxFunc(t.Context(), pool, pgx.TxOptions{}, func(tx pgx.Tx) (err error) {
		without, err = plan(tx)
		return err
	})
	if err != nil || !strings.Contains(without, "Parallel Bitmap Heap Scan") {
		t.Fatalf("%v; the server itself plans\n%s", err, without)
	}
	err = transaction(t.Context(), pool, execute.DefaultDeadline, func(tx pgx.Tx) (err error) {
		within, err = plan(tx)
		return err
	})
	if err != nil || strings.Contains(within, "Bitmap") {
		t.Errorf("%v; dpproxy's transaction plans\n%s", err, within)
	}
}
