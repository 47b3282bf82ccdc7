package bind

import (
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// A sub-query over private rows that is counted for each row of a public table, by a column that equals one of that
// row, is one question for all of them:
//
//	SELECT r.label, (SELECT count(*) FROM visits v WHERE v.ward = r.code) FROM regions r
//
// counts by ward, and each row of regions reads its own: (SELECT t.value FROM (SELECT v.ward AS key_1, count(*) AS
// value FROM visits v GROUP BY v.ward) t WHERE t.key_1 = r.code).

// EachOf is such a sub-query as groups: one for each value of the columns that it equates with the row around it.
type EachOf struct {
	Groups *pg.SelectStmt // its targets are the keys, in the order of Around, and the value
	Around []*pg.Node     // what the keys equal
	Else   *pg.Node       // what it is where there are no rows, a constant; nil means NULL
}

// equatedAround are expressions over the rows that a condition equates with what reads none of them, these, and the rest
// of the condition.
func (r *Rows) equatedAround(where *pg.Node) (own, around, rest []*pg.Node) {
	for _, n := range ast.Conjuncts(where) {
		e := n.GetAExpr()
		equation := e != nil && e.Kind == pg.A_Expr_Kind_AEXPR_OP && slices.Equal(ast.Strings(e.Name), []string{"="})
		switch {
		case equation && r.readsAll(e.Lexpr) && r.readsNone(e.Rexpr):
			own, around = append(own, e.Lexpr), append(around, e.Rexpr)
		case equation && r.readsAll(e.Rexpr) && r.readsNone(e.Lexpr):
			own, around = append(own, e.Rexpr), append(around, e.Lexpr)
		default:
			rest = append(rest, n)
		}
	}
	return own, around, rest
}

// forEach reads a sub-query over rows as groups, nil means it is another one. What must hold of a row around it beside
// the sub-query, by the column that is equated alone, narrows the groups too: conditions are the conjuncts of the WHERE
// clause that it stands in.
func forEach(sel *pg.SelectStmt, from *Rows, conditions []*pg.Node) *EachOf {
	target := sel.TargetList[0].GetResTarget().GetVal()
	out := &EachOf{}
	counts := ast.IsCount(target)
	switch c := target.GetCoalesceExpr(); {
	case counts:
		out.Else = pg.MakeAConstIntNode(0, -1)
	case c != nil && len(c.Args) == 2 && ast.IsConstant(c.Args[1]):
		target, out.Else = c.Args[0], c.Args[1]
	}
	own, around, keep := from.equatedAround(sel.WhereClause)
	out.Around = around
	nulls := ast.NullsOfNone(target)
	if len(own) == 0 || !counts && len(nulls) == 0 {
		return nil
	}
	out.Groups = &pg.SelectStmt{WithClause: sel.WithClause, FromClause: sel.FromClause, LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE}
	for i, n := range own {
		out.Groups.TargetList, out.Groups.GroupClause = append(out.Groups.TargetList, pg.MakeResTargetNodeWithNameAndVal(KeyOfEach(i), n, -1)), append(out.Groups.GroupClause, n)
		for _, c := range conditions {
			if narrowed := ofColumn(c, out.Around[i], n); narrowed != nil {
				keep = append(keep, narrowed)
			}
		}
	}
	out.Groups.TargetList = append(out.Groups.TargetList, pg.MakeResTargetNodeWithNameAndVal(ValueOfEach, target, -1))
	if out.Groups.WhereClause = AllOf(keep); !counts { // a group in which nobody has a value has no sum
		var read []*pg.Node
		for _, f := range nulls {
			if n := ast.Counting(f); !slices.ContainsFunc(read, func(have *pg.Node) bool { return ast.SameTree(have, n) }) {
				read = append(read, n)
			}
		}
		for i, n := range read {
			read[i] = pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode(">")}, n, pg.MakeAConstIntNode(0, -1), -1)
		}
		out.Groups.HavingClause = AllOf(read)
	}
	return out
}

// aggregatesAlone tells a SELECT of one expression over aggregates of all its rows.
func aggregatesAlone(sel *pg.SelectStmt) bool {
	return sel != nil && sel.Larg == nil && len(sel.GroupClause)+len(sel.DistinctClause) == 0 && sel.HavingClause == nil && sel.LimitCount == nil && sel.LimitOffset == nil && len(sel.TargetList) == 1
}

// ForEach reads a sub-query as groups; nil means it is another one.
func (b *Binder) ForEach(sel *pg.SelectStmt, scope *Scope, conditions []*pg.Node) (*EachOf, *refuse.Refusal) {
	if !aggregatesAlone(sel) {
		return nil, nil
	}
	from, refusal := b.ownRows(sel, scope)
	if from == nil || refusal != nil {
		return nil, refusal
	}
	return forEach(sel, from, conditions), nil
}

// GroupsOfEach is the alias of the groups in what ForEach makes, and ValueOfEach their value. What stands around the
// sub-query is compared with them within it, where a name of theirs would hide one of the rows around: x(value) is what
// people call a list.
const (
	GroupsOfEach = "groups of each"
	ValueOfEach  = GroupsOfEach + " value"
)

func KeyOfEach(i int) string { return GroupsOfEach + " key " + strconv.Itoa(i+1) }

// AllOf holds where each of some conditions does; nil means there are none.
func AllOf(list []*pg.Node) *pg.Node {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, list, -1)
}

// columnsOf are the references to columns in an expression, and whether it holds a sub-query.
func columnsOf(n *pg.Node) (list []*pg.Node, queries bool) {
	ast.Holds(n, func(n *pg.Node) bool {
		if n.GetColumnRef() != nil {
			list = append(list, n)
		}
		queries = queries || n.GetSubLink() != nil
		return false
	})
	return list, queries
}

// has reports whether a reference is to a column or a key of these rows.
func (r *Rows) has(n *pg.Node) bool {
	k, _ := r.KeyNode(n)
	return k != nil || ofRows(n, r)
}

// readsAll tells an expression of which every column is one of these rows, readsNone one of which none is, and some is
// another's.
func (r *Rows) readsAll(n *pg.Node) bool {
	list, queries := columnsOf(n)
	return len(list) > 0 && !queries && !slices.ContainsFunc(list, func(n *pg.Node) bool { return !ofRows(n, r) })
}

func (r *Rows) readsNone(n *pg.Node) bool {
	list, queries := columnsOf(n)
	return len(list) > 0 && !queries && !slices.ContainsFunc(list, r.has)
}

// readsOthers tells a condition of which some column is not one of these rows.
func (r *Rows) readsOthers(where *pg.Node) bool {
	return slices.ContainsFunc(ast.Conjuncts(where), func(n *pg.Node) bool {
		list, queries := columnsOf(n)
		return !queries && slices.ContainsFunc(list, func(n *pg.Node) bool { return !r.has(n) })
	})
}

// ofColumn is a condition column IN (…) said of another expression; nil means it is another one.
func ofColumn(condition, column, other *pg.Node) *pg.Node {
	s := condition.GetSubLink()
	if s == nil || s.SubLinkType != pg.SubLinkType_ANY_SUBLINK || len(s.OperName) > 0 || column.GetColumnRef() == nil || !ast.SameTree(s.Testexpr, column) {
		return nil
	}
	return &pg.Node{Node: &pg.Node_SubLink{SubLink: &pg.SubLink{SubLinkType: s.SubLinkType, Testexpr: other, Subselect: s.Subselect, Location: s.Location}}}
}
