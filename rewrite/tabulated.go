package rewrite

import (
	"slices"
	"strconv"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
)

// tabulated writes the rows of its input with what the list says of the combination of cells that each has. Where
// nothing of the list is used the rows are the input's. Nothing can fail: a cell's number is below its domain's size,
// and the product of these is an int4.
func (w *writer) tabulated(d *derived.Tabulated) string {
	a := w.sub(d.From, "a")
	items := w.passed(a, len(d.From.Columns))
	alias := "m" + strconv.Itoa(w.depth)
	numbers := make([]string, len(d.Combinations))
	for i, at := range d.Combinations {
		numbers[i] = strconv.Itoa(int(at))
	}
	names, lists := []string{"c"}, [][]string{numbers}
	for i, c := range d.Columns {
		at := len(d.From.Columns) + i
		if at >= len(w.table.Columns) {
			w.fail("a listed column that the table does not have")
			return "()"
		}
		if !slices.Contains(w.used, w.table.Columns[at]) {
			continue
		}
		said := make([]string, len(numbers))
		for k := range said {
			if said[k] = "NULL"; c.At(k) != nil {
				said[k] = strconv.Itoa(int(c.Values[k]))
			}
		}
		name := "v" + strconv.Itoa(i+1)
		names, lists = append(names, name), append(lists, said)
		value := alias + "." + name
		if c.Type == policy.DateType {
			value = w.operate(w.constant(w.table.Columns[at], policy.Date(0)), "+", value)
		} else {
			value = w.cast(value, "int8")
		}
		items = append(items, value+" AS n"+strconv.Itoa(at+1))
	}
	if len(lists) == 1 {
		return "(SELECT " + w.named(items) + "\n  FROM " + a.input() + ")"
	}
	on := w.operate(a.cellsTogether(d.Args), "=", alias+".c")
	return "(SELECT " + w.named(items) + "\n  FROM " + a.input() + "\n  LEFT JOIN " + w.parallel(alias, names, lists...) + "\n    ON " + on + ")"
}
