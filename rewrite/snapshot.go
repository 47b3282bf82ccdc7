package rewrite

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A snapshot holds each private table as a DuckDB table in which all that no statement decides has been done
// (docs/adr/0078). Of `visits` with the column minutes and the open column ward, under the unit person, it has the
// columns
//
//	u          the row's unit: the key itself where that is a whole number; else a number for each, of which the last 31 bits are
//	           the unit's part of a hash (roworder.go) and the others tell it from those that share it
//	r          the row's rank among its unit's rows, in the order of roworder.go, so that a bound of k rows is r <= k
//	1:minutes  the normalised value: in the domain, NULL, or the number of the cell of an enumerated column
//	2:ward     the text of an open column, cut as everywhere
//	j1:…       a join key
//
// and the rows that have a unit and that no rule leaves out. An Extraction reads such rows from where they lie; Arrange
// (snapshot_arrange.go) puts them in order once they are in DuckDB; ready is how they are in a question's SQL.
//
// Claim. A count over a snapshot's table is a count over the same rows as over the source's at the moment of the
// snapshot, and which of a unit's rows have which rank is a function of that unit's rows alone (the same one, but in a
// dataset of which only some tables say that units are whole numbers: there all are taken for texts). Proof. Units,
// values and rules are written by what writes them for a query on the source (stored, normalised, kept), and the rank
// is the row_number by which such a query numbers rows. The number of a unit depends on the other units in bits that
// are compared for equality alone: groupOrder and discovery take the hash's.

// FieldKind is how a field of an extraction comes from the source.
type FieldKind uint8

// The kinds. The zero value is invalid.
const (
	Whole FieldKind = 1 + iota // int8
	Real                       // float8
	Words                      // text
	Fixed                      // numeric, of which floor(value · 10^Scale) is kept: an int8
	Long                       // numeric, of which the text of floor(value · 10^Scale) / 10^Scale is kept
)

// Field is a column of an extraction.
type Field struct {
	Name   string // its name until the rows are arranged
	Kind   FieldKind
	Scale  int32   // of one that is Fixed or Long
	OfUnit bool    // it names a unit by a text, which gets a number
	stored *Stored // what is made of what comes, of a column that is read as it is stored; nil means it comes as Kind says
	packed []digit // of several columns
}

// Extraction is the query that reads a table for a snapshot.
type Extraction struct {
	Table    *policy.Table
	Name     string // of the table in the snapshot; another where the table's meaning is another
	Fields   []Field
	from     dialect.Dialect
	text     text
	required []Unique
}

// SQL and Args are the query on the source, as those of Query.
func (e Extraction) SQL() string { return e.text.sql }

// Args: see SQL.
func (e Extraction) Args() []any { return e.text.args }

// Required are the keys through which units are found: the query must not run where no constraint proves them.
func (e Extraction) Required() []Unique { return e.required }

// Pages are those of a PostgreSQL table's file from First to below End; an End of 0 is behind all.
type Pages struct{ First, End uint32 }

// Part is the extraction of the rows that lie in some pages. Claim. Parts whose pages follow one another from 0 on to
// the end have every row once. Proof. Each row version that a snapshot sees has one place, in one page; rows of an
// inheritance child have places of their own file.
//
// The extraction is one that Extract has made, which refuses tables and dialects that are in no snapshot.
func (e Extraction) Part(p Pages) (Extraction, error) {
	return extract(e.Table, e.from, p)
}

// Extract writes the query that reads a private table of the policy for a snapshot.
func Extract(t *policy.Table, from dialect.Dialect) (Extraction, error) {
	switch {
	case from.Words == nil || from.Ready:
		return Extraction{}, errors.New("rewrite: not a dialect that a snapshot is made from")
	case t.Public || t.Derived != nil || t.Analysed():
		return Extraction{}, errors.New("rewrite: only private tables of the policy are in a snapshot")
	}
	return extract(t, from, Pages{})
}

