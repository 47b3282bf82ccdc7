package ranges

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// denseConvolution is B, entry by entry from the definition of its kind.
func denseConvolution(s *convolution) *mat.Dense {
	d := s.kernel.cells
	q := func(n int) int64 { // by evenness and period alone
		if s.kernel.kind == KindSine {
			n = (n%(2*d+2) + 2*d + 2) % (2*d + 2)
			return s.kernel.q[min(n, 2*d+2-n)]
		}
		sign := int64(1)
		n = max(n, -n)
		if n > d {
			n, sign = 2*d+1-n, -1
		}
		return sign * s.kernel.q[n]
	}
	b := mat.NewDense(d, d, nil)
	for j := range d {
		for i := range d {
			v := q(j - i)
			switch s.kernel.kind {
			case KindSine:
				v -= q(i + j + 2)
			case KindCosine:
				v += q(i + j + 1)
			}
			b.Set(j, i, float64(v*s.scales[i]))
		}
	}
	return b
}

func mustConvolution(t testing.TB, kind Kind, cells, bits int) *convolution {
	t.Helper()
	s, err := newConvolution(kind, cells, bits)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConvolutionAgainstDense(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, kind := range []Kind{KindSine, KindCosine} {
		for _, d := range []int{2, 3, 4, 5, 8, 31, 64, 200, 333} {
			for _, bits := range []int{11, 24} {
				s := mustConvolution(t, kind, d, bits)
				name := fmt.Sprint(kind, d, bits)
				b := denseConvolution(s)
				againstDense(t, name, s, b, r)
			}
		}
	}
}

// againstDense compares everything that a strategy says with what its matrix says.
func againstDense(t *testing.T, name string, s Strategy, b *mat.Dense, r *rand.Rand) {
	t.Helper()
	rows, d := b.Dims()
	if s.Cells() != d || s.Observations() != rows {
		t.Fatalf("%s: %d cells, %d observations, want %d, %d", name, s.Cells(), s.Observations(), d, rows)
	}
	// Norms.
	var l1, l2, l1r, l2r float64
	for i := range d {
		c := mat.Col(nil, i, b)
		a1, a2 := 0.0, 0.0
		for _, v := range c {
			a1 += math.Abs(v)
			a2 += v * v
		}
		l1, l2 = max(l1, a1), max(l2, a2)
		for k := range i {
			e := mat.Col(nil, k, b)
			a1, a2 := 0.0, 0.0
			for j := range e {
				a1 += math.Abs(e[j] - c[j])
				a2 += (e[j] - c[j]) * (e[j] - c[j])
			}
			l1r, l2r = max(l1r, a1), max(l2r, a2)
		}
	}
	if n := s.Sensitivity(privacy.AddRemove); float64(n.L1) != l1 || float64(n.L2Squared) != l2 {
		t.Fatalf("%s: sensitivity %v, dense %v %v", name, n, l1, l2)
	}
	if n := s.Sensitivity(privacy.ReplaceOne); float64(n.L1) < l1r || float64(n.L2Squared) < l2r || float64(n.L1) > 2*l1 {
		t.Fatalf("%s: replace-one sensitivity %v, dense %v %v", name, n, l1r, l2r)
	}
	// Observations, with small and with huge cells.
	for _, most := range []int64{1000, math.MaxInt64} {
		x := make([]int64, d)
		for i := range x {
			x[i] = r.Int64N(most) >> r.IntN(20)
		}
		x[r.IntN(d)] = -5
		for j, got := range s.Observe(x) {
			want := new(big.Int)
			for i, c := range x {
				want.Add(want, new(big.Int).Mul(big.NewInt(int64(b.At(j, i))), big.NewInt(min(max(c, 0), MaxObserved))))
			}
			if want.CmpAbs(big.NewInt(MaxObserved)) > 0 {
				want.Mul(big.NewInt(int64(want.Sign())), big.NewInt(MaxObserved))
			}
			if want.Int64() != got {
				t.Fatalf("%s: observation %d is %d, dense %s", name, j, got, want)
			}
		}
	}
	againstDenseReading(t, name, s, b, r)
}

func againstDenseReading(t *testing.T, name string, s Strategy, b *mat.Dense, r *rand.Rand) {
	t.Helper()
	rows, d := b.Dims()
	q := denseInverse(t, name, b)
	y := make([]int64, rows)
	for j := range y {
		y[j] = r.Int64N(1<<40) - 1<<39
	}
	for i, got := range s.Fit(y) {
		want, size := 0.0, 0.0
		for j, v := range y {
			want += q.At(i, j) * float64(v)
			size += math.Abs(q.At(i, j) * float64(v))
		}
		if math.Abs(got-want) > 1e-9*size {
			t.Fatalf("%s: cell %d is %g, dense %g", name, i, got, want)
		}
	}
	errors := make([]float64, rows) // of the prefix so far
	squares, sums := 0.0, make([]float64, rows)
	for i := range d {
		for j := range rows {
			errors[j] += q.At(i, j)
			squares += errors[j] * errors[j]
			sums[j] += errors[j]
		}
	}
	l := length(sums)
	for _, w := range []Workload{AllRanges, AllPrefixes} {
		if got, want := s.MeanVariance(w), w.mean(d, squares, l*l); math.Abs(got-want) > 1e-9*want {
			t.Fatalf("%s: mean variance of %s is %g, dense %g", name, w, got, want)
		}
	}
	variancesAgainstDense(t, name, s, q, r)
}

// variancesAgainstDense compares variances of linear queries and of spans.
func variancesAgainstDense(t *testing.T, name string, s Strategy, q *mat.Dense, r *rand.Rand) {
	t.Helper()
	d, rows := q.Dims()
	linear := func(query []float64) float64 {
		sum := 0.0
		for j := range rows {
			w := 0.0
			for i, c := range query {
				w += c * q.At(i, j)
			}
			sum += w * w
		}
		return sum
	}
	query := make([]float64, d)
	for i := range query {
		query[i] = r.NormFloat64()
	}
	if s, ok := s.(interface{ LinearVariance([]float64) float64 }); ok {
		if got, want := s.LinearVariance(query), linear(query); math.Abs(got-want) > 1e-9*want {
			t.Fatalf("%s: variance of a linear query is %g, dense %g", name, got, want)
		}
	}
	for range 5 {
		from := r.IntN(d)
		spans := []Span{{from, from + 1 + r.IntN(d-from)}}
		want := linear(indicator(d, spans))
		got, terms := s.Variance(spans), 0.0
		for _, term := range s.Terms(spans) {
			terms += float64(term.Count) * term.Weight * term.Weight
		}
		if math.Abs(got-want) > 1e-9*want || math.Abs(terms-want) > 1e-9*want {
			t.Fatalf("%s %v: variance %g, terms %g, dense %g", name, spans, got, terms, want)
		}
	}
}

// denseInverse is the pseudo-inverse of a matrix.
func denseInverse(t *testing.T, name string, b *mat.Dense) *mat.Dense {
	t.Helper()
	rows, _ := b.Dims()
	top := mat.Max(b)
	var scaled, q, solved mat.Dense
	scaled.Scale(1/top, b)
	var qr mat.QR
	qr.Factorize(&scaled)
	identity := mat.NewDiagDense(rows, nil)
	for i := range rows {
		identity.SetDiag(i, 1)
	}
	if err := qr.SolveTo(&solved, false, identity); err != nil {
		t.Fatal(name, err)
	}
	q.Scale(1/top, &solved)
	return &q
}

// TestConvolutionErrors: mean errors in multiples of the noise's deviation, against the best known figures and, where
// there is one, the bound that no strategy beats.
func TestConvolutionErrors(t *testing.T) {
	for _, c := range []struct {
		kind        Kind
		workload    Workload
		cells       int
		best, limit float64
	}{
		{KindSine, AllRanges, 64, 2.3024, 2.3022}, {KindSine, AllRanges, 256, 2.9016, 2.9014},
		{KindSine, AllRanges, 1024, 3.5152, 3.5151}, {KindSine, AllRanges, 4096, 4.1340, 4.1339},
		{KindCosine, AllPrefixes, 64, 2.0999, 2.0999}, {KindCosine, AllPrefixes, 256, 2.5248, 2.5244},
		{KindCosine, AllPrefixes, 1024, 2.994, 2.9554}, {KindCosine, AllPrefixes, 4096, 3.428, 3.350},
	} {
		s := mustConvolution(t, c.kind, c.cells, maxBits)
		n := s.Sensitivity(privacy.AddRemove)
		got := math.Sqrt(s.MeanVariance(c.workload) * float64(n.L2Squared))
		t.Logf("%s, %s of %d cells: %.4f, best known %.4f, limit %.4f", c.kind, c.workload, c.cells, got, c.best, c.limit)
		if got > 1.005*c.best || got < c.limit-1e-4 {
			t.Errorf("%s, %s of %d cells: %.4f, best known %.4f, limit %.4f", c.kind, c.workload, c.cells, got, c.best, c.limit)
		}
	}
}

// TestConvolutionsAreForEver: a saved release means the matrix that its description opened as when it was made.
func TestConvolutionsAreForEver(t *testing.T) {
	for _, c := range []struct {
		kind        Kind
		cells, bits int
		want        string
	}{
		{KindSine, 64, 24, "86d6ab13483d9efe"}, {KindSine, 4096, 24, "3759cbcb0b8a6833"},
		{KindSine, 1000, 16, "18a88640ffb5e8b6"}, {KindSine, 1 << 17, 20, "b32c64648ca878ea"},
		{KindCosine, 64, 24, "c175d8d92fdbeeb8"}, {KindCosine, 4096, 24, "69dcabd7e5989e1b"}, {KindCosine, 1000, 16, "f83fa2bb23525765"},
	} {
		s := mustConvolution(t, c.kind, c.cells, c.bits)
		h := fnv.New64a()
		if err := binary.Write(h, binary.BigEndian, append(slices.Clone(s.kernel.q), s.scales...)); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%016x", h.Sum64()); got != c.want {
			t.Errorf("%s of %d cells, %d bits: matrix %s, was %s", c.kind, c.cells, c.bits, got, c.want)
		}
	}
}

