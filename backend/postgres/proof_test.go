package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// TestUniqueKeysAreProved: by constraints on some of the columns, or of them and the unit's, and by nothing else.
func TestUniqueKeysAreProved(t *testing.T) {
	for _, c := range backendtest.UniqueKeyCases {
		t.Run(strings.TrimSpace(c.Constraint+" "+c.Kind), func(t *testing.T) {
			h := backendtest.PostgresHouse(t)
			h.Change("CREATE TABLE lines " + c.Columns())
			for name, u := range backendtest.KeysOf("lines") {
				err := h.Backend.(*DB).transactionAside(context.Background(), time.Minute, func(tx pgx.Tx) error {
					if got, err := proven(context.Background(), tx, []rewrite.Unique{u}); err != nil || got != c.Want[name] {
						t.Errorf("PostgreSQL, %s: %s is unique: %t, %v", c.Constraint, name, got, err)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// notValid is SQL after which the catalogs say of a column of lines, by its number, what they say since PostgreSQL 18
// of NOT NULL that is NOT VALID.
func notValid(column string) string {
	return `SET allow_system_table_mods = on; CREATE TABLE another (a int CONSTRAINT late CHECK (a > 0));
		UPDATE pg_catalog.pg_constraint SET conrelid = 'lines'::pg_catalog.regclass, contype = 'n', convalidated = false, conkey = ARRAY[` + column + `]::int2[]
		WHERE conname = 'late'; RESET allow_system_table_mods`
}

// TestKeysOfRowsWithNullAreNotProved: where NOT NULL was not held against the rows that were there.
func TestKeysOfRowsWithNullAreNotProved(t *testing.T) {
	h := backendtest.PostgresHouse(t)
	h.Change("CREATE TABLE lines (who int, a int NOT NULL UNIQUE, b int, c int)")
	for _, c := range []struct {
		then string
		want map[string]bool
	}{{"SELECT", map[string]bool{"a": true, "a, b": true, "a, whole": true, "a, strictly": true}}, {notValid("2"), map[string]bool{"a": true, "a, b": true, "a, whole": true}}} {
		h.Change(c.then)
		for name, u := range backendtest.KeysOf("lines") {
			err := h.Backend.(*DB).transactionAside(context.Background(), time.Minute, func(tx pgx.Tx) error {
				if got, err := proven(context.Background(), tx, []rewrite.Unique{u}); err != nil || got != c.want[name] {
					t.Errorf("%s is unique: %t, %v", name, got, err)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestOtherStorageProvesNothing (rule 25): what rows a snapshot shows, and what an index refuses, is for the code of a
// table's access method to say: an extension's is not believed.
func TestOtherStorageProvesNothing(t *testing.T) {
	h := backendtest.PostgresHouse(t)
	h.Change(`CREATE ACCESS METHOD columnar TYPE TABLE HANDLER pg_catalog.heap_tableam_handler;
		CREATE TABLE lines (who int NOT NULL, a int NOT NULL UNIQUE, b int, c int, CHECK (a >= 1), UNIQUE (who, a)) USING columnar`)
	table := &policy.Table{Name: "lines", Source: policy.Source{Name: "lines"}, UnitColumn: "who", RowRank: "a", MaxRowsPerUnit: 10}
	holds := func() (list []bool) {
		err := h.Backend.(*DB).transactionAside(context.Background(), time.Minute, func(tx pgx.Tx) error {
			for _, u := range backendtest.KeysOf("lines") {
				got, err := proven(context.Background(), tx, []rewrite.Unique{u})
				if list = append(list, got); err != nil {
					return err
				}
			}
			var rank bool
			err := tx.QueryRow(context.Background(), rankSQL, rankArguments(rewrite.Rank{Table: table})...).Scan(&rank)
			list = append(list, rank)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if got := holds(); slices.Contains(got, true) {
		t.Errorf("proven: %v", got)
	}
	h.Change("ALTER TABLE lines SET ACCESS METHOD heap")
	if got := holds(); slices.Contains(got, false) {
		t.Errorf("of PostgreSQL's own storage: %v", got)
	}
}

// TestRanksAreProved: by CHECK constraints that are valid, over the very columns, and by no others.
func TestRanksAreProved(t *testing.T) {
	table := &policy.Table{Name: "lines", Source: policy.Source{Name: "lines"}, UnitColumn: "who", RowRank: "Rank of \"it\"", MaxRowsPerUnit: 10}
	const rank = `"Rank of ""it"""`
	for _, c := range []struct {
		columns, then    string // then: what is run after the table is there
		positive, within bool
	}{
		{"who int, RANK int", "", false, false},
		{"who int, RANK int, CHECK (RANK >= 1)", "", false, false},
		{"who int, RANK int, CHECK (RANK >= 1), CHECK (RANK IS NULL OR who IS NOT NULL)", "", true, false},
		{"who int NOT NULL, RANK smallint, CHECK (RANK > 0)", "", true, false},
		{"who int NOT NULL, RANK bigint, CHECK (RANK >= 1)", "", true, false},
		{"who int NOT NULL, RANK int, CHECK (RANK >= 0)", "", false, false},
		{"who int NOT NULL, RANK int, CHECK (RANK >= 1 OR who > 3)", "", false, false},
		{"who int NOT NULL, RANK int, c int, CHECK (c >= 1)", "", false, false},
		{"who int NOT NULL, RANK int, CHECK (RANK >= 1)", "CREATE TABLE more () INHERITS (lines)", false, false},
		{"who int NOT NULL, RANK int", "ALTER TABLE lines ADD CHECK (RANK >= 1) NOT VALID", false, false},
		{"who int NOT NULL, RANK numeric, CHECK (RANK >= 1)", "", false, false},
		{"who int NOT NULL, RANK int", "CREATE FUNCTION yes(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true'; CREATE OPERATOR >= (LEFTARG = int, RIGHTARG = int, FUNCTION = yes); ALTER TABLE lines ADD CHECK (RANK OPERATOR(public.>=) 1)", false, false},
		{"who int NOT NULL, RANK int NOT NULL, CHECK (RANK >= 1), CHECK (RANK <= 10)", "", true, true},
		{"who int NOT NULL, RANK int, CHECK (RANK >= 1), CHECK (RANK <= 10)", "", true, false},
		{"who int NOT NULL, RANK int NOT NULL, CHECK (RANK >= 1), CHECK (RANK <= 11)", "", true, false},
		{"who int NOT NULL, RANK int NOT NULL, CHECK (RANK <= 10)", "", false, false},
		{"who int NOT NULL, RANK int NOT NULL, CHECK (RANK >= 1), CHECK (RANK <= 10)", notValid("1"), false, false},
		{"who int NOT NULL, RANK int NOT NULL, CHECK (RANK >= 1), CHECK (RANK <= 10)", notValid("2"), true, false},
	} {
		t.Run(c.columns+c.then, func(t *testing.T) {
			h := backendtest.PostgresHouse(t)
			h.Change(strings.ReplaceAll("CREATE TABLE lines ("+c.columns+"); "+c.then, "RANK", rank))
			err := h.Backend.(*DB).transactionAside(context.Background(), time.Minute, func(tx pgx.Tx) error {
				for within, want := range map[bool]bool{false: c.positive, true: c.within} {
					got, err := ranksProven(tx, rewrite.Rank{Table: table, Within: within})
					if err != nil || got != want {
						t.Errorf("within %t: %t, %v", within, got, err)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestIndexesOfRowsBeyondTheBound: the text that counts all rows less those beyond the bound runs where a valid index
// has just these, with what is read of them, beside the CHECKs.
func TestIndexesOfRowsBeyondTheBound(t *testing.T) {
	const checks = "CREATE TABLE lines (who int NOT NULL, rank bigint, ward text, minutes int, CHECK (rank >= 1)); "
	for _, c := range []struct {
		then    string
		columns []string
		want    bool
	}{
		{checks, nil, false},
		{checks + "CREATE INDEX ON lines (rank) WHERE rank > 10 OR rank IS NULL", nil, true},
		{checks + "CREATE INDEX ON lines (rank) WHERE rank > 10 OR rank IS NULL", []string{"minutes"}, false},
		{checks + "CREATE INDEX ON lines (rank) INCLUDE (minutes) WHERE rank > 10 OR rank IS NULL", []string{"minutes"}, true},
		{checks + "CREATE INDEX ON lines (rank) INCLUDE (minutes) WHERE rank > 10 OR rank IS NULL", nil, true},
		{checks + "CREATE INDEX ON lines (rank) INCLUDE (minutes) WHERE rank > 10 OR rank IS NULL", []string{"minutes", "ward"}, false},
		{checks + "CREATE INDEX ON lines (rank, ward) INCLUDE (minutes) WHERE rank > 10 OR rank IS NULL", []string{"minutes", "ward"}, true},
		{checks + "CREATE INDEX ON lines (rank) INCLUDE (minutes) WHERE rank > 10 OR rank IS NULL; CREATE INDEX ON lines (ward) WHERE rank > 10 OR rank IS NULL", []string{"minutes", "ward"}, false},
		{checks + "CREATE INDEX ON lines (rank, left(ward, 3)) WHERE rank > 10 OR rank IS NULL", []string{"ward"}, false},
		{checks + "CREATE INDEX ON lines (who) WHERE rank IS NULL OR rank > 10", nil, true},
		{checks + "CREATE INDEX ON lines (rank) WHERE rank > 10", nil, false},
		{checks + "CREATE INDEX ON lines (rank) WHERE rank > 11 OR rank IS NULL", nil, false},
		{checks + "CREATE INDEX ON lines (rank)", nil, false},
		{"CREATE TABLE lines (who int NOT NULL, rank bigint); CREATE INDEX ON lines (rank) WHERE rank > 10 OR rank IS NULL", nil, false},
		{checks + "CREATE TABLE more (rank bigint); CREATE INDEX ON more (rank) WHERE rank > 10 OR rank IS NULL", nil, false},
		{checks + "CREATE INDEX broken ON lines (rank) WHERE rank > 10 OR rank IS NULL; SET allow_system_table_mods = on; UPDATE pg_catalog.pg_index SET indisvalid = false WHERE indexrelid = 'broken'::regclass", nil, false},
	} {
		t.Run(fmt.Sprint(c.then, c.columns), func(t *testing.T) {
			ranksHold(t, c.then, rewrite.Rank{Beyond: true, Columns: c.columns}, c.want)
		})
	}
}

// TestCollationsOfTextsThatAreGroupedBy: rows are grouped by a text as it is stored where its column's collation takes
// no two texts for equal.
func TestCollationsOfTextsThatAreGroupedBy(t *testing.T) {
	const with = "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false); CREATE COLLATION own (provider = icu, locale = 'de'); " +
		"CREATE TABLE lines (who int NOT NULL, rank bigint, ward text, town text COLLATE own, street varchar(9) COLLATE loose, CHECK (rank >= 1))"
	for texts, want := range map[string]bool{"": true, "ward": true, "ward town": true, "street": false, "ward street": false} {
		t.Run(texts, func(t *testing.T) {
			ranksHold(t, with, rewrite.Rank{Texts: strings.Fields(texts)}, want)
		})
	}
}

// ranksProven asks a snapshot whether constraints prove what a shorter text needs of a rank.
func ranksProven(tx pgx.Tx, r rewrite.Rank) (bool, error) {
	var p proofs
	p.need([]rewrite.Rank{r}, nil)
	err := p.ask(context.Background(), tx)
	return p.hold([]rewrite.Rank{r}, nil), err
}

// ranksHold asks whether a database proves what a rank needs.
func ranksHold(t *testing.T, then string, r rewrite.Rank, want bool) {
	t.Helper()
	h := backendtest.PostgresHouse(t)
	h.Change(then)
	r.Table = &policy.Table{Name: "lines", Source: policy.Source{Name: "lines"}, UnitColumn: "who", RowRank: "rank", MaxRowsPerUnit: 10}
	err := h.Backend.(*DB).transactionAside(context.Background(), time.Minute, func(tx pgx.Tx) error {
		got, err := ranksProven(tx, r)
		if err != nil || got != want {
			t.Errorf("%t, %v", got, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