func extract(t *policy.Table, from dialect.Dialect, pages Pages) (Extraction, error) {
	w := newWriter(from, t, "s")
	e := Extraction{Table: t, from: from, required: Required(t)}
	var items, conditions []string
	add := func(name, expression string, kind FieldKind) {
		items = append(items, w.cast(expression, map[FieldKind]string{Whole: "int8", Real: "float8", Words: "text", Fixed: "numeric", Long: "numeric"}[kind])+" AS "+w.name(name))
		e.Fields = append(e.Fields, Field{Name: name, Kind: kind})
	}
	addKey := func(name, expression string, kind FieldKind, ofUnit bool) {
		add(name, w.short(expression, kind), kind)
		e.Fields[len(e.Fields)-1].OfUnit = ofUnit && kind == Words
	}
	for _, c := range t.Columns {
		if c.Open == nil && lookedUp(c) {
			w.used = append(w.used, c)
		}
	}
	source, unit := w.stored(false)
	packed := w.packed()
	if !t.Dataset.Unit.Row {
		addKey("u", unit, unitKind(t), true)
		conditions = append(conditions, w.known(unit)...)
	}
	for i, c := range t.Columns {
		name := "n" + strconv.Itoa(i+1)
		if c.Open != nil {
			add(name, w.raw(c), Words)
			if c.Nulls == policy.NullExclude {
				conditions = append(conditions, "NOT "+w.missing(c))
			}
			continue
		}
		conditions = append(conditions, w.kept(c)...)
		if p, d := digitFor(packed, c); d != nil {
			items = append(items, d.item+" AS "+w.name(name))
			if d.top {
				e.Fields = append(e.Fields, *p)
			}
			continue
		}
		w.checkRules(c)
		if item, stored := w.asStoredValue(c); stored != nil {
			items = append(items, item+" AS "+w.name(name))
			e.Fields = append(e.Fields, Field{Name: name, Kind: stored.kind(), Scale: int32(stored.scale), stored: stored})
			continue
		}
		value, kind, scale := w.extracted(c)
		add(name, value, kind)
		e.Fields[len(e.Fields)-1].Scale = scale
	}
	for i, k := range t.Keys {
		if !k.Unit {
			kind, ofUnit := keyKind(k)
			addKey("j"+strconv.Itoa(i+1), "t."+w.name(k.Source), kind, ofUnit)
		}
	}
	if len(items) == 0 {
		add("one", w.whole(1), Whole)
	}
	conditions = append(conditions, w.inPages(pages)...)
	var err error
	e.text, err = w.finished("SELECT " + strings.Join(items, ",\n       ") + "\nFROM " + source + where("", conditions))
	e.Name = copyName(t)
	return e, err
}

// inPages are the conditions that a row lies in some pages.
func (w *columns) inPages(p Pages) (list []string) {
	if p == (Pages{}) {
		return nil
	}
	if !w.dialect.PostgreSQLs || w.table.View.Text != "" || p.End > 0 && p.End <= p.First {
		w.fail("pages of what has none")
	}
	at := func(page uint32) string {
		return dialect.Fill(w.dialect.Literal, "("+strconv.FormatUint(uint64(page), 10)+",0)", w.dialect.Type("tid"))
	}
	if p.First > 0 {
		list = append(list, w.operate("t.ctid", ">=", at(p.First)))
	}
	if p.End > 0 {
		list = append(list, w.operate("t.ctid", "<", at(p.End)))
	}
	return list
}

// unitKind and keyKind are how units and keys come: whole numbers, or texts. Those of a type that the policy does not
// give are texts. Units are whole numbers where all private tables of the dataset say so. Keys are of the kind of what
// they lead to, so that those that may be compared (policy.Comparable) are of one; ofUnit tells that this is a unit.
func unitKind(t *policy.Table) FieldKind {
	for _, other := range slices.Concat(t.Dataset.Tables, []*policy.Table{t}) { // which may be joined with each other by them
		if !other.Public && other.Derived == nil && !other.Analysed() && kindOf(other.UnitType()) != Whole {
			return Words
		}
	}
	return Whole
}

