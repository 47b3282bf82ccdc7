package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/backend/snapshot"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// manyOfOne are rows of the same columns as people has, 5,000 of them of one person.
const manyOfOne = "SELECT 1::bigint AS person_id, 3 AS age, 'Male' AS sex, 1000.5::numeric(10,2) AS income, ''::text AS note FROM generate_series(1, 5000)"

// TestNamesAreLookedUpAfterProofs: an owner's statements that wait for the proof of one row a person, and make it one
// of other rows than those that are read. The paid query waits for the owner's lock when it is parsed, which is after
// the proof; no answer may then have two rows of a person.
func TestNamesAreLookedUpAfterProofs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, change string
		keeps          bool // the schema is as it was inspected, and there is an answer
	}{
		"tables change their names":                      {"CREATE TABLE fresh AS " + manyOfOne, "ALTER TABLE people RENAME TO old; ALTER TABLE fresh RENAME TO people", false},
		"a table takes the place of one that is dropped": {"CREATE TABLE fresh AS " + manyOfOne, "DROP TABLE people; ALTER TABLE fresh RENAME TO people", false},
		"a table comes from another schema": {"CREATE SCHEMA fresh; CREATE TABLE fresh.people AS " + manyOfOne + "; GRANT USAGE ON SCHEMA fresh TO ROLE_",
			"ALTER TABLE people RENAME TO old; ALTER TABLE fresh.people SET SCHEMA public", false},
		"schemas change their names": {"CREATE SCHEMA fresh; CREATE TABLE fresh.people AS " + manyOfOne + "; CREATE TABLE fresh.visits (LIKE visits); CREATE TABLE fresh.regions (LIKE regions); GRANT USAGE ON SCHEMA fresh TO ROLE_",
			"ALTER SCHEMA public RENAME TO old; ALTER SCHEMA fresh RENAME TO public", false},
		"columns change their names": {"ALTER TABLE people ADD other bigint; UPDATE people SET other = 1", "ALTER TABLE people RENAME person_id TO key; ALTER TABLE people RENAME other TO person_id", false},
		"a column is another one":    {"", "ALTER TABLE people DROP person_id; ALTER TABLE people ADD person_id bigint NOT NULL DEFAULT 1", true},
		"a table becomes a child":    {"CREATE TABLE fresh (LIKE people INCLUDING ALL); ALTER TABLE fresh DROP CONSTRAINT fresh_pkey; INSERT INTO fresh " + manyOfOne, "ALTER TABLE fresh INHERIT people", true},
		"one more child where one was": {"CREATE TABLE gone () INHERITS (people); DROP TABLE gone; CREATE TABLE fresh (LIKE people INCLUDING ALL); ALTER TABLE fresh DROP CONSTRAINT fresh_pkey; INSERT INTO fresh " + manyOfOne,
			"ALTER TABLE fresh INHERIT people", true},
		"rows that all snapshots show":      {"", "ALTER TABLE people DROP CONSTRAINT people_pkey; TRUNCATE people; COPY people FROM PROGRAM 'for i in $(seq 5000); do printf ''1,3,Male,1,x\\n''; done' (FORMAT csv, FREEZE)", true},
		"rows that no older snapshot shows": {"", "TRUNCATE people; INSERT INTO people SELECT i, 3, 'Male', 1, '' FROM generate_series(1, 7) AS s(i)", true},
		"nothing":                           {"", "SELECT 1", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := backendtest.PostgresHouse(t)
			inForce(t, h)
			h.Change(strings.ReplaceAll(c.before+"; GRANT SELECT ON ALL TABLES IN SCHEMA public TO ROLE_", "ROLE_", h.Role))
			if strings.Contains(c.before, "SCHEMA fresh") {
				h.Change("GRANT SELECT ON ALL TABLES IN SCHEMA fresh TO " + h.Role)
			}
			b := h.Backend.(*DB)
			owner, err := pgconn.Connect(t.Context(), pgtest.Shared(t).URLFor("postgres", b.pool.Config().ConnConfig.Database))
			if err != nil {
				t.Fatal(err)
			}
			defer owner.Close(context.Background())
			run := func(text string) {
				if _, err := owner.Exec(t.Context(), text).ReadAll(); err != nil {
					t.Fatal(err)
				}
			}
			run("BEGIN; LOCK TABLE people; " + c.change)
			done := make(chan []string, 1)
			go func() {
				done <- backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "age"), h))
			}()
			pgtest.Shared(t).Until(t, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = '"+h.Role+"' AND wait_event_type = 'Lock')")
			run("COMMIT")
			got := <-done
			if slices.ContainsFunc(got, func(s string) bool {
				return strings.Contains(s, "[5000]") || strings.Contains(s, "[5001]") || strings.Contains(s, "[40]")
			}) {
				t.Errorf("it counts more than one row of a person: %v", got)
			}
			if answered := len(got) > 0 && h.Faults("clinic") == 0; answered != c.keeps {
				t.Errorf("answered: %t, with %v", answered, got)
			}
			if c.change[:3] == "TRU" && !slices.Equal(got, []string{"[3]: [7]"}) {
				t.Errorf("of the new rows: %v", got)
			}
		})
	}
}

