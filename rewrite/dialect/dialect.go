// Package dialect names the SQL dialects that are written, and quotes names and texts in them. It lies below both writers:
// that of a measure for the private database (rewrite) and that of an outer query for a sandbox (rewrite/outer), so that
// neither sees the other. What clients write is another thing, and parse.Dialect.
package dialect

import "strings"

// Dialect is an SQL dialect.
type Dialect uint8

// The dialects. The zero value is invalid.
const (
	PostgreSQL Dialect = 1 + iota
	DuckDB
)

func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case DuckDB:
		return "DuckDB"
	}
	return "invalid"
}

// QuoteName writes an identifier, alike in all dialects: O"Hara is "O""Hara". Whether the name may be one is for the caller
// to see.
func QuoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// QuoteText writes a string constant, alike in all dialects, each quote in it twice. A backslash stands for itself, as in
// PostgreSQL where standard_conforming_strings is on.
func QuoteText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
