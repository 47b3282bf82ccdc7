package rewrite

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// onlyMatched tells a table of the policy, and one whose rows are that one's with public rows or with computed columns: such
// may be of rows that are units.
func onlyMatched(t *policy.Table) bool {
	for t.Derived != nil {
		switch d := t.Derived.(type) {
		case *derived.Matched:
			t = d.From
		case *derived.Computed:
			t = d.From
		default:
			return false
		}
	}
	return true
}

// matched writes a row once for each public row that it matches. The public rows are numbers: which they are is known to the
// planner alone.
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
	if w.table.Dataset.Unit.Row { // whose rows name no unit
		if items = items[1:]; len(items) == 0 {
			items = []string{"1 AS one"}
		}
	}
	number := w.literal("0", "int4")
	for i, c := range m.Args {
		cell := w.cast(a.cell(c, a.use(c)), "int4")
		if i == 0 {
			number = cell
			continue
		}
		number = w.operate(w.operate(number, "*", w.literal(strconv.Itoa(c.Domain.Size()), "int4")), "+", cell)
	}
	var combinations, rows []string
	for _, match := range m.Matches {
		combinations, rows = append(combinations, strconv.Itoa(int(match.Combination))), append(rows, strconv.Itoa(int(match.Row)))
	}
	pairs := "(SELECT " + w.call("unnest", w.integers(combinations)) + " AS c, " + w.call("unnest", w.integers(rows)) + " AS j) AS " + alias
	join := "JOIN "
	if m.Outer {
		join = "LEFT JOIN "
	}
	return "(SELECT " + strings.Join(items, ", ") + "\n  FROM " + a.input() + "\n  " + join + pairs + "\n    ON " + w.operate(number, "=", alias+".c") + ")"
}

// integers is a list of small numbers.
func (w *writer) integers(list []string) string {
	return dialect.Fill(w.dialect.Integers, strings.Join(list, w.dialect.Comma))
}