// TestConvolutionReadsExactly: without noise the reading is the cells, however many rows there are.
func TestConvolutionReadsExactly(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, kind := range []Kind{KindSine, KindCosine} {
		for _, d := range []int{2, 100, 4096, 10_000} {
			s := mustConvolution(t, kind, d, maxBits)
			x := make([]int64, d)
			for i := range x {
				x[i] = r.Int64N(1e6)
			}
			for i, v := range s.Fit(s.Observe(x)) {
				if math.Abs(v-float64(x[i])) > 1e-5 {
					t.Fatalf("%s of %d cells: cell %d is read as %g, is %d", kind, d, i, v, x[i])
				}
			}
		}
	}
}

func TestConvolutionRefuses(t *testing.T) {
	for _, c := range []struct {
		kind        Kind
		cells, bits int
		want        string
	}{
		{KindSine, 1, 24, "cells of strategy sine is 1"}, {KindSine, 1<<17 + 1, 24, "must be from 2 to 131072"},
		{KindCosine, 8, 7, "bits of strategy cosine is 7"}, {KindCosine, 8, 25, "must be from 8 to 24"}, {KindCosine, -1, 24, "cells of strategy cosine is -1"},
	} {
		if _, err := newConvolution(c.kind, c.cells, c.bits); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %d %d: %v, want %s", c.kind, c.cells, c.bits, err, c.want)
		}
	}
}

