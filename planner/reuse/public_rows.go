package reuse

import "github.com/dpproxy/dpproxy/policy"

// PublicRows are the rows of the public tables, as they were copied last.
type PublicRows interface {
	// Rows returns a table's rows in the order of its columns, and false before the first copy.
	Rows(t *policy.Table) ([][]policy.Value, bool)
}
