package policy

import (
	"slices"
	"strings"
)

// MaxKeyLength is the number of characters that the values of an open column are cut to.
const MaxKeyLength = 128

// MaxKeys is the number of keys of an open column that a statement works with.
const MaxKeys = 1 << 14

// openColumn reads a column of `keys: discover`: text whose values nobody declared.
func openColumn(col *Column, f *columnT, at place) {
	at.unwanted("%s is given, but the values of this column are to be discovered",
		map[string]bool{"domain": !f.Domain.empty(), "outside": f.Outside != "", "offgrid": f.Offgrid != ""})
	switch {
	case !col.Type.Textual():
		at.key("keys").problem("keys: discover is for text and varchar columns")
		return
	case col.Table.Public:
		at.key("keys").problem("keys: discover is for private tables")
	case col.Table.Dataset.Unit.Row:
		at.key("keys").problem("keys: discover needs a unit that is a key: keys are shown that enough units have")
	}
	if f.Nulls == "exclude" {
		col.Nulls = NullExclude
	}
	col.Open, col.Domain = col, openDomain(col, nil)
}

// anyColumn reads a column of `domain: any`: text of which a statement may ask what is so, and whose values are neither
// found nor shown.
func anyColumn(col *Column, f *columnT, at place) {
	at.unwanted("%s is given, but the domain is any: every text is in it",
		map[string]bool{"outside": f.Outside != "", "offgrid": f.Offgrid != "", "other": f.Other != ""})
	switch {
	case !col.Type.Textual() || col.Blanks > 0:
		at.key("domain").problem("domain is any, which is for text and varchar columns")
		return
	case f.Keys == "discover":
		at.key("keys").problem("keys: discover finds values, and domain: any says that none are shown: give one of the two")
		return
	}
	if f.Nulls == "exclude" {
		col.Nulls = NullExclude
	}
	col.Open, col.Any, col.NullKey = col, true, true
	col.Domain = openDomain(col, nil)
}

// openDomain is a domain of some values of an open column: any other is 'other'.
func openDomain(c *Column, values []string) *Domain {
	d := &Domain{Type: c.Type, Scale: -1, Regular: len(values), Other: -1, Null: -1, Values: values, index: make(map[string]int, len(values))}
	for i, v := range values {
		d.index[v] = i
	}
	d, _ = d.spare(Rules{Nulls: c.Nulls, Outside: OutsideOther}) // too many cells is what MaxKeys excludes
	return d
}

// IsOpen reports whether the table has a column of `keys: discover` or `domain: any`.
func (t *Table) IsOpen() bool {
	return slices.ContainsFunc(t.Columns, func(c *Column) bool { return c.Open != nil })
}

// Finds reports whether it has one of `keys: discover`.
func (t *Table) Finds() bool {
	return slices.ContainsFunc(t.Columns, func(c *Column) bool { return c.Open != nil && !c.Any })
}

// Found is what is known of an open column: values, sorted, and whether NULL is a key.
type Found struct {
	Values []string
	Null   bool
}

// With returns the table as a statement sees it that knows some values of its open columns, and asks things of its
// texts: the readings, in the order of their names, come behind its columns. Releases that the policy declares are over
// the table as it stands, and not of it.
func (t *Table) With(found map[*Column]Found, readings ...*Column) *Table {
	own := *t
	own.Opened, own.Releases, own.Columns, own.Keys = true, nil, make([]*Column, len(t.Columns)), make([]*Column, len(t.Keys))
	move := func(to, from []*Column) {
		for i, c := range from {
			copied := *c
			copied.Table = &own
			if f, ok := found[c.Open]; ok && c.Open != nil {
				copied.Domain, copied.NullKey = openDomain(c, f.Values), f.Null || c.Any
			}
			to[i] = &copied
		}
	}
	move(own.Columns, t.Columns)
	move(own.Keys, t.Keys)
	asked := make([]*Column, len(readings))
	move(asked, readings)
	for _, c := range asked {
		c.Beside = own.Columns[slices.Index(t.Columns, c.Beside)]
	}
	own.Columns = append(own.Columns, asked...)
	return &own
}

// WithProduct returns the table with one more open column, whose values are the combinations of the cells of some
// columns, written as numbers with commas.
func (t *Table) WithProduct(columns []*Column) *Table {
	own := t.With(nil)
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	col := &Column{Table: own, Name: "combinations of " + strings.Join(names, ", "), Type: Text, Typmod: -1, Nulls: NullExclude, Outside: OutsideOther, Product: columns}
	col.Open, col.Domain = col, openDomain(col, nil)
	own.Columns = append(own.Columns, col)
	return own
}
