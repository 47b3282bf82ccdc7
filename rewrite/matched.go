package rewrite

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

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
