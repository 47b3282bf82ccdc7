package linear

import (
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// multiply makes v the value of a product; false where its argument is none.
func (v *Argument) multiply(t *policy.Table) bool {
	p := semantics.ProductOf(v.Arg)
	if p == nil || v.Use == semantics.Rounded {
		return false
	}
	most := v.Largest
	if v.Use == semantics.Alone {
		most = derived.MaxMagnitude
	}
	factors, ok := p.Factors(t, v.Largest, most)
	if !ok {
		return false
	}
	v.terms, v.Times = plans.One(factors), p.Times
	for _, f := range factors {
		v.Grid.Exponent += f.Exponent
	}
	bound, ok := plans.BoundOfTerms(v.terms)
	if !ok || bound == (mechanisms.Bound{}) {
		return false
	}
	for v.bound, v.over = bound, 1; max(-v.bound.Low, v.bound.High) > v.Largest; v.Grid.Exponent++ {
		v.over *= 10
		v.bound = mechanisms.Bound{Low: semantics.NearestOf(bound.Low, v.over), High: semantics.NearestOf(bound.High, v.over)}
	}
	bound = v.bound
	ends := []*big.Rat{semantics.Power10(v.Grid.Exponent, bound.Low), semantics.Power10(v.Grid.Exponent, bound.High)}
	for _, x := range ends {
		x.Mul(x, p.Times)
	}
	v.Least, v.Most = semantics.Extremes(ends)
	return true
}
