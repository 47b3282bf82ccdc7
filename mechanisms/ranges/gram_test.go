package ranges

import (
	"math"
	"testing"
)

// TestGramAgainstFit: B'B·x for the x that Fit reads from noiseless observations of it, (B'B)⁻¹·(B'B·x) by the
// variance: the reading of x'·cells has the variance x'(B'B)⁻¹x, so with x = B'B·v it is v'B'B·v.
func TestGramAgainstFit(t *testing.T) {
	for _, d := range []Description{
		{Kind: KindTree, Cells: 17, Radices: []int{5, 4}},
		{Kind: KindTree, Cells: 17, Radices: []int{5, 4}, Weights: []int64{3, 7}},
		{Kind: KindSine, Cells: 17, Bits: 16, Version: 1},
		{Kind: KindCosine, Cells: 17, Bits: 16, Version: 1},
		{Kind: KindPIdentity, Cells: 64, Version: 1},
		{Kind: KindMatrix, Cells: 2, Matrix: []int64{3, -1, 2, 2, 1, 0}},
	} {
		s, err := Open(d)
		if err != nil {
			t.Fatal(err)
		}
		gram := Gram(s)
		v := make([]float64, d.Cells)
		for i := range v {
			v[i] = float64((i*i+3)%7) - 2
		}
		product, want := gram(v), 0.0
		for i := range v {
			want += v[i] * product[i]
		}
		got := s.(interface{ LinearVariance(query []float64) float64 }).LinearVariance(product)
		if math.Abs(got/want-1) > 1e-6 {
			t.Errorf("%s: %g, want %g", d.Kind, got, want)
		}
	}
}
