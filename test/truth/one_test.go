package truth

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestOne asks the statements of the file that DPPROXY_TRUTH_ONE names, one a line, of the chosen schemas: for looking
// at a fault by hand. Of the engine that DPPROXY_TRUTH_UNBOUNDED names it asks what TestTotals does.
func TestOne(t *testing.T) {
	file := os.Getenv("DPPROXY_TRUTH_ONE")
	if file == "" {
		t.Skip("DPPROXY_TRUTH_ONE names no file of statements")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	list := []*pair{}
	if engine := os.Getenv("DPPROXY_TRUTH_UNBOUNDED"); engine != "" {
		list = append(list, unbounded(t, engine))
	} else {
		list = pairs(t)
	}
	for _, p := range list {
		for _, sql := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			p.fresh()
			begin := time.Now()
			got, want := p.ask(sql), p.plain.ask(strings.ReplaceAll(sql, "public.", ""))
			verdict := "DIFFERS"
			if slices.EqualFunc(sortedRows(got), sortedRows(want), slices.Equal[[]string]) && (got.err == nil) == (want.err == nil) {
				verdict = "the same"
			} else if got.err == nil && want.err == nil && slices.EqualFunc(loosely(got), loosely(want), slices.Equal[[]string]) {
				verdict = "the same but for blanks and last digits"
			} else if got.err != nil && strings.HasPrefix(got.err.Code, "DP") {
				verdict = "refused"
			}
			t.Logf("%s/%s: %s: %s  (%v)\n  dpproxy:    %v\n  PostgreSQL: %v\n  notes: %q", p.schema.name, p.engine, verdict, sql, time.Since(begin), text30(got), text30(want), got.said)
		}
	}
}

// sortedRows are the rows of an answer in an order of their own.
func sortedRows(a answer) [][]string {
	rows := slices.Clone(a.rows)
	slices.SortFunc(rows, slices.Compare[[]string])
	return rows
}

// loosely are sortedRows without the blanks at a text's end, and of numbers with decimals the first nine digits.
func loosely(a answer) [][]string {
	rows := slices.Clone(a.rows)
	for i, row := range rows {
		rows[i] = slices.Clone(row)
		for j, v := range row {
			rows[i][j] = strings.TrimRight(v, " ")
			if x, err := strconv.ParseFloat(v, 64); err == nil && strings.ContainsAny(v, ".e") {
				rows[i][j] = strconv.FormatFloat(x+0, 'g', 9, 64)
			}
		}
	}
	return sortedRows(answer{rows: rows})
}

func text30(a answer) string {
	if a.err != nil {
		return a.err.Code + " " + a.err.Message + " HINT " + a.err.Hint
	}
	var list []string
	for i, row := range a.rows {
		if i < 30 {
			list = append(list, show(row))
		}
	}
	return strings.Join(list, " ")
}
