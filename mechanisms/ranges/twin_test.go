package ranges

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// dense is the observation matrix of a tree: a row for each node, a column for each cell. It is written from the
// definition of the layout: level by level from the top, each left to right.
func dense(cells int, radices []int) *mat.Dense {
	rows := []float64{}
	n := 0
	for l := range radices {
		block := 1
		for _, r := range radices[l+1:] {
			block *= r
		}
		for from := 0; from < cells; from += block {
			row := make([]float64, cells)
			for i := from; i < min(from+block, cells); i++ {
				row[i] = 1
			}
			rows = append(rows, row...)
			n++
		}
	}
	return mat.NewDense(n, cells, rows)
}

// covariance is (A'A)⁻¹: of the least-squares reading, with noise of variance 1.
func covariance(t rapid.TB, a *mat.Dense) *mat.Dense {
	var gram, inverse mat.Dense
	gram.Mul(a.T(), a)
	if err := inverse.Inverse(&gram); err != nil {
		t.Fatal(err)
	}
	return &inverse
}

// anyTree draws cells and radices that NewTree accepts.
func anyTree(t *rapid.T) (int, []int) {
	cells := rapid.IntRange(2, 60).Draw(t, "cells")
	below := []int{}
	block := 1
	for len(below) < 5 {
		r := rapid.IntRange(2, 7).Draw(t, "radix")
		if block*r >= cells || rapid.IntRange(0, 3).Draw(t, "stop") == 0 {
			break
		}
		block *= r
		below = append(below, r)
	}
	return cells, append([]int{(cells+block-1)/block + rapid.IntRange(0, 2).Draw(t, "excess")}, below...)
}

func anySpans(t *rapid.T, cells int) []Span {
	spans, from := []Span{}, 0
	for range rapid.IntRange(0, 4).Draw(t, "spans") {
		from += rapid.IntRange(0, cells/2+1).Draw(t, "gap")
		to := from + rapid.IntRange(1, cells/2+1).Draw(t, "length")
		if to > cells {
			break
		}
		spans, from = append(spans, Span{from, to}), to
	}
	return spans
}

func TestFitAgainstDenseLeastSquares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, radices := anyTree(t)
		tree, err := NewTree(cells, radices)
		if err != nil {
			t.Fatal(err)
		}
		a := dense(cells, radices)
		rows, _ := a.Dims()
		if tree.Nodes() != rows || len(tree.levels) != len(radices) || tree.Cells() != cells {
			t.Fatalf("%d nodes, want %d", tree.Nodes(), rows)
		}
		y := make([]int64, rows)
		real := make([]float64, rows)
		for i := range y {
			y[i] = rapid.Int64Range(-1000, 1000).Draw(t, "y")
			real[i] = float64(y[i])
		}
		var right, want mat.VecDense
		right.MulVec(a.T(), mat.NewVecDense(rows, real))
		want.MulVec(covariance(t, a), &right)
		for i, x := range tree.Fit(y) {
			if math.Abs(x-want.AtVec(i)) > 1e-7 {
				t.Fatalf("%d cells %v, cell %d: %g, dense %g", cells, radices, i, x, want.AtVec(i))
			}
		}
	})
}

func TestTermsAgainstDenseLeastSquares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, radices := anyTree(t)
		tree, err := NewTree(cells, radices)
		if err != nil {
			t.Fatal(err)
		}
		spans := anySpans(t, cells)
		wanted := mat.NewVecDense(cells, nil)
		for _, s := range spans {
			for i := s.From; i < s.To; i++ {
				wanted.SetVec(i, 1)
			}
		}
		a := dense(cells, radices)
		var solved, weights mat.VecDense
		solved.MulVec(covariance(t, a), wanted)
		weights.MulVec(a, &solved)
		if got, want := tree.Variance(spans), mat.Dot(wanted, &solved); math.Abs(got-want) > 1e-9*(1+want) {
			t.Fatalf("%d cells %v, %v: variance %g, dense %g", cells, radices, spans, got, want)
		}
		// The terms are the weights, grouped: equal moments of orders 1, 3 and 4.
		for _, order := range []float64{1, 3, 4} {
			got, want := 0.0, 0.0
			for _, term := range tree.Terms(spans) {
				got += math.Pow(term.Weight, order) * float64(term.Count)
			}
			for i := range weights.Len() {
				want += math.Pow(weights.AtVec(i), order)
			}
			if math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
				t.Fatalf("%d cells %v, %v: Σ weight^%g is %g, dense %g", cells, radices, spans, order, got, want)
			}
		}
	})
}

func TestAllRangesAgainstDenseLeastSquares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, radices := anyTree(t)
		tree, err := NewTree(cells, radices)
		if err != nil {
			t.Fatal(err)
		}
		c := covariance(t, dense(cells, radices))
		sum := 0.0
		for i := range cells { // the ranges that hold both cells: G of the all-ranges workload
			for j := range cells {
				sum += c.At(i, j) * float64((min(i, j)+1)*(cells-max(i, j)))
			}
		}
		want := sum / (float64(cells) * float64(cells+1) / 2)
		if got := tree.MeanVariance(AllRanges); math.Abs(got-want) > 1e-9*want {
			t.Fatalf("%d cells %v: %g, dense %g", cells, radices, got, want)
		}
	})
}

// isotonicTwin is the min-max formula: the value at i is the greatest, over beginnings up to i, of the least, over ends
// from i, of the mean between.
func isotonicTwin(x []float64) []float64 {
	y := make([]float64, len(x))
	for i := 1; i < len(x); i++ {
		best := math.Inf(-1)
		for a := 1; a <= i; a++ {
			least, sum := math.Inf(1), 0.0
			for b := a; b < len(x); b++ {
				sum += x[b]
				if b >= i {
					least = min(least, sum/float64(b-a+1))
				}
			}
			best = max(best, least)
		}
		y[i] = max(0, best)
	}
	return y
}

func TestIsotonicAgainstMinMax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := append([]float64{0}, rapid.SliceOfN(rapid.Float64Range(-20, 20), 1, 30).Draw(t, "x")...)
		want := isotonicTwin(x)
		Isotonic(x)
		for i := range x {
			if math.Abs(x[i]-want[i]) > 1e-9 {
				t.Fatalf("at %d: %g, the formula says %g", i, x[i], want[i])
			}
		}
	})
}

func TestIsotonicComesNoFurtherFromTheTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		truth, noisy := make([]float64, 21), make([]float64, 21)
		for i := 1; i < len(truth); i++ {
			truth[i] = truth[i-1] + math.Floor(3*r.Float64())
			noisy[i] = truth[i] + 5*r.NormFloat64()
		}
		before := distance(noisy, truth)
		Isotonic(noisy)
		if after := distance(noisy, truth); after > before*(1+1e-12) {
			t.Fatalf("seed 7, 8: %g after %g", after, before)
		}
	}
}

func distance(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return sum
}
