package outerquery

import (
	"math/big"
	"slices"
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

// Linear is a sum of counts times constants and a constant, perhaps rounded.
type Linear struct {
	Counts   []WeighedCount
	Rounded  *big.Rat // how far rounding moves two values apart at most, beside what they are apart
	constant *big.Rat
}

// linearShown reads an expression over a leaf's row as a linear function of its counts; nil means it is something else,
// or holds none.
func (b *Query) linearShown(leaf int, e *semantics.Expr) *Linear {
	if leaf < 0 {
		return nil
	}
	f := linearIn(e, len(b.Questions[leaf].Keys))
	if f == nil {
		return nil
	}
	f.Counts = slices.DeleteFunc(f.Counts, func(w WeighedCount) bool { return w.Worth.Sign() == 0 })
	if len(f.Counts) == 0 {
		return nil
	}
	return f
}

// linearIn reads an expression as a linear function of the columns behind so many keys, which are never NULL; nil means
// it is none.
func linearIn(e *semantics.Expr, keys int) *Linear {
	if e.IsConstant() {
		if p := semantics.ProductOf(e); p != nil {
			return &Linear{constant: p.Times, Rounded: new(big.Rat)}
		}
		return nil
	}
	if e.Form == semantics.FormColumn {
		if e.Cols[0] < keys {
			return nil
		}
		return &Linear{[]WeighedCount{{e.Cols[0] - keys, big.NewRat(1, 1)}}, new(big.Rat), new(big.Rat)}
	}
	parts := make([]*Linear, len(e.Args))
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
	case one && slices.Contains([]string{"round", "trunc", "floor", "ceil", "ceiling"}, e.Op):
		return parts[0].within(0)
	case len(parts) == 2:
		return combinedLinear(e, parts[0], parts[1])
	}
	return nil
}

// combinedLinear is what an operator or a function makes of two linear functions.
func combinedLinear(e *semantics.Expr, a, b *Linear) *Linear {
	switch e.Op {
	case "+":
		return a.plus(b)
	case "-":
		return a.plus(b.times(big.NewRat(-1, 1)))
	case "*":
		if len(a.Counts) == 0 {
			a, b = b, a
		}
		if len(b.Counts) == 0 {
			return a.times(b.constant)
		}
	case "/":
		if len(b.Counts) > 0 || b.constant.Sign() == 0 {
			return nil
		}
		switch q := a.times(new(big.Rat).Inv(b.constant)); {
		case e.Type().Floating():
			return q
		case e.Type().Integer():
			return q.rounded(0)
		} // a numeric has as many decimals as its value leaves room for
	case "coalesce":
		return a
	case "round":
		if len(b.Counts) == 0 && b.constant.IsInt() && b.constant.Sign() >= 0 &&
			b.constant.Cmp(big.NewRat(semantics.MaxDecimals, 1)) <= 0 {
			return a.within(int(b.constant.Num().Int64()))
		}
	}
	return nil
}

// cast is a linear function as another type; nil means it is no number.
func (f *Linear) cast(e *semantics.Expr) *Linear {
	of := e.Args[0].Type()
	switch {
	case of == policy.Float4 && e.Type() != of, of == policy.Float8 && e.Type() == policy.NumericType:
		return nil // which keep as many digits as a float's value has room for
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

// within is a function of which no more decimals than these are kept.
func (f *Linear) within(decimals int) *Linear {
	if semantics.DecimalsOf(f.constant) > decimals || f.Rounded.Sign() > 0 {
		return f.rounded(decimals)
	}
	for _, w := range f.Counts {
		if semantics.DecimalsOf(w.Worth) > decimals {
			return f.rounded(decimals)
		}
	}
	return f
}

// rounded is a function that is rounded, in whatever direction, to so many decimals: two values lie less than one step
// further apart then.
func (f *Linear) rounded(decimals int) *Linear {
	out := f.times(big.NewRat(1, 1))
	out.Rounded.Add(out.Rounded, semantics.Power10(-decimals, 1))
	return out
}

func (f *Linear) times(x *big.Rat) *Linear {
	out := &Linear{constant: new(big.Rat).Mul(f.constant, x), Rounded: new(big.Rat).Mul(f.Rounded, new(big.Rat).Abs(x))}
	for _, w := range f.Counts {
		out.Counts = append(out.Counts, WeighedCount{w.Column, new(big.Rat).Mul(w.Worth, x)})
	}
	return out
}

func (f *Linear) plus(g *Linear) *Linear {
	out := f.times(big.NewRat(1, 1))
	out.Rounded.Add(out.Rounded, g.Rounded)
	out.constant.Add(out.constant, g.constant)
next:
	for _, w := range g.Counts {
		for i := range out.Counts {
			if out.Counts[i].Column == w.Column {
				out.Counts[i].Worth.Add(out.Counts[i].Worth, w.Worth)
				continue next
			}
		}
		out.Counts = append(out.Counts, WeighedCount{w.Column, new(big.Rat).Set(w.Worth)})
	}
	return out
}
