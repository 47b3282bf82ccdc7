package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// indicator finds the condition whose rows a sum counts: sum(CASE WHEN p THEN 1 ELSE 0 END), sum(p::int), sum(1). The
// condition is nil for any other sum. (A sum over no rows is 0 here, not NULL: whether rows are there is private.)
func (g *grouping) indicator(n *pg.Node, t *translator) (holds *expr, typ policy.Type, refusal *Refusal) {
	whole, refusal := t.expr(n)
	if refusal != nil {
		return nil, 0, refusal
	}
	switch typ = whole.Type(); typ {
	case policy.Int2, policy.Int4:
		typ = policy.Int8
	case policy.Int8, policy.NumericType:
		typ = policy.NumericType
	case policy.Float4, policy.Float8:
	default:
		return nil, 0, unknownFunction.at(whole.pos, "sum("+whole.Type().Name()+")")
	}
	holds, refusal = g.isOne(n, t)
	return holds, typ, refusal
}

// isOne returns the condition under which an expression of the values 0, 1 and NULL is 1, nil where it has others.
func (g *grouping) isOne(n *pg.Node, t *translator) (*expr, *Refusal) {
	if c := n.GetTypeCast(); c != nil {
		if arg, refusal := t.expr(c.Arg); refusal != nil {
			return nil, refusal
		} else if arg.Type() == policy.Bool {
			return arg, nil
		}
		return g.isOne(c.Arg, t)
	}
	if c := n.GetCoalesceExpr(); c != nil && len(c.Args) == 2 {
		if rest, refusal := g.isOne(c.Args[1], t); refusal != nil || rest == nil || !rest.isConstant() || mustConstant(rest) != false {
			return nil, refusal
		}
		return g.isOne(c.Args[0], t)
	}
	if c := n.GetCaseExpr(); c != nil {
		return g.caseIsOne(c, t)
	}
	e, refusal := t.expr(n)
	if refusal != nil || !e.isConstant() || e.parameter > 0 {
		return nil, refusal
	}
	v, refusal := e.value(nil)
	if refusal != nil {
		return nil, refusal
	}
	if v == nil {
		return constantExpr(false, policy.Bool, e.pos), nil
	}
	for _, k := range []struct {
		n    int64
		want bool
	}{{0, false}, {1, true}} {
		s, err := t.env.Call("=", e.Expr, scalar.Constant(k.n, policy.Int4))
		if err != nil {
			return nil, nil
		}
		if equal, err := s.Eval(nil); err == nil && equal == true {
			return constantExpr(k.want, policy.Bool, e.pos), nil
		}
	}
	return nil, nil
}

// caseIsOne is the disjunction of the arms that yield 1, each without the arms before it.
func (g *grouping) caseIsOne(c *pg.CaseExpr, t *translator) (*expr, *Refusal) {
	pos := int(c.Location)
	out, before := constantExpr(false, policy.Bool, pos), constantExpr(true, policy.Bool, pos)
	add := func(value *pg.Node, cond *expr) (bool, *Refusal) {
		one := constantExpr(false, policy.Bool, pos)
		if value != nil {
			var refusal *Refusal
			if one, refusal = g.isOne(value, t); refusal != nil || one == nil {
				return false, refusal
			}
		}
		var refusal *Refusal
		if one.isConstant() && mustConstant(one) == false {
			return true, nil
		}
		if !one.isConstant() {
			if cond, refusal = t.junction(formAnd, pos, cond, one); refusal != nil {
				return false, refusal
			}
		}
		if out.isConstant() {
			out = cond
			return true, nil
		}
		out, refusal = t.junction(formOr, pos, out, cond)
		return refusal == nil, refusal
	}
	for _, n := range c.Args {
		w := n.GetCaseWhen()
		test := w.Expr
		if c.Arg != nil {
			test = pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode("=")}, c.Arg, w.Expr, w.Location)
		}
		cond, refusal := t.condition(test, "CASE/WHEN")
		if refusal != nil {
			return nil, refusal
		}
		s, err := scalar.IsTruth(cond.Expr, true)
		if err != nil {
			return nil, scalarRefusal(err, pos)
		}
		sure := node(formIs, "istrue", s, pos, cond)
		sure.want = true
		arm := cond
		if !before.isConstant() {
			if arm, refusal = t.junction(formAnd, pos, before, sure); refusal != nil {
				return nil, refusal
			}
		}
		if ok, refusal := add(w.Result, arm); !ok {
			return nil, refusal
		}
		fails, refusal := t.not(sure)
		if refusal != nil {
			return nil, refusal
		}
		if before.isConstant() {
			before = fails
		} else if before, refusal = t.junction(formAnd, pos, before, fails); refusal != nil {
			return nil, refusal
		}
	}
	if ok, refusal := add(c.Defresult, before); !ok {
		return nil, refusal
	}
	return out, nil
}
