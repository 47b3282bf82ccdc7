package marginals

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// TestResidualsAttainTheLowerBound: no unbiased Gaussian matrix mechanism has a smaller sum of variances than
// (tr √G)²/cells/(2ρ), G the workload's weighted Gram matrix (the singular value bound); the plan attains it.
func TestResidualsAttainTheLowerBound(t *testing.T) {
	for name, w := range workloads(t) {
		p, err := Residuals(w, oneRow, rho(.125))
		if err != nil {
			t.Fatal(err)
		}
		bound := singularValueBound(t, w) / (2 * .125)
		if ratio := p.Loss() / bound; ratio < 1-1e-6 || ratio > 1+1e-6 {
			t.Errorf("%s: loss %g, bound %g", name, p.Loss(), bound)
		}
	}
}

func singularValueBound(t testing.TB, w Workload) float64 {
	n := w.domain.Cells(Set(1)<<len(w.domain.sizes) - 1)
	gram := mat.NewDense(n, n, nil)
	for _, m := range w.marginals {
		q := counting(w.domain, m.Set)
		var g mat.Dense
		g.Mul(q.T(), q)
		g.Scale(m.Weight, &g)
		gram.Add(gram, &g)
	}
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, gram.At(i, j))
		}
	}
	var e mat.EigenSym
	if !e.Factorize(s, false) {
		t.Fatal("eigenvalues")
	}
	trace := 0.0
	for _, x := range e.Values(nil) {
		trace += math.Sqrt(math.Max(0, x))
	}
	return trace * trace / float64(n)
}
