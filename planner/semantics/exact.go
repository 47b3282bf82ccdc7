package semantics

import (
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// What is added up, or compared, on each of a million cells: (n - 499.5) * (n - 499.5), abs(cents - 3.17) > 2. On the
// regular cells of its only column such an expression is arithmetic of whole numbers of one power of ten each, which is
// done as that: a column's values are a first one and a step, and nothing is asked of Box and package scalar, which
// make a value of each part on each cell.
//
// Claim: where at gives a number for a cell, the expression's value at that cell's end (Domain.Low, or another by which
// it is made) is that number of 10^−scale, true and false being 1 and 0. Proof, by the nodes: a column's ends are in
// arithmetic progression, as progression has looked at: a domain's are (policy.Domain), but for those of its last cell,
// of which nothing is said. Sums, products, remainders and what rounds down, up or to a digit are PostgreSQL's of exact
// numbers, whose digits are never cut off within limits that maxExact is far from. A quotient is one of whole numbers
// alone, toward zero. What is NULL, fails, divides by zero, or is out of its type's range has no number here, and is
// evaluated as before. Twin: TestExactIsEvaluation.

// exact is an expression over one column on the column's regular cells, without the last.
type exact struct {
	scale int32
	at    func(cell int64) *big.Int // nil is not known here. The number is overwritten at the next cell
}

// Limits of the numbers that are calculated with.
const (
	maxExactScale = 400
	maxExactBits  = 1 << 10
)

// ExactFrom is from how many regular cells on they are calculated with so. Tests set it, to evaluate on each.
var ExactFrom = 3

// exactOf reads an expression over one column at an end of each of its cells; nil means it is something else.
func exactOf(e *Expr, d *policy.Domain, end func(cell int) policy.Value) *exact {
	if d == nil || !d.Ordered() || d.Ladder != nil || d.Regular < ExactFrom {
		return nil
	}
	column := progression(end, d.Regular-1)
	if column == nil {
		return nil
	}
	return exactReader{column}.of(e)
}

// progression are values that begin with a first one and go on in equal steps, as far as its first, second and last say
// so; nil means they do not, or are no exact numbers.
func progression(value func(int) policy.Value, size int) func() *exact {
	var ends [3]policy.Numeric
	for i, cell := range []int{0, 1, size - 1} {
		switch v := value(cell).(type) {
		case int64:
			ends[i] = policy.NewNumeric(v, 0)
		case policy.Numeric:
			if v.Scale < 0 {
				return nil
			}
			ends[i] = v
		default:
			return nil
		}
	}
	scale := max(ends[0].Scale, ends[1].Scale, ends[2].Scale)
	first, step := ends[0].At(scale), ends[1].At(scale)
	step.Sub(step, first)
	last := new(big.Int).Mul(step, big.NewInt(int64(size-1)))
	if last.Add(last, first).Cmp(ends[2].At(scale)) != 0 {
		return nil
	}
	return func() *exact {
		number := new(big.Int)
		if low, each := first.Int64(), step.Int64(); first.BitLen() < 62 && last.BitLen() < 62 {
			return &exact{scale, func(cell int64) *big.Int { return number.SetInt64(low + each*cell) }}
		}
		return &exact{scale, func(cell int64) *big.Int {
			return number.Add(first, number.Mul(step, number.SetInt64(cell)))
		}}
	}
}

// exactReader reads expressions over a column.
type exactReader struct{ column func() *exact }

func (r exactReader) of(e *Expr) (x *exact) {
	t := e.Type()
	if !isExact(t) && t != policy.Bool {
		return nil
	}
	switch {
	case e.IsConstant():
		return exactConstant(e)
	case e.Form == FormColumn && isExact(t):
		return r.column()
	case len(e.Args) == 0:
		return nil
	}
	args := make([]*exact, len(e.Args))
	for i, a := range e.Args {
		if args[i] = r.of(a); args[i] == nil {
			return nil
		}
	}
	if x = operated(e, args); x == nil || x.scale > maxExactScale {
		return nil
	}
	if t.Integer() {
		return x.within(t)
	}
	return x
}

func exactConstant(e *Expr) *exact {
	v, refusal := e.Value(nil)
	if refusal != nil {
		return nil
	}
	var digits *big.Int
	scale := int32(0)
	switch v := v.(type) {
	case bool:
		digits = truthNumber(v)
	case int64:
		digits = big.NewInt(v)
	case policy.Numeric:
		if digits, scale = v.Coefficient, v.Scale; scale < 0 || scale > maxExactScale ||
			digits.BitLen() > maxExactBits {
			return nil
		}
	default:
		return nil
	}
	return &exact{scale, func(int64) *big.Int { return digits }}
}

var isTrue, isFalse = big.NewInt(1), new(big.Int)

func truthNumber(holds bool) *big.Int {
	if holds {
		return isTrue
	}
	return isFalse
}

// operated is the top of an expression over its arguments; nil means it is something else.
func operated(e *Expr, args []*exact) *exact {
	number := new(big.Int)
	one := func(scale int32, f func(a *big.Int) *big.Int) *exact {
		of := args[0].at
		return &exact{scale, func(cell int64) *big.Int {
			if a := of(cell); a != nil {
				return f(a)
			}
			return nil
		}}
	}
	two := func(scale int32, a, b *exact, f func(a, b *big.Int) *big.Int) *exact {
		return &exact{scale, func(cell int64) *big.Int {
			if x, y := a.at(cell), b.at(cell); x != nil && y != nil {
				return f(x, y)
			}
			return nil
		}}
	}
	same := func() (scale int32, list []*exact) { // at one scale
		for _, a := range args {
			scale = max(scale, a.scale)
		}
		for _, a := range args {
			list = append(list, a.rescaled(scale))
		}
		return scale, list
	}
	numeric := len(e.Args) > 0 && e.Args[0].Type() == policy.NumericType && e.Type() == policy.NumericType
	switch {
	case e.Form == FormCompare && len(args) == 2 && isExact(e.Args[0].Type()) && isExact(e.Args[1].Type()):
		_, list := same()
		return two(0, list[0], list[1], func(a, b *big.Int) *big.Int {
			return truthNumber(comparesAs(e.Op, a.Cmp(b)))
		})
	case e.Form == formIn && !slices.ContainsFunc(e.Args, func(a *Expr) bool { return !isExact(a.Type()) }):
		_, list := same()
		return &exact{0, func(cell int64) *big.Int {
			holds, of := isFalse, list[0].at(cell)
			for _, a := range list[1:] {
				v := a.at(cell)
				if of == nil || v == nil {
					return nil
				}
				if v.Cmp(of) == 0 {
					holds = isTrue
				}
			}
			return holds
		}}
	case (e.Form == FormAnd || e.Form == FormOr) && !slices.ContainsFunc(e.Args,
		func(a *Expr) bool { return a.Type() != policy.Bool }):
		return &exact{0, func(cell int64) *big.Int {
			out := truthNumber(e.Form == FormAnd)
			for _, a := range args {
				switch v := a.at(cell); {
				case v == nil: // it may be NULL, and fail
					return nil
				case (v.Sign() != 0) != (e.Form == FormAnd):
					out = truthNumber(e.Form == FormOr)
				}
			}
			return out
		}}
	case e.Form == FormIsNull && len(args) == 1: // of what is known
		return one(0, func(*big.Int) *big.Int { return isFalse })
	case e.Form == formNot && len(args) == 1:
		return one(0, func(a *big.Int) *big.Int { return truthNumber(a.Sign() == 0) })
	case e.Form != FormOther || !isExact(e.Type()):
		return nil
	case len(args) == 1 && strings.HasPrefix(e.Op, "cast:"):
		from := e.Args[0].Type()
		if isExact(from) && e.Typmod() < 0 && (e.Type() == policy.NumericType || from.Integer()) {
			return args[0]
		}
	case (e.Op == "case0" || e.Op == "case1") && len(args) >= 3 && len(args)%2 == 1:
		scale, list := same()
		for i := 0; i+1 < len(args); i += 2 { // the conditions, of scale 0
			list[i] = args[i]
		}
		return &exact{scale, func(cell int64) *big.Int {
			for i := 0; i+1 < len(args); i += 2 {
				if v := list[i].at(cell); v == nil {
					return nil
				} else if v.Sign() != 0 {
					return list[i+1].at(cell)
				}
			}
			return list[len(list)-1].at(cell)
		}}
	case slices.ContainsFunc(e.Args, func(a *Expr) bool { return !isExact(a.Type()) }):
		return nil
	case e.Op == "coalesce":
		return args[0]
	case e.Op == "greatest" || e.Op == "least":
		scale, list := same()
		return &exact{scale, func(cell int64) (best *big.Int) {
			for _, a := range list {
				v := a.at(cell)
				if v == nil {
					return nil
				}
				if best == nil || (v.Cmp(best) > 0) == (e.Op == "greatest") {
					best = v
				}
			}
			return best
		}}
	case len(args) == 2 && (e.Op == "+" || e.Op == "-"):
		scale, list := same()
		apply := number.Add
		if e.Op == "-" {
			apply = number.Sub
		}
		return two(scale, list[0], list[1], apply)
	case len(args) == 2 && e.Op == "*":
		return two(args[0].scale+args[1].scale, args[0], args[1], number.Mul)
	case len(args) == 2 && (e.Op == "%" || e.Op == "mod" || e.Op == "/" && e.Type().Integer()):
		scale, list := same()
		if e.Op == "/" {
			scale = 0
		}
		apply := number.Rem
		if e.Op == "/" {
			apply = number.Quo
		}
		return two(scale, list[0], list[1], func(a, b *big.Int) *big.Int {
			if b.Sign() == 0 {
				return nil
			}
			return apply(a, b)
		})
	case len(args) == 1 && e.Op == "-":
		return one(args[0].scale, number.Neg)
	case len(args) == 1 && (e.Op == "abs" || e.Op == "@"):
		return one(args[0].scale, number.Abs)
	case numeric && len(args) == 1 && (e.Op == "floor" || e.Op == "ceil" || e.Op == "ceiling"):
		unit, rest, up := derived.Tens(args[0].scale), new(big.Int), e.Op != "floor"
		return one(0, func(a *big.Int) *big.Int {
			number.DivMod(a, unit, rest) // down
			if up && rest.Sign() != 0 {
				number.Add(number, isTrue)
			}
			return number
		})
	}
	return nil
}

// comparesAs reports whether a comparison holds of what compares so.
func comparesAs(op string, order int) bool {
	switch op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	case "=":
		return order == 0
	}
	return order != 0
}

