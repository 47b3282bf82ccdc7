package rewrite

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// windowFunctions writes the rows of its input for which the condition holds, with what window functions say of each
// among its unit's:
//
//	(SELECT a1.u AS u, a1.n1 AS n1, row_number() OVER (PARTITION BY a1.u ORDER BY a1.n2 ASC NULLS LAST, …) AS n4
//	  FROM (…) AS a1
//	  WHERE …)
//
// Every partition is of one unit, by the unit itself. Where the function tells rows apart that tie in ORDER BY, the
// order goes on by all that the rows hold (contentOrder), and by a number of rows in that order where several functions
// do so (sideBySide). With First above 0 a query around it keeps the rows of those numbers.
func (w *writer) windowFunctions(d *derived.Windowed) string {
	a := w.sub(d.From, "a")
	own, at := len(d.From.Columns), strconv.Itoa
	items := w.passed(a, own)
	if own+len(d.Columns) > len(w.table.Columns) || d.First > 0 && (d.By >= len(d.Columns) || d.Columns[d.By].Kind != derived.WindowRowNumber || len(d.Columns[d.By].Keys)+len(d.Columns[d.By].JoinKeys) > 0) {
		w.fail("window functions that the table does not have")
		return "()"
	}
	written := func(i int) bool { return slices.Contains(w.used, w.table.Columns[own+i]) || d.First > 0 && i == d.By }
	numbers := ""
	if sideBySide(d, written) {
		numbers = a.contents()
	}
	for i, f := range d.Columns {
		if written(i) {
			items = append(items, a.windowFunction(f, w.table.Columns[own+i], numbers != "")+" AS n"+at(own+i+1))
		}
	}
	var conditions []string
	if derived.NullableUnit(d.From) { // such rows are units of their own
		conditions = append(conditions, a.alias+".u IS NOT NULL")
	}
	conditions = append(conditions, a.conditions(d.Where)...)
	from := a.input()
	if numbers != "" {
		from = "(SELECT " + a.alias + ".*, " + w.call("row_number") + " OVER (PARTITION BY " + a.alias + ".u" + numbers + ") AS o FROM " + from + ") AS " + a.alias
	}
	sql := "(SELECT " + strings.Join(items, ", ") + "\n  FROM " + from + where("  ", conditions) + ")"
	if d.First == 0 {
		return sql
	}
	f := "f" + at(w.depth)
	n := f + ".n" + at(own+d.By+1)
	return "(SELECT * FROM " + sql + " AS " + f + " WHERE " + w.operate(n, ">=", w.whole(d.First)) + " AND " + w.operate(n, "<=", w.whole(d.Last)) + ")"
}

// sideBySide tells that two functions tell rows apart that tie, each in an order of its own. Each order would be by the
// contents last, and rows of the same contents would have any number in each: which of one go with which of the other
// depends on how the engine sorts, and so on other units' rows. They are numbered once then, below all functions, and
// every order goes on by that number.
func sideBySide(d *derived.Windowed, written func(int) bool) bool {
	var first *derived.WindowColumn
	for i, f := range d.Columns {
		if !f.TellsApart() || !written(i) {
			continue
		}
		window := derived.WindowColumn{Keys: f.Keys, JoinKeys: f.JoinKeys, Order: f.Order}
		if first == nil {
			first = &window
		} else if !first.SameAs(window) {
			return true
		}
	}
	return false
}

// contents orders a unit's rows by all that they hold.
func (w *writer) contents() string {
	for _, c := range w.table.Columns {
		w.use(c)
	}
	for _, k := range w.table.Keys {
		w.useKey(k)
	}
	return w.contentOrder(w.alias)
}

