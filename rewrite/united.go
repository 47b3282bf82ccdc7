package rewrite

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// united writes the rows of all branches one below the other, each with its unit. Each value has the type of the
// union's column, so that the engine resolves none: NULL is that of a CASE without an arm.
func (w *writer) united(d *derived.United) string {
	var parts []string
	for _, branch := range d.Branches {
		a := w.sub(branch.From, "a")
		if len(branch.Values) != len(w.table.Columns) || len(branch.Keys) != len(w.table.Keys) {
			w.fail("a branch of other columns than its union's")
			return "()"
		}
		value := func(i int) string { return a.unitedValue(branch.Values[i], w.table.Columns[i]) }
		items := w.items(a, value, func(i int) string { return a.useKey(branch.Keys[i]) })
		conditions := a.conditions(branch.Where)
		parts = append(parts, "SELECT "+strings.Join(items, ", ")+"\n  FROM "+a.input()+where("  ", conditions))
	}
	rows := "(" + strings.Join(parts, "\n  UNION ALL\n  ") + ")"
	if d.Full && w.dialect.ManyMoments {
		return w.boundedAgain(rows)
	}
	return rows
}

// boundedAgain writes the rows of a table of which no more of a unit are kept than its bound says, in the order of what
// is used of them. A FULL JOIN's bound counts on both of its branches reading the same rows (derived.Paired, fullRows):
// L·R pairs of the one, in a moment in which all have partners, and R rows of the other, in one in which none has,
// would be more. Rows that tie are the same to whoever reads them. Where both branches read the same rows it leaves out
// nothing.
func (w *writer) boundedAgain(rows string) string {
	v := "v" + strconv.Itoa(w.depth)
	items, order := v+".u", []string{}
	for i, c := range w.table.Columns {
		if slices.Contains(w.used, c) {
			n := v + ".n" + strconv.Itoa(i+1)
			items, order = items+", "+n, append(order, n+" ASC NULLS LAST")
		}
	}
	for i, k := range w.table.Keys {
		if slices.Contains(w.usedKeys, k) {
			j := v + ".j" + strconv.Itoa(i+1)
			items, order = items+", "+j, append(order, w.inBytes(k, j)+" ASC NULLS LAST")
		}
	}
	window := "PARTITION BY " + v + ".u"
	if len(order) > 0 {
		window += " ORDER BY " + strings.Join(order, ", ")
	}
	number := w.call("row_number") + " OVER (" + window + ")"
	if derived.NullableUnit(w.table) { // such rows are units of their own
		number = "CASE WHEN " + v + ".u IS NULL THEN 1 ELSE " + number + " END"
	}
	w.numberings++
	return "(SELECT * FROM (SELECT " + items + ", " + number + " AS r\n  FROM " + rows + " AS " + v + ") AS " + v + " WHERE " + v + ".r <= " + strconv.FormatInt(w.table.MaxRowsPerUnit, 10) + ")"
}

// unitedValue is a branch's value in the union's column c.
func (w *writer) unitedValue(v derived.UnitedValue, c *policy.Column) string {
	d := c.Domain
	if !d.Ordered() {
		return w.unitedCell(v, d)
	}
	constant := v.Constant
	if n, ok := constant.(int64); ok && c.Type == policy.NumericType {
		constant = policy.NewNumeric(n, 0)
	}
	switch decimal := c.Type == policy.NumericType; {
	case v.Column == nil && constant == nil && decimal:
		return "CASE WHEN false THEN " + w.decimals(c).settled(w.decimals(c).constant(d.Min.(policy.Numeric))) + " END"
	case v.Column == nil && constant == nil:
		return "CASE WHEN false THEN " + w.constant(c, d.Min) + " END"
	case v.Column == nil && decimal:
		return w.decimals(c).settled(w.constant(c, constant))
	case v.Column == nil:
		return w.constant(c, constant)
	case decimal:
		return w.decimals(c).settled(w.decimals(c).operand(v.Column, w.use(v.Column)))
	}
	return w.use(v.Column)
}

