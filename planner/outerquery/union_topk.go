package outerquery

import (
	"math/big"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// SELECT x.name FROM (SELECT 'apple' AS name, count(*) AS n FROM t WHERE apple UNION ALL …) x ORDER BY n DESC LIMIT 1
// asks which of several counts of the same rows is the largest, and for no count. It is read as a list of names and
// conditions that the rows meet, whose first names are shown.

// branch is one SELECT of the UNION ALL.
type branch struct {
	sel   *pg.SelectStmt
	met   []*pg.Node // a conjunction: which rows are counted
	names []*pg.Node // the constants, by column; nil in the count's place
}

// topOfUnion rewrites such a statement; any other is returned as it is. Trees of the statement are shared, never
// changed.
func topOfUnion(b *aggregate.Binder, sel *pg.SelectStmt) *pg.SelectStmt {
	union, alias, columns := branchesOf(sel)
	if union == nil || len(sel.SortClause) != 1 || sel.LimitCount == nil || sel.LimitOffset != nil || sel.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES ||
		len(sel.DistinctClause) > 0 || bind.IsGrouped(sel) || sel.WhereClause != nil || len(sel.WindowClause) > 0 {
		return sel
	}
	branches, count := readAll(union, nil)
	if len(branches) < 2 {
		return sel
	}
	names := make([]string, len(branches[0].sel.TargetList))
	for i, n := range branches[0].sel.TargetList {
		if names[i] = ast.Label(n.GetResTarget()); i < len(columns) {
			names[i] = columns[i]
		}
	}
	by := sel.SortClause[0].GetSortBy()
	if by.SortbyDir != pg.SortByDir_SORTBY_DESC || by.SortbyNulls == pg.SortByNulls_SORTBY_NULLS_FIRST || !refersTo(by.Node, names[count]) ||
		slices.Index(names, names[count]) != count || slices.ContainsFunc(sel.TargetList, func(n *pg.Node) bool { return readsColumn(n, names[count]) }) {
		return sel
	}
	quiet := *b
	if from, refusal := quiet.FromRows(branches[0].sel, nil); from == nil || refusal != nil {
		return sel
	}
	inner := topKOf(branches, names, count, sel.LimitCount)
	b.Top = inner
	return &pg.SelectStmt{TargetList: sel.TargetList, LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, FromClause: []*pg.Node{
		{Node: &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{Subquery: ast.Select(inner), Alias: &pg.Alias{Aliasname: alias}}}}}}
}

// branchesOf finds the UNION ALL that a SELECT reads: a sub-query, or its only WITH query.
func branchesOf(sel *pg.SelectStmt) (union *pg.SelectStmt, alias string, columns []string) {
	if len(sel.FromClause) != 1 || sel.Larg != nil {
		return nil, "", nil
	}
	if sub := sel.FromClause[0].GetRangeSubselect(); sub != nil && sub.Alias != nil && sel.WithClause == nil {
		return bind.UnionAll(sub.Subquery.GetSelectStmt()), sub.Alias.Aliasname, ast.Strings(sub.Alias.Colnames)
	}
	v, w := sel.FromClause[0].GetRangeVar(), sel.WithClause
	if v == nil || w == nil || w.Recursive || len(w.Ctes) != 1 || v.Schemaname != "" || w.Ctes[0].GetCommonTableExpr().Ctename != v.Relname || len(v.Alias.GetColnames()) > 0 {
		return nil, "", nil
	}
	c := w.Ctes[0].GetCommonTableExpr()
	if alias = v.Relname; v.Alias != nil {
		alias = v.Alias.Aliasname
	}
	return bind.UnionAll(c.Ctequery.GetSelectStmt()), alias, ast.Strings(c.Aliascolnames)
}

