package answers

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/test/kit"
)

// rankQuestions have as many answers as plain SQL over the rows that are read, `dp_rank <= 5`.
var rankQuestions = []string{
	`SELECT count(*) FROM events`,
	`SELECT count(*) FROM events WHERE day >= '2024-02-01'`,
	`SELECT count(*) FROM events WHERE day >= '2024-02-01' AND amount < 30`,
	`SELECT sum(amount) FROM events`,
	`SELECT count(*) FROM people p JOIN events e USING (uid) WHERE p.age < 40`,
	`SELECT count(*) FROM people WHERE uid IN (SELECT uid FROM events WHERE amount > 50)`,
	`SELECT count(*) FROM (SELECT uid, count(*) AS n FROM events GROUP BY uid) t WHERE n > 3`,
}

// TestStoredRanks: what `dpproxy prepare` prints numbers each unit's rows, those of writers that come at once and
// cannot read among them; with row_rank the rows up to the bound are read as they are stored, and answers are those of
// plain SQL over them; where the constraint goes, nothing is answered and nothing is charged.
func TestStoredRanks(t *testing.T) {
	kit.Beside(t)
	s, path := kit.Lab{Engine: "postgres", Change: append([]string{"max_epsilon: 1,", "max_epsilon: 20000,", "defaults: {epsilon: 0.1", "defaults: {epsilon: 10000"}, kit.Undeclared...)}.Lay(t, 0)
	printed := kit.Run(t, "", "prepare", "--policy", path)
	if printed.Code != 0 || strings.Contains(printed.Stdout, "people") || !strings.Contains(printed.Stdout, `"public"."events"`) {
		t.Fatalf("prepare: %d, %s\n%s", printed.Code, printed.Stderr, printed.Stdout)
	}
	if again := kit.Run(t, "", "prepare", "--policy", path, "people"); again.Code != 2 || !strings.Contains(again.Stderr, "each unit has one row") {
		t.Errorf("prepare people: %d, %s", again.Code, again.Stderr)
	}
	writer := s.Server.Role(t, "")
	s.Server.Exec(t, s.Database, printed.Stdout, `GRANT INSERT ON events TO `+writer)
	t.Cleanup(func() { s.Server.Exec(t, s.Database, `DROP OWNED BY `+writer) })
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			conn, err := pgx.Connect(t.Context(), s.Server.URLFor(writer, s.Database))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close(t.Context())
			for j := range 25 {
				if _, err := conn.Exec(t.Context(), fmt.Sprintf(`INSERT INTO events (uid, day, amount) SELECT u, '2024-03-01', %d FROM unnest(ARRAY[%d, 900, 901, NULL]::bigint[]) u`, i+j, 500+i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	s.Server.Exec(t, s.Database, `UPDATE events SET uid = 903 WHERE uid = 902 AND dp_rank = 2`, `DELETE FROM events WHERE uid = 904 AND dp_rank = 1`)
	s.Server.Exec(t, s.Database, `VACUUM ANALYZE events`)
	if wrong := s.Query(t, `SELECT count(*) FROM (SELECT uid FROM events WHERE uid NOT IN (902, 904) GROUP BY uid HAVING min(dp_rank) <> 1 OR max(dp_rank) <> count(*)) t`); wrong != "0" {
		t.Errorf("%s units' rows are not numbered 1, 2, 3", wrong)
	}
	if none := s.Query(t, `SELECT count(*) FROM events WHERE (uid IS NULL) <> (dp_rank IS NULL)`); none != "0" {
		t.Errorf("%s rows have a rank and no unit, or a unit and no rank", none)
	}

	kit.Edit(t, path, "max_rows_per_unit: 5\n", "max_rows_per_unit: 5\n        row_rank: dp_rank\n")
	if c := kit.Run(t, "", "check", "--policy", path); c.Code != 0 || !strings.Contains(c.Stdout+c.Stderr, "dp_rank numbers the rows of each person") {
		t.Errorf("check: %d\n%s%s", c.Code, c.Stdout, c.Stderr)
	}
	before := len(kit.Statements(t, s.Server))
	s.Program = kit.Serve(t, path)
	alice := s.Connect("alice", "lab")
	for _, question := range rankQuestions {
		got := alice.Ask(question)
		if got.Err != nil || len(got.Rows) != 1 {
			t.Errorf("%s: %v", question, got.Err)
			continue
		}
		plain := s.Query(t, `WITH events AS (SELECT * FROM public.events WHERE dp_rank <= 5) `+question)
		noised, err := strconv.ParseFloat(got.Rows[0][0], 64)
		exact, other := strconv.ParseFloat(plain, 64)
		if notes := strings.Join(got.Notes, "\n"); strings.Contains(notes, "hash") || !strings.Contains(notes, "counted in events, the first by dp_rank where there are more") {
			t.Errorf("%s: the notice must say which rows stay:\n%s", question, notes)
		}
		// The noise of ε = 10,000 is under 1; a sum is of values on a grid of 0.25.
		if off := noised - exact; err != nil || other != nil || off > 1+exact/200 || off < -1-exact/200 {
			t.Errorf("%s: %s, plain SQL says %s", question, got.Rows[0][0], plain)
		}
	}
	for _, line := range kit.Statements(t, s.Server)[before:] {
		if strings.Contains(line, "row_number") && strings.Contains(line, "events") {
			t.Errorf("rows are numbered: %s", line)
		}
	}
	beyond := 0
	for _, sent := range strings.Split(strings.Join(kit.Statements(t, s.Server)[before:], "\n"), "LOG: ") {
		if !strings.Contains(sent, "EXPLAIN") && strings.Contains(sent, `"dp_rank" OPERATOR(pg_catalog.>=)`) {
			t.Errorf("the CHECK that ranks are 1 or more is not believed: %s", sent)
		}
		if !strings.Contains(sent, "EXPLAIN") && strings.Contains(sent, `OR t."dp_rank" IS NULL`) {
			beyond++
		}
	}
	if beyond != 2 {
		t.Errorf("%d counts are of all rows less those beyond the bound, must be the bare count and that by day, since the index has no amounts", beyond)
	}
	for _, also := range []string{"", ` AND day >= '2024-02-01'`} {
		if plan := s.Plan(t, `SELECT count(*) FROM events t WHERE (dp_rank > 5::int8 OR dp_rank IS NULL)`+also); !strings.Contains(plan, "Index Only Scan using events_dp_rank_day_idx") {
			t.Errorf("the rows beyond the bound are not found by the index:\n%s", plan)
		}
	}
	for _, check := range strings.Fields(s.Query(t, `SELECT string_agg(conname, ' ') FROM pg_constraint WHERE contype = 'c' AND conrelid = 'events'::regclass AND pg_get_constraintdef(oid) LIKE '%dp_rank%'`)) {
		s.Server.Exec(t, s.Database, `ALTER TABLE events DROP CONSTRAINT `+check)
	}
	s.Server.Exec(t, s.Database, `INSERT INTO events (uid, day, amount) SELECT 905, '2024-03-01', 30 FROM generate_series(1, 40)`, `UPDATE events SET dp_rank = -dp_rank WHERE uid = 905`)
	const negative = `SELECT count(*) FROM events WHERE amount = 30`
	if got, plain := alice.Ask(negative), s.Query(t, negative+` AND dp_rank BETWEEN 1 AND 5`); got.Err != nil || got.Rows[0][0] != plain {
		t.Errorf("without the CHECKs %v, %v: ranks below 1 are not left out; plain SQL says %s", got.Rows, got.Err, plain)
	}
	s.Server.Exec(t, s.Database, `DELETE FROM events WHERE uid = 905`)
	const probe = `SELECT count(*) FROM events WHERE amount < 7`
	spent := fmt.Sprint(alice.Ask(`SELECT * FROM dp.charges`).Rows)
	constraint := s.Query(t, `SELECT conname FROM pg_constraint WHERE contype = 'u' AND conrelid = 'events'::regclass`)
	s.Server.Exec(t, s.Database, `ALTER TABLE events DROP CONSTRAINT `+constraint)
	if got := alice.Ask(probe); got.Err == nil {
		t.Errorf("answered without the constraint: %q", got.Rows)
	}
	if now := fmt.Sprint(alice.Ask(`SELECT * FROM dp.charges`).Rows); now != spent {
		t.Errorf("charged without the constraint: %s, before %s", now, spent)
	}
	if c := kit.Run(t, "", "check", "--policy", path); c.Code == 0 {
		t.Errorf("check without the constraint: %s", c.Stdout)
	}
	s.Server.Exec(t, s.Database, `ALTER TABLE events ADD CONSTRAINT `+constraint+` UNIQUE (uid, dp_rank)`)
	if got := alice.Ask(probe); got.Err != nil {
		t.Errorf("with the constraint again: %v", got.Err)
	}

	// A snapshot copies the same rows, on the same proof.
	kit.Edit(t, path, "backend: {", "backend: {snapshot: {dir: snapshots, every: 1d}, ")
	s.Stop(syscall.SIGTERM)
	s.Restart()
	const copied = `SELECT count(*) FROM events WHERE amount >= 7`
	got := s.Connect("alice", "lab").Ask(copied)
	if plain := s.Query(t, copied+` AND dp_rank <= 5`); got.Err != nil || len(got.Rows) != 1 || got.Rows[0][0] != plain {
		t.Errorf("over a snapshot: %q, %v; plain SQL says %s", got.Rows, got.Err, plain)
	}
}

// TestStoredRanksInDuckDB: the same of a DuckDB file, in which prepare's SQL writes the rows within the bound anew; a
// bound above that of the table is reported.
func TestStoredRanksInDuckDB(t *testing.T) {
	kit.Beside(t)
	s, path := kit.Lab{Engine: "duckdb", Change: append([]string{"max_epsilon: 1,", "max_epsilon: 20000,", "defaults: {epsilon: 0.1", "defaults: {epsilon: 10000"}, kit.Undeclared...)}.Lay(t, 0)
	kit.ExecDuckDB(t, path, `INSERT INTO events SELECT NULL, DATE '2024-03-01', 30 FROM range(50)`)
	printed := kit.Run(t, "", "prepare", "--policy", path, "events")
	if printed.Code != 0 || !strings.Contains(printed.Stdout, `"main"."events_by_rank"`) {
		t.Fatalf("prepare: %d, %s\n%s", printed.Code, printed.Stderr, printed.Stdout)
	}
	kit.ExecDuckDB(t, path, printed.Stdout)
	kit.Edit(t, path, "source: main.events\n", "source: main.events_by_rank\n", "max_rows_per_unit: 5\n", "max_rows_per_unit: 5\n        row_rank: dp_rank\n")
	if c := kit.Run(t, "", "check", "--policy", path); c.Code != 0 || !strings.Contains(c.Stdout+c.Stderr, "dp_rank numbers the rows of each person") {
		t.Errorf("check: %d\n%s%s", c.Code, c.Stdout, c.Stderr)
	}
	plain := make([]string, len(rankQuestions))
	for i, question := range rankQuestions {
		plain[i] = askDuckDB(t, path, `WITH events AS (SELECT * FROM main.events_by_rank WHERE dp_rank <= 5) `+question)
	}
	const kept = `(SELECT count(*) FROM main.events_by_rank) = (SELECT sum(least(k, 5)) FROM (SELECT count(*) AS k FROM main.events WHERE uid IS NOT NULL GROUP BY uid))`
	if got := askDuckDB(t, path, `SELECT `+kept+` AND (SELECT count(*) FROM main.events) > (SELECT count(*) FROM main.events_by_rank)`); got != "true" {
		t.Errorf("the new table has not just five rows of each person: %s", got)
	}
	s.Program = kit.Serve(t, path)
	alice := s.Connect("alice", "lab")
	for i, question := range rankQuestions {
		got := alice.Ask(question)
		if got.Err != nil || len(got.Rows) != 1 {
			t.Errorf("%s: %v", question, got.Err)
			continue
		}
		noised, err := strconv.ParseFloat(got.Rows[0][0], 64)
		exact, other := strconv.ParseFloat(plain[i], 64)
		if off := noised - exact; err != nil || other != nil || off > 1+exact/200 || off < -1-exact/200 {
			t.Errorf("%s: %s, plain SQL says %s", question, got.Rows[0][0], plain[i])
		}
	}
	s.Stop(syscall.SIGTERM)
	kit.Edit(t, path, "max_rows_per_unit: 5\n        row_rank", "max_rows_per_unit: 7\n        row_rank")
	if c := kit.Run(t, "", "check", "--policy", path); !strings.Contains(c.Stdout+c.Stderr, "no dp_rank is above 5, so that at most 5 rows of a person are read where max_rows_per_unit allows 7") {
		t.Errorf("check under a larger bound: %d\n%s%s", c.Code, c.Stdout, c.Stderr)
	}
}

// askDuckDB asks the file of a fixture itself, before it is served.
func askDuckDB(t *testing.T, path, statement string) (value string) {
	t.Helper()
	db, err := sql.Open("duckdb", filepath.Join(filepath.Dir(path), "lab.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT CAST((" + statement + ") AS VARCHAR)").Scan(&value); err != nil {
		t.Fatalf("%v\n%s", err, statement)
	}
	return value
}
