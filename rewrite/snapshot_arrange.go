package rewrite

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// The rows of an extraction, once they are in DuckDB, are given ranks, values in the types that queries read, and the
// order in which they are written.

// MaxRanked is the most rows of a unit that DuckDB ranks by themselves, which it holds in memory for that. Which units
// have more decides how their rows are ranked and not which rank they have.
const MaxRanked = 1 << 16

// Arrangement is where the rows of an extraction are and go.
type Arrangement struct {
	Staged  string // the table of its fields
	Numbers string // with units that are texts, the table of their numbers (Number); empty means they have been numbered
	Heavy   string // a table that is made of the units with very many rows
	Single  bool   // a constraint proves that a unit has one row
	Light   bool   // no unit has very many rows: Heavy is not made
	Most    int64  // rows of a unit that are ranked by themselves; 0 means MaxRanked
	Parts   int    // in how many parts the units are ranked and sorted, one after the other; 0 means one
}

// Arrange writes the statements that put the rows of an extraction into the snapshot. Of units that have many rows the
// rows are all sorted by unit and order, on the disk where the memory does not hold them, and numbered from one end to
// the other: the rank is that number less the number of rows of the units before. For visits:
//
//	CREATE TABLE heavy AS SELECT h.u, sum(h.k) OVER (ORDER BY h.u) - h.k AS before FROM (SELECT s.u, count(*) AS k … HAVING …) AS h
//	CREATE TABLE "visits@1f…" AS SELECT b.u AS u, b.r AS r, … FROM (SELECT b.*, row_number() OVER (PARTITION BY b.u ORDER BY …) AS r FROM (… WHERE s.u NOT IN (… heavy)) AS b ORDER BY r)
//	INSERT INTO "visits@1f…" SELECT b.u AS u, b.r AS r, … FROM (SELECT b.*, b.at - b.before AS r FROM (SELECT b.*, row_number() OVER () AS at FROM (… ORDER BY b.before, …)) ORDER BY r)
//
// What is written is sorted by rank: DuckDB knows the least and the largest rank of each 122,880 rows, so that of a
// bound of k rows it reads the rows within it and no others, and does not look at the rank of each.
//
// A table that is too long to be sorted in memory is put in order in parts, of the units whose hash leaves one
// remainder each:
//
//	CREATE TABLE "visits@1f…" AS SELECT … FROM (… WHERE s.u IS NOT NULL AND hash(s.u) % 3 = 0) … ORDER BY r)
//	INSERT INTO "visits@1f…" SELECT … FROM (… WHERE s.u IS NOT NULL AND hash(s.u) % 3 = 1) … ORDER BY r)
//
// A unit's rows are all in one part, so that their ranks are those of one part, and each part is sorted by rank.
//
// Claim. The rank is one and the same. Proof. Both go by rowOrder, in which rows that tie are alike; before is the same
// for the rows of one unit and grows from unit to unit, so that the rows of one lie together and those of the others
// before it are as many as it says.
func (e Extraction) Arrange(in Arrangement) ([]string, error) {
	a := e.arranger(in)
	list := a.statements()
	return list, a.settledText()
}

// arranger writes the statements of an arrangement.
type arranger struct {
	*writer
	in     Arrangement
	staged string   // FROM …: the fields s, and the numbers of those that name units
	values []string // of the fields, by their names
	items  []string // of the columns of the copy, of rows b with these values
}

