package rewrite

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
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
