package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// A key of GROUP BY has one value in each cell of its columns. A condition in it that is decided within a step is one
// that the database decides as it does those of WHERE: whether it holds becomes a column of the rows (derived.Tested),
// of which there are two cells, or three. Of
//
//	SELECT CASE WHEN price < 12.34 THEN 'low' WHEN price < 56.78 THEN 'middle' END, count(*) FROM lineitem GROUP BY 1
//
// the key reads two such columns, and no price.

// Tested is a key, or an argument, with its conditions within a step as columns, or as it is where it has none. Of an
// argument they are all that it may read within a step: others are added up by what holds where (sums of CASE).
func (b *Binder) Tested(r *Rows, place string, n *pg.Node, e *semantics.Expr) (*semantics.Expr, *refuse.Refusal) {
	within := func(e *semantics.Expr) bool {
		return slices.ContainsFunc(e.Cols, func(c int) bool {
			d := r.Table.Columns[c].Domain
			return d != nil && !d.Single()
		})
	}
	if b.AsWritten || r.MeetsList() || !within(e) {
		return e, nil
	}
	table, t, plain, found := r.Table, b.OverRows(r, place), b.OverRows(r, place), false
	around := t.Hook
	t.Hook = func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
		if e, refusal := around(n); e != nil || refusal != nil {
			return e, refusal
		}
		if op := n.GetAExpr(); n.GetBoolExpr() == nil && n.GetBooleanTest() == nil && (op == nil ||
			op.Kind == pg.A_Expr_Kind_AEXPR_OP && predicate.Opposite[ast.Strings(op.Name)[len(op.Name)-1]] == "") {
			return nil, nil
		}
		e, refusal := plain.Expr(n)
		if refusal != nil || e.Type() != policy.Bool || e.IsConstant() {
			return nil, refusal
		}
		tested, refusal := b.test(r, e)
		found = found || tested != nil
		return tested, refusal
	}
	tested, refusal := t.Expr(n)
	if refusal != nil || !found || place != "GROUP BY" && within(tested) {
		r.Become(table)
		return e, refusal
	}
	return tested, nil
}

// maxTested is how many conditions of a statement become columns: all combinations of them are cells.
const maxTested = 10

// test is a condition that is decided within a step as a column of the rows, which they are given once. It returns nil if
// it is decided by cells, and a constant where it is the same for each row, for bounds beyond the domain or on a step.
func (b *Binder) test(r *Rows, e *semantics.Expr) (*semantics.Expr, *refuse.Refusal) {
	l := semantics.Lowerer{Table: r.Table, Env: b.Env, Box: semantics.NewBox(r.Table, b.Env), Notes: &b.Notes,
		OffGrid: b.Context.Settings.OffGrid}
	holds, fails, within, refusal := l.Decided(e)
	if !within || refusal != nil {
		return nil, refusal
	}
	read, _ := predicate.Columns(holds, nil)
	if read, _ = predicate.Columns(fails, read); len(read) == 0 {
		return semantics.ConstantExpr(truthOf(holds, fails), policy.Bool, e.Pos), nil
	}
	at, ok := derived.TestedIn(r.Table, holds, fails)
	if !ok {
		if derived.TestsOf(r.Table) == maxTested {
			return nil, nil
		}
		r.Become(derived.NewTested(&derived.Tested{From: r.Table, Holds: holds, Fails: fails}))
		at = len(r.Table.Columns) - 1
	}
	return semantics.ColumnExpr(at, policy.Bool, -1, e.Pos), nil
}

// truthOf is the value of a condition that reads no column: nil is NULL.
func truthOf(holds, fails predicate.Pred) policy.Value {
	switch {
	case holds == nil:
		return true
	case fails == nil:
		return false
	}
	return nil
}