func (e Extraction) arranger(in Arrangement) *arranger {
	t := e.Table
	w := newWriter(dialect.Snapshot, t, "b")
	w.copying, w.packs = true, e.Fields
	a := &arranger{writer: w, in: in, staged: "\n  FROM " + in.Staged + " AS s"}
	for i, c := range t.Columns {
		f, d := digitFor(e.Fields, c)
		if d == nil {
			n := "n" + strconv.Itoa(i+1)
			a.values = append(a.values, w.arranged(c, "s."+n, e.field(n).Kind)+" AS "+n)
			a.items = append(a.items, "b."+n+" AS "+w.copied(c))
			continue
		}
		if d.top {
			a.values = append(a.values, "s."+f.Name+" AS "+f.Name)
		}
		a.items = append(a.items, w.arranged(c, w.unpacked(d, "b."+f.Name), d.stored.kind())+" AS "+w.copied(c)) // once the rows have been sorted
	}
	for i, k := range t.Keys {
		if !k.Unit {
			j := "j" + strconv.Itoa(i+1)
			a.values = append(a.values, a.numbered(e.field(j))+" AS "+j)
			a.items = append(a.items, "b."+j+" AS "+w.copiedKey(k))
		}
	}
	switch {
	case !t.Dataset.Unit.Row:
		a.values = append([]string{a.numbered(e.field("u")) + " AS u"}, a.values...)
		a.items = append([]string{"b.u AS u", "b.r AS r"}, a.items...)
	case len(a.items) == 0:
		a.values, a.items = []string{"1 AS one"}, []string{"b.one AS one"}
	}
	return a
}

// numbered is the value of a field that may name a unit: its number, where units are texts.
func (a *arranger) numbered(f Field) string {
	if !f.OfUnit || a.in.Numbers == "" {
		return "s." + f.Name
	}
	v := "v" + f.Name
	a.staged += "\n  LEFT JOIN " + a.in.Numbers + " AS " + v + " ON " + v + ".v = s." + f.Name
	return v + ".u"
}

func (a *arranger) statements() (list []string) {
	create, insert := "CREATE TABLE "+a.relation(a.table)+" AS ", "INSERT INTO "+a.relation(a.table)+" "
	switch {
	case a.table.Dataset.Unit.Row:
		return []string{create + a.copy(a.rows("", ""))}
	case a.in.Single:
		return []string{create + a.ranked(a.whole(1), a.rows("", ""))}
	}
	heavy := "(SELECT h.u FROM " + a.in.Heavy + " AS h)"
	if !a.in.Light {
		list = append(list, a.heavyUnits())
	}
	for part := range max(a.in.Parts, 1) {
		condition, into := "\n  WHERE s.u IS NOT NULL", create
		if !a.in.Light {
			condition += " AND s.u NOT IN " + heavy
		}
		if a.in.Parts > 1 {
			condition += fmt.Sprintf(" AND hash(s.u) %% %d = %d", a.in.Parts, part)
		}
		if part > 0 {
			into = insert
		}
		list = append(list, into+a.ranked(a.call("row_number")+" OVER (PARTITION BY b.u"+a.rowOrder("b")+")", a.rows("", condition)))
	}
	if !a.in.Light {
		list = append(list, insert+a.ranked(a.operate("b.at", "-", "b.before"), a.inOneOrder()))
	}
	if a.table.NullEach { // each of these rows is a unit of its own
		list = append(list, insert+a.ranked(a.whole(1), a.rows("", "\n  WHERE s.u IS NULL")))
	}
	return list
}

// rows are the staged ones, with more values and under conditions.
func (a *arranger) rows(values, conditions string) string {
	return "(SELECT " + strings.Join(a.values, ", ") + values + a.staged + conditions + ") AS b"
}

// copy are rows as the snapshot has them.
func (a *arranger) copy(rows string) string {
	return "SELECT " + strings.Join(a.items, ", ") + "\nFROM " + rows
}

// ranked are rows with a rank, sorted by it where it is not the same of all.
func (a *arranger) ranked(rank, rows string) string {
	sorted := ""
	if rank != a.whole(1) {
		sorted = "\n  ORDER BY r"
	}
	return a.copy("(SELECT b.*, " + rank + " AS r\n  FROM " + rows + sorted + ") AS b")
}

// heavyUnits makes the table of the units with very many rows, each with how many rows those before it have.
func (a *arranger) heavyUnits() string {
	count := a.call("count", "*")
	before := a.cast(a.summed("h.k", 0)+" OVER (ORDER BY h.u)", "int8") + " - h.k"
	return "CREATE TABLE " + a.in.Heavy + " AS SELECT h.u AS u, " + before + " AS before\nFROM (SELECT s.u AS u, " + count + " AS k\n  FROM " + a.in.Staged +
		" AS s\n  WHERE s.u IS NOT NULL\n  GROUP BY s.u\n  HAVING " + count + " > " + a.whole(cmp.Or(a.in.Most, MaxRanked)) + ") AS h"
}

