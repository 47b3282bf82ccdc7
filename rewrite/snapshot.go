package rewrite

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A snapshot holds each private table as a DuckDB table in which all that no statement decides has been done (docs/adr/0078). Of
// `visits` with the column minutes and the open column ward, under the unit person, it has the columns
//
//	u          the row's unit: the key itself where that is a whole number; else a number for each, of which the last 31 bits are
//	           the unit's part of a hash (roworder.go) and the others tell it from those that share it
//	r          the row's rank among its unit's rows, in the order of roworder.go, so that a bound of k rows is r <= k
//	1:minutes  the normalised value: in the domain, NULL, or the number of the cell of an enumerated column
//	2:ward     the text of an open column, cut as everywhere
//	j1:…       a join key
//
// and the rows that have a unit and that no rule leaves out. An Extraction reads such rows from where they lie; Arrange puts them in
// order once they are in DuckDB.
//
// Claim. A count over a snapshot's table is a count over the same rows as over the source's at the moment of the snapshot, and which
// of a unit's rows have which rank is a function of that unit's rows alone (the same one, but in a dataset of which only some tables say
// that units are whole numbers: there all are taken for texts). Proof. Units, values and rules are written by what writes
// them for a query on the source (stored, normalised, kept), and the rank is the row_number by which such a query numbers rows. The
// number of a unit depends on the other units in bits that are compared for equality alone: groupOrder and discovery take the hash's.

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
	stored *Stored // what is made of what comes, of a column that is read as it is stored; nil: it comes as Kind says
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

// Args are described at SQL.
func (e Extraction) Args() []any { return e.text.args }

// Required are the keys through which units are found: the query must not run where no constraint proves them.
func (e Extraction) Required() []Unique { return e.required }

// Pages are those of a PostgreSQL table's file from First to below End; an End of 0 is behind all.
type Pages struct{ First, End uint32 }

// Part is the extraction of the rows that lie in some pages. Claim. Parts whose pages follow one another from 0 on to the end have
// every row once. Proof. Each row version that a snapshot sees has one place, in one page; rows of an inheritance child have places of their own file.
func (e Extraction) Part(p Pages) (Extraction, error) {
	return extract(e.Table, e.from, p)
}

// Extract writes the query that reads a private table of the policy for a snapshot.
func Extract(t *policy.Table, from dialect.Dialect) (Extraction, error) {
	return extract(t, from, Pages{})
}

