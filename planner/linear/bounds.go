package linear

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// What is said of bounds: that at most five rows of each person are counted in visits, or that incomes outside the
// domain count as its nearest end.

// NoteBounds notes which rows were left out before they were counted (privacy rule 22), also where no row need be
// counted: that a unit has two rows holds of none where one is counted.
func (s *Query) NoteBounds(notes *semantics.Notes) {
	if !s.Table.Dataset.Unit.Row {
		s.noteRowsOfUnits(notes)
	}
	for _, t := range boundedIn(s.Table) {
		noteExcluded(t, notes)
	}
}

// noteExcluded notes by which columns the policy leaves rows out of a table (privacy rule 12). Such rows are in no
// count over it, whether a statement reads the column or not.
func noteExcluded(t *policy.Table, notes *semantics.Notes) {
	var where []string
	for _, rule := range []struct {
		is             string
		nulls, outside bool
	}{
		{" is NULL", true, false}, {" is outside its domain", false, true}, {" is NULL or outside its domain", true,
			true},
	} {
		columns := slices.DeleteFunc(slices.Clone(t.Columns), func(c *policy.Column) bool {
			nulls, outside := c.Nulls == policy.NullExclude, c.Outside == policy.OutsideExclude
			return c.Made() || nulls != rule.nulls || outside != rule.outside
		})
		switch len(columns) {
		case 0:
		case 1:
			where = append(where, columns[0].Name+rule.is)
		default:
			where = append(where, "one of "+plans.ColumnNames(columns)+rule.is)
		}
	}
	if len(where) > 0 {
		notes.Add("rows of " + t.Name + " are left out where " + strings.Join(where, ", or "))
	}
}

// allRows says that no bound of a unit's rows leaves any out.
func allRows(t *policy.Table) string {
	return "rows of a " + t.Dataset.Unit.Name + " are counted however many there are"
}

// noteTotals notes which rows of a unit are added up, and that what they come to is clamped.
func noteTotals(l *derived.Laddered, notes *semantics.Notes) {
	unit := l.From.Dataset.Unit.Name
	if derived.SeveralRows(l.From) {
		notes.Add(allRows(l.From))
	}
	for _, t := range boundedIn(l.From) {
		if t.OfUnits() {
			notes.Add("one row of each " + unit + " is counted in " + t.Name)
		} else if t.MaxRowsPerUnit == 1 {
			notes.Add(boundNote(t, false))
		}
	}
	if len(l.Steps) == 1 {
		notes.Add("what a " + unit + " adds in all is clamped to what dp.contribution or max_total_per_unit says: " +
			"± does not cover what is above")
		return
	}
	notes.Add("what a " + unit + " adds in all is clamped: ± covers what is above by SET dp.coverage = 'all' alone")
}

// noteRowsOfUnits notes how many rows of each unit are counted.
func (s *Query) noteRowsOfUnits(notes *semantics.Notes) {
	unit := s.Table.Dataset.Unit
	if l, is := s.Table.Derived.(*derived.Laddered); is {
		noteTotals(l, notes)
		return
	}
	groups := s.Table.BoundsGroups(s.Cells)
	below, leftOut, own := boundedIn(s.Table), false, s.Table
	for from := derived.Widened(own); from != nil; from = derived.Widened(own) { // whose rows are these
		own = from
	}
	bounded := !s.Table.AnyRows && own.Derived != nil
	if rows := s.Table.MaxRowsPerUnit; bounded && rows > 1 && (len(below) > 1 || rows != below[0].MaxRowsPerUnit) {
		notes.Add("at most " + predicate.Text(rows) + " rows of each " + unit.Name + " are counted in " + s.Table.Name)
	}
	for _, t := range below {
		if t.OfUnits() {
			if t == own {
				notes.Add("one row of each " + unit.Name + " is counted in " + t.Name)
			}
			continue
		}
		if t.AnyRows {
			notes.Add(allRows(t))
			continue
		}
		notes.Add(boundNote(t, groups))
		leftOut = true
	}
	if leftOut {
		notes.Add("counts and sums are of the rows that are counted: ± does not cover what is left out")
	}
}

// NoteClamped notes the columns whose values a question depends on that are clamped. It goes by what the statement
// reads, and not by what is left of that once conditions are cells: WHERE minutes > 240 holds in no cell of a domain
// that ends there, and counts rows in plain SQL.
func (q *Question) NoteClamped(notes *semantics.Notes) {
	columns := derived.Deciding(q.Table)
	read := func(list []*semantics.Expr) { columns = valuesRead(q.Table, list, columns) }
	read(q.Where)
	read(q.Keys)
	for _, c := range q.Counters {
		read(c.Where)
		read(c.Values.parts())
		if c.Sum != nil {
			if c.Sum.Expr != nil {
				read([]*semantics.Expr{c.Sum.Expr})
			}
			for _, t := range c.Sum.Terms {
				for _, f := range t.Factors {
					columns = append(columns, f.Column)
				}
			}
		}
		if c.Threshold != nil {
			read(c.Threshold.Where)
		}
	}
	for _, set := range q.Choices {
		if read(set.Where); set.Arg != nil {
			read([]*semantics.Expr{set.Arg})
		}
	}
	noteClamped(q.Table, columns, notes)
}

// NoteClampedIn is NoteClamped for conditions on the rows of a table below a question.
func NoteClampedIn(t *policy.Table, where []*semantics.Expr, notes *semantics.Notes) {
	noteClamped(t, valuesRead(t, where, nil), notes)
}

// valuesRead adds the columns of a table whose values expressions depend on, and those of which they ask whether they
// are NULL, where values outside the domain are.
func valuesRead(t *policy.Table, exprs []*semantics.Expr, columns []*policy.Column) []*policy.Column {
	for _, e := range exprs {
		values := e.ValuesRead()
		for _, at := range e.Cols {
			if c := t.Columns[at]; slices.Contains(values, at) || c.Outside == policy.OutsideOther {
				columns = append(columns, c)
			}
		}
	}
	return columns
}

// noteClamped notes which of some columns of a table, or of those that decide these, are clamped, and of which a policy
// lists a part of the codes.
func noteClamped(t *policy.Table, columns []*policy.Column, notes *semantics.Notes) {
	for i := 0; i < len(columns); i++ {
		c := columns[i]
		if slices.Contains(columns[:i], c) {
			continue
		}
		columns = append(columns, derived.DecidedBy(c)...)
		as := outsideCounts(c)
		if as == "" {
			continue
		}
		name := c.Name
		if t.Derived != nil {
			name = c.Table.Name + "." + name
		}
		notes.Add("values of " + name + " outside its domain count as " + as)
	}
}

// outsideCounts is what values of a column outside its domain count as; "" means nothing need be said of it.
func outsideCounts(c *policy.Column) string {
	switch {
	case c.Input != nil || c.Reading != nil:
	case c.Outside == policy.OutsideClamp:
		return "its nearest end"
	case c.Outside != policy.OutsideOther || c.List == nil || c.List.Where == "": // no public row is left out
	case c.Type.Textual():
		return "'other'"
	default:
		return "NULL"
	}
	return ""
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

// boundNote says how a table's rows are bounded. Noise is then not all that an answer differs from the table by; what
// is left out is a private number, so that no error can be shown for it.
func boundNote(t *policy.Table, groups bool) string {
	unit := t.Dataset.Unit.Name
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
	if t.MaxRowsPerUnit == 1 {
		return "one row of each " + unit + " is counted in " + t.Name + picked
	}
	return "at most " + predicate.Text(t.MaxRowsPerUnit) + " rows of each " + unit + " are counted in " + t.Name + picked
}
