package bind

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// A sum of several columns that stands below something else is settled: it becomes a column of its own (Computed), so
// that
//
//	CASE WHEN closed_at - opened_at > interval '1 day' THEN 'late' ELSE 'in time' END
//
// reads one column. A comparison is moved over first: l_commitdate < l_receiptdate - 3 is l_commitdate - l_receiptdate
// < -3. What is only added up stays as it is: the database adds it up term by term (linear.go).
//
// That is done only where the columns' cells cannot be looked at together, because there are too many combinations or
// values vary within them: other expressions are functions of cells that releases hold, and are planned as ever.

// Settles gives a translator over the rows a settler. Rows that meet a public list are not the rows' own.
func (b *Binder) Settles(t *semantics.Translator, r *Rows) *semantics.Translator {
	if !r.MeetsList() && !b.AsWritten {
		t.Settler = &semantics.Settler{Rows: r, Env: b.Env}
	}
	return t
}

// Own is the table that the rows are of.
func (r *Rows) Own() *policy.Table { return r.Table }

// Compute gives the rows a computed column.
func (r *Rows) Compute(terms derived.ComputedColumn) (at int, ok bool) {
	if at, ok = derived.ComputedIn(r.Table, terms); ok {
		return at, true
	}
	c := &derived.Computed{From: r.Table}
	if d, ok := r.Table.Derived.(*derived.Computed); ok && !slices.ContainsFunc(terms, func(t derived.ComputedTerm) bool {
		return slices.Index(r.Table.Columns, t.Column) >= len(d.From.Columns)
	}) {
		c = &derived.Computed{From: d.From, Columns: slices.Clone(d.Columns)}
		own := slices.Clone(terms)
		for i, t := range own {
			own[i].Column = d.From.Columns[slices.Index(r.Table.Columns, t.Column)]
		}
		terms = own
	}
	c.Columns = append(c.Columns, terms)
	t := derived.NewComputed(c)
	if t == nil {
		return 0, false
	}
	r.Become(t)
	return len(t.Columns) - 1, true
}
