package outerquery

import (
	"math/big"
	"strings"

	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// How far a column is off that is a count or a sum times a constant, or several of them: sum(price) is a sum of cents
// times 0.01, and its error is that of the cents times 0.01.

// WeighedCount is a column of counts or sums with what one is worth.
type WeighedCount struct {
	Column int
	Worth  *big.Rat
}

// linearShown reads an expression over a leaf's row as count columns times constants; nil means it is something else.
func (b *Query) linearShown(leaf int, e *semantics.Expr) (out []WeighedCount) {
	if leaf < 0 {
		return nil
	}
	f := linearIn(e, len(b.Questions[leaf].Keys))
	if f == nil {
		return nil
	}
	for _, w := range f.counts {
		if w.Worth.Sign() != 0 {
			out = append(out, w)
		}
	}
	return out
}

// linearFunction is a sum of counts times constants and a constant.
type linearFunction struct {
	counts   []WeighedCount
	constant *big.Rat
}

// linearIn reads an expression as a linear function of the columns behind so many keys, which are never NULL; nil means
// it is none, or it may be rounded.
func linearIn(e *semantics.Expr, keys int) *linearFunction {
	if e.IsConstant() {
		if p := semantics.ProductOf(e); p != nil {
			return &linearFunction{constant: p.Times}
		}
		return nil
	}
	if e.Form == semantics.FormColumn {
		if e.Cols[0] < keys {
			return nil
		}
		return &linearFunction{[]WeighedCount{{e.Cols[0] - keys, big.NewRat(1, 1)}}, new(big.Rat)}
	}
	parts := make([]*linearFunction, len(e.Args))
	for i, a := range e.Args {
		if parts[i] = linearIn(a, keys); parts[i] == nil {
			return nil
		}
	}
	switch one := len(parts) == 1; {
	case one && e.Op == "-":
		return parts[0].times(big.NewRat(-1, 1))
	case one && strings.HasPrefix(e.Op, "cast:"):
		return parts[0].cast(e)
	case len(parts) == 2:
		return combinedLinear(e, parts[0], parts[1])
	}
	return nil
}

// combinedLinear is what an operator or a function makes of two linear functions.
func combinedLinear(e *semantics.Expr, a, b *linearFunction) *linearFunction {
	switch e.Op {
	case "+":
		return a.plus(b)
	case "-":
		return a.plus(b.times(big.NewRat(-1, 1)))
	case "*":
		if len(a.counts) == 0 {
			a, b = b, a
		}
		if len(b.counts) == 0 {
			return a.times(b.constant)
		}
	case "/":
		if len(b.counts) == 0 && b.constant.Sign() != 0 && e.Type().Floating() { // whole numbers and numerics are rounded
			return a.times(new(big.Rat).Inv(b.constant))
		}
	case "coalesce":
		return a
	case "round":
		if len(b.counts) == 0 && b.constant.IsInt() && b.constant.Sign() >= 0 && b.constant.Cmp(big.NewRat(semantics.MaxDecimals, 1)) <= 0 {
			return a.within(int(b.constant.Num().Int64()))
		}
	}
	return nil
}

// cast is a linear function as another type; nil means it may be rounded.
func (f *linearFunction) cast(e *semantics.Expr) *linearFunction {
	switch {
	case e.Type().Integer():
		return f.within(0)
	case e.Type() == policy.NumericType && e.Typmod() >= 0:
		_, scale := policy.NumericTypmod(e.Typmod())
		return f.within(int(scale))
	case e.Type() == policy.NumericType || e.Type().Floating():
		return f
	}
	return nil
}

// within is a function whose values have no more decimals than these; nil means they may.
func (f *linearFunction) within(decimals int) *linearFunction {
	if semantics.DecimalsOf(f.constant) > decimals {
		return nil
	}
	for _, w := range f.counts {
		if semantics.DecimalsOf(w.Worth) > decimals {
			return nil
		}
	}
	return f
}

func (f *linearFunction) times(x *big.Rat) *linearFunction {
	out := &linearFunction{constant: new(big.Rat).Mul(f.constant, x)}
	for _, w := range f.counts {
		out.counts = append(out.counts, WeighedCount{w.Column, new(big.Rat).Mul(w.Worth, x)})
	}
	return out
}

func (f *linearFunction) plus(g *linearFunction) *linearFunction {
	out := f.times(big.NewRat(1, 1))
	out.constant.Add(out.constant, g.constant)
next:
	for _, w := range g.counts {
		for i := range out.counts {
			if out.counts[i].Column == w.Column {
				out.counts[i].Worth.Add(out.counts[i].Worth, w.Worth)
				continue next
			}
		}
		out.counts = append(out.counts, WeighedCount{w.Column, new(big.Rat).Set(w.Worth)})
	}
	return out
}
