package reuse

import "github.com/dpproxy/dpproxy/policy"

// PublicRows are the rows of the public tables, as they were copied last.
type PublicRows interface {
	// Rows returns a table's rows in the order of its columns, and false before the first copy.
	Rows(t *policy.Table) ([][]policy.Value, bool)
	// Cached returns what was made under a name of the rows that Rows returns, if that is kept; Keep keeps it, as long
	// as these are the table's rows. Neither changes what a plan is.
	Cached(t *policy.Table, rows [][]policy.Value, name string) any
	Cache(t *policy.Table, rows [][]policy.Value, name string, made any)
}

// NoCache is for PublicRows that keep nothing.
type NoCache struct{}

// Cached: see PublicRows.
func (NoCache) Cached(*policy.Table, [][]policy.Value, string) any { return nil }

// Cache: see PublicRows.
func (NoCache) Cache(*policy.Table, [][]policy.Value, string, any) {}
