// Package rewrite writes SQL: for the private database from a measure, for the sandbox from an outer query. Every token
// is generated from the typed plan; constants travel as arguments or checked literals; names are quoted and
// schema-qualified. User text never passes through. It does no I/O.
package rewrite

import (
	"github.com/dpproxy/dpproxy/planner"
)

// Dialect is an SQL dialect.
type Dialect uint8

// The dialects. The zero value is invalid.
const (
	PostgreSQL Dialect = 1 + iota
	DuckDB
)

// Query is the SQL of one measure. It returns, per combination of cells with rows, the cell number of each grain column
// (int4) and then one count (int8) per counter; only total functions occur in it. It is valid only when made by Render.
type Query struct {
	sql      string
	args     []any // int64, string, float64, bool, or a time.Time in UTC; never nil
	digest   planner.Digest
	grain    int
	counters int
	source   string
	made     bool
}

// Render writes the SQL of a measure.
func Render(m *planner.Measure, d Dialect) (Query, error) { panic("to be written") }

// SQL is the text, Args its arguments ($1, $2, …).
func (q Query) SQL() string { return q.sql }

// Args are the arguments of SQL.
func (q Query) Args() []any { return q.args }

// Digest names the measure.
func (q Query) Digest() planner.Digest { return q.digest }

// Grain is the number of leading cell columns, Counters the number of counts after them.
func (q Query) Grain() int { return q.grain }

// Counters is described at Grain.
func (q Query) Counters() int { return q.counters }

// Valid tells whether Render made q.
func (q Query) Valid() bool { return q.made }
