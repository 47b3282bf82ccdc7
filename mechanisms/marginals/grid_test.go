package marginals

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"gonum.org/v1/gonum/mat"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

func mustGrid(t testing.TB, shape GridShape, c privacy.Contribution, cost privacy.Cost) Grid {
	t.Helper()
	g, err := NewGrid(shape, c, cost)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var gridCosts = []privacy.Cost{eps(1), rho(.5)}

// gridMatrix is the dense observation matrix, found by observing each cell alone.
func gridMatrix(g Grid) *mat.Dense {
	n := g.shape.Rows * g.shape.Columns
	b := mat.NewDense(g.rows.Observations()*g.columns.Observations(), n, nil)
	for j := range n {
		cells := make([]int64, n)
		cells[j] = 1
		for i, y := range g.observe(cells) {
			b.Set(i, j, float64(y))
		}
	}
	return b
}

func everyRectangle(s GridShape, f func(r Rectangle)) {
	for a := range s.Rows {
		for b := a + 1; b <= s.Rows; b++ {
			for c := range s.Columns {
				for d := c + 1; d <= s.Columns; d++ {
					f(Rectangle{ranges.Span{From: a, To: b}, ranges.Span{From: c, To: d}})
				}
			}
		}
	}
}

// gridLoss is the largest ε or ρ between neighbours, by enumeration of where a row may come from and go to.
func gridLoss(g Grid, b *mat.Dense, relation privacy.Neighbors) float64 {
	rows, n := b.Dims()
	most := 0.0
	for j := range n {
		for k := -1; k < n; k++ {
			if k >= 0 && relation == privacy.AddRemove {
				continue
			}
			moved := 0.0
			for i := range rows {
				d := b.At(i, j)
				if k >= 0 {
					d -= b.At(i, k)
				}
				if g.cost.Rho.Pico() > 0 {
					moved += d * d / (2 * g.noise.Variance())
				} else {
					moved += math.Abs(d) * 2 * math.Asinh(math.Sqrt(.5/g.noise.Variance()))
				}
			}
			most = math.Max(most, moved)
		}
	}
	return most
}

// TestGridAgainstDenseAlgebra: sensitivity by enumeration, variances against the inverse of the dense normal equations, the
// mean against all rectangles, the reading of noiseless observations against the counts.
func TestGridAgainstDenseAlgebra(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	for _, shape := range []GridShape{{2, 3}, {5, 4}, {9, 7}} {
		for _, cost := range gridCosts {
			for _, c := range []privacy.Contribution{oneRow, oneReplace} {
				g := mustGrid(t, shape, c, cost)
				b := gridMatrix(g)
				_, n := b.Dims()
				most := gridLoss(g, b, c.Neighbors)
				if paid := cost.Rho.Float() + cost.Epsilon.Float(); most > paid*(1+1e-6) || c.Neighbors == privacy.AddRemove && most < .99*paid {
					t.Errorf("%v, %s, %s: lost %g of %g", shape, cost, c.Neighbors, most, paid)
				}
				var gram, inverse mat.Dense
				gram.Mul(b.T(), b)
				if err := inverse.Inverse(&gram); err != nil {
					t.Fatal(err)
				}
				cells := make([]int64, n)
				for i := range cells {
					cells[i] = random.Int64N(1000)
				}
				e, err := g.Estimate(privacy.Published(Noisy{g.observe(cells)}))
				if err != nil {
					t.Fatal(err)
				}
				sum, count := 0.0, 0.0
				everyRectangle(shape, func(r Rectangle) {
					q, want := mat.NewVecDense(n, nil), 0.0
					for i := r.Rows.From; i < r.Rows.To; i++ {
						for j := r.Columns.From; j < r.Columns.To; j++ {
							q.SetVec(i*shape.Columns+j, 1)
							want += float64(cells[i*shape.Columns+j])
						}
					}
					dense := g.noise.Variance() * mat.Inner(q, &inverse, q)
					got, err := g.Variance(r)
					if err != nil || math.Abs(got/dense-1) > 1e-6 {
						t.Fatalf("%v, %s: variance of %v is %g, dense %g (%v)", shape, cost, r, got, dense, err)
					}
					sum, count = sum+dense, count+1
					terms, err := g.Terms(r)
					squares := 0.0
					for _, x := range terms {
						squares += x.Weight * x.Weight * float64(x.Count) * g.Noise().Variance()
					}
					if err != nil || math.Abs(squares/dense-1) > 1e-6 {
						t.Fatalf("%v, %s: terms of %v have variance %g, dense %g (%v)", shape, cost, r, squares, dense, err)
					}
					if x, err := e.Sum(r); err != nil || math.Abs(x.Value()-want) > 1e-6*(1+want) {
						t.Fatalf("%v, %s: %v holds %g, counted %g (%v)", shape, cost, r, x.Value(), want, err)
					}
				})
				if mean := sum / count; math.Abs(g.MeanVariance()/mean-1) > 1e-6 {
					t.Errorf("%v, %s: mean variance %g, by enumeration %g", shape, cost, g.MeanVariance(), mean)
				}
			}
		}
	}
}

// TestGridsOfSeveralRowsTakeWhatTheyCost: three rows a unit move the observations three times as far as one.
func TestGridsOfSeveralRowsTakeWhatTheyCost(t *testing.T) {
	for _, cost := range gridCosts {
		for _, neighbors := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
			g := mustGrid(t, GridShape{5, 4}, privacy.Contribution{Rows: 3, Neighbors: neighbors}, cost)
			most := 3 * gridLoss(g, gridMatrix(g), neighbors)
			if cost.Rho.Pico() > 0 {
				most *= 3
			}
			if paid := cost.Rho.Float() + cost.Epsilon.Float(); most > paid*(1+1e-6) || most < .5*paid {
				t.Errorf("%s, %s: lost %g of %g", cost, neighbors, most, paid)
			}
		}
	}
}