func extract(t *policy.Table, from dialect.Dialect, pages Pages) (Extraction, error) {
	switch {
	case from.Words == nil || from.Ready:
		return Extraction{}, errors.New("rewrite: not a dialect that a snapshot is made from")
	case t.Public || t.Derived != nil || t.Analysed():
		return Extraction{}, errors.New("rewrite: only private tables of the policy are in a snapshot")
	}
	w := &writer{composed: &composed{dialect: from, seen: map[string]string{}}, table: t, alias: "s"}
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
func (w *writer) inPages(p Pages) (list []string) {
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

// unitKind and keyKind are how units and keys come: whole numbers, or texts. Those of a type that the policy does not give are texts.
// Units are whole numbers where all private tables of the dataset say so. Keys are of the kind of what they lead to, so that those that may be compared (policy.Comparable) are of one; ofUnit tells that
// this is a unit.
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

// WholeKey tells whether a source column of the table that names units or joins rows comes as whole numbers.
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

// Copied is the name of a private table of the policy in a snapshot. Snapshots that have all names that a policy needs serve it.
func Copied(t *policy.Table) string { return copyName(t) }

// longestKey is the most characters of a key that is a text as it is: one cell is not to be what a message, or a row of DuckDB, is
// too long by.
const longestKey = 1000

// short is a key of a snapshot. Of a longer text it is the beginning and a hash of all, longer than any short one: different keys stay
// different.
func (w *writer) short(key string, kind FieldKind) string {
	if kind != Words {
		return key
	}
	text := w.cast(key, "text")
	most := strconv.Itoa(longestKey)
	long := w.operate(w.call("left", text, most), "||", dialect.Fill(w.dialect.Sum256, text))
	longer := w.operate(dialect.Fill(w.dialect.Octets, text), ">", most) + " AND " + w.operate(w.call("length", text), ">", most) // the first is found at once
	return "CASE WHEN " + longer + " THEN " + long + " ELSE " + text + " END"
}

// copyName is the name of a table in a snapshot. It tells tables of one name apart whose rows mean something else, but for what is
// not in the copy: the bounds, which are r's, and the keys of open columns, which are found later.
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

// extracted is the normalised value of a column as it comes from the source: the number of a cell, of days or microseconds since
// 1970, or a decimal, and how many of its digits after the point are kept.
func (w *writer) extracted(c *policy.Column) (value string, kind FieldKind, scale int32) {
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

// MostRanked is the most rows of a unit that DuckDB ranks by themselves, which it holds in memory for that. Which units have more decides
// how their rows are ranked and not which rank they have.
const MostRanked = 1 << 16

// Arrangement is where the rows of an extraction are and go.
type Arrangement struct {
	Staged  string // the table of its fields
	Numbers string // with units that are texts, the table of their numbers (Number); empty: they have been numbered
	Heavy   string // a table that is made of the units with very many rows
	Single  bool   // a constraint proves that a unit has one row
	Light   bool   // no unit has very many rows: Heavy is not made
	Most    int64  // rows of a unit that are ranked by themselves; 0: MostRanked
	Parts   int    // in how many parts the units are ranked and sorted, one after the other; 0: one
}

// Arrange writes the statements that put the rows of an extraction into the snapshot. Of units that have many rows the rows are all
// sorted by unit and order, on the disk where the memory does not hold them, and numbered from one end to the other: the rank is that
// number less the number of rows of the units before. For visits:
//
//	CREATE TABLE heavy AS SELECT h.u, sum(h.k) OVER (ORDER BY h.u) - h.k AS before FROM (SELECT s.u, count(*) AS k … HAVING …) AS h
//	CREATE TABLE "visits@1f…" AS SELECT b.u AS u, b.r AS r, … FROM (SELECT b.*, row_number() OVER (PARTITION BY b.u ORDER BY …) AS r FROM (… WHERE s.u NOT IN (… heavy)) AS b ORDER BY r)
//	INSERT INTO "visits@1f…" SELECT b.u AS u, b.r AS r, … FROM (SELECT b.*, b.at - b.before AS r FROM (SELECT b.*, row_number() OVER () AS at FROM (… ORDER BY b.before, …)) ORDER BY r)
//
// What is written is sorted by rank: DuckDB knows the least and the largest rank of each 122,880 rows, so that of a bound of k rows it reads
// the rows within it and no others, and does not look at the rank of each.
//
// A table that is too long to be sorted in memory is put in order in parts, of the units whose hash leaves one remainder each:
//
//	CREATE TABLE "visits@1f…" AS SELECT … FROM (… WHERE s.u IS NOT NULL AND hash(s.u) % 3 = 0) … ORDER BY r)
//	INSERT INTO "visits@1f…" SELECT … FROM (… WHERE s.u IS NOT NULL AND hash(s.u) % 3 = 1) … ORDER BY r)
//
// A unit's rows are all in one part, so that their ranks are those of one part, and each part is sorted by rank.
//
// Claim. The rank is one and the same. Proof. Both go by rowOrder, in which rows that tie are alike; before is the same for the rows of
// one unit and grows from unit to unit, so that the rows of one lie together and those of the others before it are as many as it says.
func (e Extraction) Arrange(in Arrangement) ([]string, error) {
	t := e.Table
	w := &writer{composed: &composed{dialect: dialect.Snapshot, seen: map[string]string{}}, table: t, alias: "b", copying: true}
	var values, items []string
	w.packs = e.Fields
	for i, c := range t.Columns {
		n := "n" + strconv.Itoa(i+1)
		if f, d := digitFor(w.packs, c); d != nil {
			if d.top {
				values = append(values, "s."+f.Name+" AS "+f.Name)
			}
			items = append(items, w.arranged(c, w.unpacked(d, "b."+f.Name), d.stored.kind())+" AS "+w.copied(c))
			continue
		}
		values = append(values, w.arranged(c, "s."+n, e.kind(n))+" AS "+n)
		items = append(items, "b."+n+" AS "+w.copied(c))
	}
	from := in.Staged + " AS s"
	numbered := func(field string) string {
		if !e.Fields[e.at(field)].OfUnit || in.Numbers == "" {
			return "s." + field
		}
		from += "\n  LEFT JOIN " + in.Numbers + " AS v" + field + " ON v" + field + ".v = s." + field
		return "v" + field + ".u"
	}
	for i, k := range t.Keys {
		if !k.Unit {
			j := "j" + strconv.Itoa(i+1)
			values = append(values, numbered(j)+" AS "+j)
			items = append(items, "b."+j+" AS "+w.copiedKey(k))
		}
	}
	if t.Dataset.Unit.Row {
		if len(items) == 0 {
			values, items = []string{"1 AS one"}, []string{"b.one AS one"}
		}
		rows := "SELECT " + strings.Join(items, ", ") + "\nFROM (SELECT " + strings.Join(values, ", ") + "\n  FROM " + from + ") AS b"
		return []string{"CREATE TABLE " + w.relation(t) + " AS " + rows}, w.settledText()
	}
	values = append([]string{numbered("u") + " AS u"}, values...)
	ranked := func(rank, rows string) string { // values are taken out of packed numbers once these have been sorted
		sorted := "\n  ORDER BY r"
		if rank == w.whole(1) {
			sorted = ""
		}
		return "SELECT " + strings.Join(append([]string{"b.u AS u", "b.r AS r"}, items...), ", ") + "\nFROM (SELECT b.*, " + rank + " AS r\n  FROM " + rows + sorted + ") AS b"
	}
	rows := func(more, condition string) string {
		return "(SELECT " + strings.Join(values, ", ") + more + condition + ") AS b"
	}
	from = "\n  FROM " + from
	create, insert := "CREATE TABLE "+w.relation(t)+" AS ", "INSERT INTO "+w.relation(t)+" "
	if in.Single {
		return []string{create + ranked(w.whole(1), rows(from, ""))}, w.settledText()
	}
	order, row := w.rowOrder("b"), w.call("row_number")
	lightly := func(condition string) []string {
		var list []string
		for part := range max(in.Parts, 1) {
			of, into := "", create
			if in.Parts > 1 {
				of = fmt.Sprintf(" AND hash(s.u) %% %d = %d", in.Parts, part)
			}
			if part > 0 {
				into = insert
			}
			list = append(list, into+ranked(row+" OVER (PARTITION BY b.u"+order+")", rows(from, "\n  WHERE s.u IS NOT NULL"+condition+of)))
		}
		return list
	}
	var each []string
	if t.NullEach { // each of these rows is a unit of its own
		each = []string{insert + ranked(w.whole(1), rows(from, "\n  WHERE s.u IS NULL"))}
	}
	if in.Light {
		return append(lightly(""), each...), w.settledText()
	}
	_, then, _ := strings.Cut(order, " ORDER BY ")
	sorted := "(SELECT b.* FROM " + rows(", h.before AS before"+from+"\n  JOIN "+in.Heavy+" AS h ON h.u = s.u", "") + "\n  ORDER BY " + strings.TrimSuffix("b.before, "+then, ", ") + ") AS b"
	list := []string{
		"CREATE TABLE " + in.Heavy + " AS SELECT h.u AS u, " + w.cast(w.summed("h.k", 0)+" OVER (ORDER BY h.u)", "int8") + " - h.k AS before\nFROM (SELECT s.u AS u, " + w.call("count", "*") + " AS k\n  FROM " + in.Staged +
			" AS s\n  WHERE s.u IS NOT NULL\n  GROUP BY s.u\n  HAVING " + w.call("count", "*") + " > " + w.whole(cmp.Or(in.Most, MostRanked)) + ") AS h",
	}
	list = append(list, lightly(" AND s.u NOT IN (SELECT h.u FROM "+in.Heavy+" AS h)")...)
	list = append(list,
		insert+ranked(w.operate("b.at", "-", "b.before"), "(SELECT b.*, "+row+" OVER () AS at\n  FROM "+sorted+") AS b"))
	return append(list, each...), w.settledText()
}

// settledText is what is wrong with what was written, which has no texts.
func (w *writer) settledText() error {
	if len(w.seen) > 0 {
		w.fail("a snapshot's statement with texts")
	}
	return w.err
}

// at is where a field is, kind how it comes.
func (e Extraction) at(field string) int {
	return slices.IndexFunc(e.Fields, func(f Field) bool { return f.Name == field })
}

func (e Extraction) kind(field string) FieldKind { return e.Fields[e.at(field)].Kind }

// arranged is the value of a field in the type that queries read.
func (w *writer) arranged(c *policy.Column, field string, kind FieldKind) string {
	if c.Open != nil || !c.Domain.Ordered() {
		return field
	}
	switch c.Domain.Min.(type) {
	case int64, float64:
		return field
	case policy.Date:
		return w.cast("(DATE '1970-01-01' + "+w.cast(field, "int4")+")", "date")
	case policy.Timestamp:
		return "make_timestamp(" + field + ")"
	case policy.Timestamptz:
		return "(make_timestamp(" + field + ") AT TIME ZONE 'UTC')"
	case policy.Numeric:
		held, err := fixedOf(c, dialect.Snapshot)
		if err != nil {
			w.fail("%v", err)
			return "NULL"
		}
		to := w.dialect.DecimalOf(held.wide, held.scale)
		if kind == Words || kind == Long {
			return "TRY_CAST(" + field + " AS " + to + ")"
		}
		if held.scale == 0 {
			return w.cast(field, to)
		}
		last := w.literal("0."+strings.Repeat("0", int(held.scale)-1)+"1", w.dialect.DecimalOf(held.scale+1, held.scale))
		width := int32(19)
		least, most := held.ends()
		if own := max(digits(least), digits(most)); own+held.scale+1 <= w.dialect.Narrow { // of which the product has 64 bits
			width = own
		}
		return w.cast(w.operate(w.cast(field, w.dialect.DecimalOf(width, 0)), "*", last), to)
	}
	w.fail("a domain of a type that is not ordered")
	return "NULL"
}

// Staged is a field of an extraction's rows where they wait.
type Staged struct{ Table, Field string }

// Number writes the statement that numbers the units of a dataset that are texts, from all fields that name them: each number ends in
// the unit's part of a hash.
func Number(t *policy.Table, fields []Staged, into string) (string, error) {
	w := &writer{composed: &composed{dialect: dialect.Snapshot, seen: map[string]string{}}, table: t, alias: "v"}
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = "SELECT " + f.Field + " AS v FROM " + f.Table
	}
	sql := "CREATE TABLE " + into + " AS SELECT v.v, row_number() OVER () * " + w.whole(unitMask+1) + " + " + w.textLimb("v.v").sql +
		" AS u\nFROM (SELECT DISTINCT v FROM (" + strings.Join(list, " UNION ALL ") + ") WHERE v IS NOT NULL) AS v"
	return sql, w.err
}

// UnitPlace is the place value of a numbered unit's own number: what is below it is its hash's.
const UnitPlace = unitMask + 1

// unitMask is the part of a numbered unit that is its hash's.
const unitMask = hashPrime

// numbered unit's part of a hash; see unitLimb.
func (w *writer) numberedLimb(u string) limb {
	return w.orNull(limb{w.operate(u, "&", w.whole(unitMask)), 1 << 28})
}

// copied and copiedKey name a column's values and a key in a snapshot, by their places: DuckDB does not tell a from A.
func (w *writer) copied(c *policy.Column) string {
	at := slices.IndexFunc(w.table.Columns, func(have *policy.Column) bool { return have.Name == c.Name })
	if at < 0 || c.Made() {
		w.fail("a column that a snapshot does not have")
	}
	return dialect.QuoteName(strconv.Itoa(at+1) + ":" + c.Name)
}

func (w *writer) copiedKey(k *policy.Column) string {
	return dialect.QuoteName("j" + strconv.Itoa(slices.Index(w.table.Keys, k)+1) + ":" + k.Source)
}

// ready writes a table's rows as a snapshot holds them: what is used or, with everything, all. With most above 0 those of each unit's
// first ranks.
func (w *writer) ready(everything bool, most int64) string {
	t := w.table
	var items, conditions []string
	if !t.Dataset.Unit.Row {
		if everything || w.alias != "s" || w.depth > 1 {
			items = append(items, "t.u AS u")
		}
		if everything {
			items = append(items, "t.r AS r")
		}
	}
	from := w.relation(t) + " AS t"
	if w.marginal != nil {
		from, items = w.marginalName(*w.marginal)+" AS t", append(items, "t.n AS n")
	}
	for i, c := range t.Columns {
		used := everything || slices.Contains(w.used, c)
		if used && w.lookedUp(c) {
			from += "\n   LEFT JOIN " + w.foundValues(c)
		}
		if used {
			items = append(items, w.normalised(c)+" AS n"+strconv.Itoa(i+1))
		}
	}
	for i, k := range t.Keys {
		if !k.Unit && (everything || slices.Contains(w.usedKeys, k)) {
			items = append(items, "t."+w.copiedKey(k)+" AS j"+strconv.Itoa(i+1))
		}
	}
	if w.open != nil {
		items = append(items, w.raw(w.open)+" AS k")
	}
	if len(items) == 0 {
		items = []string{"1 AS one"}
	}
	if most > 0 {
		conditions = append(conditions, "t.r <= "+strconv.FormatInt(most, 10))
	}
	_, within := w.windowed(everything)
	conditions = append(conditions, within...)
	return "(SELECT " + strings.Join(items, ",\n        ") + "\n   FROM " + from + where("   ", conditions) + ")"
}
