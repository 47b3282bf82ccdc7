package semantics

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// Comparisons of rows, column by column as PostgreSQL makes them, NULLs too: an unknown part decides nothing before a
// part that differs. Of (a, b, c) and (x, y, z)
//
//	=   is a = x AND b = y AND c = z
//	<>  is a <> x OR b <> y OR c <> z
//	<   is a < x OR a = x AND (b < y OR b = y AND c < z), the last by the operator itself: <=, >, >= likewise
//
// and (a, b) IN ((1, 2), (3, 4)) is an OR of equalities.

// strict are the operators by which an earlier column decides.
var strict = map[string]string{"<": "<", "<=": "<", ">": ">", ">=": ">"}

// rows translates an operation whose left side is a row.
func (t *Translator) rows(op string, a *pg.A_Expr, left *pg.RowExpr) (*Expr, *refuse.Refusal) {
	pos := int(left.Location)
	switch right := a.Rexpr.GetRowExpr(); {
	case a.Kind == pg.A_Expr_Kind_AEXPR_OP && right != nil:
		return t.rowsCompared(op, left, right)
	case a.Kind == pg.A_Expr_Kind_AEXPR_IN:
		var any *Expr
		for _, item := range a.Rexpr.GetList().GetItems() {
			right := item.GetRowExpr()
			if right == nil {
				return nil, NoForm.At(pos, "a row expression")
			}
			same, r := t.rowsCompared("=", left, right)
			if r != nil {
				return nil, r
			}
			if any, r = t.Joined(FormOr, pos, any, same); r != nil {
				return nil, r
			}
		}
		if any != nil && op == "<>" {
			return t.Not(any)
		}
		if any != nil {
			return any, nil
		}
	}
	return nil, NoForm.At(pos, "a row expression")
}

func (t *Translator) rowsCompared(op string, left, right *pg.RowExpr) (*Expr, *refuse.Refusal) {
	pos := int(left.Location)
	if len(left.Args) != len(right.Args) {
		return nil, rowLengths.At(pos)
	}

	if predicate.Opposite[op] == "" || len(left.Args) == 0 {
		return nil, NoForm.At(pos, "a row expression")
	}
	var out *Expr
	for i := len(left.Args) - 1; i >= 0; i-- {
		at, own := ast.Location(left.Args[i]), op
		if out != nil && strict[op] != "" {
			own = strict[op]
		}
		e, r := t.apply(own, at, left.Args[i], right.Args[i])
		switch {
		case r != nil:
		case out == nil:
			out = e
			continue
		case op == "=":
			out, r = t.Junction(FormAnd, pos, e, out)
		case op == "<>":
			out, r = t.Junction(FormOr, pos, e, out)
		default:
			var same *Expr
			if same, r = t.apply("=", at, left.Args[i], right.Args[i]); r == nil {
				if same, r = t.Junction(FormAnd, pos, same, out); r == nil {
					out, r = t.Junction(FormOr, pos, e, same)
				}
			}
		}
		if r != nil {
			return nil, r
		}
	}
	return out, nil
}