func TestAuditOfGrids(t *testing.T) {
	for _, c := range []struct {
		cost   privacy.Cost
		faulty bool
	}{{eps(1), false}, {eps(1.5), true}} {
		g := mustGrid(t, GridShape{2, 9}, oneRow, c.cost)
		one, other := make([]int64, 18), make([]int64, 18)
		other[7] = 1
		a, b := g.observe(one), g.observe(other)
		random := seeded(30)
		sample := func(cells []int64) []float64 {
			answers := make([]float64, stattest.Length(30_000, 1_000_000))
			for i := range answers {
				r, err := g.Release(privacy.Seal(cells), random)
				if err != nil {
					t.Fatal(err)
				}
				for j, x := range r.Value().Observations {
					answers[i] += float64(min(max(x, min(a[j], b[j])), max(a[j], b[j]))-a[j]) * float64(b[j]-a[j])
				}
			}
			return answers
		}
		bound, err := stattest.Audit{One: sample(one), Other: sample(other)}.Epsilon(auditAlarm)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("cost %s: epsilon at least %.3f of 1", c.cost, bound)
		if (bound > 1) != c.faulty {
			t.Errorf("seed %q: cost %s: epsilon at least %.3f; paid: 1", seed, c.cost, bound)
		}
	}
}

func TestGridRefusals(t *testing.T) {
	g := mustGrid(t, GridShape{4, 4}, oneRow, eps(1))
	for want, f := range map[string]func() error{
		"shape of a grid is 1 by 4":            func() error { _, err := NewGrid(GridShape{1, 4}, oneRow, eps(1)); return err },
		"shape of a grid is 16777216 by 2":     func() error { _, err := NewGrid(GridShape{1 << 24, 2}, oneRow, eps(1)); return err },
		"rows of a unit is 0":                  func() error { _, err := NewGrid(GridShape{4, 4}, privacy.Contribution{}, eps(1)); return err },
		"must name one of them":                func() error { _, err := NewGrid(GridShape{4, 4}, oneRow, privacy.Cost{}); return err },
		"grid is the zero value":               func() error { _, err := Grid{}.Release(privacy.Seal([]int64{1}), seeded(1)); return err },
		"truth was never sealed":               func() error { _, err := g.Release(privacy.Sensitive[[]int64]{}, seeded(1)); return err },
		"number of observations is 1, must be": func() error { _, err := g.Estimate(privacy.Published(Noisy{[]int64{1}})); return err },
		"rows of a rectangle are 3 to 3, must": func() error {
			_, err := g.Variance(Rectangle{ranges.Span{From: 3, To: 3}, ranges.Span{To: 1}})
			return err
		},
		"columns of a rectangle are 0 to 5, mu": func() error { _, err := g.Variance(Rectangle{ranges.Span{To: 1}, ranges.Span{To: 5}}); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if r, err := g.Release(privacy.Seal([]int64{1}), iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(make([]byte, 9))))); err == nil || r.Valid() {
		t.Error("9 bytes of randomness were enough")
	}
	if _, err := g.Release(privacy.Seal([]int64{math.MaxInt64, math.MaxInt64, math.MinInt64}), seeded(1)); err != nil {
		t.Error(err)
	}
}