// rescaled is the same in units of a scale that is no smaller.
func (x *exact) rescaled(scale int32) *exact {
	if scale == x.scale {
		return x
	}
	number, by, of := new(big.Int), derived.Tens(scale-x.scale), x.at
	return &exact{scale, func(cell int64) *big.Int {
		if a := of(cell); a != nil {
			return number.Mul(a, by)
		}
		return nil
	}}
}

// within knows nothing of what is out of a type's range.
func (x *exact) within(t policy.Type) *exact {
	size := map[policy.Type]int{policy.Int2: 15, policy.Int4: 31, policy.Int8: 63}[t]
	of := x.at
	return &exact{x.scale, func(cell int64) *big.Int {
		if a := of(cell); a != nil && a.BitLen() <= size { // the least of all is left out too
			return a
		}
		return nil
	}}
}

// Numbers finds what is added up of an expression on cells of its columns, and whether it varies there: in their
// middles, or at their low ends, as GROUP BY shows them.
func (b *Box) Numbers(e *Expr, low bool) func(cells []int) (x Number, varies bool, refusal *refuse.Refusal) {
	of, known := b.Middle, b.exactNumbers(e, low)
	if low {
		of = b.First
	}
	return func(cells []int) (Number, bool, *refuse.Refusal) {
		if x, ok := known(cells); ok {
			return x, !b.Table.Columns[e.Cols[0]].Domain.Single(), nil
		}
		for i, c := range e.Cols {
			b.Set(c, cells[i])
		}
		x, refusal := of(e)
		return x, b.IsWide(e), refusal
	}
}

