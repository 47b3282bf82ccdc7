package pipeline

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/sandbox"
)

// The numbers of an answer's columns: SELECT sex, count(*) FROM people GROUP BY sex tells a client that the first one is the column of
// pg_attribute that has people's attrelid and sex's attnum, and that the second is of no table.

// numbersOf are the numbers of so many columns; the zero ones where not all of the statement's columns are known by their names. Columns
// of errors stand between them.
func (o *outside) numbersOf(s *Session, outputs []plans.Output, columns int, name func(i int) string) []pgcatalog.Number {
	numbers := make([]pgcatalog.Number, columns)
	between := len(outputs) < columns
	if o.engine == nil || len(outputs) > columns || between && !s.Settings.Settings.ErrorColumns {
		return numbers
	}
	known := o.engine.Numbers(s.Database)
	for i := range numbers {
		if len(outputs) > 0 && (!between || name(i) == outputs[0].Name) {
			numbers[i], outputs = known[outputs[0].Of], outputs[1:]
		}
	}
	return numbers
}

// described are described columns with their numbers.
func (o *outside) described(s *Session, outputs []plans.Output, columns []plans.OutColumn) []plans.OutColumn {
	columns = slices.Clone(columns)
	for i, n := range o.numbersOf(s, outputs, len(columns), func(i int) string { return columns[i].Name }) {
		columns[i].Number = n
	}
	return columns
}

// numbered are an answer's columns with their numbers.
func (o *outside) numbered(s *Session, outputs []plans.Output, columns []sandbox.Column) []sandbox.Column {
	columns = slices.Clone(columns)
	for i, n := range o.numbersOf(s, outputs, len(columns), func(i int) string { return columns[i].Name }) {
		columns[i].Number = n
	}
	return columns
}
