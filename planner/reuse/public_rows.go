package reuse

import "github.com/dpproxy/dpproxy/policy"

// PublicRows are the rows of the public tables, as they were copied last.
type PublicRows interface {
	// Rows returns a table's rows in the order of its columns, and false before the first copy.
	Rows(t *policy.Table) ([][]policy.Value, bool)
	// Kept returns what was made under a name of the rows that Rows returns, if that is kept; Keep keeps it, as long as these are
	// the table's rows. Neither changes what a plan is.
	Kept(t *policy.Table, rows [][]policy.Value, name string) any
	Keep(t *policy.Table, rows [][]policy.Value, name string, made any)
}

// NothingKept is for PublicRows that keep nothing.
type NothingKept struct{}

// Kept is described at PublicRows.
func (NothingKept) Kept(*policy.Table, [][]policy.Value, string) any { return nil }

// Keep is described at PublicRows.
func (NothingKept) Keep(*policy.Table, [][]policy.Value, string, any) {}
