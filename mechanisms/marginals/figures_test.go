package marginals

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// adultSizes are the attributes of the Adult extract as the literature on marginals cuts them.
var adultSizes = []int{85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2}

// ways is the workload of all marginals of so many attributes.
func ways(t testing.TB, k int) Workload {
	t.Helper()
	d, err := NewDomain(adultSizes...)
	if err != nil {
		t.Fatal(err)
	}
	list := []Marginal{}
	for s := range Set(1) << len(adultSizes) {
		if bits.OnesCount64(uint64(s)) == k {
			list = append(list, Marginal{s, 1})
		}
	}
	w, err := NewWorkload(d, list...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w Workload) cells() float64 {
	n := 0.0
	for _, m := range w.marginals {
		n += float64(w.domain.Cells(m.Set))
	}
	return n
}

// apart is the sum of variances of independent histograms at the best split, each read on its own.
func (w Workload) apart(pure bool) float64 {
	sum := 0.0
	for _, m := range w.marginals {
		a := m.Weight * float64(w.domain.Cells(m.Set))
		if pure {
			sum += math.Cbrt(a)
		} else {
			sum += math.Sqrt(a)
		}
	}
	if pure {
		return 2 * sum * sum * sum
	}
	return sum * sum
}

// BenchmarkRangeErrorMarginals prints the error of all k-way marginals of Adult's 14 attributes: ours, independent
// histograms read together and apart, and the full cube, by exact formulas. The limit of all unbiased Gaussian matrix
// mechanisms is attained by residuals (TestResidualsAttainTheLowerBound); cells are those of one release's marginals.
func BenchmarkRangeErrorMarginals(b *testing.B) {
	table := &strings.Builder{}
	fmt.Fprintf(table, "RMSE of a cell, all k-way marginals of Adult (14 attributes), rho 1/2 and epsilon 1, add-remove, one row a unit\n")
	fmt.Fprintf(table, "%2s %10s %8s %10s %14s %14s %12s %10s\n", "k", "cells", "cost", "ours", "hist. together", "hist. apart", "full cube", "planned in")
	for k := 1; k <= 3; k++ {
		w := ways(b, k)
		n := w.cells()
		for _, cost := range []privacy.Cost{rho(.5), eps(1)} {
			start := time.Now()
			p, err := Best(w, oneRow, cost)
			if err != nil && k == 3 { // more observations than one release may have; the formula of Residuals is shown
				closed := 0.0
				for _, a := range w.closure {
					closed += math.Sqrt(w.loss[a] * w.domain.trace(a))
				}
				if cost.Rho.Pico() > 0 {
					fmt.Fprintf(table, "%2d %10.0f %8s %10.3f %14s %14.3f %12s (more cells than a release may have)\n", k, n, cost, closed/math.Sqrt(n), "", math.Sqrt(w.apart(false)/n), "")
				}
				continue
			}
			if err != nil {
				b.Fatal(err)
			}
			took := time.Since(start)
			independent := must(Independent(w, oneRow, cost))
			cube := 0.0 // each cell of a marginal sums all cells of the cube that it covers, each of variance 1 (or 2)
			for _, m := range w.marginals {
				rest := (Set(1)<<len(adultSizes) - 1) &^ m.Set
				cube += float64(w.domain.Cells(m.Set)) * w.domain.product(rest, func(n float64) float64 { return n })
			}
			pure := cost.Epsilon.Micro() > 0
			if pure {
				cube *= 2
			}
			fmt.Fprintf(table, "%2d %10.0f %8s %10.3f %14.3f %14.3f %12.3g %10s\n", k, n, cost, math.Sqrt(p.Loss()/n), math.Sqrt(independent.Loss()/n), math.Sqrt(w.apart(pure)/n), math.Sqrt(cube/n), took.Round(time.Millisecond))
		}
	}
	b.Log(table.String())
	for b.Loop() {
		must(Residuals(ways(b, 2), oneRow, rho(.5)))
	}
}
