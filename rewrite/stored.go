package rewrite

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Where no row has to be numbered (a row is the unit, a constraint proves that a unit has one row, or the policy names
// a rank), a measure reads rows as they are stored, as her own SQL would:
//
//   - a set of cells is written as comparisons of the stored value that hold for just the values whose normalised value
//     lies in them, so that a database can use an index, and skips the normalisation;
//   - where every column of the grain is expected to hold few different values, rows are first counted, and their numbers added up, by the stored
//     values, and only these are normalised and given cells, once each: a column is as cheap to group by as it is for her. A moment
//     is brought to the beginning of its cell first, where the engine has a quick word for that (bin).
//
// Both give what normalising each row would: a cell is a function of the stored value, and of a moment's bin.

// asStored reports whether a measure reads its rows as they are stored.
func (w *composed) asStored(m *plans.Measure) bool {
	return m.Table.Derived == nil && !w.dialect.Ready && (m.Table.Dataset.Unit.Row || w.settled(m.Table))
}

// Rows are counted by their stored values where the domains, which are public, suggest that these are few.
const (
	fewStored = 1 << 18 // combinations of the columns
	fewWhole  = 1 << 12 // of one whole number
	fewDays   = 1 << 15
)

// tallies reports whether rows are counted by their stored values first.
func (w *composed) tallies(m *plans.Measure) bool { return w.combinations(m) <= fewStored }

// combinations is how many different rows the columns of a measure's grain are expected to have; more than any limit:
// many.
func (w *composed) combinations(m *plans.Measure) uint64 {
	product := uint64(1)
	for i, c := range m.Grain {
		over, few := bits.Mul64(product, max(storedValues(c), w.bin(m, i).number))
		if product = few; over > 0 || few == 0 || few > fewStored {
			return math.MaxUint64
		}
	}
	return product
}

// storedValues is how many different values a column is expected to hold; 0 means many.
func storedValues(c *policy.Column) uint64 {
	switch d := c.Domain; {
	case d == nil || c.Open != nil || lookedUp(c):
		return 0
	case !d.Ordered():
		return uint64(len(d.Values)) + 2
	default:
		width, most := uint64(0), uint64(0)
		switch least, end, _ := wholeEnds(d); d.Min.(type) {
		case int64:
			width, most = uint64(end)-uint64(least), fewWhole
		case policy.Date:
			width, most = uint64(end)-uint64(least), fewDays
		}
		if width >= most {
			return 0
		}
		return width + 2
	}
}

// tallied writes the query of a measure that counts rows by their stored values, or counts all of them.
func (w *writer) tallied(m *plans.Measure) string {
	if len(m.Grain) > 0 || w.ranks == ranksBeyond {
		t := w.tallyOf(m)
		return w.fromTally(m, t, "("+t.sql+")", 0)
	}
	if c := w.oneEnded(m); c != nil {
		return w.lessPast(m, c)
	}
	var counts []string
	for i, c := range w.tallyCounters(m) {
		counts = append(counts, w.outputCounter(c.sql, c.summed, "k"+strconv.Itoa(i+1)))
	}
	from, conditions := w.storedRows(m, m.Table.Columns)
	return "SELECT " + strings.Join(counts, ",\n       ") + "\nFROM " + from + where("", conditions)
}

// tally is rows counted by the stored values of some columns, or by the bins of moments.
type tally struct {
	sql     string
	columns []*policy.Column
	names   map[*policy.Column]string // s.x1, …
	binned  []*policy.Column
	summed  []bool // by counter k1, …: it adds up values, in the type wide
}

// tallyOf writes the tally of a measure's rows by the columns of its grain.
func (w *writer) tallyOf(m *plans.Measure) tally {
	t := tally{columns: m.Grain, names: map[*policy.Column]string{}}
	var items, keys, counts []string
	for i, c := range m.Grain {
		w.at(c)
		name := "x" + strconv.Itoa(i+1)
		key, read := w.key(c)
		if b := w.bin(m, i); b.number > 0 {
			key, t.binned = w.binned(c, b), append(t.binned, c)
		}
		items, keys = append(items, key+" AS "+name), append(keys, strconv.Itoa(i+1))
		t.names[c] = dialect.Fill(read, "s."+name)
	}
	for _, c := range w.tallyCounters(m) {
		t.summed = append(t.summed, c.summed)
		counts = append(counts, c.sql)
	}
	var others []*policy.Column
	for _, c := range m.Table.Columns {
		if t.names[c] == "" || slices.Contains(t.binned, c) {
			others = append(others, c)
		}
	}
	from, conditions := w.storedRows(m, others)
	part := func(counts, conditions []string) string {
		list := slices.Clone(items)
		for i, count := range counts {
			list = append(list, count+" AS k"+strconv.Itoa(i+1))
		}
		sql := "SELECT " + strings.Join(list, ",\n       ") + "\nFROM " + from + where("", conditions)
		if len(keys) > 0 {
			sql += "\nGROUP BY " + strings.Join(keys, ", ")
		}
		return sql
	}
	t.sql = part(counts, conditions)
	if w.ranks == ranksBeyond {
		t.sql += "\nUNION ALL\n" + part(w.taken(counts), append(conditions, w.beyond()))
	}
	return t
}

// key is what rows are grouped by before a column's value is normalised, and how that is read of it. A text is compared
// by its bytes; where it may be taken as it is stored, a database need not compute it for each row.
//
//	SELECT t.ward AS x1, count(*) … GROUP BY 1, of which (s.x1 COLLATE "C") is read
//
// Claim. Rows of one group have one text. Proof. Of a column whose collation takes no two different texts for equal,
// which needs proof where this is sent (Rank), and of an enumerated type, of which no two values have one label, equal
// values have one text. (The spaces at the end of a character(n) are none of its text.)
func (w *columns) key(c *policy.Column) (key, read string) {
	if !w.dialect.Collates || !c.Type.Textual() || len(c.Product) > 0 || c.Reading != nil || c.Open != nil {
		return w.raw(c), "%1"
	}
	switch {
	case c.Enum:
		return w.column(c), w.dialect.ReadEnum
	case w.ranks != ranksAny:
		w.equals = append(w.equals, c.Source)
		return w.column(c), w.dialect.ReadText
	}
	return w.raw(c), "%1"
}

// tallyCounter is a counter of rows as they are stored.
type tallyCounter struct {
	sql    string
	summed bool
}

func (w *writer) tallyCounters(m *plans.Measure) (list []tallyCounter) {
	w.asIs, w.onRaw = w.settledColumns(m), true
	for i := range m.Counters {
		count, summed := w.counter(m, i)
		list = append(list, tallyCounter{count, summed})
	}
	w.asIs, w.onRaw = nil, false
	return list
}

// storedRows is what the rows of a measure are read from, and the conditions under which they are: its own, and the
// rules of some columns. Its own come first, which leave more rows out than those that nearly all rows satisfy.
func (w *writer) storedRows(m *plans.Measure, ruled []*policy.Column) (from string, conditions []string) {
	if m.Where != nil {
		w.where = w.onStored(m.Where)
	}
	from, unit := w.stored(false)
	if w.where != "" {
		conditions = append(conditions, w.where)
	}
	if !m.Table.Dataset.Unit.Row {
		conditions = append(conditions, w.known(unit)...)
	}
	for _, c := range ruled {
		conditions = append(conditions, w.kept(c)...)
	}
	return from, conditions
}

// fromTally writes a measure's cells and counts from a tally, by its own columns or by more, of which its counters are
// those from one on. Only here do the rules of a column leave rows out that is in the tally as it is stored.
func (w *writer) fromTally(m *plans.Measure, t tally, from string, counter int) string {
	w.tally = t.names
	var items, keys, later []string
	for i, c := range m.Grain {
		keys = append(keys, strconv.Itoa(i+1))
		n := t.names[c]
		if !slices.Contains(t.binned, c) {
			n = "(" + w.normalised(c) + ")"
		}
		items = append(items, w.output(w.piece(m, i, n), "c"+strconv.Itoa(i+1)))
	}
	for _, c := range t.columns {
		if !slices.Contains(t.binned, c) {
			later = append(later, w.kept(c)...)
		}
	}
	for i := range m.Counters {
		total := w.summed("s.k"+strconv.Itoa(counter+i+1), 0)
		switch {
		case t.summed[counter+i]:
			total = w.cut(total)
		case len(m.Grain) == 0: // there may be no row
			total = "COALESCE(" + total + ", 0)"
		}
		items = append(items, w.output(total, "k"+strconv.Itoa(i+1)))
	}
	w.tally = nil
	return selected(items, from, later, keys)
}

// bin is how moments are brought together before rows are counted: length cells at a time, from the cell from on, which
// is at most the first one; number is how many come of it, 0 means they are not.
type bin struct {
	from, length int
	number       uint64
}

// bin finds the longest that each piece of the i-th column is made of.
func (w *composed) bin(m *plans.Measure, i int) bin {
	d := m.Grain[i].Domain
	if !w.dialect.Bins || d == nil || d.Ladder != nil || m.Grain[i].Open != nil || !d.Ordered() {
		return bin{}
	}
	switch d.Min.(type) {
	case policy.Timestamp, policy.Timestamptz:
	default:
		return bin{}
	}
	b := bin{length: 1}
	if m.Cuts != nil && m.Cuts[i] != nil {
		starts := m.Cuts[i]
		if d.Null >= 0 {
			starts = starts[:len(starts)-1]
		}
		if len(starts) < 2 {
			return bin{}
		}
		length := 0
		for _, s := range starts[2:] {
			length = plans.Divisor(length, s-starts[1])
		}
		b.length = max(length, 1)
		b.from = starts[1]%b.length - b.length
		if b.from == -b.length {
			b.from = 0
		}
	}
	b.number = uint64(d.Regular/b.length) + 3
	return b
}

// binned is the first moment of the bin that a stored moment lies in, NULL where its normalised value is.
//
//	GROUP BY date_trunc('hour', seen):  date_bin('3600000000 microseconds', CASE WHEN seen >= … AND seen <= … THEN seen … END, '2024-01-01 …')
//
// Claim. It lies in the same piece, and piece (predicate.go) finds it, though the first of all may begin before the
// domain does. Proof. The bins are whole numbers of cells, and each piece but the first begins where a bin does. The
// first moment of a first bin is less than a length before the second piece: where that piece is a run of its own,
// comparisons find it; else the length divides what comes before, and division by it gives 0.
func (w *columns) binned(c *policy.Column, b bin) string {
	least, _ := policy.UnitsOf(c.Domain.Min)
	step := c.Domain.Step.Whole
	from := policy.Value(policy.Timestamp(least + int64(b.from)*step))
	if _, zoned := c.Domain.Min.(policy.Timestamptz); zoned {
		from = policy.Timestamptz(least + int64(b.from)*step)
	}
	return w.bins(c, w.normalised(c), from, int64(b.length)*step)
}

// bins is the first moment of the one of so long bins from a moment on in which another lies.
func (w cells) bins(c *policy.Column, n string, from policy.Value, micros int64) string {
	kind := "timestamp"
	if _, isZoned := from.(policy.Timestamptz); isZoned {
		kind = "timestamptz"
	}
	return dialect.Fill(w.dialect.Binned, n, w.constant(c, from), strconv.FormatInt(micros, 10), w.dialect.Type(kind))
}

// onStored writes a predicate for rows as they are stored.
func (w *writer) onStored(p predicate.Pred) string {
	w.onRaw = true
	defer func() { w.onRaw = false }()
	return w.predicate(p)
}

// inStored holds for the stored values whose normalised value lies in the cells.
func (w *columns) inStored(c *policy.Column, spans []mechanisms.Span) string {
	d := c.Domain
	var parts []string
	if predicate.Contains(spans, d.Null) {
		parts = append(parts, w.missing(c))
		if c.Outside == policy.OutsideOther && d.Ordered() {
			parts = append(parts, w.declared(c, false))
		}
	}
	switch {
	case c.Type == policy.Bool:
		for cell, v := range d.Values {
			if truth := w.raw(c); predicate.Contains(spans, cell) {
				parts = append(parts, map[bool]string{true: truth, false: "(NOT " + truth + ")"}[v == "true"])
			}
		}
	case d.Ordered():
		for _, s := range spans {
			if s.From < d.Valued() {
				parts = append(parts, w.betweenStored(c, s.From, min(s.To, d.Valued())))
			}
		}
	default:
		parts = append(parts, w.oneOfStored(c, spans)...)
	}
	return anyOf(parts)
}

// betweenStored is between (predicate.go) for stored values: the first and the last cell take those beyond them where
// the column is clamped. NaN, above every number in both dialects, is missing.
func (w *columns) betweenStored(c *policy.Column, a, b int) string {
	raw, d := w.raw(c), c.Domain
	var parts []string
	if w.end != nil && w.end.column == c {
		return w.end.within(w.cells, raw, a, b)
	}
	switch {
	case a > 0:
		parts = append(parts, w.operate(raw, ">=", w.constant(c, d.Low(a))))
	case c.Outside != policy.OutsideClamp:
		parts = append(parts, w.operate(raw, ">=", w.constant(c, d.Min)))
	}
	switch nan := w.isNaN(c, raw); {
	case b < d.Valued():
		parts = append(parts, w.operate(raw, "<", w.constant(c, d.Low(b))))
	case c.Outside != policy.OutsideClamp:
		parts = append(parts, w.operate(raw, "<=", w.constant(c, d.Max)))
	case nan != "" && a > 0:
		parts = append(parts, "NOT "+nan)
	}
	return allOf(parts, "(NOT "+w.missing(c)+")")
}

// oneOfStored holds for the stored values of an enumerated column in the cells: 'other' is every value that is not one
// of the rest, and so is NULL's cell where a column has no 'other'.
func (w *columns) oneOfStored(c *policy.Column, spans []mechanisms.Span) []string {
	d, rest := c.Domain, c.Domain.Other
	if rest < 0 && c.Outside == policy.OutsideOther {
		rest = d.Null
	}
	others := predicate.Contains(spans, rest)
	var list []string
	for cell, v := range d.Values {
		if predicate.Contains(spans, cell) != others {
			list = append(list, v)
		}
	}
	switch {
	case others && len(list) == 0:
		return []string{w.raw(c) + " IS NOT NULL"}
	case others:
		return []string{w.isOneOf(c, list, false)}
	case len(list) == 0:
		return nil
	}
	return []string{w.isOneOf(c, list, true)}
}

// isOneOf compares a stored value with a list that is not empty; a NULL is neither in it nor outside.
func (w *columns) isOneOf(c *policy.Column, list []string, in bool) string {
	raw, values := w.raw(c), w.values(c, list)
	operator, phrase := "=", w.dialect.OneOf
	if !in {
		operator, phrase = "<>", w.dialect.NoneOf
	}
	if len(list) == 1 {
		return w.operate(raw, operator, values[0])
	}
	return dialect.Fill(phrase, raw, strings.Join(values, ", "))
}

// values are constants of an enumerated column.
func (w *composed) values(c *policy.Column, list []string) []string {
	kind := "text"
	if c.Type == policy.UUID {
		kind = "uuid"
	}
	values := make([]string, len(list))
	for i, v := range list {
		switch {
		case !c.Type.Integer() || c.Open != nil: // a found key is a text
			values[i] = w.text(v, kind)
		case strings.HasPrefix(v, "-"):
			values[i] = w.literal(v, "int8")
		default:
			values[i] = w.digits(v) // of thousands each byte counts
		}
	}
	return values
}

// declared holds for the stored values that the domain declares, or else for the others, NaN among them.
func (w *columns) declared(c *policy.Column, is bool) string {
	d, raw := c.Domain, w.raw(c)
	switch {
	case d.Ordered() && is:
		return "(" + w.operate(raw, ">=", w.constant(c, d.Min)) + " AND " + w.operate(raw, "<=", w.constant(c, d.Max)) + ")"
	case d.Ordered():
		return "(" + w.operate(raw, "<", w.constant(c, d.Min)) + " OR " + w.operate(raw, ">", w.constant(c, d.Max)) + ")"
	case len(d.Values) == 0 && c.Type != policy.Bool && is:
		return "false"
	case len(d.Values) == 0 || c.Type == policy.Bool:
		return raw + " IS NOT NULL"
	}
	return w.isOneOf(c, d.Values, is)
}