// windowFunction writes one function over the rows of the writer's table, which may be numbered.
func (w *writer) windowFunction(f derived.WindowColumn, c *policy.Column, numbered bool) string {
	over := w.overOf(f, numbered)
	if w.err != nil {
		return "NULL"
	}
	switch f.Kind {
	case derived.WindowRowNumber:
		return w.withinDomain(c, w.call("row_number")+over)
	case derived.WindowRank:
		return w.withinDomain(c, w.call("rank")+over)
	case derived.WindowDenseRank:
		return w.withinDomain(c, w.call("dense_rank")+over)
	case derived.WindowNtile:
		return w.cast(w.call("ntile", w.int4(int(f.Offset)))+over, "int8")
	case derived.WindowLag, derived.WindowLead:
		name := map[derived.WindowKind]string{derived.WindowLag: "lag", derived.WindowLead: "lead"}[f.Kind]
		if f.Column == nil {
			return "CASE WHEN " + w.call(name, w.int4(1), w.int4(int(f.Offset))) + over + " IS NULL THEN 0 ELSE 1 END"
		}
		return w.call(name, w.use(f.Column), w.int4(int(f.Offset))) + over
	case derived.WindowFirst:
		return w.call("first_value", w.use(f.Column)) + over
	case derived.WindowLast:
		return w.call("last_value", w.use(f.Column)) + over
	case derived.WindowAggregate:
		return w.unitAggregate(f.Aggregate, c, over)
	}
	w.fail("a window function of an unknown kind")
	return "NULL"
}

// overOf writes the window of a function.
func (w *writer) overOf(f derived.WindowColumn, numbered bool) string {
	parts := []string{w.alias + ".u"}
	for _, k := range f.Keys {
		parts = append(parts, w.unitKey(k))
	}
	for _, k := range f.JoinKeys {
		parts = append(parts, w.joinable(w.useKey(k)))
	}
	var order []string
	for _, o := range f.Order {
		n := ""
		if o.Column.Join {
			n = dialect.Fill(w.dialect.Read, w.useKey(o.Column), w.dialect.Type("int8")) // a CSV file's is a text, in which 10 comes before 9
		} else {
			n = w.use(o.Column)
			if f.Frame.Measured() {
				n = w.operand(o.Column, n, o.Column)
			}
		}
		direction, nulls := " ASC", " NULLS LAST"
		if o.Descending {
			direction = " DESC"
		}
		if o.NullsFirst {
			nulls = " NULLS FIRST"
		}
		order = append(order, n+direction+nulls)
	}
	switch {
	case f.TellsApart() && numbered:
		order = append(order, w.alias+".o ASC")
	case f.TellsApart():
		if then, ok := strings.CutPrefix(w.contents(), " ORDER BY "); ok {
			order = append(order, then)
		}
	}
	sql := "PARTITION BY " + strings.Join(parts, ", ")
	if len(order) > 0 {
		sql += " ORDER BY " + strings.Join(order, ", ")
	}
	return " OVER (" + sql + windowFrame(w, f) + ")"
}

// windowFrame writes which rows a function sees; functions that see the partition have none.
func windowFrame(w *writer, f derived.WindowColumn) string {
	if f.Kind != derived.WindowAggregate && f.Kind != derived.WindowFirst && f.Kind != derived.WindowLast {
		return ""
	}
	mode, number := " RANGE", w.whole
	if f.Frame.Rows {
		mode, number = " ROWS", func(n int64) string { return strconv.FormatInt(n, 10) }
	}
	end := func(n int64) string {
		switch {
		case n == derived.FrameFirst:
			return "UNBOUNDED PRECEDING"
		case n == derived.FrameLast:
			return "UNBOUNDED FOLLOWING"
		case n == 0:
			return "CURRENT ROW"
		case n < 0:
			return number(-n) + " PRECEDING"
		}
		return number(n) + " FOLLOWING"
	}
	return mode + " BETWEEN " + end(f.Frame.Start) + " AND " + end(f.Frame.End)
}

// A step of a release that grows counts the rows of a few days (plans.Window). The measure's predicate says so, above
// the rows; what is written here says it again where the rows are read, so that an index on the date finds them. It
// changes no count: rows are numbered by date first, so that a row's number depends on its unit's earlier rows alone.

// windowed returns the conditions under which a row of the table can matter to a window, and a join that they need.
// With the rows numbered these are the rows up to its end, of units that have a row in it, where the unit is in the
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
