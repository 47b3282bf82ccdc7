// Package sandbox is the face of what runs outer queries: the SQL above the counts, over released tables, and questions
// about catalogs, where nobody has ever seen private data. It holds tables, sessions, limits, the interface Engine and
// Direct, which needs no engine. The engine is twin, databases on a PostgreSQL server (ADR 15): one of the owner's, or
// one that cluster starts (ADR 200).
//
// SELECT sex, count(*) FROM people GROUP BY sex ORDER BY 2 has a leaf of rows (sex, noisy count). Its outer query only
// sorts them, so the planner compiled it and Direct evaluates it in Go. With round(100.0 * count(*) / sum(count(*))
// OVER (), 1) in its list it needs an engine: Query is given the leaf as a Table named leaf_1 and the rewritten text
// over it.
package sandbox

import (
	"context"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
)

// Column is one column of a table or a result.
type Column struct {
	Name   string
	Type   policy.Type
	Typmod int32
	Number pgcatalog.Number // what catalogs know it by, where it is a table's
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

// Qualified is the name by which the SQL of an outer query names a table: schema.name, or the name of a leaf.
func (t Table) Qualified() string {
	if t.Schema == "" {
		return t.Name
	}
	return t.Schema + "." + t.Name
}

// Same reports whether two tables are one copy.
func (t Table) Same(other Table) bool {
	a, b := t.Rows.Value(), other.Rows.Value()
	return slices.Equal(a.Columns, b.Columns) && len(a.Data) == len(b.Data) && (len(a.Data) == 0 || &a.Data[0] == &b.Data[0])
}

// Engine is a sandbox. Query loads the given tables for this query alone and leaves nothing behind.
type Engine interface {
	// Catalog replaces what the analysts' catalogs are generated from; it is called at load and on policy reload.
	Catalog(ctx context.Context, p *policy.Policy) error
	// Load keeps public tables of a dataset, in place of earlier copies, until Close.
	Load(ctx context.Context, dataset string, tables ...Table) error
	// Query runs an outer query for a session. Its error is a *scalar.Error or the context's. A public table among the
	// given is read in place of the engine's own copy, where that is another one by now.
	Query(ctx context.Context, s Session, q outer.Query, tables []Table) (privacy.Released[Rows], error)
	// Describe binds an outer query without running it.
	Describe(ctx context.Context, s Session, q outer.Query, tables []Table) (Description, error)
	// Numbers are those by which the catalogs of a dataset know columns. The caller does not change them.
	Numbers(dataset string) pgcatalog.Numbers
	// Slots is how many queries run at a time; 0 means any number.
	Slots() int
	Close() error
}

// Description is what an outer query answers, and takes.
type Description struct {
	Columns []Column
	Params  map[int]policy.Type // of a described statement's own parameters, by their numbers
}

// Size is about how many bytes rows take in memory.
func (r Rows) Size() (bytes int64) {
	for _, row := range r.Data {
		bytes += SizeOf(row)
	}
	return bytes
}

// RowSize is about how many bytes a row of so many small values takes: a slice, and an interface and a word a value.
func RowSize(columns int) int { return 24 + 24*columns }

// SizeOf is about how many bytes one row takes; it counts what the larger values hold too.
func SizeOf(row []policy.Value) (bytes int64) {
	bytes = int64(RowSize(len(row)))
	for _, v := range row {
		switch v := v.(type) {
		case string:
			bytes += int64(len(v))
		case []policy.Value:
			bytes += SizeOf(v)
		case policy.Numeric:
			if v.Coefficient != nil {
				bytes += 40 + int64(v.Coefficient.BitLen()/8)
			}
		}
	}
	return bytes
}
