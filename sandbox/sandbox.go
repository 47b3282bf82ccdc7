// Package sandbox runs outer queries: post-processing of released tables, and catalog queries, in an engine that has
// never seen private data. The embedded engine is a DuckDB in a locked-down child process; trivial outer queries take a
// direct path in Go.
package sandbox

import (
	"context"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
)

// Column is one column of a table or a result.
type Column struct {
	Name   string
	Type   policy.Type
	Typmod int32
}

// Rows is a result: columns, and rows of values in their order.
type Rows struct {
	Columns []Column
	Data    [][]policy.Value
}

// Table is a released table handed to an outer query under Name.
type Table struct {
	Schema, Name string
	Rows         privacy.Released[Rows]
}

// Engine is a sandbox. Query loads the given tables for this query alone and leaves nothing behind.
type Engine interface {
	Dialect() dialect.Dialect
	// Catalog replaces what the analysts' catalogs are generated from; it is called at load and on policy reload.
	Catalog(ctx context.Context, p *policy.Policy) error
	// Load keeps a public table of a dataset, in place of an earlier copy, until Close.
	Load(ctx context.Context, dataset string, t Table) error
	// Query runs an outer query for a session. Its error is a *scalar.Error or the context's.
	Query(ctx context.Context, s Session, q outer.Query, tables []Table) (privacy.Released[Rows], error)
	// Describe returns the columns of an outer query without running it.
	Describe(ctx context.Context, s Session, q outer.Query, tables []Table) ([]Column, error)
	// Places is how many queries run at a time, each user's in turn; 0: any number.
	Places() int
	Close() error
}

// Session is what an outer query may know of the client: current_user, current_database(), settings.
type Session struct {
	User, Database string
	PID            uint32
	Settings       map[string]string // for current_setting() and pg_settings, by lower-case name
	Cursors        []Cursor
	Prepared       []*Prepared
	Clients        func() []Client // the sessions of the user; nil: this one

	Time   time.Duration       // of the processor, that is left to the statement; 0: the engine's own deadline
	OfTime time.Duration       // of so much, which is told where that is over
	Took   func(time.Duration) // told how much a query took; nil: nobody asks
}
