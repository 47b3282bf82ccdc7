package marginals

import (
	"fmt"
	"maps"
	"math"
)

// Product is a weighted count: each row counts as the product of the weights of its cells in the attributes named. A
// sub-cube has weights 0 and 1; a sum has values as weights; attributes that are not named do not matter.
type Product map[int][]float64

// Pick returns weights of n cells that are 1 at the given ones and 0 elsewhere.
func Pick(n int, cells ...int) []float64 {
	w := make([]float64, n)
	for _, c := range cells {
		w[c] = 1
	}
	return w
}

// check returns the product's set of attributes.
func (p *Plan) check(q Product) (Set, error) {
	if err := p.valid(); err != nil {
		return 0, err
	}
	s := Set(0)
	for a, weights := range q {
		if a < 0 || a >= len(p.workload.domain.sizes) {
			return 0, fmt.Errorf("attribute is %d, must be from 0 to %d", a, len(p.workload.domain.sizes)-1)
		}
		if n := p.workload.domain.sizes[a]; len(weights) != n {
			return 0, fmt.Errorf("number of weights of attribute %d is %d, must be %d", a, len(weights), n)
		}
		for _, w := range weights {
			if math.IsNaN(w) || math.IsInf(w, 0) {
				return 0, fmt.Errorf("weight of attribute %d is %g, must be finite", a, w)
			}
		}
		s |= 1 << a
	}
	return s, p.has(s)
}

// with returns the product with weights for one further attribute, all 1 if none are given.
func (p *Plan) with(q Product, attribute int, weights []float64) (Product, error) {
	if err := p.valid(); err != nil {
		return nil, err
	}
	if attribute < 0 || attribute >= len(p.workload.domain.sizes) {
		return nil, fmt.Errorf("attribute is %d, must be from 0 to %d", attribute, len(p.workload.domain.sizes)-1)
	}
	if _, ok := q[attribute]; ok {
		return nil, fmt.Errorf("attribute %d is in the product already", attribute)
	}
	if weights == nil {
		weights = make([]float64, p.workload.domain.sizes[attribute])
		for i := range weights {
			weights[i] = 1
		}
	}
	full := maps.Clone(q)
	if full == nil {
		full = Product{}
	}
	full[attribute] = weights
	return full, nil
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, x := range a {
		s += x * b[i]
	}
	return s
}

// VarianceOf returns the exact variance of the product as Estimate.Sum reads it.
func (p Plan) VarianceOf(q Product) (float64, error) { return p.Covariance(q, q) }

// Covariance returns the exact covariance of two products as Estimate.Sum reads them.
//
// Derivation: what a product q takes from residual a is Σ (⊗ P_i q_i)·r_a times Π of the mean of q_i, over its attributes
// outside of a; an attribute that q does not name has weights 1, whose projection is 0. Residuals are uncorrelated, and
// r_a has covariance σ_a²·⊗P_i.
func (p Plan) Covariance(q, r Product) (float64, error) {
	s, err := p.check(q)
	if err != nil {
		return 0, err
	}
	t, err := p.check(r)
	if err != nil {
		return 0, err
	}
	covariance := 0.0
	for a := range (s & t).subsets {
		c := p.variance[a]
		for _, i := range (s | t).Attributes() {
			n := float64(p.workload.domain.sizes[i])
			switch {
			case a.Has(i):
				c *= dot(q[i], r[i]) - sum(q[i])*sum(r[i])/n
			default:
				if s.Has(i) {
					c *= sum(q[i]) / n
				}
				if t.Has(i) {
					c *= sum(r[i]) / n
				}
			}
		}
		covariance += c
	}
	return covariance, nil
}
