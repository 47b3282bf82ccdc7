package ranges

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// gramOfWorkload is the Gram matrix by its definition: how many queries hold both cells.
func gramOfWorkload(workload Workload, cells int) *mat.SymDense {
	g := mat.NewSymDense(cells, nil)
	for i := range cells {
		for j := range i + 1 {
			n := float64(cells - i)
			if workload == AllRanges {
				n *= float64(j + 1)
			}
			g.SetSym(i, j, n)
		}
	}
	return g
}

// limitTwin is Limit with dense eigenvectors, until nothing moves.
func limitTwin(t *testing.T, workload Workload, cells int) (limit, spectral float64) {
	t.Helper()
	g := gramOfWorkload(workload, cells)
	v := make([]float64, cells)
	for i := range v {
		v[i] = 1
	}
	for round := range 2000 {
		s := mat.NewSymDense(cells, nil)
		for i := range cells {
			for j := range i + 1 {
				s.SetSym(i, j, g.At(i, j)*math.Sqrt(v[i]*v[j]))
			}
		}
		var e mat.EigenSym
		if !e.Factorize(s, true) {
			t.Fatal("no eigenvalues")
		}
		var q mat.Dense
		e.VectorsTo(&q)
		trace, total := 0.0, 0.0
		for i := range v {
			total += v[i]
			v[i] = 0
			for k, lambda := range e.Values(nil) {
				v[i] += math.Sqrt(lambda) * q.At(i, k) * q.At(i, k)
			}
			trace += v[i]
		}
		if limit = trace * trace / total; round == 0 {
			spectral = limit
		}
	}
	return limit / workload.queries(cells), spectral / workload.queries(cells)
}

func TestLimitsAgainstDense(t *testing.T) {
	for _, workload := range []Workload{AllRanges, AllPrefixes} {
		for _, cells := range []int{1, 2, 3, 8, 21} {
			limit, spectral := limitTwin(t, workload, cells)
			if got := Limit(workload, cells); got > limit*(1+1e-12) || got < limit*(1-1e-4) {
				t.Errorf("%s, %d cells: %.12g, dense %.12g", workload, cells, got, limit)
			}
			if got := SpectralLimit(workload, cells); math.Abs(got-spectral) > 1e-9*spectral {
				t.Errorf("%s, %d cells: spectral %.12g, dense %.12g", workload, cells, got, spectral)
			}
		}
	}
}

// TestLimitFigures holds the limits against figures found independently, RMSE in units of the noise's deviation.
func TestLimitFigures(t *testing.T) {
	for _, c := range []struct {
		workload       Workload
		cells          int
		dual, spectral float64 // 0: not known
	}{
		{AllRanges, 64, 2.3022, 2.277}, {AllRanges, 256, 2.9014, 2.876}, {AllRanges, 1024, 3.5151, 3.492}, {AllRanges, 4096, 4.1339, 4.114},
		{AllPrefixes, 64, 2.0999, 0}, {AllPrefixes, 256, 2.5244, 0}, {AllPrefixes, 1024, 2.9554, 0}, {AllPrefixes, 4096, 3.3897, 3.350},
	} {
		dual, spectral := math.Sqrt(Limit(c.workload, c.cells)), math.Sqrt(SpectralLimit(c.workload, c.cells))
		if math.Abs(dual-c.dual) > 1e-4 || c.spectral != 0 && math.Abs(spectral-c.spectral) > 6e-4 {
			t.Errorf("%s, %d cells: dual %.5f (%g), spectral %.5f (%g)", c.workload, c.cells, dual, c.dual, spectral, c.spectral)
		}
	}
}

func TestLimitIsBelowEveryStrategy(t *testing.T) {
	for _, workload := range []Workload{AllRanges, AllPrefixes} {
		for _, cells := range []int{16, 64, 100} {
			for _, d := range []Description{
				{Kind: KindPIdentity, Cells: cells, Version: PIdentityVersion(workload)},
				{Kind: KindSine, Cells: cells, Bits: 20, Version: 1},
				{Kind: KindCosine, Cells: cells, Bits: 20, Version: 1},
				{Kind: KindTree, Cells: cells, Radices: []int{(cells + 3) / 4, 4}},
			} {
				s, err := Open(d)
				if err != nil {
					t.Fatal(err)
				}
				mean := s.MeanVariance(workload) * float64(s.Sensitivity(1).L2Squared)
				if limit := Limit(workload, cells); mean < limit {
					t.Errorf("%s, %d cells, %s: %g, limit %g", workload, cells, d.Kind, mean, limit)
				}
			}
		}
	}
}
