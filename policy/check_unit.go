package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
)

// A private table says how its rows name their unit: `visits.person_id = people.person_id`, where the right side is the
// dataset's unit key, or through another table, `lines.order_id = orders.order_id`, whose own rows name theirs.

// unitPaths reads the paths of all tables of a dataset: they may name each other in any order.
func unitPaths(d *Dataset, f *datasetT, at place) {
	if d.Unit.Row {
		if f.NullUnit != "" {
			at.problem("null_unit is given, but in this dataset each row is a unit")
		}
		for i := range f.Tables {
			if f.Tables[i].NullUnit != "" {
				at.item(i).within("table", f.Tables[i].Name).name("null_unit").problem("null_unit is given, but in this dataset each row is a unit")
			}
		}
	}
	if d.Unit.Row || d.Unit.Table == "" {
		return
	}
	for i, t := range d.Tables {
		if !t.Public && !t.Analysed() {
			unitPath(t, f.Tables[i].Unit, at.item(i).within("table", f.Tables[i].Name))
		}
	}
	for i, t := range d.Tables {
		nullUnit(t, f, &f.Tables[i], at.item(i).within("table", f.Tables[i].Name))
		rowRank(t, &f.Tables[i], at.item(i).within("table", f.Tables[i].Name))
	}
	for i, t := range d.Tables {
		seen := map[*Table]bool{}
		for u := t; u != nil && u.Via != nil; u = u.Via.Table {
			if seen[u] {
				at.item(i).within("table", f.Tables[i].Name).key("unit").problem("unit leads in a circle and never reaches %s.%s", d.Unit.Table, d.Unit.Column)
				t.Via = nil
				break
			}
			seen[u] = true
		}
	}
	for _, t := range d.Tables {
		if t.Via != nil {
			t.Via.Table.addKey(t.Via.Key, 0, -1)
			t.addKey(t.Via.Column, 0, -1)
		}
		if t.UnitColumn != "" {
			t.addKey(t.UnitColumn, 0, -1)
			for _, k := range t.Keys {
				k.Unit = k.Source == t.UnitColumn
			}
		}
	}
	for _, t := range d.Tables {
		if t.Via != nil {
			t.sourceKey(t.Via.Column).Refers = t.Via.Table.sourceKey(t.Via.Key)
		}
	}
}

// twiceListed is a relation that a dataset lists as one more table.
type twiceListed struct {
	table, before *Table
	at            place
}

// onePath refuses a relation that is listed as two tables whose rows name their units differently (privacy rule 9). A
// transfer that one table counts as its sender's and another as its receiver's has two units: a person who is taken
// away takes others' rows along, and no table's bound is about those.
func (c *checker) onePath(d *Dataset) {
	for _, l := range c.twice {
		a, b := l.before, l.table
		if b.Dataset != d || d.Unit.Row || a.UnitColumn == "" && a.Via == nil || b.UnitColumn == "" && b.Via == nil {
			continue // a path that is missing has been reported
		}
		if c.samePath(a, b) {
			continue
		}
		l.at.problem("unit leads to a %s by %s, and in table %s, which reads the same relation, by %s: a row would belong to two %[1]ss, and the bounds of neither table would hold for both. "+
			"Keep the table whose %[1]s is to be protected in each row, or give both tables one unit", d.Unit.Name, b.pathText(), a.Name, a.pathText())
	}
}

// samePath reports whether the rows of two tables over one relation name their units alike.
func (c *checker) samePath(a, b *Table) bool {
	if a.Via == nil || b.Via == nil {
		return a.Via == nil && b.Via == nil && c.sameName(a.UnitColumn, b.UnitColumn)
	}
	return a.Via.Table == b.Via.Table && c.sameName(a.Via.Column, b.Via.Column) && c.sameName(a.Via.Key, b.Via.Key)
}

// sameName compares names as the database does.
func (c *checker) sameName(a, b string) bool {
	return a == b || c.policy.Backend.Folds() && strings.EqualFold(a, b)
}

// pathText is how a table's rows name their unit.
func (t *Table) pathText() string {
	if t.Via != nil {
		return t.Via.Column + " (through " + t.Via.Table.Name + "." + t.Via.Key + ")"
	}
	return t.UnitColumn
}

