// Package dialect holds what the SQL of one engine calls things: a table of words for each, in a file of its own
// (postgres.go, duckdb.go, spark.go). It lies below both writers: that of a measure for the private database (rewrite)
// and that of an outer query for a sandbox (rewrite/outer), so that neither sees the other. What clients write is
// another thing, and parse.Dialect.
//
// A writer says what it means in our names, which are PostgreSQL's, and the table how that is written. The hash of a
// unit and a row begins with an XOR of whole numbers: Operate("b.n1", "#", "b.n2") is
//
//	(b.n1 OPERATOR(pg_catalog.#) b.n2)   in PostgreSQL, by the phrase Operator,
//	xor(b.n1, b.n2)                      in DuckDB, which writes this one otherwise (Operators).
//
// To add an engine: fill in Words in a file of its own, each of them (TestTablesAreWhole), and give it to a variable
// beside PostgreSQL and DuckDB; write its Backend (package backend) with that Dialect; then list what its SQL calls in
// the catalogue (rewrite/token.go), with why no stored value makes it fail. Nothing else in rewrite asks which
// engine it writes for. What all engines so far write alike is not in the table: SELECT, joins, CASE, COALESCE,
// GREATEST and LEAST, FILTER, windows, NULLS LAST.
package dialect

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// Dialect is an SQL dialect, by its words. The zero value is none.
type Dialect struct{ *Words }

// The dialects that are written.
var (
	PostgreSQL = Dialect{&postgres}
	DuckDB     = Dialect{&duckdb}
	Snapshot   = Dialect{&snapshot} // DuckDB over tables that a snapshot has made ready
	MySQL      = Dialect{&mysql}    // DuckDB over tables that were read from MySQL
	Spark      = Dialect{&spark}
	Citus      = Dialect{&citus} // PostgreSQL whose tables lie on several machines
)

// Words is how an engine writes what measures say. A phrase holds %1, %2, … where its parts are. Types go by
// PostgreSQL's short names (int4, int8, float4, float8, numeric, text, bool, uuid, date, timestamp, timestamptz), and
// by "wide", of whole numbers that no sum of a table's rows overflows.
type Words struct {
	Name string

	// Names.
	Quote    string // is around a name, and is doubled within it
	Schema   string // of a relation whose schema the policy does not give
	Relation string // in full: schema %1, name %2, both quoted
	Text     string // a text: the argument number %1, or the text itself %2, in which each quote is doubled, or the hexadecimal digits %3 of its bytes
	Typed    string // a text %1 as a value of type %2
	With     string // begins a statement whose queries read the rows of the query %2, called %1, which is run once

	// Types, operators, calls, casts and literals.
	Types     map[string]string // that are called otherwise
	Operator  string            // %1 on the left, %2 its name, %3 on the right
	Operators map[string]string // phrases of %1 and %3 for those that are written otherwise; / is of whole numbers from 0 on, and cuts
	Divide    string            // floating numbers %1 / %2
	Call      string            // function %1 of arguments %2
	Cast      string            // %1 to type %2; it cannot fail
	Literal   string            // of digits, letters, and . : + - and spaces %1, of type %2
	Quoted    string            // text %1 that needs no escaping

	// Columns as they are stored: what does not fit its type becomes NULL, or the statement fails when it is parsed.
	Read       string // column %1 of type %2
	ReadEnum   string // column %1 of an enumerated type, as text does; of no other type
	ReadText   string // column %1 of text, which compares by its bytes
	IsNaN      string // whether %1 of type %2 is NaN
	Key        string // a key %1 as joins compare it
	TextKey    string // a key %1 of text, or of a type that is not known, as rows are ordered by it
	Micros     string // microseconds of a finite moment %1 since 1970, in UTC
	Days       string // from day %2 to day %1
	Binned     string // the last of the moments %2, %2 and %3 microseconds, … that is not after a finite moment %1 of type %4, which is not before %2
	WideSteps  string // whole steps of length %3 from %2 to %1, where %1 − %2 may exceed 64 bits
	HexToWhole string // the number of the hexadecimal digits %1, seven at most
	Rounded    string // the whole number, an int8, that is nearest to a floating number or PostgreSQL's numeric %1
	Octets     string // how many bytes a text %1 has
	Sum256     string // the hexadecimal digits of the SHA-256 of a text %1
	Sum        string // what whole numbers %1, or decimals with %2 digits after the point, add up to, in a type that no table's rows overflow

	WideQuotient string // %1 / %2 of wide whole numbers from 0 on, %2 not 0, cut; it fits an int8

	// What is asked of texts.
	Trimmed string // a text %2 without the spaces at its beginning, or its end: function %1 is ltrim, or rtrim
	Find    string // the place of the first text %2 in a text %1, from 1 on; 0 means it is not there
	Like    string // whether a text %1 is like a pattern %2 of characters and %; with \ as the escape, and any pattern, where Regular is empty; empty means Regular says it
	Regular string // whether all of a text %1 is what a regular expression %2 of characters, . and .* says, in time linear in the text
	Atomic  bool   // Regular tries again what could be matched otherwise: what is between two .* is written so that it is found once and for all

	// Lists.
	Position     string // of %2 in the list of values %1, from 1 on; NULL for what is not in it
	OneOf        string // whether %1 is among the values %2
	NoneOf       string // whether it is not
	Within       string // whether %1 is among the rows of a query %2
	Row          string // of several values %1, as Within compares them
	RowOfOne     string // of one
	Comma        string // between whole numbers in a list
	Integers     string // the list of whole numbers %1, of 4 bytes
	Numbers      string // the same of 8 bytes: one constant, where there may be thousands
	Texts        string // the list of type %2 that the argument of a number %1 writes, {"a","b"}, or of values %3
	List         string // the list of values %1
	OneOfNumbers string // whether %1 is among whole numbers %2
	OneOfMany    string // the same of many of them from 0 on; the 1s of the bits %3 are at their places, and at the last place, %4, is a 0
	Numbered     string // a table %2 of the values in list %1, v, each with its place i; there are fewer than %3
	Parallel     string // a table %1 of lists of whole numbers %2, each row of what is at one place in all of them; their names are %3
	InParallel   string // one of these: the list %1, called %2; or its numbers %3, between commas

	// Limits. Without one, decimals are PostgreSQL's numeric, with NaN.
	Digits  int32  // that a decimal holds
	Narrow  int32  // that one holds in 64 bits, whose products do not become wide ones
	Decimal string // the type of %1 digits, %2 of them after the point

	// OneScan tells that measures over rows as they are stored take less in one scan, by conditions of their counters,
	// than in one each.
	OneScan bool

	// Bins tells that rows are grouped by Binned sooner than by numbers.
	Bins bool

	// EndsApart tells that a comparison which the engine knows all rows of a block to satisfy takes nothing by itself,
	// and something beside another one of the same column.
	EndsApart bool

	// Collates tells that a text is compared as its column's collation says, and that reading it by its bytes takes
	// something for each row.
	Collates bool

	// MarksByJoin says that joins mark a row by whether its unit has others elsewhere, and not a sub-query
	// within an expression: by one with the units of the others, and along other keys by two, that part the rows.
	// ExactKeys tells that of keys too none has equal values with different texts, so that one with these does.
	MarksByJoin, ExactKeys bool

	// SortsGroups tells that many groups are found sooner in rows that are in their order than by a hash table, which the
	// engine fills beyond its memory.
	SortsGroups bool

	// KeepsNoRows tells that numbered rows are not kept for several measures: each numbers them itself, where they lie.
	KeepsNoRows bool

	// ManyMoments tells that a statement may read one table in several moments: what counts on its rows being the same
	// twice is enforced.
	ManyMoments bool

	// PartialIndexes tells that an index may have the rows of which a condition holds, and is read in the table's place
	// where a query asks for these.
	PartialIndexes bool

	// Ready tells that the tables are a snapshot's: rows have their unit's number, their rank within it and normalised
	// values.
	Ready bool

	// Binary tells that values come as PostgreSQL sends them in binary, so that a snapshot reads them as they are
	// stored.
	Binary bool
	// PlainWindows tells that aggregates over a window take no FILTER: what they are not to see is NULL there.
	PlainWindows bool

	// PostgreSQLs tells that the engine is PostgreSQL, or reads SQL as it does: an outer query is printed for it,
	// rather than bound.
	PostgreSQLs bool

	// Accepts lists, for each declared type, the engine's types whose every value is one of it, or becomes one without
	// failing. The first is the declared type itself.
	Accepts map[policy.Type][]string
}

