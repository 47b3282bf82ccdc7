package semantics

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Sums that are counts. sum(CASE WHEN age > 30 THEN 1 ELSE 0 END) counts the rows with age > 30, and is asked as that
// counter.

// Indicator finds the condition whose rows a sum counts: sum(CASE WHEN p THEN 1 ELSE 0 END), sum(p::int), sum(1). The
// condition is nil for any other sum. (A sum over no rows is 0 here, not NULL: whether rows are there is private.)
func (t *Translator) Indicator(n *pg.Node) (holds *Expr, typ policy.Type, refusal *refuse.Refusal) {
	whole, refusal := t.Expr(n)
	if refusal != nil {
		return nil, 0, refusal
	}
	if !Numeric(whole) {
		return nil, 0, refuse.UnknownFunction.At(whole.Pos, "sum("+whole.Type().Name()+")")
	}
	holds, refusal = t.IsOne(n)
	return holds, AggregateType("sum", whole.Type()), refusal
}

// IsOne returns the condition under which an expression of the values 0, 1 and NULL is 1, nil where it has others.
func (t *Translator) IsOne(n *pg.Node) (*Expr, *refuse.Refusal) {
	if c := n.GetTypeCast(); c != nil {
		if arg, refusal := t.Expr(c.Arg); refusal != nil {
			return nil, refusal
		} else if arg.Type() == policy.Bool {
			return arg, nil
		}
		return t.IsOne(c.Arg)
	}
	if c := n.GetCoalesceExpr(); c != nil && len(c.Args) == 2 {
		if rest, refusal := t.IsOne(c.Args[1]); refusal != nil || rest == nil || !rest.IsConstant() || MustConstant(rest) != false {
			return nil, refusal
		}
		return t.IsOne(c.Args[0])
	}
	if c := n.GetCaseExpr(); c != nil {
		return t.caseIsOne(c)
	}
	e, refusal := t.Expr(n)
	if refusal != nil || !e.IsConstant() || e.Parameter > 0 {
		return nil, refusal
	}
	return t.constantIsOne(e)
}

// constantIsOne is true of the number 1 and false of 0 and NULL, or nil of other constants.
func (t *Translator) constantIsOne(e *Expr) (*Expr, *refuse.Refusal) {
	v, refusal := e.Value(nil)
	if refusal != nil {
		return nil, refusal
	}
	if v == nil {
		return ConstantExpr(false, policy.Bool, e.Pos), nil
	}
	for _, k := range []struct {
		n    int64
		want bool
	}{{0, false}, {1, true}} {
		s, err := t.Env.Call("=", e.Expr, scalar.Constant(k.n, policy.Int4))
		if err != nil {
			return nil, nil
		}
		if equal, err := s.Eval(nil); err == nil && equal == true {
			return ConstantExpr(k.want, policy.Bool, e.Pos), nil
		}
	}
	return nil, nil
}

// caseIsOne is the disjunction of the arms that yield 1, each without the arms before it.
func (t *Translator) caseIsOne(c *pg.CaseExpr) (*Expr, *refuse.Refusal) {
	pos := int(c.Location)
	var out, before *Expr // nil: no arm yet
	for _, n := range c.Args {
		w := n.GetCaseWhen()
		cond, refusal := t.arm(c, w)
		if refusal != nil {
			return nil, refusal
		}
		sure, refusal := t.isTruth(cond, true, pos)
		if refusal != nil {
			return nil, refusal
		}
		branch, refusal := t.Joined(FormAnd, pos, before, sure)
		if refusal != nil {
			return nil, refusal
		}
		if before == nil {
			branch = cond
		}
		var known bool
		if out, known, refusal = t.orOne(out, w.Result, branch, pos); !known {
			return nil, refusal
		}
		fails, refusal := t.Not(sure)
		if refusal != nil {
			return nil, refusal
		}
		if before, refusal = t.Joined(FormAnd, pos, before, fails); refusal != nil {
			return nil, refusal
		}
	}
	out, known, refusal := t.orOne(out, c.Defresult, before, pos)
	if !known || out != nil {
		return out, refusal
	}
	return ConstantExpr(false, policy.Bool, pos), nil
}

// orOne adds to the conditions found so far the one under which an arm is taken and yields 1; known is false where it
// may yield other values than 0, 1 and NULL.
func (t *Translator) orOne(out *Expr, value *pg.Node, taken *Expr, pos int) (sum *Expr, known bool, refusal *refuse.Refusal) {
	if value == nil {
		return out, true, nil
	}
	one, refusal := t.IsOne(value)
	switch {
	case refusal != nil || one == nil:
		return nil, false, refusal
	case one.IsConstant() && MustConstant(one) != true: // NULL is not 1 either
		return out, true, nil
	case !one.IsConstant():
		if taken, refusal = t.Joined(FormAnd, pos, taken, one); refusal != nil {
			return nil, false, refusal
		}
	}
	out, refusal = t.Joined(FormOr, pos, out, taken)
	return out, refusal == nil, refusal
}

// AddsNothing tells what a sum is not changed by: nothing, NULL and zero.
func (t *Translator) AddsNothing(n *pg.Node) bool {
	if n == nil {
		return true
	}
	e, refusal := t.Expr(n)
	if refusal != nil || !e.IsConstant() || e.Parameter > 0 {
		return false
	}
	v := MustConstant(e)
	if v == nil {
		return true
	}
	x, ok := derived.RatOf(v)
	return ok && x.Sign() == 0
}
