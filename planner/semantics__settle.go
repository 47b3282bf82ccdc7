package planner

import (
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// settler settles expressions over some rows. Nil settles nothing.
type settler struct {
	rows computing
	env  scalar.Env
}

// computing are rows that get columns which are sums of theirs.
type computing interface {
	Own() *policy.Table
	// Compute gives the rows a column that is a sum of theirs, once, and returns its position; −1: it would be too large.
	Compute(terms derived.ComputedColumn) int
}

func (s *settler) reader() affineReader { return affineReader{s.rows.Own(), s.env.Zone} }

// apart tells columns whose cells are not looked at together.
func (s *settler) apart(f *affine) bool {
	combinations := 1
	for _, t := range f.terms {
		d := s.rows.Own().Columns[t.column].Domain
		if !d.Single() || d.Size() > maxCells/combinations {
			return true
		}
		combinations *= d.Size()
	}
	return false
}

// settled is an expression, by its computed column where it is the sum of several.
func (s *settler) settled(e *expr) *expr {
	if s == nil || len(e.cols) < 2 {
		return e
	}
	f := s.reader().of(e)
	if f == nil || !s.apart(f) {
		return e
	}
	scale := int32(0)
	switch t := e.Type(); {
	case t == policy.NumericType:
		scale = int32(decimalsIn(e, s.rows.Own())) // below 0 of columns without a number of digits of their own
	case t == policy.IntervalT: // others may have been written otherwise than in days and less than a day
		if e.op != "-" || slices.ContainsFunc(e.args, func(a *expr) bool { return a.Type() == policy.IntervalT }) {
			return e
		}
	case !t.Integer() && t != policy.DateType:
		return e
	}
	at, times := s.column(f)
	if at < 0 {
		return e
	}
	c := s.rows.Own().Columns[at]
	own := columnExpr(at, e.Type(), e.Typmod(), e.pos)
	bare := f.plus.Sign() == 0 && times.Cmp(big.NewRat(1, 1)) == 0
	if bare && (e.Type().Integer() || e.Type() == policy.NumericType && c.Domain.Type == policy.NumericType && c.Domain.Scale == scale) {
		return own
	}
	of := ofSum{at, times, f.plus, e.Type(), e.Typmod(), bare, scale}
	out := node(formOther, "sum "+times.RatString()+" "+f.plus.RatString()+" "+predicate.Text(int64(e.Type()))+" "+predicate.Text(int64(scale)), of, e.pos, own)
	out.monotone = true
	return out
}

// column is the computed column of a sum, and what it is multiplied by; −1: there is none.
func (s *settler) column(f *affine) (int, *big.Rat) {
	sum, times, ok := f.whole(s.rows.Own(), false)
	if !ok {
		return -1, nil
	}
	return s.rows.Compute(sum), times
}

// all settles a list, and tells whether that has changed it.
func (s *settler) all(list []*expr) ([]*expr, bool) {
	if s == nil {
		return list, false
	}
	out, changed := make([]*expr, len(list)), false
	for i, e := range list {
		out[i] = s.settled(e)
		changed = changed || out[i] != e
	}
	return out, changed
}

// compared moves a comparison of sums over, into one of a computed column with a constant; nil: it is none.
func (s *settler) compared(t *translator, e *expr) *expr {
	if len(e.cols) < 2 {
		return nil
	}
	a, b := s.sides(t, e)
	if a == nil || b == nil {
		return nil
	}
	f := a.plusOf(b.scaled(big.NewRat(-1, 1)))
	if len(f.terms) != len(e.cols) || len(f.terms) > mostTerms || !s.apart(f) {
		return nil
	}
	// With > and <= the value that is compared with lies on the other side of what is cut than the rest of its cell.
	sum, times, ok := f.whole(s.rows.Own(), e.op == ">" || e.op == "<=")
	if !ok {
		return nil
	}
	op, with := e.op, new(big.Rat).Quo(new(big.Rat).Neg(f.plus), times)
	if times.Sign() < 0 {
		op = predicate.Mirrored[op]
	}
	op, constant, ok := comparedWith(op, with, sum.Decimal())
	if !ok {
		return nil
	}
	at := s.rows.Compute(sum)
	if at < 0 {
		return nil
	}
	c := s.rows.Own().Columns[at]
	out, refusal := t.operation(op, e.pos, columnExpr(at, c.Type, -1, e.pos), constantExpr(constant, c.Type, e.pos))
	if refusal != nil {
		return nil
	}
	return out
}

// sides are both sides of a comparison in one unit; nil: they are of kinds that cannot be moved over.
func (s *settler) sides(t *translator, e *expr) (a, b *affine) {
	r, args := s.reader(), slices.Clone(e.args)
	for i, arg := range args { // a literal is of the other side's type
		if other := args[1-i]; arg.Type() == policy.Unknown && arg.isConstant() {
			v, err := t.env.Coerce(arg.Expr, other.Type())
			if err != nil {
				return nil, nil
			}
			typed := *arg
			typed.Expr = v
			args[i] = &typed
		}
	}
	if a, b = r.of(args[0]), r.of(args[1]); a == nil || b == nil {
		return nil, nil
	}
	ta, tb := args[0].Type(), args[1].Type()
	switch {
	case ta == tb, isExact(ta) && isExact(tb):
	case ta == policy.DateType && tb == policy.TimestampT:
		a = a.scaled(big.NewRat(microsOfDay, 1))
	case ta == policy.TimestampT && tb == policy.DateType:
		b = b.scaled(big.NewRat(microsOfDay, 1))
	default:
		return nil, nil
	}
	return a, b
}

// comparedWith makes the number that a column is compared with one of the column's type: between two whole numbers the upper
// takes its place. It is not ok where that would say something else.
func comparedWith(op string, with *big.Rat, decimal bool) (string, policy.Value, bool) {
	if decimal {
		e, exact := valuation(with)
		if !exact {
			return "", nil, false
		}
		scale := int32(max(-e, 0))
		n, _ := unitsOfRat(with, scale)
		return op, policy.Numeric{Coefficient: n, Scale: scale}, true
	}
	n, whole := unitsOfRat(with, 0)
	if !n.IsInt64() {
		return "", nil, false
	}
	if !whole {
		n.Add(n, big.NewInt(1))
		switch op {
		case "<", "<=":
			op = "<"
		case ">", ">=":
			op = ">="
		default:
			return "", nil, false
		}
	}
	return op, n.Int64(), true
}

// unitsOfRat is x in units of 10^−scale, rounded down.
func unitsOfRat(x *big.Rat, scale int32) (n *big.Int, whole bool) {
	y := new(big.Rat).Mul(x, new(big.Rat).SetInt(derived.Tens(scale)))
	return new(big.Int).Div(y.Num(), y.Denom()), y.IsInt()
}

// keeps tells that a cast of a sum is a sum still.
func (s *settler) keeps(arg *expr, t policy.Type, typmod int32) bool {
	if s == nil || len(arg.cols) < 2 {
		return true
	}
	c, err := s.env.Cast(arg.Expr, t, typmod)
	return err != nil || s.reader().cast(node(formOther, "cast:", c, arg.pos, arg)) != nil
}
