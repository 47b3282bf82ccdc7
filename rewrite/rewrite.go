// Package rewrite writes the SQL of a measure for the private database. Every token is generated from the typed plan;
// constants travel as arguments, checked literals or quoted texts (dialect, duckdb.go); names are quoted and
// schema-qualified. User text never passes through. It does no I/O. What is asked of released tables is written by
// rewrite/outer.
package rewrite

import (
	"errors"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Query is the SQL of one measure, or of several that are read in one scan (RenderAll), and which of these it is of. It
// returns, per combination of cells with rows, the number of the cell, or of the piece of cells, of each grain column
// (int4) and then one count (int8) per counter; only total functions occur in it. Where it is of several, the number of
// the measure (int4) is before these, and columns that the measure does not have are 0. It is valid only when made
// by Render or RenderAll.
type Query struct {
	scan   *scan
	number int // of the measure, among those of the scan
	asOf   int64
}

// scan is one statement over private rows, and what it counts.
type scan struct {
	text     text
	proven   []Shorter
	measures []counted
	table    *policy.Table
	dialect  dialect.Dialect
	keyed    bool
	joins    bool
}

// counted is what a scan counts for one measure.
type counted struct {
	digest   plans.Digest
	sizes    []int
	counters int
	signed   []bool // by counter, those that may be below 0; nil means none
}

// text is SQL and its arguments, and what it depends on of the columns that it reads, by their names in the database.
type text struct {
	sql    string
	args   []any    // strings
	reads  []string // all of a table whose rows are read as they are stored
	equals []string // texts that rows are grouped by as their columns' collation compares them
}

// Render writes the SQL of a measure.
func Render(m *plans.Measure, d dialect.Dialect) (Query, error) {
	if d.Words == nil {
		return Query{}, errors.New("rewrite: no such dialect")
	}
	if err := checkMeasure(m); err != nil {
		return Query{}, err
	}
	q, err := scanOf([]*plans.Measure{m}, d)
	return Query{scan: q}, err
}

// scanOf writes the scan of one measure, or of several that are read together.
func scanOf(list []*plans.Measure, d dialect.Dialect) (*scan, error) {
	first := list[0]
	q := &scan{table: first.Table, keyed: first.Open != nil, joins: first.Table.Derived != nil && first.Window == nil || seenByJoin(first.Window, first.Table, d), dialect: d}
	for _, m := range list {
		l := counted{digest: m.Digest, counters: len(m.Counters)}
		for i := range m.Grain {
			l.sizes = append(l.sizes, m.Size(i))
		}
		for _, sum := range m.Sums {
			l.signed = append(l.signed, sum != nil && sum.Bound.Low < 0)
		}
		q.measures = append(q.measures, l)
	}
	single := singles(first.Table, d)
	var err error
	unique := derived.UniquesOf(first.Table)
	if q.text, err = statement(list, d, assumed{enforced: unique}); err != nil {
		return nil, err
	}
	forms := []assumed{}
	if len(single) > 0 {
		forms = append(forms, assumed{single: single})
	}
	if len(unique) > 0 {
		forms = append(forms, assumed{})
	}
	if !d.Ready && len(ranked(first.Table)) > 0 {
		own := []assumed{{single: single, ranks: ranksWithin}}
		if len(list) == 1 && countsBeyond(first, d) {
			own = append(own, assumed{single: single, ranks: ranksBeyond})
		}
		forms = append(append(own, assumed{single: single, ranks: ranksPositive}), forms...)
	}
	for _, a := range forms {
		if err := q.shorten(list, a, unique); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// singles are the tables that a query over t reads of which a constraint may prove that a unit has one row.
func singles(t *policy.Table, d dialect.Dialect) (list []*policy.Table) {
	for _, base := range t.Base() {
		if !d.Ready && provable(base) && base.RowRank == "" && (t.Derived == nil || base.MaxRowsPerUnit == 1) {
			list = append(list, base)
		}
	}
	return list
}

// Shorter is a query's text where constraints prove what the whole text enforces.
type Shorter struct {
	text  text
	Needs []Unique
	Ranks []Rank
}

// SQL and Args are those of Query.
func (s Shorter) SQL() string { return s.text.sql }

// Args: see Query.
func (s Shorter) Args() []any { return s.text.args }

// assumed is what a text takes for proven.
type assumed struct {
	single   []*policy.Table  // a unit has one row of each
	enforced []derived.Unique // not for proven: of keys that are declared unique, those that the text enforces
	ranks    rankProof        // of each table whose rows have a rank
}

// rankProof is what constraints say of the column row_rank of a table in every row.
type rankProof int

const (
	ranksAny      rankProof = iota // nothing but what Required does
	ranksPositive                  // it is 1 or more where it is not NULL, and NULL where the unit is
	ranksBeyond                    // the same, and an index has what is read of the rows beyond the bound
	ranksWithin                    // and it is not NULL, and at most max_rows_per_unit
)

// shorten adds the text in which what is assumed is taken for proven, and all keys of unique.
func (q *scan) shorten(list []*plans.Measure, a assumed, unique []derived.Unique) error {
	t, err := statement(list, q.dialect, a)
	if err != nil {
		return err
	}
	s := Shorter{text: t}
	for _, t := range a.single {
		s.Needs = append(s.Needs, Unique{Table: t, Columns: []string{t.UnitColumn}})
	}
	for _, u := range unique {
		need := Unique{Table: u.Table, Nullable: true}
		for _, k := range u.Keys {
			need.Columns = append(need.Columns, k.Source)
		}
		s.Needs = append(s.Needs, need)
	}
	if a.ranks != ranksAny {
		for _, t := range ranked(q.table) {
			r := Rank{Table: t, Within: a.ranks == ranksWithin, Beyond: a.ranks == ranksBeyond, Texts: s.text.equals}
			if r.Beyond {
				r.Columns = s.text.reads
			}
			s.Ranks = append(s.Ranks, r)
		}
	}
	q.proven = append(q.proven, s)
	return nil
}

// ranked lists the tables whose rows a query over t reads by their rank, each once: not those that units are found
// through alone.
func ranked(t *policy.Table) (list []*policy.Table) {
	if t.Derived == nil {
		if t.RowRank != "" {
			list = append(list, t)
		}
		return list
	}
	if derived.IsLaddered(t) { // which reads rows of any rank
		return nil
	}
	for _, in := range t.Derived.Inputs() {
		for _, r := range ranked(in) {
			if !slices.Contains(list, r) {
				list = append(list, r)
			}
		}
	}
	return list
}

// SQL is the text, Args its arguments ($1, $2, …).
func (q Query) SQL() string { return q.read().text.sql }

// TooLong tells a text beyond MaxSQL, or MaxConstants, which is refused before anything is charged for it.
func (q Query) TooLong() bool { return q.read().text.tooLong() }

func (t text) tooLong() bool { return len(t.sql) > MaxConstants || besideConstants(t.sql) > MaxSQL }

// Args are the arguments of SQL, strings; there are none where the dialect writes texts into the SQL.
func (q Query) Args() []any { return q.read().text.args }

// Proven are the same query without row bounds, and with keys that are taken for unique, the shortest first. Each gives
// the same answer where the constraints that it needs hold in the very snapshot that it reads (privacy rule 11); the
// backend alone can know that. There is none where a row is the unit: SQL then has no row bound itself.
func (q Query) Proven() []Shorter { return q.read().proven }

// Unique names columns of a table whose values together a constraint must prove different in each row: on some of them,
// or on some and the unit's.
type Unique struct {
	Table    *policy.Table
	Columns  []string // source columns
	Nullable bool     // rows in which one of them is NULL do not matter
	Whole    string   // the one of Columns that must hold whole numbers; empty means none
}

// Rank says of a table's column row_rank, of a type of whole numbers, that in every row it is NULL or 1 or more, and
// that it is NULL where the unit is. Within says as well that it is in no row NULL or above max_rows_per_unit. CHECK
// constraints prove it that are written so:
//
//	CHECK (dp_rank >= 1)                                  -- or > 0
//	CHECK (dp_rank IS NULL OR who IS NOT NULL)            -- or who is NOT NULL
//	CHECK (dp_rank <= 10), and dp_rank NOT NULL           -- where Within
//
// Beyond asks for an index of the rows beyond max_rows_per_unit that has Columns of them, without which the text would
// take longer than another, and which proves nothing:
//
//	CREATE INDEX … (dp_rank) INCLUDE (minutes) WHERE dp_rank > 10 OR dp_rank IS NULL
//
// Texts are columns whose collation must take no two different texts for equal.
type Rank struct {
	Table   *policy.Table
	Within  bool
	Beyond  bool
	Columns []string // source columns
	Texts   []string // source columns
}

// Required lists what the query itself needs proof of: the keys through which units are found, and that a rank is each
// unit's own. Without it the query must not run.
func (q Query) Required() []Unique { return Required(q.read().table) }

// Required lists what every query over the table needs proof of.
func Required(t *policy.Table) []Unique {
	var list []Unique
	for _, base := range t.Base() {
		if base.Via != nil {
			list = append(list, Unique{Table: base.Via.Table, Columns: []string{base.Via.Key}})
		}
		if base.RowRank != "" {
			list = append(list, Unique{Table: base, Columns: []string{base.RowRank}, Nullable: true, Whole: base.RowRank})
		}
	}
	return list
}

// Dialect is the dialect that the query is written in.
func (q Query) Dialect() dialect.Dialect { return q.read().dialect }

// Table is the table that the query reads.
func (q Query) Table() *policy.Table { return q.read().table }

// Tables lists the tables of the policy that the query reads.
func (q Query) Tables() []*policy.Table { return q.read().table.Base() }

// Digest names the measure.
func (q Query) Digest() plans.Digest { return q.of().digest }

// Grain is the number of leading cell columns, Counters the number of counts after them.
func (q Query) Grain() int { return len(q.of().sizes) }

// Signed reports whether a counter may be below 0: the database adds up what may be.
func (q Query) Signed(counter int) bool {
	signed := q.of().signed
	return signed != nil && signed[counter]
}

// Keyed tells that the query finds keys: it returns a text, which may be NULL, and a count (int8) for each, instead.
func (q Query) Keyed() bool { return q.read().keyed }

// Joins tells that whatever rows the query joins it joins all of, by keys that are equal, so that to look for partners
// row by row would be a mistake.
func (q Query) Joins() bool { return q.read().joins }

// Counters: see Grain.
func (q Query) Counters() int { return q.of().counters }

// Size is the number of cells of the i-th grain column.
func (q Query) Size(i int) int { return q.of().sizes[i] }

// Of is q over the rows of a snapshot, which AsOf names by its moment, in nanoseconds since 1970; 0 means over those of
// now.
func (q Query) Of(asOf int64) Query {
	q.asOf = asOf
	return q
}

// AsOf: see Of.
func (q Query) AsOf() int64 { return q.asOf }

// Valid reports whether Render or RenderAll made q.
func (q Query) Valid() bool { return q.scan != nil }

// read is q's scan; that of the zero value is empty.
func (q Query) read() *scan {
	if q.scan == nil {
		return &scan{measures: []counted{{}}}
	}
	return q.scan
}

func (q Query) of() *counted { return &q.read().measures[q.number] }

// Measures are the queries of all measures that are read in q's scan, by their numbers in its answer; most often q
// alone.
func (q Query) Measures() []Query {
	list := make([]Query, len(q.read().measures))
	for i := range list {
		list[i] = Query{q.scan, i, q.asOf}
	}
	return list
}

// Number is q's place among Measures.
func (q Query) Number() int { return q.number }

// Beside reports whether two queries are read in one scan.
func (q Query) Beside(other Query) bool { return q.scan != nil && q.scan == other.scan }

// Width is the number of columns of cells, and of counts, in the answer of q's scan. Where it is of several measures
// the number of each is before them.
func (q Query) Width() (cells, counts int) {
	for _, l := range q.read().measures {
		cells, counts = max(cells, len(l.sizes)), max(counts, l.counters)
	}
	return cells, counts
}

// Reading is the text of a query in which each table is read as `as` says of it and of its name. Of
// `spark_catalog`.`shop`.`visits` AS t it makes
//
//	`spark_catalog`.`shop`.`visits` VERSION AS OF 42 AS t
//
// where that is what `as` says; nothing else of the text changes. It is for the dialect Spark.
//
// Claim. What is replaced are the names of tables, each of them, and nothing else. Proof. A value of the policy or of
// the statement is in such a text as a name in backquotes, within which a backquote is doubled, as hexadecimal
// digits, or as a checked literal; the last two have no backquote (dialect/spark.go). So the first backquote begins a
// name, which ends at the first one that is not one of two, and so on behind it: names are read as Spark's lexer reads
// them. Relations alone are three names with points between them that begin where no name is before them (measure.go).
func (q Query) Reading(as func(t *policy.Table, name string) string) string {
	tables := map[string]*policy.Table{}
	for _, t := range q.Tables() {
		tables[Named(t, q.Dialect())] = t
	}
	var b strings.Builder
	text := q.SQL()
	for {
		at := strings.IndexByte(text, '`')
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := at + names(text[at:])
		b.WriteString(text[:at])
		if t := tables[text[at:end]]; t != nil {
			b.WriteString(as(t, text[at:end]))
		} else {
			b.WriteString(text[at:end])
		}
		text = text[end:]
	}
}

// names is how long the names in backquotes are with which a text begins, with the points between them.
func names(text string) int {
	for at := 1; at < len(text); at++ {
		switch {
		case text[at] != '`':
		case strings.HasPrefix(text[at+1:], "`"): // it means one
			at++
		case strings.HasPrefix(text[at+1:], ".`"):
			at += 2
		default:
			return at + 1
		}
	}
	return len(text)
}

// Named is a table's relation as queries name it.
func Named(t *policy.Table, d dialect.Dialect) string {
	schema, name := Relation(t.Source, d)
	return dialect.Fill(d.Relation, d.QuoteAs(schema), d.QuoteAs(name))
}
