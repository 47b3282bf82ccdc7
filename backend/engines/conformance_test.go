package engines

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

func TestCountsAreThoseOfTheRows(t *testing.T) {
	eachBackend(t, func(t *testing.T, h *backendtest.House) {
		if err := h.Ready(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			table string
			grain []string
			want  []string
		}{
			{"people", nil, []string{"[]: [40]"}},
			{"people", []string{"sex"}, []string{"[0]: [16]", "[1]: [14]", "[2]: [2]", "[3]: [8]"}},
			// persons 0 to 9 have nine visits each (one of ten is lost to a NULL unit): three of each stay, the same on
			// both
			{"visits", nil, []string{"[]: [30]"}},
			{"visits", []string{"clinic"}, []string{"[0]: [9]", "[1]: [21]"}},
		} {
			if got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, c.table, c.grain...), h)); !slices.Equal(got, c.want) {
				t.Errorf("%s by %v: got %v, want %v", c.table, c.grain, got, c.want)
			}
		}
	})
}

// TestProofReplacesTheBound: the query without the row bound is used only where a constraint proves the bound.
func TestProofReplacesTheBound(t *testing.T) {
	h := backendtest.PostgresHouse(t)
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)
	if got := backendtest.Counts(t, h, q); !slices.Equal(got, []string{"[]: [40]"}) {
		t.Fatalf("got %v", got)
	}
	for _, disturbance := range []struct {
		statements []string
		want       string
	}{
		{[]string{"ALTER TABLE people DROP CONSTRAINT people_pkey", "INSERT INTO people SELECT * FROM people"}, "[]: [40]"},
		{[]string{"CREATE UNIQUE INDEX part ON people (person_id) WHERE income < 0"}, "[]: [40]"},
		{[]string{"DELETE FROM people p USING people o WHERE p.person_id = o.person_id AND p.ctid < o.ctid", "ALTER TABLE people ADD UNIQUE (person_id) DEFERRABLE"}, "[]: [40]"},
		{[]string{"ALTER TABLE people ADD UNIQUE (person_id)", "CREATE TABLE child () INHERITS (people)", "INSERT INTO child SELECT * FROM people"}, "[]: [40]"},
	} {
		for _, s := range disturbance.statements {
			h.Change(s)
		}
		if got := backendtest.Counts(t, h, q); !slices.Equal(got, []string{disturbance.want}) {
			t.Errorf("after %q: got %v, want %s", disturbance.statements[0], got, disturbance.want)
		}
	}
}

// TestProofsOfOtherEngines (rule 25): where Citus keeps the rows no constraint proves a bound, and check says so.
func TestProofsOfOtherEngines(t *testing.T) {
	t.Parallel()
	h := backendtest.PostgresHouse(t)
	h.Policy.Datasets[0].Tables[1].UnitColumn, h.Policy.Datasets[0].Tables[1].Via = "", &policy.Via{Column: "person_id", Table: h.Policy.Datasets[0].Tables[0], Key: "person_id"}
	if got := backendtest.Inspect(t, h); strings.Contains(got, "fatal=true") || !strings.Contains(got, "a unique constraint on person_id proves") {
		t.Errorf("PostgreSQL itself:\n%s", got)
	}
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits"), h)
	if err := h.Ready(t.Context(), q); err != nil {
		t.Error(err)
	}
	h.Change(`SET allow_system_table_mods = on; INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion) VALUES (99999, 'citus', 10, 11, false, '12')`)
	if err := h.Ready(t.Context(), q); err != backend.ErrDrift {
		t.Errorf("a path that nothing proves any more: %v", err)
	}
	if got := backendtest.Counts(t, h, q); len(got) != 0 || !strings.Contains(h.Log.String(), "a unique constraint that the units' path needs is gone") {
		t.Errorf("nor after a charge: %v\n%s", got, h.Log)
	}
	got := backendtest.Inspect(t, h)
	for _, want := range []string{"the database is not PostgreSQL alone", "table people: no constraint proves one row per person", "fatal=true table visits: its persons are found through people.person_id, which no unique"} {
		if !strings.Contains(got, want) {
			t.Errorf("no finding %q in\n%s", want, got)
		}
	}
}

