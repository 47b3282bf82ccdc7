package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// The first rows of each unit, by a number that a window function gives them (windows.go): DISTINCT ON, and WHERE n <=
// 3 over a row_number.

// ranked gives rows what a SELECT says by window functions, and by DISTINCT ON, whose rows are those that are first: of
//
//	SELECT DISTINCT ON (person_id) person_id, ward FROM visits ORDER BY person_id, day
//
// those whose row_number() OVER (PARTITION BY person_id ORDER BY day) is 1. It returns the conditions that are left:
// the others have chosen the rows that the functions see.
func (b *Binder) ranked(r *Rows, sel *pg.SelectStmt, where []*semantics.Expr, calls []*pg.Node) (map[*pg.FuncCall]*semantics.Expr, []*semantics.Expr, *refuse.Refusal) {
	if !IsDistinctOn(sel) {
		values, refusal := b.windowsOf(r, sel, where, calls)
		return values, nil, refusal
	}
	pos := ast.Location(sel.DistinctClause[0])
	var on, order []*pg.Node
	same := func(n *pg.Node) bool {
		return slices.ContainsFunc(on, func(o *pg.Node) bool {
			k, _ := r.KeyNode(o)
			l, _ := r.KeyNode(n)
			return ast.SameTree(o, n) || k != nil && l != nil && r.areEqual(k, l)
		})
	}
	for _, n := range sel.DistinctClause {
		on = append(on, OutputOf(sel, n))
	}
	for i, n := range sel.SortClause {
		s := n.GetSortBy()
		switch by := OutputOf(sel, s.Node); {
		case same(by):
		case i < len(on):
			return nil, nil, distinctOnOrder.At(ast.Location(s.Node))
		default:
			order = append(order, &pg.Node{Node: &pg.Node_SortBy{SortBy: &pg.SortBy{Node: by, SortbyDir: s.SortbyDir, SortbyNulls: s.SortbyNulls}}})
		}
	}
	f := &pg.FuncCall{Funcname: []*pg.Node{pg.MakeStrNode("row_number")}, Location: int32(pos), Over: &pg.WindowDef{PartitionClause: on, OrderClause: order, Location: int32(pos)}}
	values, refusal := b.windowsOf(r, sel, where, append(calls, &pg.Node{Node: &pg.Node_FuncCall{FuncCall: f}}))
	if refusal != nil {
		if refusal.ID == WindowOnRows.ID {
			refusal = limitedRows.At(pos, "DISTINCT ON")
		}
		return nil, nil, refusal
	}
	one := semantics.ConstantExpr(int64(1), policy.Int8, -1)
	s, err := b.Env.Call("=", values[f].Expr, one.Expr)
	if err != nil {
		return nil, nil, semantics.ScalarRefusal(err, pos)
	}
	return values, []*semantics.Expr{semantics.Node(semantics.FormCompare, "=", s, pos, values[f], one)}, nil
}

// OutputOf is the output that an item of ORDER BY or DISTINCT ON names by its place or name; another item is what it
// is.
func OutputOf(sel *pg.SelectStmt, n *pg.Node) *pg.Node {
	if c := n.GetAConst(); c != nil && c.GetIval() != nil {
		if i := int(c.GetIval().Ival); i >= 1 && i <= len(sel.TargetList) {
			return sel.TargetList[i-1].GetResTarget().Val
		}
	}
	if names := ast.Strings(n.GetColumnRef().GetFields()); len(names) == 1 {
		for _, t := range sel.TargetList {
			if target := t.GetResTarget(); ast.Label(target) == names[0] {
				return target.Val
			}
		}
	}
	return n
}

// maxNumbers is how many values of a row_number are looked at to find those that a condition leaves.
const maxNumbers = 1 << 14

// First narrows rows to those that a condition on their row_number within the unit leaves: WHERE n = 1 leaves one row a
// unit, whose noise is then that of one row. Conditions stay where they are, and hold of all that are left.
func (r *Rows) First(where []*semantics.Expr) {
	w, ok := r.Table.Derived.(*derived.Windowed)
	if !ok || w.First > 0 || w.From.MaxRowsPerUnit > maxNumbers {
		return
	}
	least, most, by := int64(1), w.From.MaxRowsPerUnit, -1
	for i, c := range w.Columns {
		if c.Kind != derived.WindowRowNumber || len(c.Keys)+len(c.JoinKeys) > 0 {
			continue
		}
		at := len(w.From.Columns) + i
		if from, to := numbersLeft(where, at, w.From.MaxRowsPerUnit); to-from < most-least {
			least, most, by = from, to, i
		}
	}
	if by < 0 {
		return
	}
	own := *w
	own.By, own.First, own.Last = by, least, most
	if t := derived.NewWindowed(&own); t != nil {
		r.Become(t)
	}
}

// numbersLeft are the least and the largest number of a column for which all conditions on it alone may hold.
func numbersLeft(where []*semantics.Expr, column int, most int64) (from, to int64) {
	var about []*semantics.Expr
	for _, e := range linear.Conjuncts(where) {
		if len(e.Cols) == 1 && e.Cols[0] == column {
			about = append(about, e)
		}
	}
	row := make(scalar.Row, column+1)
	for n := int64(1); n <= most; n++ {
		row[column] = n
		holds := !slices.ContainsFunc(about, func(e *semantics.Expr) bool {
			v, refusal := e.Value(row)
			return refusal == nil && v != true
		})
		if holds && from == 0 {
			from = n
		}
		if holds {
			to = n
		}
	}
	return max(from, 1), max(to, 1)
}