// exactNumbers are those of an expression over one column as far as they are known without a box.
func (b *Box) exactNumbers(e *Expr, low bool) func(cells []int) (Number, bool) {
	d, first := b.exactAt(e, (*policy.Domain).Low)
	var last *exact
	if first != nil && !low && !d.Single() {
		_, last = b.exactAt(e, func(d *policy.Domain, cell int) policy.Value {
			return InnerOf(d, cell, LastOf(d,
				cell))
		})
		if last == nil {
			first = nil
		}
	}
	return func(cells []int) (x Number, ok bool) {
		if first == nil || cells[0] >= d.Regular-1 {
			return x, false
		}
		b.Env.Work.Step(max(e.Nodes, 1))
		if x, ok = first.number(cells[0]); ok && last != nil {
			var end Number
			if end, ok = last.number(cells[0]); ok {
				x = between(x, end)
			}
		}
		return x, ok
	}
}

// Truths finds the value of a condition on cells of its only column, and whether it is steady there.
func (b *Box) Truths(e *Expr) func(cell int) (v policy.Value, steady bool, refusal *refuse.Refusal) {
	d, known := b.exactAt(e, (*policy.Domain).Low)
	if known != nil && !d.Single() {
		known = nil
	}
	return func(cell int) (policy.Value, bool, *refuse.Refusal) {
		if known != nil && cell < d.Regular-1 {
			b.Env.Work.Step(max(e.Nodes, 1))
			if v := known.at(int64(cell)); v != nil {
				return v.Sign() != 0, true, nil
			}
		}
		b.Set(e.Cols[0], cell)
		return b.Value(e)
	}
}

// exactAt reads an expression at an end of each cell of its only column.
func (b *Box) exactAt(e *Expr, end func(*policy.Domain, int) policy.Value) (*policy.Domain, *exact) {
	if len(e.Cols) != 1 || b.Table.Columns[e.Cols[0]].Open != nil {
		return nil, nil
	}
	d := b.Table.Columns[e.Cols[0]].Domain
	return d, exactOf(e, d, func(cell int) policy.Value { return end(d, cell) })
}

func (x *exact) number(cell int) (Number, bool) {
	v := x.at(int64(cell))
	if v == nil {
		return Number{}, false
	}
	if !v.IsInt64() {
		v = new(big.Int).Set(v)
	}
	return decimalOf(v, x.scale), true
}
