package ranges

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// anyPIdentity draws a small p-identity strategy and its matrix B, written from the definition.
func anyPIdentity(t *rapid.T) (*pIdentity, [][]int64) {
	cells, p := rapid.IntRange(1, 12).Draw(t, "cells"), rapid.IntRange(0, 4).Draw(t, "rows")
	b := make([][]int64, cells+p)
	for i := range b {
		b[i] = make([]int64, cells)
	}
	rows := make([]band, p)
	for i := range cells {
		b[i][i] = pIdentityScale
	}
	for k := range p {
		for i := range cells {
			if rapid.IntRange(0, 2).Draw(t, "positive") > 0 {
				b[cells+k][i] = rapid.Int64Range(1, pIdentityScale/5).Draw(t, "weight")
				b[i][i] -= b[cells+k][i]
			}
		}
		rows[k] = bandOf(b[cells+k])
	}
	s, err := newPIdentity(cells, rows)
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

// floats returns B/pIdentityScale.
func floatsOf(b [][]int64) *mat.Dense {
	m := mat.NewDense(len(b), len(b[0]), nil)
	for i, row := range b {
		for j, v := range row {
			m.Set(i, j, float64(v)/pIdentityScale)
		}
	}
	return m
}

func TestPIdentityObservesItsMatrix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, b := anyPIdentity(t)
		x := make([]int64, s.cells)
		for i := range x {
			x[i] = rapid.Int64().Draw(t, "cell") >> rapid.IntRange(0, 63).Draw(t, "small")
		}
		got := s.Observe(x)
		if len(got) != len(b) || s.Observations() != len(b) {
			t.Fatalf("%d observations, want %d", len(got), len(b))
		}
		most := big.NewInt(MaxObserved)
		for k, row := range b {
			sum := new(big.Int)
			for i, w := range row {
				sum.Add(sum, new(big.Int).Mul(big.NewInt(w), big.NewInt(min(max(x[i], 0), MaxObserved))))
			}
			if sum.Cmp(most) > 0 {
				sum = most
			}
			if sum.Cmp(big.NewInt(got[k])) != 0 {
				t.Fatalf("observation %d of %v is %d, by the definition %s", k, x, got[k], sum)
			}
		}
	})
}

func TestPIdentitySensitivityIsThatOfItsMatrix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, b := anyPIdentity(t)
		var one, two privacy.Sensitivity
		for i := range s.cells {
			for j := -1; j < s.cells; j++ { // −1: no cell
				var d privacy.Sensitivity
				for _, row := range b {
					v := row[i]
					if j >= 0 {
						v -= row[j]
					}
					d.L1 += max(v, -v)
					d.L2Squared += v * v
				}
				if j < 0 {
					one = privacy.Sensitivity{L1: max(one.L1, d.L1), L2Squared: max(one.L2Squared, d.L2Squared)}
				}
				two = privacy.Sensitivity{L1: max(two.L1, d.L1), L2Squared: max(two.L2Squared, d.L2Squared)}
			}
		}
		if got := s.Sensitivity(privacy.AddRemove); got != one || got.L1 != pIdentityScale {
			t.Fatalf("sensitivity %v, of all columns %v", got, one)
		}
		if got := s.Sensitivity(privacy.ReplaceOne); got.L1 < two.L1 || got.L2Squared < two.L2Squared {
			t.Fatalf("sensitivity %v, of all pairs of columns %v", got, two)
		}
	})
}

func TestPIdentityAgainstDenseLeastSquares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, b := anyPIdentity(t)
		a := floatsOf(b)
		c := covariance(t, a)
		y := make([]int64, len(b))
		var real, right, want mat.VecDense
		real.ReuseAsVec(len(y))
		for i := range y {
			y[i] = rapid.Int64Range(-1e6, 1e6).Draw(t, "y")
			real.SetVec(i, float64(y[i])/pIdentityScale)
		}
		right.MulVec(a.T(), &real)
		want.MulVec(c, &right)
		for i, x := range s.Fit(y) {
			if math.Abs(x-want.AtVec(i)) > 1e-8*(1+math.Abs(x)) {
				t.Fatalf("cell %d: %g, dense %g", i, x, want.AtVec(i))
			}
		}
		spans := anySpans(t, s.cells)
		wanted := mat.NewVecDense(s.cells, indicator(s.cells, spans))
		var solved, weights mat.VecDense
		solved.MulVec(c, wanted)
		weights.MulVec(a, &solved)
		const scale = float64(pIdentityScale) * pIdentityScale
		variance := mat.Dot(wanted, &solved)
		if got := s.Variance(spans) * scale; math.Abs(got-variance) > 1e-8*(1+variance) {
			t.Fatalf("%v: variance %g, dense %g", spans, got, variance)
		}
		for i, w := range s.weights(wanted.RawVector().Data) {
			if math.Abs(w*pIdentityScale-weights.AtVec(i)) > 1e-8 {
				t.Fatalf("%v: weight %d is %g, dense %g", spans, i, w*pIdentityScale, weights.AtVec(i))
			}
		}
		for workload, mean := range map[Workload]float64{AllRanges: 0, AllPrefixes: 0} {
			for i := range s.cells {
				for j := range s.cells {
					g := float64(s.cells - max(i, j))
					if workload == AllRanges {
						g *= float64(min(i, j) + 1)
					}
					mean += c.At(i, j) * g / workload.queries(s.cells)
				}
			}
			if got := s.MeanVariance(workload) * scale; math.Abs(got-mean) > 1e-8*mean {
				t.Fatalf("%s: %g, dense %g", workload, got, mean)
			}
		}
	})
}

func TestPIdentityRefusals(t *testing.T) {
	for _, rows := range [][]band{
		{{from: -1, weights: []int64{1}}},
		{{from: 3, weights: []int64{1, 1}}},
		{{from: 0, weights: []int64{-1}}},
		{{from: 0, weights: []int64{pIdentityScale}}},
		{{from: 1, weights: []int64{pIdentityScale / 2}}, {from: 1, weights: []int64{pIdentityScale / 2}}},
		make([]band, maxPIdentityRows+1),
	} {
		if s, err := newPIdentity(4, rows); err == nil {
			t.Errorf("rows %v: accepted as %v", rows[0], s)
		}
	}
	for _, c := range [][2]int{{64, 0}, {64, 3}, {leastPIdentity - 1, 1}, {MaxPIdentity + 1, 1}, {-1, 1}} {
		if _, err := pIdentityOf(c[0], c[1]); err == nil {
			t.Errorf("cells %d, version %d: accepted", c[0], c[1])
		}
	}
}

// TestPIdentityIsFixed: what has been released is read with the same integers by every later version of this package,
// on every machine. New data need a new version.
func TestPIdentityIsFixed(t *testing.T) {
	for version, want := range map[int]string{1: "b633657ff56fda24", 2: "022c7df016a99346"} {
		sum := sha256.New()
		for _, cells := range []int{9, 16, 100, 365, 1000, 1024, 2000, 3500, 4096, 5000, 8192, 10000} {
			s, err := pIdentityOf(cells, version)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range s.rows {
				fmt.Fprintln(sum, cells, r.from, r.weights)
			}
		}
		if got := hex.EncodeToString(sum.Sum(nil)[:8]); got != want {
			t.Errorf("version %d: the matrices have the digest %s, want %s", version, got, want)
		}
	}
}
