package policy

import (
	"fmt"
	"slices"
	"strings"
)

// RowOrder names the order by which a unit's rows and groups are taken up to its bounds (package rewrite, roworder.go).
// Another order counts other rows: it needs another name, so that releases of the old one are not read with a new
// meaning.
const RowOrder = "hash 1"

// Fingerprint is the canonical text of all that decides what a count over the table means: source, unit, bounds,
// neighbours, and each column's domain and rules (a column that is not asked for matters too: its rows may be excluded,
// and rows are bounded by their contents). Two tables with the same meaning have equal fingerprints, whatever the
// order, comments or spelling of the file; any change of meaning changes it. Measures carry it in their digests, so
// that a release is never read again with a new meaning (privacy rule 3).
func (t *Table) Fingerprint() []byte { return Fingerprints{}.Of(t) }

// Fingerprints are those of a table and of what it is made of. A table that several are made of is described once: of a
// query that names another twice, and is named twice, thirty deep, it would be 2^30 times.
type Fingerprints map[*Table][]byte

// Of returns a table's.
func (f Fingerprints) Of(t *Table) []byte {
	if _, known := f[t]; !known {
		f[t] = t.describe(f)
	}
	return f[t]
}

// readFrom describes where the rows come from.
func (t *Table) readFrom(f Fingerprints) []string {
	switch {
	case t.Derived != nil:
		return []string{"derived", string(t.Derived.Meaning(f))}
	case t.View.Text != "":
		return []string{"view", t.View.Text, fmt.Sprint(t.View.Trusted)}
	case t.File != "":
		return []string{"file", t.File}
	}
	return []string{"source", t.Source.Schema, t.Source.Name}
}

// describe writes what a table's fingerprint is of.
func (t *Table) describe(f Fingerprints) []byte {
	var m meaning
	m.line("table", "1")
	m.line(t.readFrom(f)...)
	if t.Public {
		m.line("public")
	} else {
		m.line("unit", t.UnitColumn, fmt.Sprint(t.Dataset != nil && t.Dataset.Unit.Row))
		if t.NullEach {
			m.line("null unit", "each")
		}
		m.line("rows", fmt.Sprint(t.MaxRowsPerUnit))
		if t.AnyRows {
			m.line("any rows")
		}
		if t.RowRank != "" {
			m.line("rank", t.RowRank)
		} else if t.Dataset != nil && !t.Dataset.Unit.Row && t.Derived == nil {
			m.line("order", RowOrder, fmt.Sprint(t.UnitType().Integer()))
		}
		if t.MaxGroups > 0 {
			m.line("groups", fmt.Sprint(t.MaxGroups), fmt.Sprint(t.MaxPerGroup))
		}
	}
	if t.Appends != nil {
		m.line("appends", t.Appends.Column.Name) // of a unit's rows the first by date stay
	}
	if t.Via != nil {
		m.line("via", t.Via.Column, t.Via.Key, string(f.Of(t.Via.Table)))
	}
	for _, k := range t.sortedKeys() {
		words := []string{"key", k.Source, k.Type.Format(k.Typmod)}
		if k.Name != k.Source {
			words = append(words, k.Name) // by which derived tables name it
		}
		m.line(words...)
	}
	if t.Dataset != nil {
		m.line("neighbors", t.Dataset.Neighbors.String())
	}
	columns := slices.Clone(t.Columns)
	slices.SortFunc(columns, func(a, b *Column) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range columns {
		m.column(c, t.Derived != nil)
	}
	return []byte(m.String())
}

// meaning is a text of quoted words, line by line.
type meaning struct{ strings.Builder }

func (m *meaning) line(words ...string) {
	for i, w := range words {
		if i > 0 {
			m.WriteByte(' ')
		}
		fmt.Fprintf(m, "%q", w)
	}
	m.WriteByte('\n')
}

// column says what a column's values mean.
func (m *meaning) column(c *Column, derived bool) {
	m.line("column", c.Name, c.Source, c.Type.Format(c.Typmod), c.Nulls.String(), c.Outside.String())
	if c.Blanks > 0 {
		m.line("blanks", fmt.Sprint(c.Blanks))
	}
	if c.Domain == nil {
		return
	}
	if c.Open != nil {
		m.line("open", fmt.Sprint(c.Longest()), fmt.Sprint(c.NullKey))
		if c.Any {
			m.line("any")
		}
		for _, part := range c.Product {
			m.line("of", part.Name)
		}
	}
	if c.Reading != nil && !derived {
		m.line("reads", c.Beside.Name, c.Reading.Of(""))
	}
	if d := c.Domain; d.Ladder != nil {
		words := []string{"ladder"}
		for _, v := range append([]Value{d.Min, d.Max}, d.Ladder.Lows...) {
			words = append(words, d.canonical(v))
		}
		m.line(words...)
	} else if d.Ordered() {
		m.line("steps", d.canonical(d.Min), d.canonical(d.Max), d.step())
	} else {
		m.line(append([]string{"values"}, d.Values...)...)
	}
}

// sortedKeys are the join keys that a row's unit does not decide: ties among a unit's rows are broken by them too.
func (t *Table) sortedKeys() []*Column {
	var keys []*Column
	for _, k := range t.Keys {
		if k.Source != t.UnitColumn {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b *Column) int { return strings.Compare(a.Source, b.Source) })
	return keys
}

// canonical writes a bound so that 1.50 and 1.5 are one text.
func (d *Domain) canonical(v Value) string {
	if n, ok := v.(Numeric); ok {
		return n.shortest()
	}
	return FormatValue(d.Type, v)
}

func (d *Domain) step() string {
	if _, ok := UnitsOf(d.Min); ok {
		return fmt.Sprint(d.Step.Whole)
	}
	return d.Step.Decimal.shortest()
}

// shortest writes n without zeros at the end of its fraction.
func (n Numeric) shortest() string {
	text := n.String()
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

func (r NullRule) String() string {
	if r > NullExclude {
		r = 0
	}
	return [...]string{"invalid", "cell", "exclude"}[r]
}

func (r OutsideRule) String() string {
	if r > OutsideExclude {
		r = 0
	}
	return [...]string{"invalid", "clamp", "other", "exclude"}[r]
}
