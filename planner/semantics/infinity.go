package semantics

import (
	"math"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Infinite dates and timestamps are open ends. No value of a column is one, so that a comparison with one is the same
// for all values that are not NULL, and NULL for NULL: hired < 'infinity' is hired IS NOT NULL OR NULL. What takes
// the place of NULL is compared in its place: coalesce(left_at, 'infinity') > '2024-01-01' is that of left_at, or
// true where left_at is NULL.

// infinite is the comparison of two operands of which one is infinite, or may be; nil, nil means it is none.
func (t *Translator) infinite(op string, pos int, nodes []*pg.Node) (*Expr, *refuse.Refusal) {
	if len(nodes) != 2 || predicate.Opposite[op] == "" {
		return nil, nil
	}
	for i, n := range nodes {
		other, op := nodes[1-i], op
		if i == 0 {
			op = predicate.Mirrored[op]
		}
		sign, typ := t.endless(n)
		if sign != 0 {
			return t.beside(op, pos, other, sign, typ)
		}
		args := n.GetCoalesceExpr().GetArgs()
		if len(args) < 2 {
			continue
		}
		if sign, _ = t.endless(args[len(args)-1]); sign == 0 {
			continue
		}
		known := &pg.CoalesceExpr{Args: args[:len(args)-1], Location: int32(pos)}
		return t.orElse(op, pos, &pg.Node{Node: &pg.Node_CoalesceExpr{CoalesceExpr: known}}, other, sign)
	}
	return nil, nil
}

// beside is x op infinity. A literal says nothing of its type: beside what is no moment it is another.
func (t *Translator) beside(op string, pos int, n *pg.Node, sign int, typ policy.Type) (*Expr, *refuse.Refusal) {
	if own, of := t.endless(n); own != 0 && (typ != policy.Unknown || of != policy.Unknown) {
		return ConstantExpr(comparesAs(op, own-sign), policy.Bool, pos), nil
	}
	x, r := t.Expr(n)
	untyped := r == nil && x.Type() == policy.Unknown && typ != policy.Unknown && x.Form == formConstant
	if r != nil || !x.Type().Moment() && !untyped {
		return nil, r
	}
	if typ != policy.Unknown {
		t.Params.Note(x, typ)
	}
	if x, r = t.Typed(x, typ); r != nil {
		return nil, r
	}
	null := ConstantExpr(nil, policy.Bool, pos)
	if comparesAs(op, -sign) {
		return t.Junction(FormOr, pos, NotNull(x), null)
	}
	present, r := t.Not(NotNull(x))
	if r != nil {
		return nil, r
	}
	return t.Junction(FormAnd, pos, present, null)
}

// orElse is x op coalesce(value, infinity).
func (t *Translator) orElse(op string, pos int, value, x *pg.Node, sign int) (*Expr, *refuse.Refusal) {
	v, r := t.Expr(value)
	if r != nil || !v.Type().Moment() {
		return nil, r
	}
	otherwise, r := t.beside(op, pos, x, sign, v.Type())
	if r != nil || otherwise == nil {
		return nil, r
	}
	own, r := t.apply(op, pos, x, value)
	if r != nil {
		return nil, r
	}
	return t.Case([]*Expr{NotNull(v), own, otherwise}, pos)
}

// endless is 1 for 'infinity', −1 for '-infinity', as a literal, a parameter, or of a type of moments; 0 of all else.
func (t *Translator) endless(n *pg.Node) (sign int, typ policy.Type) {
	typ = policy.Unknown
	if c := n.GetTypeCast(); c != nil {
		to, _, array, r := ast.ScalarType(c.TypeName)
		if r != nil || array || !to.Moment() {
			return 0, typ
		}
		n, typ = c.Arg, to
	}
	text := n.GetAConst().GetSval().GetSval()
	if p := int(n.GetParamRef().GetNumber()); p > 0 && t.Params != nil && !t.Params.Describing && p <= len(t.Params.Values) {
		switch v := t.Params.Values[p-1].(type) {
		case string:
			text = v
		case policy.Timestamp, policy.Timestamptz: // as they come in binary
			text = map[policy.Value]string{
				policy.Timestamp(math.MaxInt64): "infinity", policy.Timestamptz(math.MaxInt64): "infinity",
				policy.Timestamp(math.MinInt64): "-infinity", policy.Timestamptz(math.MinInt64): "-infinity",
			}[v]
		}
		if t.Params.TypeOf(p).Moment() {
			typ = t.Params.TypeOf(p)
		}
	}
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "infinity":
		return 1, typ
	case "-infinity":
		return -1, typ
	}
	return 0, typ
}