// quadtree is the mean variance over all rectangles of d × d cells of the quad tree without its root, all levels alike, by
// least squares: with P_l the averages over its blocks of m_l × m_l cells on both axes, Q_l = P_l⊗P_l − P_{l−1}⊗P_{l−1},
// λ_l = Σ m_k² over the levels from l down, it is variance·Σ tr(Q_l·G⊗G)/λ_l over the number of rectangles.
func quadtree(d int, variance func(levels int) float64) float64 {
	levels := 0
	for 1<<levels < d {
		levels++
	}
	trace := func(m int) float64 { // tr(P·G) of one axis
		sum := 0.0
		for from := 0; from < d; from += m {
			for i := from; i < from+m; i++ {
				for j := from; j < from+m; j++ {
					sum += float64(min(i, j)+1) * float64(d-max(i, j)) / float64(m)
				}
			}
		}
		return sum
	}
	total, before := 0.0, 0.0
	for l := 1; l <= levels; l++ {
		lambda := 0.0
		for k := l; k <= levels; k++ {
			lambda += square(float64(d >> k))
		}
		now := square(trace(d >> l))
		total += (now - before) / lambda
		before = now
	}
	return variance(levels) * total / square(float64(d)*float64(d+1)/2)
}

// TestQuadtreeByDenseAlgebra holds the figure to compare with.
func TestQuadtreeByDenseAlgebra(t *testing.T) {
	const d = 4
	rows := []float64{}
	for _, m := range []int{2, 1} {
		for y := 0; y < d; y += m {
			for x := 0; x < d; x += m {
				row := make([]float64, d*d)
				for i := y; i < y+m; i++ {
					for j := x; j < x+m; j++ {
						row[i*d+j] = 1
					}
				}
				rows = append(rows, row...)
			}
		}
	}
	a := mat.NewDense(len(rows)/(d*d), d*d, rows)
	var gram, inverse mat.Dense
	gram.Mul(a.T(), a)
	if err := inverse.Inverse(&gram); err != nil {
		t.Fatal(err)
	}
	sum, count := 0.0, 0.0
	everyRectangle(GridShape{d, d}, func(r Rectangle) {
		q := mat.NewVecDense(d*d, nil)
		for i := r.Rows.From; i < r.Rows.To; i++ {
			for j := r.Columns.From; j < r.Columns.To; j++ {
				q.SetVec(i*d+j, 1)
			}
		}
		sum, count = sum+mat.Inner(q, &inverse, q), count+1
	})
	if got := quadtree(d, func(int) float64 { return 1 }); math.Abs(got/(sum/count)-1) > 1e-9 {
		t.Errorf("quad tree %g, dense %g", got, sum/count)
	}
}

// rectangleLimit is the singular value bound for all rectangles of d × d cells, in units of σ² = 1/(2ρ): the square of
// that for all ranges, whose Gram matrix has the eigenvalues (d+1)/(4 sin²(πj/(2(d+1)))).
func rectangleLimit(d int) float64 {
	trace := 0.0
	for j := 1; j <= d; j++ {
		trace += math.Sqrt(float64(d+1)) / (2 * math.Sin(math.Pi*float64(j)/(2*float64(d+1))))
	}
	return square(trace * trace / float64(d) / (float64(d) * float64(d+1) / 2))
}

// BenchmarkRangeErrorRectangles prints the error of all rectangles: ours, identity, the quad tree, the limit.
func BenchmarkRangeErrorRectangles(b *testing.B) {
	table := &strings.Builder{}
	fmt.Fprintf(table, "RMSE of all rectangles in rows, add-remove, one row a unit; eps 1, and zCDP in units of 1/sqrt(2 rho)\n")
	fmt.Fprintf(table, "%10s %8s %8s %10s %10s %10s %22s\n", "cells", "", "ours", "identity", "quad tree", "limit", "strategy of each axis")
	for _, d := range []int{16, 64, 256} {
		for _, cost := range gridCosts {
			g := mustGrid(b, GridShape{d, d}, oneRow, cost)
			name, limit := "pure", 2*rectangleLimit(d)
			variance := func(levels int) float64 { return mustLaplace(b, int64(levels)).Variance() }
			if cost.Rho.Pico() > 0 {
				name, limit = "zcdp", rectangleLimit(d)
				variance = func(levels int) float64 { return float64(levels) }
			}
			single, err := ranges.Open(ranges.Description{Kind: ranges.KindIdentity, Cells: d})
			if err != nil {
				b.Fatal(err)
			}
			rows, _ := g.Strategies()
			fmt.Fprintf(table, "%6d^2   %8s %8.2f %10.2f %10.2f %10.2f %22s\n", d, name, math.Sqrt(g.MeanVariance()),
				math.Sqrt(variance(1))*single.MeanVariance(ranges.AllRanges), math.Sqrt(quadtree(d, variance)), math.Sqrt(limit), fmt.Sprint(rows.Kind, rows.Radices))
		}
	}
	b.Log(table.String())
	g := mustGrid(b, GridShape{256, 256}, oneRow, eps(1))
	random := seeded(31)
	for b.Loop() {
		if _, err := g.Release(privacy.Seal([]int64{1}), random); err != nil {
			b.Fatal(err)
		}
	}
}

func mustLaplace(t testing.TB, scale int64) noise.Distribution {
	t.Helper()
	d, err := noise.New(noise.Laplace, scale, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
