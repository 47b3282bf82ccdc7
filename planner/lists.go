package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/policy"
)

// CheckSQL checks the SQL in a policy: the SELECTs that are in the place of sources, and the conditions of domains that
// are keys of public tables. Its error is policy.Problems.
func CheckSQL(p *policy.Policy) error {
	problems := viewProblems(p)
	for _, l := range p.Lists() {
		if _, err := ListValues(l, nil); err != nil {
			problems = append(problems, policy.Problem{Path: p.Path, Line: l.Line, Column: l.At, Text: err.Error()})
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return problems
}

// ListValues returns the values of a list, each once, in the order of the rows of its public table, of which each has a
// value for each column: the keys that are not NULL of the rows for which the condition is true.
func ListValues(l *policy.List, rows [][]policy.Value) (values []string, err error) {
	holds, refusal := bind.PublicCondition(l.Of, l.Where)
	key, seen := slices.Index(l.Of.Columns, l.Key), map[string]bool{}
	for at := 0; refusal == nil && at < len(rows); at++ {
		row, ok := rows[at], false
		if row[key] == nil {
			continue
		}
		if ok, refusal = holds(row); !ok {
			continue
		}
		text := policy.FormatValue(l.Key.Type, row[key])
		if l.Key.Blanks > 0 { // which are no part of a char
			text = strings.TrimRight(text, " ")
		}
		if !seen[text] {
			seen[text], values = true, append(values, text)
		}
	}
	if refusal != nil {
		return nil, fmt.Errorf("column %s of table %s: where: %w", l.Column.Name, l.Column.Table.Name, refusal)
	}
	return values, nil
}
