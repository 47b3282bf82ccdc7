package ranges

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"
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

func rangeQueries(cells int) [][]float64 {
	queries := [][]float64{}
	for i := range cells {
		for j := i; j < cells; j++ {
			queries = append(queries, indicator(cells, []Span{{i, j + 1}}))
		}
	}
	return queries
}

func TestExploreOptimise(t *testing.T) {
	for _, n := range []Norm{L2, L1} {
		for _, d := range []int{64, 200} {
			start := time.Now()
			var q [][]float64
			if d == 64 {
				q = rangeQueries(d)
			} else {
				r := rand.New(rand.NewPCG(1, 2))
				for range 300 {
					a, b := r.IntN(d), r.IntN(d)
					q = append(q, indicator(d, []Span{{min(a, b), max(a, b) + 1}}))
				}
			}
			o, err := Optimise(q, n)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(d, n, math.Sqrt(o.Error), math.Sqrt(o.Limit), time.Since(start))
		}
	}
}
