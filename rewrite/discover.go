package rewrite

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// discovery writes the query that finds the keys of an open column: each key's text, cut as everywhere else, and the
// number of units that have it. Of a unit's keys, in the order of a hash of the unit and the key, the first count: how
// many is what the policy says of its groups, or of its rows.
func (w *writer) discovery(m *plans.Measure) string {
	v := w.over(m.Table, "b")
	v.open = m.Open
	units := w.call("count", "*") + " AS units"
	if slices.Contains(w.proven, m.Table) {
		return "SELECT b.k, " + units + "\nFROM " + v.base(false, 0) + " AS b\nGROUP BY b.k"
	}
	most := m.Table.MaxRowsPerUnit
	if m.Table.MaxGroups > 0 {
		most = m.Table.MaxGroups
	}
	order := " ORDER BY " + w.hashed([]limb{w.unitLimb("g.u"), w.textLimb("g.k")}) + ", g.k"
	if m.Table.NullEach {
		return "SELECT s.k, " + w.output(w.summed(w.single("s.u", "s.n", w.whole(1)), 0), "units") + "\nFROM (SELECT g.u, g.k, g.n, " +
			w.single("g.u", "1", w.call("row_number")+" OVER (PARTITION BY g.u"+order+")") + " AS d\n  FROM (SELECT b.u, b.k, " + w.call("count", "*") + " AS n\n  FROM " +
			v.base(false, 0) + " AS b\n  GROUP BY b.u, b.k) AS g) AS s\nWHERE s.d <= " + strconv.FormatInt(most, 10) + "\nGROUP BY s.k"
	}
	return "SELECT s.k, " + units + "\nFROM (SELECT g.k, " + w.call("row_number") + " OVER (PARTITION BY g.u" + order + ") AS d\n  FROM (SELECT DISTINCT b.u, b.k\n  FROM " +
		v.base(false, 0) + " AS b) AS g) AS s\nWHERE s.d <= " + strconv.FormatInt(most, 10) + "\nGROUP BY s.k"
}

// fewValues is the number of values of an open column that are compared one by one with each row's; more are looked up.
const fewValues = 16

// lookedUp reports whether the cells of a column are found by a join with its values.
func lookedUp(c *policy.Column) bool {
	return c.Open != nil && len(c.Domain.Values) > fewValues
}

// found is the alias of a column's values.
func (w *columns) found(c *policy.Column) string {
	return "o" + strconv.Itoa(slices.Index(w.table.Columns, c)+1)
}

// foundValues are the values of a column, v, each with its place, i, joined to the rows that have them. No value is
// there twice, so each row stays one row.
func (w *columns) foundValues(c *policy.Column) string {
	values := make([]string, len(c.Domain.Values))
	for i, v := range c.Domain.Values {
		values[i] = w.text(v, "text")
	}
	rows := dialect.Fill(w.dialect.Numbered, strings.Join(values, ", "), w.found(c), strconv.Itoa(len(values)+1))
	return rows + " ON " + w.operate(w.raw(c), "=", w.found(c)+".v")
}

// combination writes the numbers of the cells of several columns as one text.
func (w *columns) combination(c *policy.Column) string {
	text := ""
	for i, part := range c.Product {
		number := w.cast(w.cast(w.cell(part, "("+w.normalised(part)+")"), "int4"), "text")
		if i == 0 {
			text = number
			continue
		}
		text = w.operate(w.operate(text, "||", dialect.Fill(w.dialect.Quoted, ",")), "||", number)
	}
	return text
}
