package pipeline

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestExplainFits: lines of EXPLAIN are so wide at most where they can be broken, and broken SQL is the same
// SQL: nothing is broken within a constant, a name or a comment.
func TestExplainFits(t *testing.T) {
	long := strings.Repeat("reason ", 60)
	constant := "'" + strings.Repeat("it''s a ± ", 20) + "'"
	query := "SELECT " + strings.Repeat("n1 + n2, ", 40) + constant + " AS x\n  FROM \"a b\" -- the owner's own, " +
		strings.Repeat("words ", 30) + "\n WHERE x = 'a\n b' AND " + strings.Repeat("y OR ", 40) + "z"
	e := explanation{
		planNode: planNode{TotalCost: json.Number("0.5"), Rows: 2, Width: 12}, Cost: "ε 0.5",
		Columns: []explainedColumn{
			{Name: "sex"}, {Name: "n", Error: long}, {Name: "m", Error: long}, {Name: "o", Error: "not known"},
		},
		Leaves: []explainedLeaf{{
			Name: "leaf_1", Kind: "count", Table: "public.people", Why: long, Query: query, Errors: []string{"n1: ±3"},
		}},
		Ways: []explainedWay{{Leaf: "leaf_1", Why: long}}, Notes: []string{long},
	}
	for _, sql := range []bool{true, false} {
		lines := e.lines(sql)
		if lines[0] != "Result  (cost=0.00..0.50 rows=2 width=12)" {
			t.Errorf("the first line is %q", lines[0])
		}
		for _, line := range lines {
			whole := strings.Contains(line, constant) || strings.Contains(line, "--")
			if n := utf8.RuneCountInString(line); n > explainColumns && !whole {
				t.Errorf("%d columns: %s", n, line)
			}
		}
		text := strings.Join(lines, "\n")
		if words := strings.Join(strings.Fields(text), " "); !strings.Contains(words, "Error of n, m: reason") ||
			!strings.Contains(words, "Error of o: not known") || sql != strings.Contains(words, "n1: ±3") {
			t.Errorf("errors are not by column:\n%s", text)
		}
		_, shown, _ := strings.Cut(text, "Query: ")
		shown, _, _ = strings.Cut(shown, "\n  Alternatives:")
		same := slices.Equal(strings.Fields(shown), strings.Fields(query))
		if !same || !strings.Contains(shown, constant) {
			t.Errorf("the query is another:\n%s", shown)
		}
		if !strings.Contains(shown, "\n") || strings.Contains(shown, "owner's own, words\n") {
			t.Errorf("broken elsewhere:\n%s", shown)
		}
	}
}
