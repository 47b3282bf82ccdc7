package semantics

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Aggregated is count, sum, avg, min or max of known values of one type, none of them NULL, as PostgreSQL adds them up
// one after the other: (SELECT max(size) FROM towns) over a public table. Sums and averages are of the type result. It
// is NULL of no values, and a count 0.
func Aggregated(env scalar.Env, name string, values []policy.Value, typ, result policy.Type, pos int) (*Expr, *refuse.Refusal) {
	n := int64(len(values))
	compare := func(a, b policy.Value) int { return scalar.Compare(typ, a, b) }
	switch {
	case name == "count":
		return ConstantExpr(n, policy.Int8, pos), nil
	case n == 0:
		return ConstantExpr(nil, result, pos), nil
	case name == "min":
		return ConstantExpr(slices.MinFunc(values, compare), typ, pos), nil
	case name == "max":
		return ConstantExpr(slices.MaxFunc(values, compare), typ, pos), nil
	}
	called := func(op string, a scalar.Expr, v policy.Value, of policy.Type) (scalar.Expr, error) {
		b, err := env.Cast(scalar.Constant(v, of), result, -1)
		if err == nil && a != nil {
			b, err = env.Call(op, a, b)
		}
		if err != nil {
			return nil, err
		}
		to, err := b.Eval(nil)
		return scalar.Constant(to, b.Type()), err
	}
	var total scalar.Expr
	var err error
	for _, v := range values {
		if total, err = called("+", total, v, typ); err != nil {
			return nil, ScalarRefusal(err, pos)
		}
	}
	if name == "avg" {
		if total, err = called("/", total, n, policy.Int8); err != nil {
			return nil, ScalarRefusal(err, pos)
		}
	}
	v, err := total.Eval(nil)
	if err != nil {
		return nil, ScalarRefusal(err, pos)
	}
	return ConstantExpr(v, result, pos), nil
}

// AggregateType is the type that SQL gives an aggregate that adds up values of a type.
func AggregateType(name string, t policy.Type) policy.Type {
	switch {
	case name == "sum" && (t == policy.Int2 || t == policy.Int4):
		return policy.Int8
	case name == "sum" && t == policy.Float4:
		return policy.Float4
	case t.Floating():
		return policy.Float8
	}
	return policy.NumericType
}