// inOneOrder are the rows of these units, numbered from one end to the other: at.
func (a *arranger) inOneOrder() string {
	_, within, _ := strings.Cut(a.rowOrder("b"), " ORDER BY ")
	rows := a.rows(", h.before AS before", "\n  JOIN "+a.in.Heavy+" AS h ON h.u = s.u")
	sorted := "(SELECT b.* FROM " + rows + "\n  ORDER BY " + strings.TrimSuffix("b.before, "+within, ", ") + ") AS b"
	return "(SELECT b.*, " + a.call("row_number") + " OVER () AS at\n  FROM " + sorted + ") AS b"
}

// settledText is what is wrong with what was written, which has no texts.
func (w *composed) settledText() error {
	if len(w.seen) > 0 {
		w.fail("a snapshot's statement with texts")
	}
	return w.err
}

// field is that of a name.
func (e Extraction) field(name string) Field {
	return e.Fields[slices.IndexFunc(e.Fields, func(f Field) bool { return f.Name == name })]
}

// arranged is the value of a field in the type that queries read.
func (w cells) arranged(c *policy.Column, field string, kind FieldKind) string {
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

// Number writes the statement that numbers the units of a dataset that are texts, from all fields that name them: each
// number ends in the unit's part of a hash.
func Number(t *policy.Table, fields []Staged, into string) (string, error) {
	w := newWriter(dialect.Snapshot, t, "v")
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

// Until they are in order the values of a row wait in as few whole numbers as hold them: each is written, read, sorted
// and carried along, and is a part of the hash by which rows are ordered (roworder.go). Neighbouring columns of few
// values are the digits of one, the first the highest, NULL the largest digit. Of ward (A to D, another, NULL), minutes
// (0 to 59, NULL) and day (730, NULL):
//
//	p1 = (ward·61 + minutes)·731 + day
//
// Claim. Rows have the ranks that they would have with a field for each column. Proof. Digits are the limbs of the hash
// (columnLimb), and words, which are runs of digits, lie within one round of it: hashed joins neighbouring limbs while
// their sizes multiply to 2^31 at most, by the same first-digit-highest rule, so that the word in place of its limbs
// gives the same rounds. And p1 < p1' if and only if the first of their digits that differ does, as one column after
// the other says, NULL last.

// maxPacked bounds what a whole number is packed with: it is below 2^62.
const maxPacked = 1 << 62

// digit is the place of a column's value in a packed number: (number / factor) mod size is the value less base, and
// size − 1 of NULL.
type digit struct {
	column             *policy.Column
	stored             *Stored
	item               string // what is selected for it
	base, size, factor int64
	top                bool  // no digit is above it
	goesOn             bool  // the next digit is of the same word
	wordSize           int64 // of the digits of the word as far as this one
	wordTop            bool  // no digit is above these
}

// packable is the digit of a column that may be one.
func (w *columns) packable(c *policy.Column) (d digit, ok bool) {
	if w.table.Appends != nil && w.table.Appends.Column == c {
		return d, false // rows are ordered by it before all else
	}
	w.checkRules(c)
	d.column = c
	if d.item, d.stored = w.asStoredValue(c); d.stored == nil {
		return d, false
	}
	if !c.Domain.Ordered() {
		d.size = int64(c.Domain.Size()) + 1
		return d, d.size <= hashPrime
	}
	if width := uint64(d.stored.most) - uint64(d.stored.least); width < hashPrime-1 {
		d.base, d.size = d.stored.least, int64(width)+2
	}
	return d, d.size > 0
}

// packed finds the fields of several columns, each a run of neighbours.
func (w *columns) packed() (fields []Field) {
	order := newWriter(dialect.Snapshot, w.table, "b")
	round, field := int64(0), int64(0) // what the digits of the round, and of the field, multiply to; 0 means there is none
	inWord := false
	for i, c := range w.table.Columns {
		d, ok := digit{}, false
		if c.Open == nil {
			d, ok = w.packable(c)
		}
		size := d.size
		switch n := "b.n" + strconv.Itoa(i+1); {
		case ok || w.table.Appends != nil && w.table.Appends.Column == c:
		case c.Open != nil:
			size = order.textLimb(n).size
		default:
			size = order.columnLimb(c, n).size
		}
		same := round > 0 && round <= (hashPrime+1)/max(size, 1) // as hashed joins limbs
		switch {
		case size == 0: // no part of the hash
		case same:
			round *= size
		default:
			round = size
		}
		if !ok {
			field, inWord = 0, false
			continue
		}
		if field == 0 || field > maxPacked/size {
			fields, field, inWord = append(fields, Field{Name: "p" + strconv.Itoa(len(fields)+1), Kind: Whole}), 1, false
		}
		field *= size
		last := &fields[len(fields)-1]
		if n := len(last.packed); n > 0 && same && inWord {
			last.packed[n-1].goesOn = true
		}
		inWord = true
		last.packed = append(last.packed, d)
	}
	for _, f := range fields {
		factor := int64(1)
		for i := len(f.packed) - 1; i >= 0; i-- {
			d := &f.packed[i]
			d.factor, d.top = factor, i == 0
			factor *= d.size
		}
		for i := range f.packed {
			d := &f.packed[i]
			d.wordSize, d.wordTop = d.size, d.top
			if i > 0 && f.packed[i-1].goesOn {
				d.wordSize, d.wordTop = f.packed[i-1].wordSize*d.size, f.packed[i-1].wordTop
			}
		}
	}
	return fields
}

// digitFor is a column's place among fields that are packed; nil means it has none.
func digitFor(fields []Field, c *policy.Column) (*Field, *digit) {
	for i := range fields {
		for at := range fields[i].packed {
			if d := &fields[i].packed[at]; d.column == c {
				return &fields[i], d
			}
		}
	}
	return nil, nil
}

// Items is how many items of the query a field is made of.
func (f *Field) Items() int { return max(len(f.packed), 1) }

// Number is the value of a field that is packed, or of a column that is read as it is stored (Reads), of its items as
// PostgreSQL sends them in binary, nil of NULL; known is whether it is not NULL, ok whether they are values of their
// types.
func (f *Field) Number(items [][]byte) (n int64, known, ok bool) {
	if f.stored != nil {
		if items[0] == nil {
			return 0, false, true
		}
		return f.stored.Value(items[0])
	}
	for i := range f.packed {
		d := &f.packed[i]
		own := d.size - 1
		if items[i] != nil {
			v, known, ok := d.stored.Value(items[i])
			if !ok {
				return 0, false, false
			}
			if known {
				own = v - d.base
			}
		}
		n += own * d.factor
	}
	return n, true, true
}

// Stored reports whether a field's value is Number's.
func (f *Field) Stored() bool { return f.stored != nil || len(f.packed) > 0 }

// Meaning is all that Number depends on: a copy that was made by another rule is another.
func (f *Field) Meaning() string {
	text := f.stored.String()
	for _, d := range f.packed {
		text += "; " + d.stored.String() + " " + strconv.FormatInt(d.base, 10) + " " + strconv.FormatInt(d.size, 10)
	}
	return text
}

// digitOf writes the digits of a packed number from one of size and factor on.
func (w cells) digitOf(number string, factor, size int64, top bool) string {
	if factor > 1 {
		number = w.operate(number, "/", w.whole(factor))
	}
	if !top {
		number = w.operate(number, "%", w.whole(size))
	}
	return number
}

// unpacked writes what a field of its own would hold.
func (w cells) unpacked(d *digit, number string) string {
	own := w.digitOf(number, d.factor, d.size, d.top)
	value := own
	if d.base != 0 {
		value = w.operate(own, "+", w.whole(d.base))
	}
	return "CASE WHEN " + w.operate(own, "<", w.whole(d.size-1)) + " THEN " + value + " END"
}