func keyKind(k *policy.Column) (kind FieldKind, ofUnit bool) {
	to := k.Origin()
	if to.Unit {
		return unitKind(to.Table), true
	}
	return kindOf(to.Type), false
}

// WholeKey reports whether a source column of the table that names units or joins rows comes as whole numbers.
func WholeKey(t *policy.Table, source string) bool {
	if source == t.UnitColumn {
		return unitKind(t) == Whole
	}
	i := slices.IndexFunc(t.Keys, func(k *policy.Column) bool { return k.Source == source })
	if i < 0 {
		return false
	}
	kind, _ := keyKind(t.Keys[i])
	return kind == Whole
}

func kindOf(t policy.Type) FieldKind {
	if t.Integer() {
		return Whole
	}
	return Words
}

// longestKey is the most characters of a key that is a text as it is: one cell is not to be what a message, or a row of
// DuckDB, is too long by.
const longestKey = 1000

// short is a key of a snapshot. Of a longer text it is the beginning and a hash of all, longer than any short one:
// different keys stay different.
func (w *composed) short(key string, kind FieldKind) string {
	if kind != Words {
		return key
	}
	text := w.cast(key, "text")
	most := strconv.Itoa(longestKey)
	long := w.operate(w.call("left", text, most), "||", dialect.Fill(w.dialect.Sum256, text))
	longer := w.operate(dialect.Fill(w.dialect.Octets, text), ">", most) + " AND " + w.operate(w.call("length", text), ">", most) // the first is found at once
	return "CASE WHEN " + longer + " THEN " + long + " ELSE " + text + " END"
}

// extracted is the normalised value of a column as it comes from the source: the number of a cell, of days or
// microseconds since 1970, or a decimal, and how many of its digits after the point are kept.
func (w *columns) extracted(c *policy.Column) (value string, kind FieldKind, scale int32) {
	n, d := "("+w.normalised(c)+")", c.Domain
	if !d.Ordered() {
		return n, Whole, 0
	}
	switch d.Min.(type) {
	case int64:
		return n, Whole, 0
	case policy.Date:
		return w.days(n, w.constant(c, policy.Date(0))), Whole, 0
	case policy.Timestamp, policy.Timestamptz:
		return w.micros(n), Whole, 0
	case float64:
		return n, Real, 0
	case policy.Numeric:
		held, err := fixedOf(c, dialect.Snapshot)
		if err != nil {
			w.fail("%v", err)
			return "NULL", Whole, 0
		}
		if w.dialect.Digits > 0 {
			return n, Words, 0 // which has no more digits than a snapshot holds
		}
		if least, most := held.ends(); !least.IsInt64() || !most.IsInt64() {
			return n, Long, held.scale
		}
		return n, Fixed, held.scale
	}
	w.fail("a domain of a type that is not ordered")
	return "NULL", Whole, 0
}

// Copy writes the query that reads a public table: its columns in policy order, as text, at most most rows.
func Copy(t *policy.Table, d dialect.Dialect, most int) (string, error) {
	if !t.Public || d.Words == nil {
		return "", errors.New("rewrite: only public tables are copied")
	}
	w := newWriter(d, t, "")
	items := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		items[i] = w.cast("t."+w.name(c.Source), "text")
	}
	sql := "SELECT " + strings.Join(items, ", ") + "\nFROM " + w.relation(t) + " AS t\nLIMIT " + strconv.Itoa(most)
	return sql, w.err
}

