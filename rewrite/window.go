package rewrite

import "strings"

// A step of a release that grows counts the rows of a few days (plans.Window). The measure's predicate says so, above the
// rows; what is written here says it again where the rows are read, so that an index on the date finds them. It changes no
// count: rows are numbered by date first, so that a row's number depends on its unit's earlier rows alone.

// windowed returns the conditions under which a row of the table can matter to a window. With the rows numbered these are
// the rows up to its end, of units that have a row in it, where the unit stands in the table.
func (w *writer) windowed(numbered bool) []string {
	v, t := w.window, w.table
	if v == nil || v.Column.Table != t {
		return nil
	}
	within := func(column string) (from, to []string) {
		if v.From > 0 {
			from = []string{w.operate(column, ">=", w.constant(v.Column, v.Column.Domain.Low(v.From)))}
		}
		if v.To < v.Column.Domain.Regular {
			to = []string{w.operate(column, "<", w.constant(v.Column, v.Column.Domain.Low(v.To)))}
		}
		return from, to
	}
	if w.dialect.Ready {
		from, to := within(w.normalised(v.Column))
		if !numbered {
			return append(from, to...)
		}
		return to
	}
	from, to := within(w.raw(v.Column))
	if !numbered {
		return append(from, to...)
	}
	if v.From == 0 || t.UnitColumn == "" {
		return to
	}
	unit := w.name(t.UnitColumn)
	among := w.inQuery("t."+unit, "SELECT t."+unit+" FROM "+w.relation(t)+" AS t WHERE "+strings.Join(append(from, to...), " AND "))
	if t.NullEach { // rows that name nobody are units of their own
		among = "(t." + unit + " IS NULL OR " + among + ")"
	}
	return append(to, among)
}
