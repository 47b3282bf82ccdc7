// Package figures is how a benchmark hands on what it measured: as lines of text that a reader understands and that
// `make bench` fills docs/benchmarks.md from. Go's own benchmarks need nothing: their lines are read as they are. Only
// tests import this package.
package figures

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Every line begins with one of these; `go test` may have put something of its own before it.
const (
	row  = "figure\t"
	text = "figures|"
)

// Row prints one row of a table: its name, and names of columns, each followed by what is there. Rows of one table
// that have the same name are one row, so that what is measured at different moments may be side by side:
// `Row("fresh", "count(*)", "ours", "12 ms")`.
func Row(table, name string, cells ...string) {
	fmt.Fprintf(os.Stdout, "\n%s%s\t%s\t%s\n", row, table, name, strings.Join(cells, "\t"))
}

// Text prints a table that is laid out already.
func Text(lines string) {
	fmt.Fprintln(os.Stdout)
	for line := range strings.SplitSeq(strings.Trim(lines, "\n"), "\n") {
		fmt.Fprintln(os.Stdout, text+line)
	}
}

// A Table is what was read of one: Text, or rows.
type Table struct {
	Name    string
	Text    []string
	Columns []string
	Rows    []Line
}

// A Line is a row: what is in each column.
type Line struct {
	Name  string
	Cells map[string]string
}

// goBenchmark is a line of `go test -bench`: name, processors, runs, and pairs of a figure and its unit.
var goBenchmark = regexp.MustCompile(`(?m)^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+((?:[-+.\deE]+ \S+\s*)+)$`)

// laid is the name of a table of text, and measured that of Go's own benchmarks.
const (
	laid     = "text"
	measured = "go"
)

// Read finds the figures in what tests have printed, in order.
func Read(from io.Reader) ([]*Table, error) {
	all, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	var tables []*Table
	of := func(name string) *Table {
		since := 0
		if name == laid { // text goes on only where nothing is between
			since = max(0, len(tables)-1)
		}
		i := slices.IndexFunc(tables[since:], func(t *Table) bool { return t.Name == name })
		if i < 0 {
			i, tables = len(tables)-since, append(tables, &Table{Name: name})
		}
		return tables[since+i]
	}
	benchmark := ""
	for line := range strings.SplitSeq(string(all), "\n") {
		if _, rest, ok := strings.Cut(line, row); ok {
			f := strings.Split(rest, "\t")
			if len(f) < 4 || len(f)%2 != 0 {
				return nil, fmt.Errorf("figures: %q has %d fields, must have a table, a name, and pairs", line, len(f))
			}
			for i := 2; i < len(f); i += 2 {
				of(f[0]).put(f[1], f[i], f[i+1])
			}
			continue
		}
		if _, rest, ok := strings.Cut(line, text); ok {
			t := of(laid)
			t.Text = append(t.Text, strings.TrimRight(rest, " "))
			continue
		}
		// What a benchmark prints itself is between its name and its figures.
		if strings.HasPrefix(line, "Benchmark") && len(strings.Fields(line)) == 1 {
			benchmark = strings.Fields(line)[0]
			continue
		}
		for _, whole := range []string{line, benchmark + " " + line} {
			if m := goBenchmark.FindStringSubmatch(strings.TrimRight(whole, " \t")); m != nil {
				f := strings.Fields(m[2])
				for i := 0; i+1 < len(f); i += 2 {
					of(measured).put("`"+m[1]+"`", "measured", readable(f[i], f[i+1]))
				}
				break
			}
		}
	}
	return tables, nil
}

// put adds a cell. What is measured again follows what was.
func (t *Table) put(name, column, value string) {
	if !slices.Contains(t.Columns, column) {
		t.Columns = append(t.Columns, column)
	}
	i := slices.IndexFunc(t.Rows, func(l Line) bool { return l.Name == name })
	if i < 0 {
		i = len(t.Rows)
		t.Rows = append(t.Rows, Line{name, map[string]string{}})
	}
	if was := t.Rows[i].Cells[column]; was != "" {
		value = was + "; " + value
	}
	t.Rows[i].Cells[column] = value
}

// readable is a figure of Go's benchmarks in at most four digits, times of operations in a unit that fits: "147123
// ns/op" is 147 µs/op.
func readable(value, unit string) string {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return value + " " + unit
	}
	if per, ok := strings.CutPrefix(unit, "ns/"); ok {
		for _, u := range []struct {
			above float64
			name  string
		}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
			if v >= u.above {
				return Number(v/u.above) + " " + u.name + "/" + per
			}
		}
	}
	return Number(v) + " " + unit
}

// Number is a figure as documents write it: three digits that count, and thousands parted.
func Number(v float64) string {
	digits := 0
	for edge := 100.0; edge > v && edge > 1e-3 && v > 0; edge /= 10 {
		digits++
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	whole, rest, dot := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dot {
		return whole + "." + rest
	}
	return whole
}

// Markdown writes tables as a document shows them.
func Markdown(tables []*Table) string {
	var b strings.Builder
	for i, t := range tables {
		if i > 0 {
			b.WriteByte('\n')
		}
		if len(t.Text) > 0 {
			b.WriteString("```\n" + strings.Join(t.Text, "\n") + "\n```\n")
			continue
		}
		name := t.Name
		if name == measured {
			name = "benchmark"
		}
		fmt.Fprintf(&b, "| %s |", name)
		for _, c := range t.Columns {
			fmt.Fprintf(&b, " %s |", c)
		}
		b.WriteString("\n|" + strings.Repeat(" --- |", 1+len(t.Columns)) + "\n")
		for _, l := range t.Rows {
			fmt.Fprintf(&b, "| %s |", strings.ReplaceAll(l.Name, "|", `\|`))
			for _, c := range t.Columns {
				fmt.Fprintf(&b, " %s |", l.Cells[c])
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