// Probe writes a query that uses every column of a private table in every way that a measure can. It is prepared and
// never run: where the database accepts it, it accepts every measure of the table.
func Probe(t *policy.Table, d dialect.Dialect) (Query, error) {
	m := &plans.Measure{Table: t, PerGroup: 1} // no noise is calibrated to it
	for _, c := range t.Columns {
		if c.Domain == nil {
			return Query{}, errors.New("rewrite: a private column without a domain")
		}
		if c.List != nil && c.Private { // no question is answered over it
			continue
		}
		m.Grain = append(m.Grain, c)
		pieces, cuts := c.Domain.Size(), []int(nil)
		if pieces > policy.MaxCells || c.Private { // whose cells comparisons tell apart too, some hundreds of them
			cuts = []int{0, c.Domain.Regular / 3, c.Domain.Regular / 2}
			if c.Domain.Null >= 0 {
				cuts = append(cuts, c.Domain.Null)
			}
			pieces = len(cuts)
		}
		m.Cuts = append(m.Cuts, cuts)
		m.Groups = append(m.Groups, plans.Grouping{Columns: 1, Cells: pieces, Classes: pieces})
		m.Counters = append(m.Counters, predicate.InCells{Column: c, Spans: []mechanisms.Span{{From: c.Domain.Size() / 2, To: c.Domain.Size()}}})
	}
	if len(m.Counters) == 0 {
		m.Counters = []predicate.Pred{nil}
	}
	return Render(m, d)
}

// DescribeView writes a query that shows all that a trusted SELECT does. It is described and never run.
func DescribeView(t *policy.Table, d dialect.Dialect) (string, error) {
	if d.Words == nil {
		return "", errors.New("rewrite: no such dialect")
	}
	w := newWriter(d, t, "")
	return "SELECT t.* FROM " + w.relation(t) + " AS t", w.err
}

// CompareKeys writes a query that compares two join keys as joins and sub-queries do. A database that accepts it
// accepts the comparison in every measure. It is prepared and never run.
func CompareKeys(a, b *policy.Column, d dialect.Dialect) (string, error) {
	if d.Words == nil {
		return "", errors.New("rewrite: no such dialect")
	}
	w := newWriter(d, a.Table, "a")
	sql := "SELECT " + w.equal("a."+w.name(a.Source), "b."+w.name(b.Source)) +
		" FROM " + w.relation(a.Table) + " AS a, " + w.relation(b.Table) + " AS b"
	return sql, w.err
}

// How the tables of a snapshot, and their columns, are called, and how their rows are in the place of the source's:
//
//	(SELECT t.u AS u, t."1:minutes" AS n1 FROM "visits@1f…" AS t WHERE t.r <= 10)

// Copied is the name of a private table of the policy in a snapshot. Snapshots that have all names that a policy needs
// serve it.
func Copied(t *policy.Table) string { return copyName(t) }

// copyName is the name of a table in a snapshot. It tells tables of one name apart whose rows mean something else, but
// for what is not in the copy: the bounds, which are r's, and the keys of open columns, which are found later.
func copyName(t *policy.Table) string {
	own := *t
	own.MaxRowsPerUnit, own.MaxGroups, own.MaxPerGroup, own.Columns = 0, 0, 0, nil
	h := sha256.New()
	for _, c := range t.Columns {
		switch {
		case c.Made():
			continue // of columns that are there
		case c.Open != nil:
			c = c.Open
		}
		own.Columns = append(own.Columns, c)
		fmt.Fprintf(h, "%q ", c.Name) // which are named by their places, as the keys are
	}
	for _, k := range t.Keys {
		fmt.Fprintf(h, "%q ", k.Source)
	}
	fmt.Fprintf(h, "%q %d ", t.Dataset.ID, unitKind(t))
	h.Write(own.Fingerprint())
	return t.Name + "@" + hex.EncodeToString(h.Sum(nil)[:8])
}

// copied and copiedKey name a column's values and a key in a snapshot, by their places: DuckDB does not tell a from A.
func (w *columns) copied(c *policy.Column) string {
	at := slices.IndexFunc(w.table.Columns, func(have *policy.Column) bool { return have.Name == c.Name })
	if at < 0 || c.Made() {
		w.fail("a column that a snapshot does not have")
	}
	return dialect.QuoteName(strconv.Itoa(at+1) + ":" + c.Name)
}

func (w *columns) copiedKey(k *policy.Column) string {
	return dialect.QuoteName("j" + strconv.Itoa(slices.Index(w.table.Keys, k)+1) + ":" + k.Source)
}
