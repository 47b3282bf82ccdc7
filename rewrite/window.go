package rewrite

import (
	"strings"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A step of a release that grows counts the rows of a few days (plans.Window). The measure's predicate says so, above
// the rows; what is written here says it again where the rows are read, so that an index on the date finds them. It
// changes no count: rows are numbered by date first, so that a row's number depends on its unit's earlier rows alone.

// windowed returns the conditions under which a row of the table can matter to a window, and a join that they need.
// With the rows numbered these are the rows up to its end, of units that have a row in it, where the unit stands in the
// table.
//
// Where rows that name nobody are units of their own, a sub-query beside OR is read for each row where PostgreSQL
// expects it not to fit into memory (ADR 159), so that it is a join there:
//
//	FROM hires AS t LEFT JOIN (SELECT DISTINCT t.uid AS u FROM hires AS t WHERE t.hired >= … AND t.hired < …) AS seen ON seen.u = t.uid
//	WHERE t.hired < … AND (t.uid IS NULL OR seen.u IS NOT NULL)
//
// Claim. Each row is there once, or not at all, as it is by the sub-query. Proof. DISTINCT leaves each unit once, and
// equality on the types of units is one of their texts (joinsOther), so that a row meets one of them or none; NULL
// meets none.
func (w *writer) windowed(numbered bool) (join string, conditions []string) {
	v, t := w.window, w.table
	if v == nil || v.Column.Table != t {
		return "", nil
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
			return "", append(from, to...)
		}
		return "", to
	}
	from, to := within(w.raw(v.Column))
	if !numbered {
		return "", append(from, to...)
	}
	if v.From == 0 || t.UnitColumn == "" {
		return "", to
	}
	unit := w.name(t.UnitColumn)
	others := " FROM " + w.relation(t) + " AS t WHERE " + strings.Join(append(from, to...), " AND ")
	switch {
	case seenByJoin(v, t, w.dialect):
		join = "\n   LEFT JOIN (SELECT DISTINCT t." + unit + " AS u" + others + ") AS seen ON " + w.equal("seen.u", "t."+unit)
		return join, append(to, "(t."+unit+" IS NULL OR seen.u IS NOT NULL)")
	case t.NullEach:
		return "", append(to, "(t."+unit+" IS NULL OR "+w.inQuery("t."+unit, "SELECT t."+unit+others)+")")
	}
	return "", append(to, w.inQuery("t."+unit, "SELECT t."+unit+others))
}

// seenByJoin reports whether the units that have a row in a window are joined.
func seenByJoin(v *plans.Window, t *policy.Table, d dialect.Dialect) bool {
	return v != nil && v.From > 0 && t.NullEach && t.UnitColumn != "" && d.MarksByJoin
}