// nullUnit reads what becomes of rows without a unit. Where units are found through another table, a row of that table
// without one would be a unit, to which all rows belong that lead to it: they are left out.
func nullUnit(t *Table, d *datasetT, f *tableT, at place) {
	own := t.UnitColumn != ""
	if f.NullUnit != "" && !own {
		at.name("null_unit").problem("null_unit is for tables in which a column names the unit")
	}
	t.NullEach = own && (f.NullUnit == "each" || f.NullUnit == "" && d.NullUnit == "each")
}

// rowRank reads the column that numbers each unit's rows. It bounds rows alone, of units that the table itself names.
func rowRank(t *Table, f *tableT, at place) {
	here := at.key("row_rank")
	switch {
	case f.RowRank == "":
		return
	case t.UnitColumn == "" || t.View.Text != "":
		here.problem("row_rank is for tables in which a column names the unit, and which are no SELECT")
		return
	case t.NullEach:
		here.problem("row_rank is given, but with null_unit: each rows name no unit, and no constraint bounds them")
		return
	case f.MaxRowsPerUnit == "" || t.Appends != nil:
		here.problem("row_rank goes with max_rows_per_unit alone: groups, and the first rows by date, are chosen by what rows hold")
		return
	case strings.EqualFold(f.RowRank, t.UnitColumn):
		here.problem("row_rank is the unit's column, which numbers no rows")
		return
	}
	if checkName(f.RowRank, here, "row_rank") {
		t.RowRank = f.RowRank
	}
}

// sourceKey is the join key of a source column.
func (t *Table) sourceKey(source string) *Column {
	return found(t.Keys, func(k *Column) bool { return k.Source == source })
}

// ComparedBy is a reason why join keys may be compared: they lead to one key, or to units, or are declared with types
// of one family. One of its fields is set.
type ComparedBy struct {
	Origin *Column
	Unit   bool
	Family Type
}

// ComparedBy lists the reasons that hold for a join key: it may be compared with those that share one. Of other keys
// nothing is known, and a comparison that the database refuses would be found too late.
func (c *Column) ComparedBy() []ComparedBy {
	to := c.Origin()
	list := []ComparedBy{{Origin: to}}
	if to.Unit {
		list = append(list, ComparedBy{Unit: true})
	}
	if to.Type != 0 {
		list = append(list, ComparedBy{Family: to.Type.family()})
	}
	return list
}

// Comparable reports whether join keys may be compared.
func (c *Column) Comparable(other *Column) bool {
	others := other.ComparedBy()
	return slices.ContainsFunc(c.ComparedBy(), func(by ComparedBy) bool { return slices.Contains(others, by) })
}

// Origin is the key that c's values lead to. Keys that may be compared lead to one, or to units, or to keys of like
// types.
func (c *Column) Origin() *Column {
	for c.Refers != nil {
		c = c.Refers
	}
	return c
}

// TellsUnit tells a key that is the unit's, or through which units are found: rows that share it are of one unit.
func (c *Column) TellsUnit() bool {
	to := c.Origin()
	return c.Unit || to.Table.Derived == nil && slices.ContainsFunc(to.Table.Dataset.Tables, func(t *Table) bool {
		return t.Via != nil && t.Via.Table == to.Table && t.Via.Key == to.Source
	})
}

// family is one of the types that compare with each other in every database.
func (t Type) family() Type {
	switch {
	case t.Integer():
		return Int8
	case t.Textual():
		return Text
	}
	return t
}

// addKey makes a source column a join key, if it is not one. Its type is 0 where the policy does not say.
func (t *Table) addKey(source string, kind Type, typmod int32) {
	for _, k := range t.Keys {
		if k.Source == source {
			return
		}
	}
	t.Keys = append(t.Keys, &Column{Table: t, Name: source, Source: source, Type: kind, Typmod: typmod, Join: true, Hidden: true})
}

