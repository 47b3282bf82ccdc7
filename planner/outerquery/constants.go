package outerquery

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// An outer query that fails whatever the released values are is refused before anything is charged. What is a constant
// error is what PostgreSQL's planner takes for one: parts that a constant AND, OR, CASE or COALESCE cuts off do not
// count.

// failing is the refusal of an expression that fails so.
func failing(e *semantics.Expr, err error) *refuse.Refusal {
	refusal := semantics.ScalarRefusal(err, e.PlaceOf(err))
	if refusal.ID == semantics.Evaluation.ID {
		return refusal.Hinting(refuse.OfConstants)
	}
	return refusal
}

// Failing finds an expression above a leaf that constants alone make fail.
func (d *direct) Failing() *refuse.Refusal {
	if d == nil || d.Leaf < 0 {
		return nil
	}
	for _, e := range d.all() {
		if _, err := scalar.Fold(e.Expr); err != nil {
			return failing(e, err)
		}
		if refusal := e.FailingAlways(); refusal != nil {
			return refusal.Hinting(refuse.OfConstants)
		}
	}
	return nil
}

// all are the expressions above the leaf: of columns, and of clauses.
func (d *direct) all() []*semantics.Expr { return slices.Concat(d.exprs, d.rest) }

// FailingOnRows finds an expression that fails on every row of the leaf, which has so many; 0 means perhaps none. Of
//
//	SELECT ward, to_char(count(*), '9.9.9') FROM visits GROUP BY ward
//
// every ward's row does. What HAVING leaves out is not evaluated: then HAVING alone is certain to be.
func (d *direct) FailingOnRows(rows int) *refuse.Refusal {
	if rows == 0 {
		return nil
	}
	list := d.all()
	switch {
	case d.Having != nil:
		list = slices.DeleteFunc(slices.Clone(d.rest), func(e *semantics.Expr) bool { return e.Expr != d.Having || e.Form == semantics.FormAnd }) // PostgreSQL chooses the order of its parts
	case d.Limit == 0, d.Offset >= int64(rows):
		return nil
	}
	for _, e := range list {
		if err := e.FailsOnRows(); err != nil {
			return failing(e, err)
		}
	}
	return nil
}

// beyond tells that package scalar does not compute an expression for any row, which an engine may:
// to_timestamp(n::text, 'YYYYDDD').
func (d *direct) beyond() bool {
	return d.Leaf >= 0 && slices.ContainsFunc(d.all(), func(e *semantics.Expr) bool {
		err := e.FailsOnRows()
		return err != nil && engineCan(failing(e, err)) == nil
	})
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
			return refusal.Hinting(refuse.OfConstants)
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
