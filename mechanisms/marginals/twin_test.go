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
