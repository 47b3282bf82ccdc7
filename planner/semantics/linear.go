package semantics

import (
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// MaxTerms are the terms that a sum may have.
const MaxTerms = 8

// maxTermDecimals is how many digits after the point constants may have.
const maxTermDecimals = 30

// SumOrProduct are the operators by which sums of products are sums of products again.
var SumOrProduct = WordSet("+ - *")

// LinearOf reads an expression as a sum of products; nil means it is none, or too long.
func LinearOf(e *Expr) []Product {
	if t := e.Type(); !Numeric(e) && t != policy.DateType {
		return nil
	}
	if p := ProductOf(e); p != nil {
		return []Product{*p}
	}
	switch {
	case len(e.Args) == 1 && strings.HasPrefix(e.Op, "cast:") && KeepsNumbers(e):
		return LinearOf(e.Args[0])
	case len(e.Args) == 1 && e.Op == "-":
		return negated(LinearOf(e.Args[0]))
	case len(e.Args) == 2 && SumOrProduct[e.Op]:
		a, b := LinearOf(e.Args[0]), LinearOf(e.Args[1])
		if a == nil || b == nil {
			return nil
		}
		if e.Op == "*" {
			return multiplied(a, b)
		}
		if e.Op == "-" {
			b = negated(b)
		}
		if a = append(slices.Clone(a), b...); len(a) <= MaxTerms {
			return a
		}
	}
	return nil
}

// KeepsNumbers tells casts that do not round.
func KeepsNumbers(e *Expr) bool {
	of := e.Args[0]
	if e.Typmod() >= 0 { // numeric(7,2) becomes numeric(12,2)
		digits, scale := policy.NumericTypmod(e.Typmod())
		own, also := policy.NumericTypmod(of.Typmod())
		return e.Type() == policy.NumericType && of.Type() == policy.NumericType && of.Typmod() >= 0 && scale >= also && digits-scale >= own-also
	}
	return e.Type() == policy.NumericType || e.Type() == policy.Float8 || e.Type().Integer() && of.Type().Integer()
}

func negated(list []Product) []Product {
	out := make([]Product, len(list))
	for i := range list {
		out[i] = *list[i].scaled(big.NewRat(-1, 1))
	}
	return out
}

func multiplied(a, b []Product) (out []Product) {
	if len(a)*len(b) > MaxTerms {
		return nil
	}
	for _, p := range a {
		for _, q := range b {
			if len(p.Of)+len(q.Of) > maxFactors {
				return nil
			}
			out = append(out, Product{new(big.Rat).Mul(p.Times, q.Times), append(slices.Clone(p.Of), q.Of...)})
		}
	}
	return out
}

// Valuation is the largest e for which x is a whole number of 10^e; not exact: there is none.
func Valuation(x *big.Rat) (e int, exact bool) {
	ten, y := big.NewRat(10, 1), new(big.Rat).Set(x)
	for ; !y.IsInt(); e-- {
		if e < -maxTermDecimals {
			return 0, false
		}
		y.Mul(y, ten)
	}
	rest := new(big.Int)
	for n := y.Num(); e < maxTermDecimals; e++ {
		q, r := new(big.Int).QuoRem(n, big.NewInt(10), rest)
		if r.Sign() != 0 {
			break
		}
		n = q
	}
	return e, true
}