func TestExactTransformMultiplies(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	p := new(big.Int).SetUint64(field)
	ends := []uint64{0, 1, 1<<31 - 1, 1 << 31, 1<<32 - 2, 1<<32 - 1, 1 << 32, 1<<32 + 1, 1 << 63, field - 1<<32, field - 1<<32 + 1, field - 2, field - 1}
	for n := range 10_000 {
		a, b := r.Uint64()%field, r.Uint64()%field
		if n < len(ends)*len(ends) {
			a, b = ends[n/len(ends)], ends[n%len(ends)]
		} else if r.IntN(3) == 0 {
			a, b = field-1-a%5, field-1-b%5
		}
		x, y := new(big.Int).SetUint64(a), new(big.Int).SetUint64(b)
		sum, difference, product := new(big.Int).Add(x, y), new(big.Int).Sub(x, y), new(big.Int).Mul(x, y)
		if addMod(a, b) != sum.Mod(sum, p).Uint64() || subMod(a, b) != difference.Mod(difference, p).Uint64() || mulMod(a, b) != product.Mod(product, p).Uint64() {
			t.Fatalf("%d and %d", a, b)
		}
	}
}

func BenchmarkConvolution(b *testing.B) {
	for _, d := range []int{4096, 1 << 14, 1 << 17} {
		b.Run(fmt.Sprintf("open/%d", d), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mustConvolution(b, KindSine, d, maxBits)
			}
		})
		s := mustConvolution(b, KindSine, d, maxBits)
		x := make([]int64, d)
		b.Run(fmt.Sprintf("observe/%d", d), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Observe(x)
			}
		})
		s.Fit(x)
		b.Run(fmt.Sprintf("fit/%d", d), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Fit(x)
			}
		})
	}
}
