package planner

import (
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
)

// multiply makes v the value of a product; false where its argument is none.
func (v *value) multiply(t *policy.Table) bool {
	p := productOf(v.arg)
	if p == nil || v.use == rounded {
		return false
	}
	most := v.largest
	if v.use == alone {
		most = derived.MaxMagnitude
	}
	factors, ok := p.factors(t, v.largest, most)
	if !ok {
		return false
	}
	v.terms, v.times = one(factors), p.times
	for _, f := range factors {
		v.grid.exponent += f.Exponent
	}
	bound, ok := boundOfTerms(v.terms)
	if !ok || bound == (mechanisms.Bound{}) {
		return false
	}
	for v.bound, v.over = bound, 1; max(-v.bound.Low, v.bound.High) > v.largest; v.grid.exponent++ {
		v.over *= 10
		v.bound = mechanisms.Bound{Low: nearestOf(bound.Low, v.over), High: nearestOf(bound.High, v.over)}
	}
	bound = v.bound
	ends := []*big.Rat{power10(v.grid.exponent, bound.Low), power10(v.grid.exponent, bound.High)}
	for _, x := range ends {
		x.Mul(x, p.times)
	}
	v.least, v.most = extremes(ends)
	return true
}
