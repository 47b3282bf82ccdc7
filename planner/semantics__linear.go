package planner

import (
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// mostTerms are the terms that a sum may have.
const mostTerms = 8

// mostTermDecimals is how many digits after the point constants may have.
const mostTermDecimals = 30

// linearOf reads an expression as a sum of products; nil: it is none, or too long.
func linearOf(e *expr) []product {
	if t := e.Type(); !numeric(e) && t != policy.DateType {
		return nil
	}
	if p := productOf(e); p != nil {
		return []product{*p}
	}
	switch {
	case len(e.args) == 1 && strings.HasPrefix(e.op, "cast:") && keepsNumbers(e):
		return linearOf(e.args[0])
	case len(e.args) == 1 && e.op == "-":
		return negated(linearOf(e.args[0]))
	case len(e.args) == 2 && (e.op == "*" || e.op == "+" || e.op == "-"):
		a, b := linearOf(e.args[0]), linearOf(e.args[1])
		if a == nil || b == nil {
			return nil
		}
		if e.op == "*" {
			return multiplied(a, b)
		}
		if e.op == "-" {
			b = negated(b)
		}
		if a = append(slices.Clone(a), b...); len(a) <= mostTerms {
			return a
		}
	}
	return nil
}

// keepsNumbers tells casts that do not round.
func keepsNumbers(e *expr) bool {
	return e.Typmod() < 0 && (e.Type() == policy.NumericType || e.Type() == policy.Float8 || e.Type().Integer() && e.args[0].Type().Integer())
}

func negated(list []product) []product {
	out := make([]product, len(list))
	for i := range list {
		out[i] = *list[i].scaled(big.NewRat(-1, 1))
	}
	return out
}

func multiplied(a, b []product) (out []product) {
	if len(a)*len(b) > mostTerms {
		return nil
	}
	for _, p := range a {
		for _, q := range b {
			if len(p.of)+len(q.of) > mostFactors {
				return nil
			}
			out = append(out, product{new(big.Rat).Mul(p.times, q.times), append(slices.Clone(p.of), q.of...)})
		}
	}
	return out
}

// valuation is the largest e for which x is a whole number of 10^e; not exact: there is none.
func valuation(x *big.Rat) (e int, exact bool) {
	ten, y := big.NewRat(10, 1), new(big.Rat).Set(x)
	for ; !y.IsInt(); e-- {
		if e < -mostTermDecimals {
			return 0, false
		}
		y.Mul(y, ten)
	}
	rest := new(big.Int)
	for n := y.Num(); e < mostTermDecimals; e++ {
		q, r := new(big.Int).QuoRem(n, big.NewInt(10), rest)
		if r.Sign() != 0 {
			break
		}
		n = q
	}
	return e, true
}
