package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// since skips a test where the server is older than the version that has what is tested.
func since(t *testing.T, version int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if have := majorVersion(conn); have < version {
		t.Skipf("the server is PostgreSQL %d, without what is new in %d: `make versions` runs this on newer ones", have, version)
	}
}

// TestConstraintsOfPostgreSQL18: a constraint that is not enforced, or not valid, or holds for each span of time alone,
// proves nothing.
func TestConstraintsOfPostgreSQL18(t *testing.T) {
	since(t, 18)
	for _, c := range []struct {
		create string
		rows   string // which the constraint lets in
		want   string // what is proven, of a and of the rank a
	}{
		{"who int NOT NULL, a int PRIMARY KEY CHECK (a >= 1)", "", "a; a strictly; rank"},
		{"who int NOT NULL, a int NOT NULL, span daterange, PRIMARY KEY (a, span WITHOUT OVERLAPS)", "(1, 1, '[2020-01-01,2021-01-01)'), (1, 1, '[2021-01-01,2022-01-01)')", ""},
		{"who int NOT NULL, a int NOT NULL, span daterange, UNIQUE (who, a, span WITHOUT OVERLAPS)", "(1, 1, '[2020-01-01,2021-01-01)'), (1, 1, '[2021-01-01,2022-01-01)')", ""},
		{"who int NOT NULL, a int UNIQUE, CHECK (a >= 1) NOT ENFORCED", "(1, -3)", "a"},
		{"who int, a int UNIQUE CHECK (a >= 1), CHECK (a IS NULL OR who IS NOT NULL) NOT ENFORCED", "(NULL, 3)", "a"},
		{"who int NOT NULL, a int UNIQUE; INSERT INTO lines VALUES (1, NULL), (1, NULL); ALTER TABLE lines ADD CONSTRAINT late NOT NULL a NOT VALID", "", "a"},
		{"who int, a int NOT NULL UNIQUE CHECK (a >= 1); INSERT INTO lines VALUES (NULL, 1); ALTER TABLE lines ADD CONSTRAINT late NOT NULL who NOT VALID", "", "a; a strictly"},
		{"who int NOT NULL, a int NOT NULL UNIQUE CHECK (a >= 1); ALTER TABLE lines ADD CONSTRAINT more CHECK (a <= 9) NOT ENFORCED", "", "a; a strictly; rank"},
	} {
		t.Run(c.create, func(t *testing.T) {
			h := backendtest.PostgresHouse(t)
			create, then, _ := strings.Cut(c.create, "; ")
			h.Change("CREATE EXTENSION btree_gist; CREATE TABLE lines (" + create + "); " + then)
			if c.rows != "" {
				h.Change("INSERT INTO lines VALUES " + c.rows)
			}
			if got := provenOfLines(t, h); got != c.want {
				t.Errorf("proven: %q, want %q", got, c.want)
			}
		})
	}
}

// provenOfLines is what constraints prove of lines(who, a).
func provenOfLines(t *testing.T, h *backendtest.House) string {
	t.Helper()
	table := &policy.Table{Name: "lines", Source: policy.Source{Name: "lines"}, UnitColumn: "who", RowRank: "a", MaxRowsPerUnit: 9}
	var said []string
	err := h.Backend.(*DB).transactionAside(t.Context(), time.Minute, func(tx pgx.Tx) error {
		for name, u := range map[string]rewrite.Unique{"a": {Table: table, Columns: []string{"a"}, Nullable: true}, "a strictly": {Table: table, Columns: []string{"a"}}} {
			if holds, err := proven(t.Context(), tx, []rewrite.Unique{u}); err != nil {
				return err
			} else if holds {
				said = append(said, name)
			}
		}
		for name, within := range map[string]bool{"rank": false, "rank within": true} {
			if holds, err := ranksProven(tx, rewrite.Rank{Table: table, Within: within}); err != nil {
				return err
			} else if holds {
				said = append(said, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(said)
	return strings.Join(said, "; ")
}

// TestColumnsThatAreComputedWhenRead: 100 / age of a row that was stored without a word fails whoever reads it. A
// column that is stored is as any other, and a policy under which it was stored is closed when it no longer is.
func TestColumnsThatAreComputedWhenRead(t *testing.T) {
	since(t, 18)
	for _, kind := range []string{"STORED", "VIRTUAL"} {
		h := backendtest.PostgresHouse(t)
		h.Change("ALTER TABLE people RENAME age TO years; ALTER TABLE people ADD age int GENERATED ALWAYS AS (years) " + kind)
		got := backendtest.Inspect(t, h)
		if refused := strings.Contains(got, "fatal=true table people: age is computed when it is read"); refused != (kind == "VIRTUAL") || refused != strings.Contains(got, "fatal=true") {
			t.Errorf("%s:\n%s", kind, got)
		}
		if kind == "VIRTUAL" {
			continue
		}
		q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "age"), h)
		h.Change("ALTER TABLE people DROP age; ALTER TABLE people ADD age int GENERATED ALWAYS AS (100 / years) VIRTUAL")
		if err := h.Ready(t.Context(), q); err != backend.ErrDrift {
			t.Error(err)
		}
		if said := fmt.Sprint(h.Log); !strings.Contains(said, "public.people.age became or ceased to be computed when it is read") {
			t.Error(said)
		}
	}
}