// readAll reads the branches of a UNION ALL: counts of the same FROM, in the same column; nil where some is none.
func readAll(sel *pg.SelectStmt, branches []*branch) ([]*branch, int) {
	if union := bind.UnionAll(sel); union != nil {
		branches, at := readAll(union.Larg, branches)
		if branches == nil {
			return nil, 0
		}
		if branches, after := readAll(union.Rarg, branches); after == at {
			return branches, at
		}
		return nil, 0
	}
	a, at := readBranch(sel)
	if a == nil || len(branches) > 0 && (!slices.EqualFunc(branches[0].sel.FromClause, sel.FromClause, ast.SameTree) || len(a.names) != len(branches[0].names)) {
		return nil, 0
	}
	return append(branches, a), at
}

// readBranch reads SELECT constants, count FROM … WHERE …
func readBranch(sel *pg.SelectStmt) (a *branch, count int) {
	if sel.Op != pg.SetOperation_SETOP_NONE || len(sel.ValuesLists) > 0 || len(sel.GroupClause) > 0 || sel.HavingClause != nil || len(sel.DistinctClause) > 0 ||
		len(sel.SortClause) > 0 || sel.LimitCount != nil || sel.LimitOffset != nil || sel.WithClause != nil || len(sel.FromClause) == 0 || ast.Holds(sel.WhereClause, ast.IsSubLink) {
		return nil, 0
	}
	a, count = &branch{sel: sel, names: make([]*pg.Node, len(sel.TargetList))}, -1
	if sel.WhereClause != nil {
		a.met = append(a.met, sel.WhereClause)
	}
	for i, n := range sel.TargetList {
		val := n.GetResTarget().Val
		if f := val.GetFuncCall(); f != nil && ast.IsAggregate(f) {
			name, refusal := ast.FunctionName(f)
			if count >= 0 || refusal != nil || name != "count" || f.AggDistinct || f.Over != nil || !f.AggStar && len(f.Args) != 1 || ast.Holds(val, ast.IsSubLink) {
				return nil, 0
			}
			if count = i; f.AggFilter != nil {
				a.met = append(a.met, f.AggFilter)
			}
			if !f.AggStar {
				a.met = append(a.met, &pg.Node{Node: &pg.Node_NullTest{NullTest: &pg.NullTest{Arg: f.Args[0], Nulltesttype: pg.NullTestType_IS_NOT_NULL, Location: -1}}})
			}
			continue
		}
		if ast.Holds(val, func(n *pg.Node) bool { return n.GetColumnRef() != nil || ast.IsSubLink(n) || n.GetFuncCall() != nil }) {
			return nil, 0
		}
		a.names[i] = val
	}
	if count < 0 {
		return nil, 0
	}
	return a, count
}

// refersTo tells a reference to a column of the sub-query.
func refersTo(n *pg.Node, name string) bool {
	fields := ast.Strings(n.GetColumnRef().GetFields())
	return len(fields) > 0 && len(fields) == len(n.GetColumnRef().Fields) && fields[len(fields)-1] == name
}

// readsColumn reports whether an expression reads a column of the sub-query, or all of them.
func readsColumn(n *pg.Node, name string) bool {
	return ast.Holds(n, func(n *pg.Node) bool { return ast.IsStar(n) || refersTo(n, name) || ast.IsSubLink(n) })
}

// The names of the list that branches become, which no column of a policy has.
const (
	branchList  = "candidates of the union"
	branchPlace = "place in the union"
	branchMet   = "is met"
)