// TestChangesUnderWay: a session that remains open after statements of the schema that lock no reader out changes no
// answer, nor does one that ended by locking a row of the catalog.
func TestChangesUnderWay(t *testing.T) {
	t.Parallel()
	h, session := houseOfItsOwn(t)
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "age"), h)
	want := backendtest.Counts(t, h, q)
	owner := session()
	for _, change := range []string{
		"GRANT SELECT ON people TO CURRENT_USER", "ALTER TABLE people ALTER age SET STATISTICS 50", "ALTER SCHEMA public OWNER TO CURRENT_USER",
		"SAVEPOINT s; GRANT SELECT (age) ON people TO CURRENT_USER; RELEASE s",
		"SELECT FROM pg_class WHERE relname = 'people' FOR UPDATE; COMMIT; BEGIN",
	} {
		owner("BEGIN; " + change)
		if got := backendtest.Counts(t, h, q); !slices.Equal(got, want) || h.Faults("clinic") != 0 {
			t.Errorf("%s: %v, want %v; %d faults", change, got, want, h.Faults("clinic"))
		}
		owner("ROLLBACK")
	}
}

// houseOfItsOwn is a house on a server on which nothing else ends, so that what is under way is not below a snapshot's
// xmax, with its policy in force; session opens one of a superuser, which runs statements.
func houseOfItsOwn(t *testing.T) (h *backendtest.House, session func() func(statements string)) {
	t.Helper()
	server := pgtest.Start(t)
	role, database := server.Role(t, ""), server.Database(t)
	for _, s := range backendtest.RowsSQL {
		server.Exec(t, database, fmt.Sprintf(s, "public."))
	}
	server.Exec(t, database, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)
	h = backendtest.Open(t, backendtest.TestPolicy(t, server.URLFor(role, database)))
	inForce(t, h)
	return h, func() func(string) {
		conn, err := pgconn.Connect(t.Context(), server.URLFor("postgres", database))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		return func(statements string) {
			t.Helper()
			if _, err := conn.Exec(t.Context(), statements).ReadAll(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRowsThatSeveralHold: a row of the catalog that several sessions have locked bears the number of their list, and
// no transaction's. Whichever number it has, to be locked changes nothing, and what is changed beside the locks is
// seen.
//
//	xmax is 3      a list, of a server whose transactions are above 700: an older one, which was given up?
//	xmax is 2100   a list, where the next transaction is 780: one that is to come? And where 2100 ended well long since, and the first locker has been there since 770?
func TestRowsThatSeveralHold(t *testing.T) {
	t.Parallel()
	h, session := houseOfItsOwn(t)
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "age"), h)
	want := backendtest.Counts(t, h, q)
	owner, first, second := session(), session(), session()
	rows := []string{"SELECT FROM pg_class WHERE relname = 'people'", "SELECT FROM pg_attribute WHERE attrelid = 'people'::regclass", "SELECT FROM pg_namespace WHERE nspname = 'public'"}
	held := func(name string) {
		t.Helper()
		for _, row := range rows {
			for _, as := range [][2]string{{"SHARE", ""}, {"SHARE", "SHARE"}, {"KEY SHARE", "SHARE"}, {"KEY SHARE", "NO KEY UPDATE"}} {
				first("BEGIN; " + row + " FOR " + as[0])
				second("BEGIN")
				if as[1] != "" {
					second(row + " FOR " + as[1])
				}
				owner("DO $$BEGIN FOR i IN 1..3 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END$$")
				for _, end := range []func(string){nil, first, second} {
					if end != nil {
						end("COMMIT")
					}
					if got := backendtest.Counts(t, h, q); !slices.Equal(got, want) || h.Faults("clinic") != 0 {
						t.Fatalf("%s, %s by %q: %v, want %v; %d faults\n%s", name, row, as, got, want, h.Faults("clinic"), h.Log)
					}
				}
			}
		}
	}
	seen := func(name string) {
		t.Helper()
		for _, c := range []struct {
			beside string
			want   bool
		}{{"SELECT 1", false}, {"BEGIN; GRANT SELECT ON people TO CURRENT_USER; ROLLBACK", false}, {"TRUNCATE people", true}, {"ALTER TABLE people ALTER age SET STATISTICS 50", true}} {
			for _, row := range rows[:2] {
				first("BEGIN; " + row + " FOR KEY SHARE")
			}
			if got := changedBetween(t, h, q, func() { owner(c.beside) }); got != c.want {
				t.Errorf("%s, %s beside a lock: seen: %t, want %t", name, c.beside, got, c.want)
			}
			first("COMMIT")
		}
		owner("INSERT INTO people SELECT i, i * 3 % 130, '', i, '' FROM generate_series(1, 40) AS s(i)")
	}
	held("lists below the transactions")
	seen("lists below the transactions")

	// Eleven sessions that lock a row each, by which of its number's bits are set, are over two thousand lists.
	owner("CREATE TABLE many AS SELECT i FROM generate_series(1, 2047) AS s(i)")
	var sessions []func(string)
	for bit := range 11 {
		s := session()
		s(fmt.Sprintf("BEGIN; SELECT FROM many WHERE i >> %d & 1 = 1 FOR SHARE", bit))
		sessions = append(sessions, s)
	}
	for _, s := range sessions {
		s("COMMIT")
	}
	held("lists above the transactions")
	seen("lists above the transactions")

	old := session()
	old("BEGIN; SELECT pg_current_xact_id()")
	owner("DO $$BEGIN FOR i IN 1..3000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END$$")
	held("lists among the transactions")
	seen("lists among the transactions")
}

// changedBetween reports whether what another one does between the proofs of a query and its rows is seen.
func changedBetween(t *testing.T, h *backendtest.House, q rewrite.Query, do func()) bool {
	t.Helper()
	b := h.Backend.(*DB)
	err := transaction(t.Context(), b.pool, time.Minute, func(tx pgx.Tx) error {
		p := b.proofsOf(q)
		err := p.ask(t.Context(), tx)
		if f, relies := b.text(q, p); err != nil || !relies || f.SQL != q.Proven()[0].SQL() {
			return fmt.Errorf("not proven: %w", err)
		}
		do()
		return b.read(t.Context(), tx, q, p, execute.NewResults(q))
	})
	if err != nil && !errors.Is(err, errChanged) {
		t.Fatal(err)
	}
	return err != nil
}

// inForce has the house's policy inspected and in force.
func inForce(t testing.TB, h *backendtest.House) {
	t.Helper()
	for _, d := range h.Policy.Datasets {
		if findings, err := h.Inspect(t.Context(), h.Policy, d); err != nil || inspect.Fatal(findings) {
			t.Fatal(findings, err)
		}
	}
	h.Adopt(h.Policy)
}

// TestWhatIsNoChange: what came before a snapshot, was given up, or is of other tables, changes nothing of what is
// asked; what does, does so for one transaction.
func TestWhatIsNoChange(t *testing.T) {
	t.Parallel()
	h := backendtest.PostgresHouse(t)
	inForce(t, h)
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "age"), h)
	h.Change("BEGIN; ALTER TABLE people RENAME age TO years; ALTER TABLE people RENAME TO others; ALTER SCHEMA public RENAME TO away; ROLLBACK")
	for _, c := range []struct {
		text string
		want bool
	}{
		{"SELECT 1", false},
		{"BEGIN; ALTER TABLE people RENAME age TO years; ALTER TABLE people RENAME TO others; ROLLBACK", false},
		{"SELECT 1", false},
		{"ALTER TABLE visits ADD more int; ALTER TABLE visits RENAME TO calls; ALTER TABLE calls RENAME TO visits", false},
		{"INSERT INTO people VALUES (99, 1); UPDATE people SET age = 2 WHERE person_id = 99; DELETE FROM people WHERE person_id = 99", false},
		{"ANALYZE people", false},
		{"VACUUM people", false},
		{"REINDEX INDEX people_pkey", false},
		{"ALTER TABLE people RENAME age TO years; ALTER TABLE people RENAME years TO age", true}, // there and back
		{"SELECT 1", false},
		{"ALTER SCHEMA public RENAME TO away; ALTER SCHEMA away RENAME TO public", true},
		{"VACUUM FULL people", true},
		{"SELECT 1", false},
	} {
		if got := changedBetween(t, h, q, func() { h.Change(c.text) }); got != c.want {
			t.Errorf("%s: %t, want %t", c.text, got, c.want)
		}
	}
}

