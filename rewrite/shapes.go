package rewrite

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Shape is a kind of question to a table, as `dpproxy check` has a database plan it.
type Shape struct {
	What  string
	Table *policy.Table
	Query Query
}

// Shapes are the kinds of question to the private tables of a dataset of which an engine with several machines may
// count some where the rows lie, and others not. Tables whose units are found through others, or whose rows have a
// rank, have none: they need a proof, of which check says whether there is one.
func Shapes(d *policy.Dataset, in dialect.Dialect) (list []Shape, err error) {
	var tables []*policy.Table
	for _, t := range d.Tables {
		if !t.Public && !t.Analysed() && len(Required(t)) == 0 {
			tables = append(tables, t)
		}
	}
	add := func(what string, t, rows *policy.Table, grain ...*policy.Column) {
		if rows == nil || err != nil {
			return
		}
		m := &plans.Measure{Table: rows, Grain: grain, Counters: []predicate.Pred{nil}, Kind: "count"}
		for i := range grain {
			m.Cuts = append(m.Cuts, twoPieces(grain[i].Domain))
			m.Groups = append(m.Groups, plans.Grouping{Columns: 1, Cells: m.Size(i), Classes: m.Size(i)})
		}
		var q Query
		if q, err = Render(m, in); err == nil {
			list = append(list, Shape{what, t, q})
		}
	}
	for _, t := range tables {
		add("count(*)", t, t)
		if i := slices.IndexFunc(t.Columns, func(c *policy.Column) bool { return c.Domain != nil && c.Open == nil }); i >= 0 {
			add("GROUP BY "+t.Columns[i].Name, t, t, t.Columns[i])
		}
		if d.Unit.Row {
			continue
		}
		if units := derived.NewPerUnit(&derived.PerUnit{From: t, Aggregates: []derived.UnitAggregate{{Kind: derived.UnitCount}}}); units != nil {
			add("a sub-query per "+d.Unit.Name, t, units, units.Columns[0])
		}
		for _, o := range tables {
			if o == t {
				continue
			}
			add("JOIN "+o.Name, t, derived.NewPaired(&derived.Paired{Left: t, Right: o}))
			marked := derived.NewMarked(&derived.Marked{From: t, Other: o})
			add("EXISTS in "+o.Name, t, marked, marked.Columns[len(marked.Columns)-1])
		}
	}
	return list, err
}

// twoPieces cuts a domain of many cells; nil means it is looked at cell by cell.
func twoPieces(d *policy.Domain) []int {
	if !d.Ordered() || d.Regular < 4 {
		return nil
	}
	cuts := []int{0, d.Regular / 2}
	if d.Null >= 0 {
		cuts = append(cuts, d.Null)
	}
	return cuts
}
