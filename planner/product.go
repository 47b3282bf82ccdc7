package planner

import (
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
)

// price * (1 - discount): a product of columns, each moved by a constant, is added up by the database, as a product of whole
// numbers; where that is larger than what is added up, divided by a power of ten and rounded, row by row. Other expressions are
// added up by cells, where a value inside a step counts as its middle.

// mostFactors is how many columns a product may have.
const mostFactors = 3

// moved is a column less a constant.
type moved struct {
	column int
	by     *big.Rat
}

// product is a constant times moved columns.
type product struct {
	times *big.Rat
	of    []moved
}

// productOf reads an expression as a product; nil: it is something else.
func productOf(e *expr) *product {
	if e.isConstant() {
		if e.parameter > 0 {
			return nil
		}
		v, refusal := e.value(nil)
		x, ok := derived.RatOf(v)
		if refusal != nil || !ok {
			return nil
		}
		return &product{times: x}
	}
	switch {
	case e.form == formColumn:
		return &product{big.NewRat(1, 1), []moved{{e.cols[0], new(big.Rat)}}}
	case len(e.args) == 1 && strings.HasPrefix(e.op, "cast:"):
		if e.Typmod() >= 0 || e.Type() != policy.NumericType && e.Type() != policy.Float8 && !(e.Type().Integer() && e.args[0].Type().Integer()) {
			return nil // it may round
		}
		return productOf(e.args[0])
	case len(e.args) == 1 && e.op == "-":
		if p := productOf(e.args[0]); p != nil {
			return p.scaled(big.NewRat(-1, 1))
		}
	case len(e.args) == 2 && (e.op == "*" || e.op == "+" || e.op == "-"):
		a, b := productOf(e.args[0]), productOf(e.args[1])
		if a == nil || b == nil {
			return nil
		}
		if e.op == "*" {
			return &product{new(big.Rat).Mul(a.times, b.times), append(slices.Clone(a.of), b.of...)}
		}
		if e.op == "-" {
			b = b.scaled(big.NewRat(-1, 1))
		}
		return a.plus(b)
	}
	return nil
}

func (p *product) scaled(by *big.Rat) *product {
	return &product{new(big.Rat).Mul(p.times, by), p.of}
}

// plus adds a constant to a single moved column; nil: the sum is no product.
func (p *product) plus(q *product) *product {
	if len(p.of) == 0 {
		p, q = q, p
	}
	if len(p.of) != 1 || len(q.of) != 0 || p.times.Sign() == 0 {
		return nil
	}
	by := new(big.Rat).Sub(p.of[0].by, new(big.Rat).Quo(q.times, p.times))
	return &product{p.times, []moved{{p.of[0].column, by}}}
}

// factors puts the columns on grids of at most each steps, as fine as the product of the largest values is at most most; false
// where a constant is not on its column's grid.
func (p *product) factors(t *policy.Table, each, most int64) ([]Factor, bool) {
	if len(p.of) == 0 || len(p.of) > mostFactors {
		return nil, false
	}
	exponents := make([]int, len(p.of))
	for i, m := range p.of {
		f, ok := factorOf(t.Columns[m.column], false, each)
		if !ok {
			return nil, false
		}
		exponents[i] = f.Exponent
	}
	for {
		factors, all := make([]Factor, len(p.of)), int64(1)
		largest, at := int64(0), 0
		for i, m := range p.of {
			var ok bool
			if factors[i], ok = m.factor(t.Columns[m.column], exponents[i]); !ok {
				return nil, false
			}
			size := max(-factors[i].Low, factors[i].High)
			if size > 0 && all > most/size {
				all = 2 * most
			} else {
				all *= size
			}
			if size > largest {
				largest, at = size, i
			}
		}
		if all == 0 {
			return nil, false
		}
		if all <= most {
			slices.SortFunc(factors, compareFactors)
			return factors, true
		}
		exponents[at]++
	}
}

// factor is the moved column on a grid.
func (m moved) factor(c *policy.Column, exponent int) (Factor, bool) {
	centre := new(big.Rat).Quo(m.by, power10(exponent, 1))
	least, ok := derived.RatOf(c.Domain.Min)
	most, also := derived.RatOf(c.Domain.Max)
	if !ok || !also || !centre.IsInt() || !centre.Num().IsInt64() || centre.Num().BitLen() > 40 {
		return Factor{}, false
	}
	f := Factor{Column: c, Exponent: exponent, Centre: centre.Num().Int64()}
	f.Low, f.High = nearest10(least, exponent)-f.Centre, nearest10(most, exponent)-f.Centre
	return f, true
}
