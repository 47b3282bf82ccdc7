package semantics

import (
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// price * (1 - discount): a product of columns, each moved by a constant, is added up by the database, as a product of
// whole numbers; where that is larger than what is added up, divided by a power of ten and rounded, row by row. Other
// expressions are added up by cells, where a value inside a step counts as its middle.

// maxFactors is how many columns a product may have.
const maxFactors = 3

// moved is a column less a constant. Where it is NULL it counts as Fill less that constant, as in price -
// coalesce(refund, 0); nil means all is NULL then.
type moved struct {
	Column int
	By     *big.Rat
	Fill   *big.Rat
}

// Product is a constant times moved columns.
type Product struct {
	Times *big.Rat
	Of    []moved
}

// ProductOf reads an expression as a product; nil means it is something else.
func ProductOf(e *Expr) *Product {
	if e.IsConstant() {
		if e.Parameter > 0 {
			return nil
		}
		v, refusal := e.Value(nil)
		x, ok := derived.RatOf(v)
		if refusal != nil || !ok {
			return nil
		}
		return &Product{Times: x}
	}
	switch {
	case e.Form == FormColumn:
		return &Product{big.NewRat(1, 1), []moved{{e.Cols[0], new(big.Rat), nil}}}
	case len(e.Args) == 1 && strings.HasPrefix(e.Op, "cast:"):
		if !KeepsNumbers(e) {
			return nil // it may round
		}
		return ProductOf(e.Args[0])
	case len(e.Args) == 2 && e.Op == "coalesce":
		of, other := ProductOf(e.Args[0]), ProductOf(e.Args[1])
		if of == nil || other == nil || len(of.Of) != 1 || len(other.Of) > 0 || of.Times.Cmp(big.NewRat(1, 1)) != 0 || of.Of[0].By.Sign() != 0 || of.Of[0].Fill != nil {
			return nil
		}
		return &Product{of.Times, []moved{{of.Of[0].Column, of.Of[0].By, other.Times}}}
	case len(e.Args) == 1 && e.Op == "-":
		if p := ProductOf(e.Args[0]); p != nil {
			return p.scaled(big.NewRat(-1, 1))
		}
	case len(e.Args) == 2 && (e.Op == "*" || e.Op == "+" || e.Op == "-" || e.Op == "/" && !e.Type().Integer()):
		a, b := ProductOf(e.Args[0]), ProductOf(e.Args[1])
		if a == nil || b == nil {
			return nil
		}
		if e.Op == "/" {
			if len(b.Of) > 0 || b.Times.Sign() == 0 {
				return nil
			}
			return a.scaled(new(big.Rat).Inv(b.Times))
		}
		if e.Op == "*" {
			return &Product{new(big.Rat).Mul(a.Times, b.Times), append(slices.Clone(a.Of), b.Of...)}
		}
		if e.Op == "-" {
			b = b.scaled(big.NewRat(-1, 1))
		}
		return a.plus(b)
	}
	return nil
}

func (p *Product) scaled(by *big.Rat) *Product {
	return &Product{new(big.Rat).Mul(p.Times, by), p.Of}
}

// Needed are the columns without which a sum of products is NULL: all but those that have a value where they are NULL;
// filled: there are some.
func Needed(list []Product) (columns []int, filled bool) {
	for _, p := range list {
		for _, m := range p.Of {
			if m.Fill != nil {
				filled = true
			} else if !slices.Contains(columns, m.Column) {
				columns = append(columns, m.Column)
			}
		}
	}
	slices.Sort(columns)
	return columns, filled
}

// plus adds a constant to a single moved column; nil means the sum is no product.
func (p *Product) plus(q *Product) *Product {
	if len(p.Of) == 0 {
		p, q = q, p
	}
	if len(p.Of) != 1 || len(q.Of) != 0 || p.Times.Sign() == 0 {
		return nil
	}
	by := new(big.Rat).Sub(p.Of[0].By, new(big.Rat).Quo(q.Times, p.Times))
	return &Product{p.Times, []moved{{p.Of[0].Column, by, p.Of[0].Fill}}}
}

// Factors puts the columns on grids of at most each steps, as fine as the product of the largest values is at most
// most; false where a constant is not on its column's grid.
func (p *Product) Factors(t *policy.Table, each, most int64) ([]plans.Factor, bool) {
	if len(p.Of) == 0 || len(p.Of) > maxFactors {
		return nil, false
	}
	exponents := make([]int, len(p.Of))
	for i, m := range p.Of {
		f, ok := FactorOf(t.Columns[m.Column], false, each)
		if !ok {
			return nil, false
		}
		exponents[i] = f.Exponent
	}
	for {
		factors, all := make([]plans.Factor, len(p.Of)), int64(1)
		largest, at := int64(0), 0
		for i, m := range p.Of {
			var ok bool
			if factors[i], ok = m.Factor(t.Columns[m.Column], exponents[i]); !ok {
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
			slices.SortFunc(factors, plans.CompareFactors)
			return factors, true
		}
		exponents[at]++
	}
}

// Factor is the moved column on a grid.
func (m moved) Factor(c *policy.Column, exponent int) (plans.Factor, bool) {
	centre := new(big.Rat).Quo(m.By, Power10(exponent, 1))
	least, ok := derived.RatOf(c.Domain.Min)
	most, also := derived.RatOf(c.Domain.Max)
	if !ok || !also || !centre.IsInt() || !centre.Num().IsInt64() || centre.Num().BitLen() > 40 {
		return plans.Factor{}, false
	}
	f := plans.Factor{Column: c, Exponent: exponent, Centre: centre.Num().Int64()}
	f.Low, f.High = Nearest10(least, exponent)-f.Centre, Nearest10(most, exponent)-f.Centre
	if m.Fill == nil {
		return f, true
	}
	fill := new(big.Rat).Mul(m.Fill, Power10(-exponent, 1))
	if own, _ := Finest(c); exponent <= own && !fill.IsInt() || fill.Num().BitLen()-fill.Denom().BitLen() > 40 {
		return plans.Factor{}, false
	}
	f.Filled, f.Fill = true, Nearest10(m.Fill, exponent)-f.Centre
	f.Low, f.High = min(f.Low, f.Fill), max(f.High, f.Fill)
	return f, true
}