func TestFaultsGiveNoGroupsAndAnAlert(t *testing.T) {
	check := func(t *testing.T, h *backendtest.House, got []string, cause string) {
		t.Helper()
		if len(got) != 0 {
			t.Errorf("got %v, want no groups", got)
		}
		if log := h.Log.String(); !strings.Contains(log, "privacy rule 5") || !strings.Contains(log, cause) || !strings.Contains(log, "table=people") {
			t.Errorf("the alert does not name the table and the cause %q: %s", cause, log)
		}
	}
	t.Run("deadline", func(t *testing.T) {
		eachBackend(t, func(t *testing.T, h *backendtest.House) {
			h.SetDeadline(time.Nanosecond)
			check(t, h, backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)), "deadline")
		})
	})
	t.Run("vanished table", func(t *testing.T) {
		h := backendtest.PostgresHouse(t)
		h.Change("DROP TABLE people")
		check(t, h, backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)), "SQLSTATE class 42")
	})
	t.Run("data fault", func(t *testing.T) {
		h := backendtest.PostgresHouse(t)
		h.Change(`CREATE VIEW broken AS SELECT person_id, (note || age)::integer AS age, sex, income FROM people; GRANT SELECT ON broken TO PUBLIC`)
		m := backendtest.Measure(t, h.Policy, "people", "age")
		m.Table.Source.Name = "broken"
		check(t, h, backendtest.Counts(t, h, backendtest.Render(t, m, h)), "SQLSTATE class 22")
	})
	t.Run("crash", func(t *testing.T) {
		eachBackend(t, func(t *testing.T, h *backendtest.House) {
			h.Crash()
			check(t, h, backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)), "cause=")
			if err := h.Ready(context.Background()); err != backend.ErrUnavailable {
				t.Errorf("Ready says %v, want %v", err, backend.ErrUnavailable)
			}
		})
	})
}

// TestReadyOfCallerWhoLeft: a caller that stopped waiting is no outage, and not logged as one.
func TestReadyOfCallerWhoLeft(t *testing.T) {
	eachBackend(t, func(t *testing.T, h *backendtest.House) {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		if err := h.Ready(gone); err != backend.ErrUnavailable || strings.Contains(h.Log.String(), "not ready") {
			t.Errorf("Ready says %v, and the log %q", err, h.Log)
		}
	})
}

// TestRunningQueryEndsAtTheDeadline holds a lock that the query waits for.
func TestRunningQueryEndsAtTheDeadline(t *testing.T) {
	h := backendtest.PostgresHouse(t)
	h.Change(`CREATE VIEW slow AS SELECT person_id, age, sex, income FROM people WHERE pg_sleep(30) IS NOT NULL; GRANT SELECT ON slow TO PUBLIC`)
	m := backendtest.Measure(t, h.Policy, "people")
	m.Table.Source.Name = "slow"
	h.SetDeadline(200 * time.Millisecond)
	if got := backendtest.Counts(t, h, backendtest.Render(t, m, h)); len(got) != 0 || !strings.Contains(h.Log.String(), "privacy rule 5") {
		t.Errorf("got %v and the log %q", got, h.Log)
	}
	if err := h.Ready(context.Background()); err != nil {
		t.Errorf("after a query that ran into its deadline: %v", err)
	}
}

func TestExecuteRefusesWithoutRunning(t *testing.T) {
	eachBackend(t, func(t *testing.T, h *backendtest.House) {
		other := dialect.PostgreSQL
		if h.Dialect() == other {
			other = dialect.DuckDB
		}
		before := h.Log.String()
		foreign, err := rewrite.Render(backendtest.Measure(t, h.Policy, "people"), other)
		if err != nil {
			t.Fatal(err)
		}
		for name, q := range map[string]rewrite.Query{"no query": {}, "another dialect": foreign, "no receipt": backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)} {
			if sealed, err := backendtest.Execute(t, h, q, nil); err == nil || sealed.Valid() {
				t.Errorf("%s: executed", name)
			}
		}
		if h.Log.String() != before {
			t.Errorf("something ran: %s", h.Log)
		}
	})
}

