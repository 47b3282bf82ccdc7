package backend

import (
	"cmp"
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// keysOf are claims over a table lines(who, a, b): that a alone, and a with b, are unique within each unit who, where they
// are not NULL; and that a is unique and never NULL.
func keysOf(table string) map[string]rewrite.Unique {
	t := &policy.Table{Name: table, Source: policy.Source{Name: table}, UnitColumn: "who"}
	return map[string]rewrite.Unique{"a": {Table: t, Columns: []string{"a"}, Nullable: true}, "a, b": {Table: t, Columns: []string{"a", "b"}, Nullable: true},
		"a, strictly": {Table: t, Columns: []string{"a"}}, "a, whole": {Table: t, Columns: []string{"a"}, Nullable: true, Whole: "a"}}
}

// TestUniqueKeysAreProved: by constraints on some of the columns, or of them and the unit's, and by nothing else.
func TestUniqueKeysAreProved(t *testing.T) {
	for _, c := range []struct {
		constraint string
		kind       string // of a; empty: integer
		duck       bool   // DuckDB knows it too
		want       map[string]bool
	}{
		{"", "", true, map[string]bool{}},
		{"UNIQUE (a)", "", true, map[string]bool{"a": true, "a, whole": true, "a, b": true}},
		{"PRIMARY KEY (a)", "", true, map[string]bool{"a": true, "a, whole": true, "a, b": true, "a, strictly": true}},
		{"PRIMARY KEY (a, b)", "", true, map[string]bool{"a, b": true}},
		{"PRIMARY KEY (who, a)", "", true, map[string]bool{"a": true, "a, whole": true, "a, b": true}},
		{"UNIQUE (who, b, a)", "", true, map[string]bool{"a, b": true}},
		{"UNIQUE (a, c)", "", true, map[string]bool{}},
		{"UNIQUE (a, b) DEFERRABLE", "", false, map[string]bool{}},
		{"UNIQUE (who, a)", "smallint", true, map[string]bool{"a": true, "a, whole": true, "a, b": true}},
		{"UNIQUE (who, a)", "bigint", true, map[string]bool{"a": true, "a, whole": true, "a, b": true}},
		{"UNIQUE (who, a)", "numeric", true, map[string]bool{"a": true, "a, b": true}},
		{"UNIQUE (who, a)", "double precision", true, map[string]bool{"a": true, "a, b": true}},
		{"UNIQUE (who, a)", "text", true, map[string]bool{"a": true, "a, b": true}},
		{"EXCLUDE (a WITH =)", "", false, map[string]bool{}},
	} {
		create := "(who int, a " + cmp.Or(c.kind, "int") + ", b int, c int"
		if c.constraint != "" {
			create += ", " + c.constraint
		}
		t.Run(strings.TrimSpace(c.constraint+" "+c.kind), func(t *testing.T) {
			h := postgresHouse(t)
			h.change("CREATE TABLE lines " + create + ")")
			for name, u := range keysOf("lines") {
				err := h.Backend.(*Postgres).look(context.Background(), time.Minute, func(tx pgx.Tx) error {
					if got, err := proven(context.Background(), tx, []rewrite.Unique{u}); err != nil || got != c.want[name] {
						t.Errorf("PostgreSQL, %s: %s is unique: %t, %v", c.constraint, name, got, err)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if !c.duck {
				return
			}
			db, err := sql.Open("duckdb", "")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			db.SetMaxOpenConns(1)
			for _, s := range []string{"ATTACH ':memory:' AS private", "CREATE TABLE private.main.lines " + create + ")"} {
				if _, err := db.Exec(s); err != nil {
					t.Fatal(err)
				}
			}
			duck := &DuckDB{instance: &instance{db: db}}
			if duck.unique, err = duck.uniqueKeys(context.Background()); err != nil {
				t.Fatal(err)
			}
			for name, u := range keysOf("lines") {
				if got := duck.proven([]rewrite.Unique{u}); got != c.want[name] {
					t.Errorf("DuckDB, %s: %s is unique: %t", c.constraint, name, got)
				}
			}
		})
	}
}