// unitedCell is the number of the union's cell that a branch's is.
func (w *writer) unitedCell(v derived.UnitedValue, d *policy.Domain) string {
	if v.Column == nil {
		if cell := v.CellIn(d, 0); cell >= 0 {
			return w.whole(int64(cell))
		}
		return "CASE WHEN false THEN " + w.whole(0) + " END"
	}
	n, same, arms := w.use(v.Column), true, ""
	if w.err != nil {
		return "NULL"
	}
	for cell := range v.Column.Domain.Size() {
		to := v.CellIn(d, cell)
		same = same && (to == cell || to < 0 && cell == v.Column.Domain.Null)
		if to >= 0 {
			arms += " WHEN " + w.operate(n, "=", strconv.Itoa(cell)) + " THEN " + strconv.Itoa(to)
		}
	}
	if same {
		return w.cast(n, "int8")
	}
	return w.cast("CASE"+arms+" END", "int8")
}

// onlyMatched tells a table of the policy, and one whose rows are that one's with public rows or with computed columns:
// such may be of rows that are units.
func onlyMatched(t *policy.Table) bool {
	for t.Derived != nil {
		if from := derived.Widened(t); from != nil {
			t = from
		} else if d, ok := t.Derived.(*derived.Matched); ok {
			t = d.From
		} else {
			return false
		}
	}
	return true
}

// matched writes a row once for each public row that it matches. The public rows are numbers: which they are is known
// to the planner alone.
func (w *writer) matched(m *derived.Matched) string {
	a := w.sub(m.From, "a")
	alias := "m" + strconv.Itoa(w.depth)
	items := w.passed(a, len(m.From.Columns))
	for i, c := range w.table.Columns[len(m.From.Columns):] {
		if !slices.Contains(w.used, c) {
			continue
		}
		value := alias + ".j"
		if i > 0 {
			value = "1" // the row is one of From
		}
		items = append(items, value+" AS n"+strconv.Itoa(len(m.From.Columns)+i+1))
	}
	number := a.cellsTogether(m.Args)
	var combinations, rows []string
	for _, match := range m.Matches {
		combinations, rows = append(combinations, strconv.Itoa(int(match.Combination))), append(rows, strconv.Itoa(int(match.Row)))
	}
	pairs := w.parallel(alias, []string{"c", "j"}, combinations, rows)
	join := "JOIN "
	if m.Outer {
		join = "LEFT JOIN "
	}
	return "(SELECT " + w.named(items) + "\n  FROM " + a.input() + "\n  " + join + pairs + "\n    ON " + w.operate(number, "=", alias+".c") + ")"
}

// parallel is a table of lists of whole numbers, a column each.
func (w *composed) parallel(alias string, names []string, lists ...[]string) string {
	columns := make([]string, len(lists))
	for i, list := range lists {
		columns[i] = dialect.Fill(w.dialect.InParallel, w.integers(list), names[i], strings.Join(list, ","))
	}
	return dialect.Fill(w.dialect.Parallel, alias, strings.Join(columns, ", "), strings.Join(names, ", "))
}

// cellsTogether is the number of the cells of some columns together, the first column's slowest.
func (w *writer) cellsTogether(columns []*policy.Column) string {
	number := w.int4(0)
	for i, c := range columns {
		number = w.nextDigit(i, number, c.Domain.Size(), w.cell(c, w.use(c)))
	}
	return number
}

// nextDigit is a number of several cells with one more of them, of so many.
func (w cells) nextDigit(i int, number string, size int, cell string) string {
	if cell = w.cast(cell, "int4"); i == 0 {
		return cell
	}
	return w.operate(w.operate(number, "*", w.int4(size)), "+", cell)
}

// named are the items of a table's rows: where a row is the unit, they name none.
func (w *columns) named(items []string) string {
	if w.table.Dataset.Unit.Row {
		if items = items[1:]; len(items) == 0 {
			return "1 AS one"
		}
	}
	return strings.Join(items, ", ")
}

// integers is a list of small numbers.
func (w *composed) integers(list []string) string {
	return dialect.Fill(w.dialect.Integers, strings.Join(list, w.dialect.Comma))
}