// topKOf writes the branches as a list.
func topKOf(branches []*branch, names []string, count int, limit *pg.Node) *pg.SelectStmt {
	list := &pg.SelectStmt{LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT}
	column := func(name string) *pg.Node {
		return pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(branchList), pg.MakeStrNode(name)}, -1)
	}
	out := &pg.SelectStmt{LimitCount: limit, LimitOption: pg.LimitOption_LIMIT_OPTION_COUNT, WhereClause: column(branchMet)}
	for i, a := range branches {
		var values []*pg.Node
		for at, n := range a.names {
			if at != count {
				values = append(values, n)
			}
		}
		met := &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Val: &pg.A_Const_Boolval{Boolval: &pg.Boolean{Boolval: true}}, Location: -1}}}
		if len(a.met) == 1 {
			met = a.met[0]
		} else if len(a.met) > 1 {
			met = pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, a.met, -1)
		}
		list.ValuesLists = append(list.ValuesLists, pg.MakeListNode(append(values, pg.MakeAConstIntNode(int64(i), -1), met)))
	}
	var columns []*pg.Node
	for at, name := range names {
		if at != count {
			columns = append(columns, pg.MakeStrNode(name))
			out.TargetList = append(out.TargetList, pg.MakeResTargetNodeWithNameAndVal(name, column(name), -1))
			out.GroupClause = append(out.GroupClause, column(name))
		}
	}
	columns = append(columns, pg.MakeStrNode(branchPlace), pg.MakeStrNode(branchMet))
	out.GroupClause = append(out.GroupClause, column(branchPlace))
	out.FromClause = append(slices.Clone(branches[0].sel.FromClause), &pg.Node{Node: &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{Lateral: true,
		Subquery: ast.Select(list), Alias: &pg.Alias{Aliasname: branchList, Colnames: columns}}}})
	by := &pg.Node{Node: &pg.Node_FuncCall{FuncCall: &pg.FuncCall{Funcname: []*pg.Node{pg.MakeStrNode("count")}, AggStar: true, Funcformat: pg.CoercionForm_COERCE_EXPLICIT_CALL, Location: -1}}}
	out.SortClause = []*pg.Node{pg.MakeSortByNode(by, pg.SortByDir_SORTBY_DESC, pg.SortByNulls_SORTBY_NULLS_DEFAULT, -1)}
	return out
}

// Above the counts generate_series remains as it is, if it does not make too many rows.

// maxSeriesRows bounds what one generate_series of an outer query makes: a year of minutes has 527,040. Both engines
// make all rows before any is used, so that LIMIT does not help.
const maxSeriesRows = 1 << 20

// seriesBounded refuses generate_series with constant ends that makes more rows. What its ends are only when it runs is
// bounded by the sandbox's time and memory.
func seriesBounded(b *aggregate.Binder, f *pg.FuncCall) *refuse.Refusal {
	name, _ := ast.FunctionName(f)
	if name != "generate_series" || len(f.Args) < 2 || len(f.Args) > 3 {
		return nil
	}
	quiet := &semantics.Parameters{Values: b.Params.Values, Types: slices.Clone(b.Params.Types), Describing: b.Params.Describing}
	t := &semantics.Translator{Env: b.Env, Params: quiet, Place: "generate_series"}
	ends, _, refusal := t.All(f.Args)
	if refusal != nil {
		return nil
	}
	steps := []*big.Rat{nil, nil, big.NewRat(1, 1)}
	for i, e := range ends {
		for _, of := range ends[:2] {
			typ := of.Type()
			if i == 2 {
				typ = policy.IntervalT
			}
			if of.Type().Moment() && e.Type() == policy.Unknown {
				typed, err := b.Env.Coerce(e.Expr, typ)
				if err != nil {
					return nil
				}
				e = semantics.Node(semantics.FormOther, "cast", typed, e.Pos)
			}
		}
		v, refusal := e.Value(nil)
		if refusal != nil {
			return nil
		}
		if steps[i] = semantics.StepsOf(v); steps[i] == nil {
			return nil
		}
	}
	span, step := new(big.Rat).Sub(steps[1], steps[0]), steps[2]
	if step.Sign() == 0 || span.Sign()*step.Sign() < 0 {
		return nil // PostgreSQL's error, or no rows
	}
	if span.Quo(span, step).Cmp(big.NewRat(maxSeriesRows-1, 1)) > 0 {
		rows := new(big.Int).Quo(span.Num(), span.Denom())
		return seriesLong.At(int(f.Location), rows.Add(rows, big.NewInt(1)), maxSeriesRows)
	}
	return nil
}
