package ranges

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

func denseMatrix(m *matrix) *mat.Dense {
	b := mat.NewDense(m.rows, m.cells, nil)
	for i, e := range m.entries {
		b.Set(i/m.cells, i%m.cells, float64(e))
	}
	return b
}

func TestMatrixAgainstDense(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		cells := 1 + r.IntN(20)
		rows := cells + r.IntN(20)
		entries := make([]int64, rows*cells)
		for i := range entries {
			entries[i] = r.Int64N(2001) - 1000
		}
		m, err := newMatrix(cells, entries)
		if err != nil {
			t.Fatal(err)
		}
		againstDense(t, fmt.Sprint(rows, "×", cells), m, denseMatrix(m), r)
	}
}

func TestMatrixRefuses(t *testing.T) {
	for _, c := range []struct {
		cells   int
		entries []int64
		want    string
	}{
		{0, nil, "cells of a matrix is 0"}, {1 << 12, nil, "cells of a matrix is 4096"}, {2, []int64{1, 2, 3}, "entries of a matrix is 3"},
		{2, []int64{1, 2}, "entries of a matrix is 2"}, {1, []int64{1 << 25}, "entry 1 of a matrix"}, {1, []int64{-1 << 63}, "entry 1 of a matrix"},
		{2, []int64{1, 1, 2, 2}, "dependent"}, {1, []int64{0}, "dependent"},
	} {
		if _, err := newMatrix(c.cells, c.entries); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d cells %v: %v, want %s", c.cells, c.entries, err, c.want)
		}
	}
}

// TestMatrixIsItsOwn: a strategy is kept with its sensitivity for the process, so what becomes of the slice that it was
// made of must not change what it observes.
func TestMatrixIsItsOwn(t *testing.T) {
	entries := []int64{1, 0, 0, 1}
	s, err := Open(Description{Kind: KindMatrix, Cells: 2, Matrix: entries})
	if err != nil {
		t.Fatal(err)
	}
	entries[0] = 1000
	if got := s.Observe([]int64{1, 1}); got[0] != 1 || s.Sensitivity(privacy.AddRemove).L1 != 1 {
		t.Errorf("observes %v, moves by %d", got, s.Sensitivity(privacy.AddRemove).L1)
	}
}

func rangeQueries(cells int) [][]float64 {
	queries := [][]float64{}
	for i := range cells {
		for j := i; j < cells; j++ {
			queries = append(queries, indicator(cells, []Span{{i, j + 1}}))
		}
	}
	return queries
}

// TestOptimise: the optimum for L2 is within a thousandth of its own bound, which for all ranges is the known one; for
// L1 nothing is better than the bound, and the identity is no better than what is found.
func TestOptimise(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	some := make([][]float64, 300)
	for i := range some {
		some[i] = make([]float64, 40)
		for j := range some[i] {
			if r.IntN(5) == 0 {
				some[i][j] = r.NormFloat64()
			}
		}
	}
	few := rangeQueries(30)[:20] // prefixes; a third of the cells is in none
	wide := make([][]float64, 25)
	for i := range wide {
		from := r.IntN(400)
		wide[i] = indicator(500, []Span{{from, from + 1 + r.IntN(500-from)}})
	}
	for _, c := range []struct {
		name    string
		queries [][]float64
		limit   float64 // known, of the root
	}{{"all ranges", rangeQueries(64), 2.3022}, {"some", some, 0}, {"few", few, 0}, {"wide", wide, 0}, {"one cell", [][]float64{{2}}, 2}} {
		cells := len(c.queries[0])
		for _, norm := range []Norm{L1, L2} {
			o, err := Optimise(c.queries, norm)
			if err != nil {
				t.Fatal(c.name, err)
			}
			s, err := Open(o.Description)
			if err != nil {
				t.Fatal(c.name, err)
			}
			identity, again := 0.0, 0.0
			linear := s.(*matrix)
			for _, q := range c.queries {
				identity += length(q) * length(q) / float64(len(c.queries))
				again += linear.LinearVariance(q) * continuous(norm)(s.Sensitivity(privacy.AddRemove)) / float64(len(c.queries))
			}
			if norm == L1 {
				again /= 2
			}
			t.Logf("%s of %d cells, norm %d: %.4f, limit %.4f, identity %.4f", c.name, cells, norm, math.Sqrt(o.Error), math.Sqrt(o.Limit), math.Sqrt(identity))
			if math.Abs(again-o.Error) > 1e-6*again {
				t.Errorf("%s: error %g, by single queries %g", c.name, o.Error, again)
			}
			if o.Limit > o.Error || norm == L2 && o.Error > 1.003*o.Limit || o.Error > identity*(1+1e-5) {
				t.Errorf("%s, norm %d: error %g, limit %g, identity %g", c.name, norm, o.Error, o.Limit, identity)
			}
			if known := 5.552 / math.Sqrt2; c.name == "all ranges" && norm == L1 && math.Sqrt(o.Error) > 1.005*known {
				t.Errorf("%s: error %.4f, known %.4f", c.name, math.Sqrt(o.Error), known)
			}
			if c.limit != 0 && math.Abs(math.Sqrt(o.Limit)-c.limit) > .001 {
				t.Errorf("%s: limit %.4f, known %.4f", c.name, math.Sqrt(o.Limit), c.limit)
			}
		}
	}
}

func TestOptimiseRefuses(t *testing.T) {
	for _, c := range []struct {
		queries [][]float64
		norm    Norm
		want    string
	}{
		{nil, L2, "number of queries is 0"}, {[][]float64{{}}, L2, "cells of query 1 is 0"}, {[][]float64{{1, 2}, {1}}, L2, "cells of query 2 is 1"},
		{[][]float64{{math.NaN()}}, L2, "coefficient 1 of query 1 is NaN"}, {[][]float64{{1, math.Inf(1)}}, L2, "coefficient 2 of query 1"},
		{[][]float64{{0, 0}}, L1, "all 0"}, {[][]float64{{1}}, 0, "norm is 0"},
	} {
		if _, err := Optimise(c.queries, c.norm); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.queries, err, c.want)
		}
	}
}

func BenchmarkOptimise(b *testing.B) {
	for _, cells := range []int{64, 256} {
		queries := rangeQueries(cells)
		b.Run(fmt.Sprint(cells), func(b *testing.B) {
			for b.Loop() {
				if _, err := Optimise(queries, L2); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
