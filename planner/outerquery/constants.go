package outerquery

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// An outer query that fails whatever the released values are is refused before anything is charged. What is a constant
// error is what PostgreSQL's planner takes for one: parts that a constant AND, OR, CASE or COALESCE cuts off do not count.

const constantHint = "Constants alone cause this error, whatever the rows: correct them. Nothing was charged."

// Failing finds an expression above a leaf that constants alone make fail.
func (d *direct) Failing() *refuse.Refusal {
	if d == nil || d.Leaf < 0 {
		return nil
	}
	for _, list := range [][]*semantics.Expr{d.exprs, d.rest} {
		for _, e := range list {
			if _, err := scalar.Fold(e.Expr); err != nil {
				return semantics.ScalarRefusal(err, e.PlaceOf(err)).Hinting(constantHint)
			}
			if refusal := e.FailingAlways(); refusal != nil {
				return refusal.Hinting(constantHint)
			}
		}
	}
	return nil
}

// failingClause finds constant errors in the clauses of a SELECT that goes to the engine.
func (b *Query) failingClause(sel *pg.SelectStmt) *refuse.Refusal {
	for _, list := range [][]*pg.Node{sel.TargetList, sel.GroupClause, sel.SortClause, {sel.WhereClause, sel.HavingClause}} {
		for _, n := range list {
			if refusal := b.failingNode(n); refusal != nil {
				return refusal
			}
		}
	}
	for i, n := range []*pg.Node{sel.LimitCount, sel.LimitOffset} {
		if n == nil || b.constantAt(n) == nil {
			continue
		}
		if _, refusal := b.Whole(n, [...]string{"LIMIT", "OFFSET"}[i], -1); refusal != nil {
			return refusal
		}
	}
	return nil
}

// failingNode looks for the largest constant parts of an expression. It does not look below what may cut them off.
func (b *Query) failingNode(n *pg.Node) *refuse.Refusal {
	if n.GetNode() == nil {
		return nil
	}
	if e := b.constantAt(n); e != nil {
		if _, refusal := e.Value(nil); refusal != nil && refusal.ID == semantics.Evaluation.ID {
			return refusal.Hinting(constantHint)
		}
		return nil
	}
	if n.GetBoolExpr() != nil || n.GetCaseExpr() != nil || n.GetCoalesceExpr() != nil {
		return nil
	}
	for _, c := range ast.Children(n) {
		if refusal := b.failingNode(c); refusal != nil {
			return refusal
		}
	}
	return nil
}

// constantAt is a node as a constant expression, nil where it is none or package scalar does not know it. A parameter
// without a value says nothing.
func (b *Query) constantAt(n *pg.Node) *semantics.Expr {
	switch n.GetNode().(type) {
	case *pg.Node_AExpr, *pg.Node_BoolExpr, *pg.Node_FuncCall, *pg.Node_TypeCast, *pg.Node_CaseExpr, *pg.Node_CoalesceExpr, *pg.Node_MinMaxExpr, *pg.Node_AConst, *pg.Node_ParamRef:
	default:
		return nil
	}
	if b.Params.Describing && ast.Holds(n, func(n *pg.Node) bool { return n.GetParamRef() != nil }) {
		return nil
	}
	e, refusal := (&semantics.Translator{Env: b.Env, Params: b.Params, Place: "SELECT"}).Expr(n)
	if refusal != nil {
		return nil
	}
	return e
}
