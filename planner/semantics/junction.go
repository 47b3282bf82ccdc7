package semantics

import (
	"iter"
	"maps"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Conditions that are together say something of one another. Where one that reads a single column decides, the others
// do not matter (Matters), and what is equated with a constant is that constant in the conditions beside it. Of
//
//	a.status = 'M' AND a.status = b.status
//
// the second says that b.status is 'M', which reads one column.
//
// Claim: beside a = c the condition a = b is (b = c) OR (a IS NULL AND NULL), in three values. Proof: where a is c both
// are b = c; where a is another value the whole is false; where a is NULL, a = c is NULL and so is each of the two, or
// the first of them true, so that the whole is NULL.

// conjuncts are the parts of nested ANDs.
func conjuncts(e *Expr, into []*Expr) []*Expr {
	if e.Form != FormAnd {
		return append(into, e)
	}
	for _, a := range e.Args {
		into = conjuncts(a, into)
	}
	return into
}

// equated are the constants that some conditions equate expressions with, by the expression.
func equated(list []*Expr) map[string]*Expr {
	var known map[string]*Expr
	for _, e := range list {
		if e.Form != FormCompare || e.Op != "=" || len(e.Args) != 2 {
			continue
		}
		for i, a := range e.Args {
			if c := e.Args[1-i]; !a.IsConstant() && c.IsConstant() && c.Parameter == 0 && MustConstant(c) != nil {
				if known == nil {
					known = map[string]*Expr{}
				}
				known[a.Canon] = c
			}
		}
	}
	return known
}

// equalToKnown is the truth of an equation of two columns' expressions, one of which is a constant where the conditions
// beside it hold; not ok: it is another one.
func (l *Lowerer) equalToKnown(e *Expr, known map[string]*Expr) (truth, bool, *refuse.Refusal) {
	if e.Form != FormCompare || e.Op != "=" || len(e.Args) != 2 || len(e.Cols) < 2 {
		return truth{}, false, nil
	}
	for i, a := range e.Args {
		b, c := e.Args[1-i], known[a.Canon]
		if c == nil || len(a.Cols) != 1 || len(b.Cols) != 1 || a.Type() == policy.Bpchar || b.Type() == policy.Bpchar { // char(n) is equal to more than one text
			continue
		}
		s, err := l.Env.Call("=", b.Expr, c.Expr)
		if err != nil {
			return truth{}, false, nil
		}
		equal := Node(FormCompare, "=", s, e.Pos, b, c)
		equal.order(l.Env, "=")
		t, ok, refusal := l.Lower(equal)
		if !ok || refusal != nil {
			return truth{}, ok, refusal
		}
		absent, ok, refusal := l.Lower(Node(FormIsNull, "isnull", scalar.IsNull(a.Expr), e.Pos, a))
		if !ok || refusal != nil {
			return truth{}, ok, refusal
		}
		return truth{Holds: t.Holds, Fails: predicate.All(t.Fails, predicate.Not(absent.Holds))}, true, nil
	}
	return truth{}, false, nil
}

// junction is the truth of conditions that are joined by AND or OR.
func (l *Lowerer) junction(e *Expr) (truth, bool, *refuse.Refusal) {
	args := e.Args
	var known map[string]*Expr
	if e.Form == FormAnd {
		args = conjuncts(e, nil)
		known = equated(args)
	}
	return l.joined(e.Form, args, func(a *Expr) (truth, bool, *refuse.Refusal) {
		t, ok, refusal := l.equalToKnown(a, known)
		if !ok && refusal == nil {
			t, ok, refusal = l.Lower(a)
		}
		return t, ok, refusal
	})
}

// joined is the truth of conditions that are joined by AND or OR, of which each is found by part.
func (l *Lowerer) joined(
	form Form, list []*Expr, part func(*Expr) (truth, bool, *refuse.Refusal),
) (truth, bool, *refuse.Refusal) {
	holds, fails := make([]predicate.Pred, len(list)), make([]predicate.Pred, len(list))
	around := l.matter
	defer func() { l.matter = around }()
	for i, a := range DecidingFirst(list) {
		t, ok, refusal := part(a)
		if !ok || refusal != nil {
			return truth{}, ok, refusal
		}
		holds[i], fails[i] = t.Holds, t.Fails
		if form == FormAnd {
			l.Matters(a, predicate.Not(t.Fails))
		} else {
			l.Matters(a, predicate.Not(t.Holds))
		}
	}
	if form == FormAnd {
		return truth{Holds: predicate.All(holds...), Fails: predicate.Any(fails...)}, true, nil
	}
	return truth{Holds: predicate.Any(holds...), Fails: predicate.All(fails...)}, true, nil
}

// DecidingFirst are conditions that are together, with their places, those first that read one column: where these
// decide, the others do not matter.
func DecidingFirst(list []*Expr) iter.Seq2[int, *Expr] {
	return func(yield func(int, *Expr) bool) {
		for _, several := range []bool{false, true} {
			for i, e := range list {
				if several == (len(e.Cols) > 1) && !yield(i, e) {
					return
				}
			}
		}
	}
}

// Matters says that what is lowered from now on matters only where p holds, which e, a condition that was lowered, says
// of one column's cells.
func (l *Lowerer) Matters(e *Expr, p predicate.Pred) {
	if len(e.Cols) != 1 || e.Awaited {
		return
	}
	column := e.Cols[0]
	c := l.Table.Columns[column]
	var left SpansOf
	switch p := p.(type) {
	case predicate.InCells:
		if p.Column != c {
			return
		}
		left = p.Spans
	case predicate.Never:
	default:
		return
	}
	if spans, narrowed := l.matter[column]; narrowed {
		left = predicate.Intersect(left, spans)
	}
	l.matter = maps.Clone(l.matter)
	if l.matter == nil {
		l.matter = map[int]SpansOf{}
	}
	l.matter[column] = left
}

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
