package parse

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
)

// Bound is a call of dp.low or dp.high as a column of a SELECT:
//
//	SELECT sex, avg(income), dp.low(avg(income)), dp.high(avg(income)) FROM people GROUP BY sex
//
// To the plan it is its argument, which costs nothing besides; once the SELECT is answered, an end of the argument's
// interval stands in its place (docs/adr/0084).
type Bound struct {
	Column int // of the answer, from 0
	High   bool
}

// boundCall tells dp.low and dp.high.
func boundCall(f *pg.FuncCall) (high, ok bool) {
	names := ast.Strings(f.GetFuncname())
	if len(names) != 2 || names[0] != "dp" || names[1] != "low" && names[1] != "high" {
		return false, false
	}
	return names[1] == "high", true
}

// takeBounds puts the arguments in the place of the calls. A call stays, and is refused, wherever it is no column of
// its own, or where the rows or their order would be made by the argument: below DISTINCT, beside *, and as what ORDER
// BY or GROUP BY names.
func (s *Statement) takeBounds(q *pg.SelectStmt) {
	if q.Op != pg.SetOperation_SETOP_NONE || len(q.DistinctClause) > 0 || slices.ContainsFunc(q.TargetList, func(item *pg.Node) bool { return ast.IsStar(item.GetResTarget().GetVal()) }) {
		return
	}
	for column, item := range q.TargetList {
		target := item.GetResTarget()
		f := target.GetVal().GetFuncCall()
		high, ok := boundCall(f)
		if !ok || len(f.Args) != 1 || !ast.IsPlainCall(f) || namedBy(q.SortClause, target, column) || namedBy(q.GroupClause, target, column) {
			continue
		}
		s.Bounds = append(s.Bounds, Bound{column, high})
		target.Name = ast.Label(target)
		target.Val = f.Args[0]
	}
}

// namedBy reports whether a clause names an output column, by its place or its name.
func namedBy(clause []*pg.Node, target *pg.ResTarget, column int) bool {
	return slices.ContainsFunc(clause, func(n *pg.Node) bool {
		if sort := n.GetSortBy(); sort != nil {
			n = sort.Node
		}
		fields := n.GetColumnRef().GetFields()
		return n.GetAConst().GetIval() != nil && int(n.GetAConst().GetIval().Ival) == column+1 ||
			len(fields) == 1 && fields[0].GetString_().GetSval() == ast.Label(target)
	})
}