// unitPath reads one table's path, its sides in either order.
func unitPath(t *Table, text string, at place) {
	d := t.Dataset
	listed := t.Schema + "." + t.Name
	own := names(d.Unit.Table, listed)
	if text == "" {
		if own {
			t.UnitColumn = d.Unit.Column
		} else {
			at.problem("unit is missing: how a row names its %s, such as %s.%s = %s.%s", d.Unit.Name, t.Name, d.Unit.Column, d.Unit.Table, d.Unit.Column)
		}
		return
	}
	here := at.key("unit")
	left, right, ok := strings.Cut(text, "=")
	if !ok {
		here.problem("unit is %.120q, must be %s.column = %s.%s", text, t.Name, d.Unit.Table, d.Unit.Column)
		return
	}
	left, right = strings.TrimSpace(left), strings.TrimSpace(right)
	key := d.Unit.Table + "." + d.Unit.Column
	if left == key && right != key {
		left, right = right, left
	}
	table, column := reference(left, here, "unit")
	if table == "" {
		return
	}
	if !names(table, listed) {
		left, right = right, left
		if table, column = reference(left, here, "unit"); table == "" {
			return
		}
	}
	if !names(table, listed) {
		here.problem("unit is %.120q, must be %s.column = %s", text, t.Name, key)
		return
	}
	if right == key {
		if own && column != d.Unit.Column {
			here.problem("unit is %.120q, but the dataset's unit key is %s", text, key)
			return
		}
		t.UnitColumn = column
		return
	}
	through(t, column, right, own, here)
}

// through reads a path that goes through another private table of the dataset.
func through(t *Table, column, right string, own bool, here place) {
	d := t.Dataset
	table, key := reference(right, here, "unit")
	if table == "" {
		return
	}
	for _, other := range d.Tables {
		if other == t || other.Public || other.Analysed() || !names(table, other.Schema+"."+other.Name) {
			continue
		}
		if own {
			here.problem("unit leads to %s, but the unit's key, %s.%s, is in this table", right, d.Unit.Table, d.Unit.Column)
			return
		}
		t.Via = &Via{Column: column, Table: other, Key: key}
		return
	}
	here.problem("unit leads to %.120q, but no other private table of this dataset is called %.63q; it must be %s.column = %s.%s, or lead there through another table",
		right, table, t.Name, d.Unit.Table, d.Unit.Column)
}

// defaultCloses is when a day closes without `closes`: then it is over in every time zone.
const defaultCloses = 24 * time.Hour

// totalRows reads the bound of a unit's rows over a table's life, which is the bound of all that is counted of the
// table.
func totalRows(t *Table, f *tableT, at place) {
	if f.MaxRowsPerUnit != "" {
		at.name("max_rows_per_unit").problem("max_rows_per_unit is given beside rows_per_unit_total, which takes its place")
	}
	t.MaxRowsPerUnit = max(1, whole64(f.RowsPerUnitTotal, 1, maxRowsPerUnit, at.key("rows_per_unit_total"), "rows_per_unit_total"))
}

// appends reads the column by which a table's rows are added, to a database that is not read by snapshots.
func appends(t *Table, f *tableT, snapshot *Snapshot, at place) {
	if f.Appends.Column == "" || t.Public || t.View.Text != "" {
		return
	}
	at = at.key("appends")
	c := t.Column(f.Appends.Column)
	switch {
	case c == nil:
		at.problem("appends: table %s has no column %.63q", t.Name, f.Appends.Column)
		return
	case c.Domain == nil: // a problem reported already
		return
	case c.Private:
		at.problem("appends: the domain of column %s is private, and a release that grows has all its days from the first on", c.Name)
		return
	case c.Type != DateType:
		at.problem("appends: column %s is %s, must be date", c.Name, c.Type.Name())
		return
	case c.Outside == OutsideClamp:
		at.problem("appends: column %s has outside: clamp, which puts rows into days that have closed; exclude or other leave them out", c.Name)
		return
	case c.Domain.Regular > mechanisms.MaxContinual:
		at.problem("appends: the domain of %s has %d steps, must have at most %d: the release is paid for with all of them", c.Name, c.Domain.Regular, mechanisms.MaxContinual)
		return
	case snapshot != nil:
		at.problem("appends: days close by the clock, and backend.snapshot reads rows of an earlier moment, in which a day may not have closed: leave out one of the two")
		return
	case t.MaxGroups > 0:
		at.problem("appends: a unit's rows are bounded by groups, must be by rows_per_unit_total")
		return
	}
	t.Appends = &Appends{Column: c, Count: f.Appends.Unclosed == "count", Total: t.Dataset.Unit.Row || f.RowsPerUnitTotal != ""}
	t.Appends.Closes = duration(f.Appends.Closes, defaultCloses, at.key("closes"), "closes")
}
