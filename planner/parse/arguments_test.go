package parse

import (
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// TestArgumentsHavePlaces: names of arguments are put into places, as PostgreSQL's catalog has them; where no form fits
// they stay.
func TestArgumentsHavePlaces(t *testing.T) {
	for _, c := range [][2]string{
		{"make_interval(days => 90)", "make_interval(0, 0, 0, 90)"},
		{"make_interval(1, hours := $1, months => 2)", "make_interval(1, 2, 0, 0, $1)"},
		{"make_date(day => 2, month => 1, year => 2026)", "make_date(2026, 1, 2)"},
		{"pg_catalog.make_interval(secs => extract(day FROM make_interval(weeks => 1)))", "pg_catalog.make_interval(0, 0, 0, 0, 0, 0, extract(day FROM make_interval(0, 0, 1)))"},
		{"make_timestamptz(2024, 1, 2, 3, 4, timezone => 'UTC', sec => 5)", "make_timestamptz(2024, 1, 2, 3, 4, 5, 'UTC')"},
		{"make_timestamptz(2024, 1, 2, 3, 4, sec => 5)", "make_timestamptz(2024, 1, 2, 3, 4, 5)"},
		{"jsonb_path_query_first(target => a, path => '$', silent => true)", "jsonb_path_query_first(a, '$', '{}'::jsonb, true)"},
		{"jsonb_set(a, '{b}', replacement => c)", "jsonb_set(a, '{b}', c)"},
		{"sum(x) + make_interval(day => 1)", "sum(x) + make_interval(day => 1)"},
		{"make_date(2024, 1, year => 3)", "make_date(2024, 1, year => 3)"},
		{"make_date(year => 1, month => 2)", "make_date(year => 1, month => 2)"},
		{"make_date(year => 1, 2, 3)", "make_date(year => 1, 2, 3)"},
		{"make_date(year => 1, year => 2, day => 3)", "make_date(year => 1, year => 2, day => 3)"},
		{"lower(text => 'A')", "lower(text => 'A')"},
		{"other.make_date(day => 2, month => 1, year => 2026)", "other.make_date(day => 2, month => 1, year => 2026)"},
	} {
		statements, refusal := Parse("SELECT " + c[0])
		if refusal != nil {
			t.Fatalf("%s: %v", c[0], refusal)
		}
		want, err := pg.Parse("SELECT " + c[1])
		if err != nil {
			t.Fatal(err)
		}
		got := &pg.ParseResult{Version: want.Version, Stmts: []*pg.RawStmt{{Stmt: statements[0].node}}}
		if !sameTrees(got, want) {
			text, err := pg.Deparse(got)
			t.Errorf("%s is %s, want %s (%v)", c[0], text, c[1], err)
		}
	}
}
