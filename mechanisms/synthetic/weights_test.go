package synthetic

import (
	"encoding/csv"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dpproxy/dpproxy/internal/material"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// TestFitAgrees: exact measurements of one database are all met, and of two distributions that meet one of them the fit
// is the one nearest to uniform.
func TestFitAgrees(t *testing.T) {
	random := rand.New(seeded(20))
	q := predicates(t, 12, 6, random)
	truth := data(12, 5000, random)
	f := newFit(q, 5000)
	for i, a := range q.truth(truth) {
		f.add(i, float64(a))
	}
	f.result()
	for i, a := range q.truth(truth) {
		if got := f.queries.answer(i, f.cells); math.Abs(got-float64(a)) > 1 {
			t.Errorf("query %d: %.3f, measured %d", i, got, a)
		}
	}
	one, err := newRanges(4, [][2]int32{{0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	g := newFit(one, 100)
	g.add(0, 70)
	if want := []float64{70, 10, 10, 10}; !near(g.result(), want) {
		t.Errorf("%v, want %v", g.cells, want)
	}
	h := newFit(one, 100) // measurements that no distribution meets: between them
	h.add(0, 40)
	h.add(0, 60)
	if x := h.result()[0]; x < 45 || x > 60 {
		t.Errorf("40 and 60 ended at %g", x)
	}
}

// TestFitOfContradictions: noisy measurements that contradict each other leave numbers in the cells: this draw, of the
// ages of 100,000 people at ε 1, had none, and a release that was charged for was an error.
func TestFitOfContradictions(t *testing.T) {
	truth, pairs := make([]int64, 128), [][2]int32{}
	for i, p := range adult(t, "age", 128, 128) {
		truth[i] = int64(math.Round(p * 100_000))
		if pairs = append(pairs, [2]int32{int32(i), int32(i) + 1}); i > 0 && i < 127 {
			pairs = append(pairs, [2]int32{0, int32(i) + 1})
		}
	}
	q, err := newRanges(128, pairs)
	if err != nil {
		t.Fatal(err)
	}
	d, err := weights(t, q, 100_000, Rounds(100_000, epsilon(1)), epsilon(1)).Release(privacy.Seal(truth), seeded(77))
	if err != nil {
		t.Fatal(err)
	}
	if _, rmse := worst(t, q, truth, d.Value().Cells); !(rmse < 200) {
		t.Errorf("seed %q: root mean squared error %g", seed, rmse)
	}
	if _, err := Rows(d, 10, seeded(78)); err != nil {
		t.Error(err)
	}
	f := newFit(q, 1000) // every prefix none, every cell a tenth: whatever is measured, cells are numbers
	for i := range 254 {
		f.add(i, []float64{0, 100}[i%2])
	}
	for i, c := range f.result() {
		if !(c > 0) || math.IsInf(c, 0) {
			t.Fatalf("cell %d is %g", i, c)
		}
	}
}

func near(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) < 1e-6 })
}

// TestQueriesBothWays: ranges as ranges and as lists of cells agree in all they do.
func TestQueriesBothWays(t *testing.T) {
	random := rand.New(seeded(21))
	pairs, lists := [][2]int32{}, [][]int32{}
	for range 30 {
		from := random.Int32N(20)
		to := from + 1 + random.Int32N(20-from)
		pairs = append(pairs, [2]int32{from, to})
		list := []int32{}
		for c := from; c < to; c++ {
			list = append(list, c)
		}
		lists = append(lists, list)
	}
	a, err := newRanges(20, pairs)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewQueries(20, lists)
	if err != nil {
		t.Fatal(err)
	}
	truth := append(data(20, 500, random), 7) // one cell too many
	truth[3], truth[4] = -5, math.MaxInt64
	if !slices.Equal(a.truth(truth), b.truth(truth)) || !slices.Equal(a.truth(truth[:9]), b.truth(truth[:9])) {
		t.Error("true answers differ")
	}
	x, y := floats(data(20, 500, random)), make([]float64, 20)
	copy(y, x)
	for i := range pairs {
		a.scale(i, x, 1.5, .8, 0)
		b.scale(i, y, 1.5, .8, 0)
	}
	p, r := a.answers(x, make([]float64, a.Len())), b.answers(y, make([]float64, b.Len()))
	if !slices.Equal(x, y) || !slices.EqualFunc(p, r, func(u, v float64) bool { return math.Abs(u-v) < 1e-6*(1+u) }) {
		t.Error("released answers differ")
	}
}

// TestAuditWeights: ε = 1 in one round and in two, and ρ = 0.02, which at the audit's δ = 0.01 is below (1,
// 0.01). And three planted faults: the true number of rows as the public one, noise for one row a unit where there are
// three or twenty.
func TestAuditWeights(t *testing.T) {
	answers := stattest.Length(10_000, 200_000)
	if converted, err := accounting.LargestRho(privacy.MicroEpsilon(1e6), privacy.AttoDelta(1e16)); err != nil || converted.Float() < .02 {
		t.Fatal(converted, err)
	}
	q, err := newRanges(2, [][2]int32{{0, 1}, {1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	source := seeded(22)
	side := func(w Weights, judge func(Database) float64, cells ...int64) func() float64 {
		return func() float64 {
			d, err := w.Release(privacy.Seal(cells), source)
			if err != nil {
				t.Fatal(err)
			}
			return judge(d.Value())
		}
	}
	first := func(d Database) float64 { return d.Cells[0] }
	total := func(d Database) float64 { return d.Total }
	for name, c := range map[string]struct {
		w     Weights
		judge func(Database) float64
	}{
		"one round, cell":  {weights(t, q, 20, 1, epsilon(1)), first},
		"two rounds, cell": {weights(t, q, 20, 2, epsilon(1)), first},
		"zcdp, cell":       {weights(t, q, 20, 1, rho(.02)), first},
	} {
		delta := 0.
		if c.w.measuring.Rho.Pico() != 0 {
			delta = .01
		}
		bound := auditedAt(t, answers, delta, side(c.w, c.judge, 14, 6), side(c.w, c.judge, 15, 6))
		t.Logf("%s: epsilon at least %.3f of 1", name, bound)
		if bound > 1 {
			t.Errorf("seed %q: %s: epsilon is at least %.3f, paid 1", seed, name, bound)
		}
	}
	if bound := audited(t, answers, side(weights(t, q, 20, 1, epsilon(1)), total, 14, 6), side(weights(t, q, 21, 1, epsilon(1)), total, 15, 6)); bound <= 1 {
		t.Errorf("seed %q: the true number of rows as a public one passed: %.3f", seed, bound)
	}
	z := weights(t, q, 20, 1, rho(.02))
	if bound := auditedAt(t, answers, .01, side(z, first, 14, 6), side(z, first, 34, 6)); bound <= 1 {
		t.Errorf("seed %q: twenty rows a unit passed under zcdp: %.3f", seed, bound)
	}
	w := weights(t, q, 20, 1, epsilon(1))
	if bound := audited(t, answers, side(w, first, 14, 6), side(w, first, 17, 6)); bound <= 1 {
		t.Errorf("seed %q: three rows a unit passed: %.3f", seed, bound)
	}
}

// adult is the distribution of a column of the Adult extract over so many cells up to most.
func adult(t testing.TB, column string, most float64, cells int) []float64 {
	t.Helper()
	file, err := os.Open(material.Path(t, "data", "adult.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(rows[0], column)
	shape := make([]float64, cells)
	for _, row := range rows[1:] {
		x, err := strconv.ParseFloat(strings.TrimSpace(row[at]), 64)
		if err != nil {
			t.Fatal(err)
		}
		shape[min(int(x/most*float64(cells)), cells-1)] += 1 / float64(len(rows)-1)
	}
	return shape
}

// figures is MWEM's root mean squared error over 2000 random ranges and the plain histogram's by simulation.
func figures(t testing.TB, shape []float64, rows, rounds int, cost privacy.Cost, trials int) (fitted, histogram, uniform float64) {
	t.Helper()
	random := rand.New(seeded(23))
	source := seeded(24)
	cells := len(shape)
	ranges := make([][2]int32, 2000)
	for i := range ranges {
		a, b := random.Int32N(int32(cells)), random.Int32N(int32(cells))
		ranges[i] = [2]int32{min(a, b), max(a, b) + 1}
	}
	q, err := newRanges(cells, ranges)
	if err != nil {
		t.Fatal(err)
	}
	for range trials {
		truth, flat := make([]int64, cells), make([]float64, cells)
		for i, p := range shape {
			truth[i] = int64(math.Round(p * float64(rows)))
			flat[i] = float64(rows) / float64(cells)
		}
		d, err := weights(t, q, Total(rows), rounds, cost).Release(privacy.Seal(truth), source)
		if err != nil {
			t.Fatal(err)
		}
		noisy := floats(truth)
		for i := range noisy {
			if e := cost.Epsilon.Float(); e > 0 {
				noisy[i] += (random.ExpFloat64() - random.ExpFloat64()) / e
			} else {
				noisy[i] += random.NormFloat64() / math.Sqrt(2*cost.Rho.Float())
			}
		}
		for at, cellsOf := range map[*float64][]float64{&fitted: d.Value().Cells, &histogram: noisy, &uniform: flat} {
			_, rmse := worst(t, q, truth, cellsOf)
			*at += rmse / float64(trials)
		}
	}
	return fitted, histogram, uniform
}

// TestWeightsFigures: small data, where MWEM is for: 1000 rows over 4096 cells, all figures the root mean squared error
// of 2000 random ranges. Known, on another shape (DPBench's ADULT at ε = 0.1): MWEM* 81, uniform 389.
func TestWeightsFigures(t *testing.T) {
	for _, c := range []struct {
		column string
		most   float64
	}{{"capital_gain", 100_000}, {"fnlwgt", 1_500_000}} {
		for _, cost := range []privacy.Cost{epsilon(.1), rho(.005)} {
			fitted, histogram, uniform := figures(t, adult(t, c.column, c.most, 4096), 1000, Rounds(1000, cost), cost, 8)
			t.Logf("%s, 1000 rows, %s, %d rounds: MWEM %.1f (known 81 at epsilon 0.1), plain histogram %.1f, uniform %.1f", c.column, cost, Rounds(1000, cost), fitted, histogram, uniform)
			if fitted > .6*histogram || fitted > .6*uniform {
				t.Errorf("%s, %s: MWEM %.1f, plain histogram %.1f, uniform %.1f", c.column, cost, fitted, histogram, uniform)
			}
		}
	}
}

// BenchmarkWeights prints the errors at DPBench's size. Known, on another shape: 81, 1066 (histogram 738); at ε = 1
// none.
func BenchmarkWeights(b *testing.B) {
	for _, c := range []struct {
		name string
		rows int
		cost privacy.Cost
	}{
		{"n=1e3/eps=0.1", 1000, epsilon(.1)}, {"n=1e5/eps=0.1", 100_000, epsilon(.1)}, {"n=1e5/eps=1", 100_000, epsilon(1)},
		{"n=1e3/rho=0.005", 1000, rho(.005)}, {"n=1e5/rho=0.005", 100_000, rho(.005)}, {"n=1e5/rho=0.5", 100_000, rho(.5)},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				fitted, histogram, uniform := figures(b, adult(b, "capital_gain", 100_000, 4096), c.rows, Rounds(Total(c.rows), c.cost), c.cost, 3)
				b.ReportMetric(fitted, "mwem-rmse")
				b.ReportMetric(histogram, "histogram-rmse")
				b.ReportMetric(uniform, "uniform-rmse")
			}
		})
	}
}

// TestRows: proportions by chi-square (1e-7), equal bytes give equal rows.
func TestRows(t *testing.T) {
	d := privacy.Published(Database{[]float64{5, 0, 1, 4}, 10})
	rows, err := Rows(d, 20_000, seeded(25))
	if err != nil {
		t.Fatal(err)
	}
	again, err := Rows(d, 20_000, seeded(25))
	if err != nil || !slices.Equal(rows.Value(), again.Value()) {
		t.Error("equal bytes gave other rows", err)
	}
	samples := make([]int64, len(rows.Value()))
	for i, c := range rows.Value() {
		samples[i] = int64(c)
	}
	mass := func(k int64) float64 {
		if k < 0 || k > 3 {
			return 0
		}
		return []float64{.5, 0, .1, .4}[k]
	}
	if err := stattest.ChiSquare(samples, mass, stattest.Usual); err != nil {
		t.Errorf("seed %q: %v", seed, err)
	}
	for want, f := range map[string]func() error{
		"database was never released":                     func() error { _, err := Rows(privacy.Released[Database]{}, 1, seeded(0)); return err },
		"number of rows is 0, must be from 1 to 67108864": func() error { _, err := Rows(d, 0, seeded(0)); return err },
		"cell 0 is NaN, must be at least 0": func() error {
			_, err := Rows(privacy.Published(Database{[]float64{math.NaN()}, 1}), 1, seeded(0))
			return err
		},
		"database has no rows":           func() error { _, err := Rows(privacy.Published(Database{[]float64{0}, 1}), 1, seeded(0)); return err },
		"noise: no source of randomness": func() error { _, err := Rows(d, 1, nil); return err },
	} {
		if err := f(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestWeightsRefuses(t *testing.T) {
	q := predicates(t, 4, 3, rand.New(seeded(26)))
	for want, f := range map[string]func() error{
		"total is 0, must be from 1 to 1099511627776":    func() error { _, err := NewWeights(q, 0, 1, oneRow, epsilon(1)); return err },
		"number of rounds is 0, must be from 1 to 4096":  func() error { _, err := NewWeights(q, 1, 0, oneRow, epsilon(1)); return err },
		"cost is ε 0.000001, too little for 1 rounds":    func() error { _, err := NewWeights(q, 1, 1, oneRow, epsilon(1e-6)); return err },
		"rows of a unit is 0, must be from 1 to 4194304": func() error { _, err := NewWeights(q, 1, 1, privacy.Contribution{}, epsilon(1)); return err },
		"queries were not made by NewQueries":            func() error { _, err := NewWeights(Queries{}, 1, 1, oneRow, epsilon(1)); return err },
		"mechanism was not made by its constructor":      func() error { _, err := Weights{}.Release(privacy.Seal([]int64{1}), seeded(0)); return err },
		"noise: the source of randomness failed: broken": func() error {
			_, err := weights(t, q, 1, 1, rho(1)).Release(privacy.Seal([]int64{1}), iotest.ErrReader(errors.New("broken")))
			return err
		},
	} {
		if err := f(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
