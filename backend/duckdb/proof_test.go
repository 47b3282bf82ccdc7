package duckdb

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/embedded"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// TestUniqueKeysAreProvedInDuckDB: as on PostgreSQL, by constraints on some of the columns, or of them and the unit's,
// and by nothing else.
func TestUniqueKeysAreProvedInDuckDB(t *testing.T) {
	for _, c := range backendtest.UniqueKeyCases {
		if !c.Duck {
			continue
		}
		t.Run(strings.TrimSpace(c.Constraint+" "+c.Kind), func(t *testing.T) {
			db, err := sql.Open("duckdb", "")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			db.SetMaxOpenConns(1)
			for _, s := range []string{"ATTACH ':memory:' AS private", "CREATE TABLE private.main.lines " + c.Columns()} {
				if _, err := db.Exec(s); err != nil {
					t.Fatal(err)
				}
			}
			b := &DB{Instance: &embedded.Instance{Pool: db}}
			if b.unique, err = b.uniqueKeys(context.Background()); err != nil {
				t.Fatal(err)
			}
			for name, u := range backendtest.KeysOf("lines") {
				if got := b.proven([]rewrite.Unique{u}); got != c.Want[name] {
					t.Errorf("DuckDB, %s: %s is unique: %t", c.Constraint, name, got)
				}
			}
		})
	}
}

// TestRanksAreProvedInDuckDB: as on PostgreSQL, by constraints over the very columns, and by no others.
func TestRanksAreProvedInDuckDB(t *testing.T) {
	for _, c := range []struct {
		rank, columns    string
		positive, within bool
	}{
		{"Dp_rank", "who INT, RANK INT", false, false},
		{"Dp_rank", "who INT, RANK INT, CHECK (RANK >= 1)", false, false},
		{"Dp_rank", "who INT, RANK INT, CHECK (RANK >= 1), CHECK (RANK IS NULL OR who IS NOT NULL)", true, false},
		{"Dp_rank", "Who INT NOT NULL, RANK SMALLINT, CHECK (RANK > 0)", true, false},
		{"Dp_rank", "who INT, RANK INT, CHECK (RANK >= 1), UNIQUE (who, RANK)", false, false},
		{"Dp_rank", "who INT NOT NULL, RANK INT, CHECK (RANK >= 0)", false, false},
		{"Dp_rank", "who INT NOT NULL, RANK INT, CHECK (RANK >= 1 OR who > 3)", false, false},
		{"Dp_rank", "who INT NOT NULL, RANK INT, c INT, CHECK (c >= 1)", false, false},
		{"Dp_rank", "who INT NOT NULL, RANK INT NOT NULL, CHECK (RANK >= 1), CHECK (RANK <= 10)", true, true},
		{"Dp_rank", "who INT NOT NULL, RANK INT, CHECK (RANK >= 1), CHECK (RANK <= 10)", true, false},
		{"Dp_rank", "who INT NOT NULL, RANK INT NOT NULL, CHECK (RANK >= 1), CHECK (RANK <= 11)", true, false},
		{"Dp_rank", "who INT NOT NULL, RANK INT NOT NULL, CHECK (RANK <= 10)", false, false},
		{"a >= 1) or (b", `who INT NOT NULL, "RANK" INT, a INT, b INT, CHECK (a >= 1 OR b >= 1)`, false, false},
		{"select", `who INT NOT NULL, "RANK" INT, CHECK ("RANK" >= 1)`, false, false}, // which costs a comparison, and no more
	} {
		t.Run(c.rank+", "+c.columns, func(t *testing.T) {
			table := &policy.Table{Name: "lines", Source: policy.Source{Name: "lines"}, UnitColumn: "who", RowRank: c.rank, MaxRowsPerUnit: 10}
			h := backendtest.DuckHouseWith(t, strings.ReplaceAll("CREATE TABLE LINES ("+c.columns+")", "RANK", c.rank), "CREATE TABLE others (who INT NOT NULL, dp_rank INT NOT NULL, CHECK (dp_rank >= 1), CHECK (dp_rank <= 10))")
			for within, want := range map[bool]bool{false: c.positive, true: c.within} {
				if got := h.Backend.(*DB).provenForm(rewrite.Shorter{Ranks: []rewrite.Rank{{Table: table, Within: within}}}); got != want {
					t.Errorf("within %t: %t; constraints say %v", within, got, h.Backend.(*DB).said)
				}
			}
		})
	}
}
