package policy

import (
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
)

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