func (d Dialect) String() string {
	if d.Words == nil {
		return "invalid"
	}
	return d.Name
}

// Fill writes a phrase with its parts.
func Fill(phrase string, parts ...string) string {
	length := len(phrase)
	for _, p := range parts {
		length += len(p)
	}
	var b strings.Builder
	for b.Grow(length); ; {
		at := strings.IndexByte(phrase, '%')
		if at < 0 {
			b.WriteString(phrase)
			return b.String()
		}
		b.WriteString(phrase[:at])
		b.WriteString(parts[phrase[at+1]-'1'])
		phrase = phrase[at+2:]
	}
}

// Type is what the engine calls a type; one that is not ours is its own.
func (w *Words) Type(kind string) string {
	if own, ok := w.Types[kind]; ok {
		return own
	}
	return kind
}

// Operate writes a binary operator, the system's own even where others of that name exist.
func (w *Words) Operate(left, operator, right string) string {
	if phrase, ok := w.Operators[operator]; ok {
		return Fill(phrase, left, "", right)
	}
	return Fill(w.Operator, left, operator, right)
}

// CastTo converts a value of a known type, which cannot fail.
func (w *Words) CastTo(expression, kind string) string { return Fill(w.Cast, expression, w.Type(kind)) }

// DecimalOf is the type of decimals of so many digits, scale of them after the point.
func (w *Words) DecimalOf(width, scale int32) string {
	return Fill(w.Decimal, strconv.Itoa(int(width)), strconv.Itoa(int(scale)))
}

// TextOf writes a text, which travels as the argument of a number or is in the SQL itself.
func (w *Words) TextOf(text string, number int) (sql string, travels bool) {
	return Fill(w.Text, strconv.Itoa(number), doubled(text), hex.EncodeToString([]byte(text))), strings.Contains(w.Text, "%1")
}

// QuoteAs quotes a name as the engine does.
func (w *Words) QuoteAs(name string) string {
	return w.Quote + strings.ReplaceAll(name, w.Quote, w.Quote+w.Quote) + w.Quote
}

// QuoteName writes an identifier, alike in the sandboxes' dialects: O"Hara is "O""Hara". Whether the name may be one is
// for the caller to see.
func QuoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// QuoteText writes a string constant, alike in all dialects, each quote in it twice. A backslash means itself, as
// in PostgreSQL where standard_conforming_strings is on.
func QuoteText(text string) string { return "'" + doubled(text) + "'" }

func doubled(text string) string { return strings.ReplaceAll(text, "'", "''") }
