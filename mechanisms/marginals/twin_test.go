package marginals

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

const seed = "marginals that add up, every time." // 32 bytes are used

func seeded(stream byte) io.Reader {
	key := [32]byte([]byte(seed)[:32])
	key[31] = stream
	return rand.NewChaCha8(key)
}

var (
	oneRow     = privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}
	oneReplace = privacy.Contribution{Rows: 1, Neighbors: privacy.ReplaceOne}
)

func rho(x float64) privacy.Cost { return privacy.Cost{Rho: privacy.PicoRho(int64(x * 1e12))} }
func eps(x float64) privacy.Cost {
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(int64(math.Round(x * 1e6)))}
}

// workloads are small enough to be written out densely.
func workloads(t testing.TB) map[string]Workload {
	t.Helper()
	all := map[string]Workload{}
	for name, c := range map[string]struct {
		sizes []int
		sets  [][]int
	}{
		"one binary":        {[]int{2}, [][]int{{0}}},
		"total and two":     {[]int{3, 2}, [][]int{{}, {0}, {1}}},
		"all two-way":       {[]int{2, 3, 4}, [][]int{{0, 1}, {0, 2}, {1, 2}}},
		"nested":            {[]int{2, 5, 2}, [][]int{{0}, {0, 1}, {0, 1, 2}, {2}}},
		"far apart":         {[]int{4, 2, 2, 3}, [][]int{{0, 3}, {1}, {1, 2}}},
		"three-way, binary": {[]int{2, 2, 2, 2}, [][]int{{0, 1, 2}, {0, 1, 3}, {0, 2, 3}, {1, 2, 3}}},
	} {
		d, err := NewDomain(c.sizes...)
		if err != nil {
			t.Fatal(err)
		}
		list := []Marginal{}
		for i, s := range c.sets {
			set, err := d.Set(s...)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, Marginal{set, 1 + float64(i)/2})
		}
		if all[name], err = NewWorkload(d, list...); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

type maker func(Workload, privacy.Contribution, privacy.Cost) (Plan, error)

var makers = []struct {
	name string
	make maker
	cost privacy.Cost
}{
	{"residuals", Residuals, rho(.125)}, {"best zcdp", Best, rho(.5)}, {"histograms", Histograms, eps(1)},
	{"histograms zcdp", Histograms, rho(.5)}, {"independent", Independent, eps(.5)}, {"cube", Cube, eps(2)},
}

// counting is the 0-1 matrix that sums the full cube down to the marginal on s.
func counting(d Domain, s Set) *mat.Dense {
	all := Set(1)<<len(d.sizes) - 1
	m := mat.NewDense(d.Cells(s), d.Cells(all), nil)
	for cell := range d.Cells(all) {
		rest, index, stride := cell, 0, 1
		for a := len(d.sizes) - 1; a >= 0; a-- {
			if s.Has(a) {
				index += rest % d.sizes[a] * stride
				stride *= d.sizes[a]
			}
			rest /= d.sizes[a]
		}
		m.Set(index, cell, 1)
	}
	return m
}

// silent is what a plan observes of the cube without noise.
func silent(p Plan, cube []int64) []int64 {
	noisy := make([]int64, p.Observed())
	for i, t := range tallies(p, cube) {
		p.observeHistograms(i, p.clean(t, p.sources[i]), noisy)
		p.observeResiduals(i, p.clean(t, p.sources[i]), noisy)
	}
	return noisy
}

func tallies(p Plan, cube []int64) [][]int64 {
	list := [][]int64{}
	x := mat.NewVecDense(len(cube), nil)
	for i, n := range cube {
		x.SetVec(i, float64(n))
	}
	for _, s := range p.sources {
		var y mat.VecDense
		y.MulVec(counting(p.workload.domain, s), x)
		cells := make([]int64, y.Len())
		for i := range cells {
			cells[i] = int64(y.AtVec(i))
		}
		list = append(list, cells)
	}
	return list
}

// observing is the dense matrix of everything that a plan observes, found by asking it for each unit vector.
func observing(p Plan) *mat.Dense {
	n := p.workload.domain.Cells(Set(1)<<len(p.workload.domain.sizes) - 1)
	b := mat.NewDense(p.Observed(), n, nil)
	for j := range n {
		cube := make([]int64, n)
		cube[j] = 1
		for i, y := range silent(p, cube) {
			b.Set(i, j, float64(y))
		}
	}
	return b
}

// noiseVariances are those of the observed integers.
func noiseVariances(p Plan) []float64 {
	v := make([]float64, 0, p.Observed())
	for _, o := range p.observations {
		for range o.length {
			v = append(v, o.noise.Variance())
		}
	}
	return v
}

// reading is the matrix by which an estimate reads the marginal on s from the observed integers.
func reading(t testing.TB, p Plan, s Set) *mat.Dense {
	l := mat.NewDense(p.workload.domain.Cells(s), p.Observed(), nil)
	for i := range p.Observed() {
		unit := make([]int64, p.Observed())
		unit[i] = 1 << 20
		e, err := NewEstimate(p, privacy.Published(Noisy{unit}))
		if err != nil {
			t.Fatal(err)
		}
		cells, err := e.Marginal(s)
		if err != nil {
			t.Fatal(err)
		}
		for j, x := range cells.Value() {
			l.Set(j, i, x/(1<<20))
		}
	}
	return l
}

func everyPlan(t *testing.T, f func(t *testing.T, p Plan)) {
	for name, w := range workloads(t) {
		for _, c := range []privacy.Contribution{oneRow, {Rows: 3, Neighbors: privacy.AddRemove}, oneReplace} {
			for _, m := range makers {
				p, err := m.make(w, c, m.cost)
				if err != nil {
					t.Fatal(err)
				}
				t.Run(fmt.Sprintf("%s, %s, %d, %s", name, m.name, c.Rows, c.Neighbors), func(t *testing.T) { f(t, p) })
			}
		}
	}
}

// TestReadingAgainstDenseAlgebra: reading what was observed of the cube gives its marginals (unbiased), reading the noise
// has the covariance that the plan says, and no other linear reading has less variance (generalised least squares).
func TestReadingAgainstDenseAlgebra(t *testing.T) {
	everyPlan(t, func(t *testing.T, p Plan) {
		b, v := observing(p), noiseVariances(p)
		var weighted, gram mat.Dense
		weighted.CloneFrom(b)
		weighted.Apply(func(i, _ int, x float64) float64 { return x / v[i] }, &weighted)
		gram.Mul(b.T(), &weighted)
		best := pseudoInverse(t, &gram)
		for _, s := range p.workload.closure {
			l, q := reading(t, p, s), counting(p.workload.domain, s)
			var read, left, covariance, least mat.Dense
			read.Mul(l, b)
			if !mat.EqualApprox(&read, q, 1e-9) {
				t.Fatalf("marginal %v is read with a bias", s.Attributes())
			}
			left.Apply(func(_, j int, x float64) float64 { return x * v[j] }, l)
			covariance.Mul(&left, l.T())
			least.Product(q, best, q.T())
			claimed, err := p.Variance(s)
			if err != nil {
				t.Fatal(err)
			}
			rows, _ := q.Dims()
			for i := range rows {
				if math.Abs(covariance.At(i, i)/claimed-1) > 1e-8 || math.Abs(least.At(i, i)/claimed-1) > 1e-6 {
					t.Fatalf("marginal %v: variance %g, least %g, claimed %g", s.Attributes(), covariance.At(i, i), least.At(i, i), claimed)
				}
			}
		}
	})
}

func pseudoInverse(t testing.TB, m *mat.Dense) *mat.Dense {
	n, _ := m.Dims()
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, m.At(i, j))
		}
	}
	var e mat.EigenSym
	if !e.Factorize(s, true) {
		t.Fatal("eigenvalues")
	}
	values := e.Values(nil)
	var u, scaled, inverse mat.Dense
	e.VectorsTo(&u)
	scaled.Apply(func(_, j int, x float64) float64 {
		if values[j] < 1e-9*values[n-1] {
			return 0
		}
		return x / values[j]
	}, &u)
	inverse.Mul(&scaled, u.T())
	return &inverse
}