// TestRoleThatSeesNoLocks: where an owner has taken it from everybody to see what a transaction has locked, nothing is
// charged, and check says why.
func TestRoleThatSeesNoLocks(t *testing.T) {
	t.Parallel()
	h := backendtest.PostgresHouse(t)
	inForce(t, h)
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "age"), h)
	if err := h.Ready(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	h.Change("REVOKE SELECT ON pg_catalog.pg_locks FROM PUBLIC")
	if err := h.Ready(t.Context(), q); !errors.Is(err, backend.ErrSettings) {
		t.Errorf("before a charge: %v", err)
	}
	findings, err := h.Inspect(t.Context(), h.Policy, h.Policy.Datasets[0])
	if err != nil || !slices.ContainsFunc(findings, func(f backend.Finding) bool { return f.Fatal && strings.Contains(f.Text, "pg_locks") }) {
		t.Errorf("check: %v, %v", findings, err)
	}
	h.Change("GRANT SELECT ON pg_catalog.pg_locks TO " + h.Role)
	if err := h.Ready(t.Context(), q); err != nil {
		t.Error(err)
	}
}

// TestKeysThroughAnotherTable: what is proven of the table through which units are found is of that whose rows are
// joined.
func TestKeysThroughAnotherTable(t *testing.T) {
	t.Parallel()
	h := backendtest.PostgresHouse(t)
	d := h.Policy.Datasets[0]
	visits := d.Tables[1]
	visits.Via, visits.UnitColumn = &policy.Via{Column: "person_id", Key: "person_id", Table: d.Tables[0]}, ""
	inForce(t, h)
	h.Change("CREATE TABLE fresh AS SELECT 1 + i % 10 AS person_id, 3 AS age, 'Male' AS sex, 1::numeric(10,2) AS income, ''::text AS note FROM generate_series(1, 5000) AS s(i); GRANT SELECT ON fresh TO " + h.Role)
	b := h.Backend.(*DB)
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits"), h)
	err := transaction(t.Context(), b.pool, time.Minute, func(tx pgx.Tx) error {
		p := b.proofsOf(q)
		if err := p.ask(t.Context(), tx); err != nil || !p.hold(nil, q.Required()) {
			return fmt.Errorf("not proven: %w", err)
		}
		h.Change("BEGIN; ALTER TABLE people RENAME TO old; ALTER TABLE fresh RENAME TO people; COMMIT")
		return b.read(t.Context(), tx, q, p, execute.NewResults(q))
	})
	if !errors.Is(err, errChanged) {
		t.Errorf("a join through rows that no key holds of: %v", err)
	}
}

