package marginals

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestSensitivityByEnumeration looks at every pair of cells that a unit's rows may come from and go to: what the plan
// loses is at most its cost, and nearly that.
func TestSensitivityByEnumeration(t *testing.T) {
	for name, w := range workloads(t) {
		for _, c := range []privacy.Contribution{oneRow, {Rows: 3, Neighbors: privacy.AddRemove}, oneReplace, {Rows: 2, Neighbors: privacy.ReplaceOne}} {
			for _, m := range makers {
				p, err := m.make(w, c, m.cost)
				if err != nil {
					t.Fatal(err)
				}
				b, most := observing(p), 0.0
				_, cells := b.Dims()
				for j := range cells {
					for k := -1; k < cells; k++ {
						if k >= 0 && c.Neighbors == privacy.AddRemove {
							continue
						}
						most = math.Max(most, lost(p, b, j, k, float64(c.Rows)))
					}
				}
				budget := m.cost.Rho.Float() + m.cost.Epsilon.Float()
				least := .999 // and where the total, which replace-one does not move with the rest, has a share of its own
				if m.name == "independent" && c.Neighbors == privacy.ReplaceOne && w.loss[0] > 0 {
					least = .7
				}
				// A discrete Gaussian's variance is below its parameter by up to 3e-7 of it here.
				if most > budget*(1+1e-6) || most < least*budget {
					t.Errorf("%s, %s, %d rows, %s: lost %.9g of %g", name, m.name, c.Rows, c.Neighbors, most, budget)
				}
			}
		}
	}
}

// lost is the ρ or ε between neighbours one of which has all rows in cell j, the other in cell k (−1: nowhere), exactly
// from the noise's parameters.
func lost(p Plan, b *mat.Dense, j, k int, rows float64) float64 {
	total := 0.0
	for _, o := range p.observations {
		for i := range o.length {
			d := b.At(o.offset+i, j)
			if k >= 0 {
				d -= b.At(o.offset+i, k)
			}
			if p.cost.Rho.Pico() > 0 {
				total += d * d * rows * rows / (2 * o.noise.Variance())
			} else {
				// The scale t of a discrete Laplace from its variance: sinh(1/(2t)) = √(1/(2·variance)).
				total += math.Abs(d) * rows * 2 * math.Asinh(math.Sqrt(1/(2*o.noise.Variance())))
			}
		}
	}
	return total
}

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
