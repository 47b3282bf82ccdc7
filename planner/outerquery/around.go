package outerquery

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
)

// lookedUp is a sub-query that is counted for each row of a public table, as what it is among its groups (ADR 119):
// (SELECT t.value FROM (SELECT v.ward AS key_1, count(*) AS value FROM visits v GROUP BY v.ward) t WHERE t.key_1 =
// r.code).
func lookedUp(each *bind.EachOf) *pg.Node {
	column := func(name string) *pg.Node {
		return pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(bind.GroupsOfEach), pg.MakeStrNode(name)}, -1)
	}
	var equal []*pg.Node
	for i, n := range each.Around {
		equal = append(equal, pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode("=")}, column(bind.KeyOfEach(i)), n, -1))
	}
	read := &pg.SelectStmt{LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE}
	read.FromClause = []*pg.Node{{Node: &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{Subquery: ast.Select(each.Groups), Alias: &pg.Alias{Aliasname: bind.GroupsOfEach}}}}}
	read.TargetList, read.WhereClause = []*pg.Node{pg.MakeResTargetNodeWithVal(column(bind.ValueOfEach), -1)}, bind.AllOf(equal)
	out := &pg.Node{Node: &pg.Node_SubLink{SubLink: &pg.SubLink{SubLinkType: pg.SubLinkType_EXPR_SUBLINK, Subselect: ast.Select(read), Location: -1}}}
	if each.Else != nil {
		out = &pg.Node{Node: &pg.Node_CoalesceExpr{CoalesceExpr: &pg.CoalesceExpr{Args: []*pg.Node{out, each.Else}, Location: -1}}}
	}
	return out
}
