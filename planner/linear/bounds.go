package linear

import (
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// What is said of bounds: that at most five rows of each person are counted in visits, or that incomes outside the domain count as its nearest
// end.

// NoteRules notes how rows and values were bounded before they were counted (privacy rule 22).
func (s *Query) NoteRules(notes *semantics.Notes) {
	if unit := s.Table.Dataset.Unit; !unit.Row {
		groups := s.Table.BoundsGroups(s.Cells)
		below, leftOut, own := boundedIn(s.Table), false, s.Table
		for from := derived.Widened(own); from != nil; from = derived.Widened(own) { // whose rows are these
			own = from
		}
		switch rows := s.Table.MaxRowsPerUnit; {
		case own.Derived == nil || len(below) == 1 && rows == below[0].MaxRowsPerUnit: // said below
		case rows == 1:
			notes.Add("one row of each " + unit.Name + " is counted in " + s.Table.Name)
		default:
			notes.Add("at most " + predicate.Text(rows) + " rows of each " + unit.Name + " are counted in " + s.Table.Name)
		}
		for _, t := range below {
			if t == own || t.MaxRowsPerUnit > 1 {
				notes.Add(boundNote(t, groups))
			}
			leftOut = leftOut || t.MaxRowsPerUnit > 1 || groups
		}
		if leftOut {
			notes.Add("counts and sums are of the rows that are counted: ± does not cover what is left out")
		}
	}
	columns, _ := s.Columns()
	for at := 0; at < len(columns); at++ { // those that are added up too
		columns = append(columns, derived.OperandsOf(columns[at])...)
	}
	for _, c := range columns {
		if c.Outside == policy.OutsideClamp && c.Reading == nil {
			notes.Add("values of " + c.Name + " outside its domain count as its nearest end")
		}
	}
}

// boundedIn lists the tables of the policy whose rows are bounded on the way to t's, once for each place.
func boundedIn(t *policy.Table) (list []*policy.Table) {
	if t.Derived == nil {
		return []*policy.Table{t}
	}
	for _, in := range t.Derived.Inputs() {
		list = append(list, boundedIn(in)...)
	}
	return list
}

// boundNote says how a table's rows are bounded. Noise is then not all that an answer differs from the table by; what is left
// out is a private number, so that no error can be shown for it.
func boundNote(t *policy.Table, groups bool) string {
	unit := t.Dataset.Unit.Name
	if t.MaxRowsPerUnit == 1 && !groups {
		return "one row of each " + unit + " is counted in " + t.Name
	}
	picked := ", picked by a hash where there are more"
	switch {
	case t.Appends != nil:
		picked = ", the first by " + t.Appends.Column.Name + " where there are more"
	case t.RowRank != "": // which says when a row came, rather than what a hash makes of it
		picked = ", the first by " + t.RowRank + " where there are more"
	}
	if groups {
		return "at most " + predicate.Text(t.MaxGroups) + " groups of each " + unit + " are counted in " + t.Name + ", and " + predicate.Text(t.MaxPerGroup) + " rows in each" + picked
	}
	return "at most " + predicate.Text(t.MaxRowsPerUnit) + " rows of each " + unit + " are counted in " + t.Name + picked
}