// TestProductsAgainstDenseAlgebra: random weighted counts and their covariances.
func TestProductsAgainstDenseAlgebra(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	everyPlan(t, func(t *testing.T, p Plan) {
		d, v := p.workload.domain, noiseVariances(p)
		for range 3 {
			q, r := anyProduct(random, p), anyProduct(random, p)
			a, b := functional(t, p, q), functional(t, p, r)
			want, size := 0.0, 0.0
			for i := range a {
				want += a[i] * b[i] * v[i]
				size += math.Abs(a[i] * b[i] * v[i])
			}
			got, err := p.Covariance(q, r)
			if err != nil || math.Abs(got-want) > 1e-8*(size+1) {
				t.Fatalf("covariance %g, dense %g (%v)", got, want, err)
			}
		}
		cube := make([]int64, d.Cells(Set(1)<<len(d.sizes)-1))
		for i := range cube {
			cube[i] = random.Int64N(1000)
		}
		e, err := NewEstimate(p, privacy.Published(Noisy{silent(p, cube)}))
		if err != nil {
			t.Fatal(err)
		}
		q := anyProduct(random, p)
		got, err := e.Sum(q)
		want := 0.0
		for cell, n := range cube {
			weight, rest := float64(n), cell
			for a := len(d.sizes) - 1; a >= 0; a-- {
				if w, ok := q[a]; ok {
					weight *= w[rest%d.sizes[a]]
				}
				rest /= d.sizes[a]
			}
			want += weight
		}
		if err != nil || math.Abs(got.Value()-want) > 1e-6*(1+math.Abs(want)) {
			t.Fatalf("sum %g, counted %g (%v)", got.Value(), want, err)
		}
	})
}

func anyProduct(random *rand.Rand, p Plan) Product {
	q := Product{}
	for _, a := range p.workload.closure[random.IntN(len(p.workload.closure))].Attributes() {
		for range p.workload.domain.sizes[a] {
			q[a] = append(q[a], float64(random.IntN(7)-2))
		}
	}
	return q
}

// functional is the weight of each observed integer in the reading of a product.
func functional(t testing.TB, p Plan, q Product) []float64 {
	f := make([]float64, p.Observed())
	for i := range f {
		unit := make([]int64, p.Observed())
		unit[i] = 1
		e, err := NewEstimate(p, privacy.Published(Noisy{unit}))
		if err != nil {
			t.Fatal(err)
		}
		x, err := e.Sum(q)
		if err != nil {
			t.Fatal(err)
		}
		f[i] = x.Value()
	}
	return f
}

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
