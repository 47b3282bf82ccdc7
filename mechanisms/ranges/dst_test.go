package ranges

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// denseConvolution is B, entry by entry from the definition of its kind.
func denseConvolution(s *convolution) *mat.Dense {
	d := s.kernel.cells
	q := func(n int) int64 { // by evenness and period alone
		switch s.kernel.kind {
		case KindSine:
			n = (n%(2*d+2) + 2*d + 2) % (2*d + 2)
			return s.kernel.q[min(n, 2*d+2-n)]
		case KindCosine:
			sign := int64(1)
			n = max(n, -n)
			if n > d {
				n, sign = 2*d+1-n, -1
			}
			return sign * s.kernel.q[n]
		}
		if n < 0 {
			return 0
		}
		return s.kernel.q[n]
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
	for _, kind := range []Kind{KindSine, KindCosine, KindRoot} {
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
				want.Add(want, new(big.Int).Mul(big.NewInt(int64(b.At(j, i))), big.NewInt(min(max(c, 0), MostObserved))))
			}
			if want.CmpAbs(big.NewInt(MostObserved)) > 0 {
				want.Mul(big.NewInt(int64(want.Sign())), big.NewInt(MostObserved))
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
	q.Scale(1/top, &solved) // the pseudo-inverse
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
	for range 5 {
		from := r.IntN(d)
		spans := []Span{{from, from + 1 + r.IntN(d-from)}}
		want := 0.0
		for j := range rows {
			w := 0.0
			for i := spans[0].From; i < spans[0].To; i++ {
				w += q.At(i, j)
			}
			want += w * w
		}
		got, terms := s.Variance(spans), 0.0
		for _, term := range s.Terms(spans) {
			terms += float64(term.Count) * term.Weight * term.Weight
		}
		if math.Abs(got-want) > 1e-9*want || math.Abs(terms-want) > 1e-9*want {
			t.Fatalf("%s %v: variance %g, terms %g, dense %g", name, spans, got, terms, want)
		}
	}
}

func TestExploreConvolution(t *testing.T) {
	for _, kind := range []Kind{KindSine, KindCosine, KindRoot} {
		for _, d := range []int{64, 256, 1024, 4096, 1 << 14, 1 << 17} {
			for _, bits := range []int{24, 20, 16} {
				if kind == KindRoot && d > MostRoot {
					continue
				}
				start := time.Now()
				s, err := newConvolution(kind, d, bits)
				if err != nil {
					t.Log(kind, d, bits, err)
					continue
				}
				made := time.Since(start)
				start = time.Now()
				x := make([]int64, d)
				y := s.Observe(x)
				observed := time.Since(start)
				start = time.Now()
				s.Fit(y)
				fitted := time.Since(start)
				start = time.Now()
				w := AllPrefixes
				if kind == KindSine {
					w = AllRanges
				}
				n := s.Sensitivity(privacy.AddRemove)
				e := math.Sqrt(s.MeanVariance(w) * float64(n.L2Squared))
				t.Logf("%s %d %d bits: %.5f, made %v, observed %v, fitted %v, mean %v", kind, d, bits, e, made, observed, fitted, time.Since(start))
			}
		}
	}
}
