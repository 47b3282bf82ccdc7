package aggregate

import (
	"slices"
	"strconv"

	"github.com/dpproxy/dpproxy/planner/discovery"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// A GROUP BY of declared columns whose combinations are too many for one answer is refused, or, where the policy says
// `large_products: threshold`, answered as one by an open column is (docs/adr/0018): the combinations that enough units
// have are found, and shown. The column holds the numbers of the cells.

// combine puts a question's keys into one open column of their combinations, where the statement has been found to need
// too many cells, its keys are bare columns of one table, and these have more combinations than that.
func (g *Grouping) combine() {
	o, t := g.b.Open, g.Rows.Table
	if o == nil || !o.Large || t.Derived != nil || t.Opened || t.Finds() || t.Dataset.Unit.Row || g.Fanned != nil || g.Question.Sets != nil || len(g.Question.Keys) < 2 {
		return
	}
	var columns []*policy.Column
	combinations := 1
	for _, e := range g.Question.Keys {
		if e.Form != semantics.FormColumn || t.Columns[e.Cols[0]].Open != nil || slices.Contains(columns, t.Columns[e.Cols[0]]) {
			return
		}
		c := t.Columns[e.Cols[0]]
		columns = append(columns, c)
		combinations = min(combinations*c.Domain.Size(), 2*plans.MaxCells)
	}
	if combinations <= plans.MaxCells {
		return
	}
	whole := o.Product(t, columns)
	at := len(t.Columns)
	open := whole.Columns[at]
	known := whole
	if f := o.Found[open]; f != nil {
		known = whole.With(map[*policy.Column]policy.Found{open: {Values: g.within(f.Values, columns)}})
	}
	g.Rows.Become(known)
	key := semantics.ColumnExpr(at, policy.Text, -1, g.Question.Keys[0].Pos)
	for i, e := range g.Question.Keys {
		part := discovery.OfCombination{Columns: columns, Which: i, At: at}
		g.Question.Keys[i] = semantics.Node(semantics.FormOther, "of "+open.Name+":"+strconv.Itoa(i), part, e.Pos, key)
	}
	o.Want(known, []int{at})
}

// within leaves out combinations that the condition excludes.
func (g *Grouping) within(values []string, columns []*policy.Column) []string {
	t := g.Rows.Table
	var deciding []*semantics.Expr
	for _, e := range linear.Conjuncts(g.Question.Where) {
		if !slices.ContainsFunc(e.Cols, func(c int) bool {
			return !slices.Contains(columns, t.Columns[c]) || !t.Columns[c].Domain.Single()
		}) {
			deciding = append(deciding, e)
		}
	}
	row := make(scalar.Row, len(t.Columns))
	return slices.DeleteFunc(slices.Clone(values), func(text string) bool {
		for i, c := range columns {
			row[slices.Index(t.Columns, c)] = discovery.Combined(text, columns, i)
		}
		for _, e := range deciding {
			if v, err := e.Eval(row); err == nil && v != true {
				return true
			}
		}
		return false
	})
}