// TestCopiesOfRenamedTables: a copy of tables that change their names while it is made, or of which a proof no longer
// holds at its end, is given up.
func TestCopiesOfRenamedTables(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, change string }{
		"names":   {"CREATE TABLE fresh AS SELECT i % 40 AS person_id, 'north'::text AS clinic, 7 AS minutes FROM generate_series(1, 80) AS s(i)", "ALTER TABLE visits RENAME TO old; ALTER TABLE fresh RENAME TO visits"},
		"columns": {"ALTER TABLE visits ADD other int; UPDATE visits SET other = 9", "ALTER TABLE visits RENAME minutes TO key; ALTER TABLE visits RENAME other TO minutes"},
		"a child": {"ALTER TABLE visits ADD UNIQUE (person_id, clinic, minutes); CREATE TABLE fresh (LIKE visits); INSERT INTO fresh SELECT 3, 'north', 7 FROM generate_series(1, 80)", "ALTER TABLE fresh INHERIT visits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := backendtest.PostgresHouseOf(t, backendtest.TestSnapshot(t))
			h.Source("DELETE FROM visits WHERE ctid NOT IN (SELECT min(ctid) FROM visits GROUP BY person_id, clinic, minutes); " + c.before + "; GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + h.Role)
			h.Policy.Datasets[0].Tables[1].Unique = [][]string{{"clinic", "minutes"}}
			backendtest.Prepare(t, h)
			b := h.Backend.(*snapshot.Snapshots)
			before := backendtest.FilesIn(t, b.Plan.Dir)
			free := h.Lock("people") // which is read first
			done := make(chan error, 1)
			go func() { done <- backendtest.Renewed(t, h, 8*time.Second) }()
			pgtest.Shared(t).Until(t, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = '"+h.Role+"' AND wait_event_type = 'Lock')")
			h.Source("BEGIN; " + c.change + "; COMMIT")
			free()
			if err := <-done; !errors.Is(err, backend.ErrDrift) && !errors.Is(err, errReplaced) {
				t.Errorf("it ends with %v", err)
			}
			if after := backendtest.FilesIn(t, b.Plan.Dir); !slices.Equal(before, after) {
				t.Errorf("left: %v, before %v", after, before)
			}
		})
	}
}