// liar is an engine whose database answers nonsense.
type liar struct {
	rows [][2]int64
}

func (l liar) groupsOf(q rewrite.Query) error {
	c := execute.NewCollector(q)
	for _, r := range l.rows {
		if err := c.Add([]int32{int32(r[0])}, []int64{r[1]}); err != nil {
			return err
		}
	}
	return nil
}

func TestCollectorRefusesWhatNoCountIs(t *testing.T) {
	p := backendtest.TestPolicy(t, "duckdb:")
	q, err := rewrite.Render(backendtest.Measure(t, p, "people", "sex"), dialect.DuckDB)
	if err != nil {
		t.Fatal(err)
	}
	for name, rows := range map[string][][2]int64{
		"negative cell": {{-1, 1}}, "cell beyond the domain": {{4, 1}}, "negative count": {{0, -1}}, "cell twice": {{1, 1}, {1, 2}},
		"more groups than cells": {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {3, 1}},
	} {
		if err := (liar{rows: rows}).groupsOf(q); err != execute.ErrResult {
			t.Errorf("%s: got %v, want %v", name, err, execute.ErrResult)
		}
	}
	if err := (liar{rows: [][2]int64{{0, 0}, {3, 1 << 60}}}).groupsOf(q); err != nil {
		t.Error(err)
	}
}

func TestPublicTablesAreCopied(t *testing.T) {
	eachBackend(t, func(t *testing.T, h *backendtest.House) {
		table := h.Policy.Datasets[0].Table("", "regions")
		released, err := h.ReadPublic(context.Background(), table)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2020, 1, 1, 10, 0, 0, 5e8, time.UTC).UnixMicro()
		want := []policy.Value{"north", int64(61000), 0.5, policy.Date(11356), policy.Timestamptz(at), policy.NewNumeric(150, 2), true}
		rows := released.Value()
		if len(rows) != 2 {
			t.Fatalf("got %d rows, want 2", len(rows))
		}
		for i, v := range want {
			got := rows[0][i]
			if n, ok := got.(policy.Numeric); ok && n.Cmp(v.(policy.Numeric)) == 0 {
				continue
			}
			if got != v {
				t.Errorf("column %s: got %v, want %v", table.Columns[i].Name, got, v)
			}
		}
		if rows[1][0] != "it's" || rows[1][2] != nil || rows[1][6] != nil {
			t.Errorf("got %v", rows[1])
		}
		table.MaxRows = 1
		if _, err := h.ReadPublic(context.Background(), table); err == nil || !strings.Contains(err.Error(), "max_rows") {
			t.Errorf("one row too many: %v", err)
		}
		if _, err := h.ReadPublic(context.Background(), h.Policy.Datasets[0].Table("", "people")); err == nil {
			t.Error("a private table was copied")
		}
		table.MaxRows, table.Columns[0].Type = 100, policy.Int4
		if _, err := h.ReadPublic(context.Background(), table); err == nil || strings.Contains(err.Error(), "north") {
			t.Errorf("a value of another type: %v", err)
		}
	})
}

// TestQueriesWaitForTheirTurn: more queries than slots all get their counts, and one that never gets a slot its
// default.
func TestQueriesWaitForTheirTurn(t *testing.T) {
	eachBackend(t, func(t *testing.T, h *backendtest.House) {
		q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)
		var wait sync.WaitGroup
		for range 24 {
			wait.Go(func() {
				if got := backendtest.Counts(t, h, q); !slices.Equal(got, []string{"[]: [40]"}) {
					t.Errorf("got %v", got)
				}
			})
		}
		wait.Wait()
		execute.Occupy(h.Executor())
		h.SetDeadline(time.Millisecond)
		if got := backendtest.Counts(t, h, q); len(got) != 0 || !strings.Contains(h.Log.String(), "too many queries before it") {
			t.Errorf("got %v and the log %s", got, h.Log)
		}
	})
}
