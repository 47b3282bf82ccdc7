package noise

import (
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

func mustFix(t testing.TB, kind Kind, num, den int64) *fixed {
	t.Helper()
	return newFixed(mustNew(t, kind, num, den))
}

// words is how many random words a sample takes, or, of a Gaussian of a variance above 256, an attempt.
func (f *fixed) words() int {
	switch {
	case f.digits != nil:
		return len(f.digits) + 1
	case f.wide != nil:
		return 3
	}
	return 1
}

// TestFixedByDistribution: two judgements a sampler.
func TestFixedByDistribution(t *testing.T) {
	n := stattest.Length(200_000, 2_000_000)
	for i, s := range append(samplers, []struct {
		kind     Kind
		num, den int64
	}{{Gaussian, 257, 1}, {Gaussian, 1000, 3}, {Gaussian, 1025, 1}, {Gaussian, 10_000, 1}, {Laplace, 1 << 39, 1}, {Gaussian, 1 << 61, 1}}...) {
		f, r := mustFix(t, s.kind, s.num, s.den), seeded(byte(170+i))
		out, real := make([]int64, n), make([]float64, n)
		deviation := math.Sqrt(f.d.Variance())
		for j := range out {
			out[j] = f.sample(r)
			real[j] = float64(out[j]) / deviation
		}
		claim := stattest.Moments{Variance: 1, Fourth: 3}
		if s.kind == Laplace || deviation < 20 {
			claim.Fourth = 6 + 1/(deviation*deviation) // the Laplace's, and above a narrow Gaussian's
		}
		errs := []error{r.Err(), stattest.Mean(real, claim, stattest.Usual), stattest.Variance(real, claim, stattest.Usual)}
		if deviation < 1000 {
			errs = append(errs, stattest.ChiSquare(out, textbookMass(s.kind, f.d.parameter()), stattest.Usual))
		}
		for _, err := range errs {
			if err != nil {
				t.Errorf("seed %q: kind %d, %d/%d: %v", seed, s.kind, s.num, s.den, err)
			}
		}
	}
}

// wordsOf returns how many words a sample takes.
func wordsOf(f *fixed, r *Reader, source *counting) (x int64, words int) {
	before := source.words(r)
	x = f.sample(r)
	return x, int(source.words(r) - before)
}

// TestFixedWordsDoNotDependOnTheValue: over a million samples each.
func TestFixedWordsDoNotDependOnTheValue(t *testing.T) {
	for i, s := range []struct {
		kind     Kind
		num, den int64
	}{{Laplace, 1, 1}, {Laplace, 1_000_003, 999}, {Gaussian, 30, 1}} {
		f := mustFix(t, s.kind, s.num, s.den)
		source := &counting{source: rand.NewChaCha8([32]byte{byte(i)})}
		r := NewReader(source)
		for range 1_000_000 {
			if x, words := wordsOf(f, r, source); words != f.words() {
				t.Fatalf("kind %d, %d/%d: %d took %d words, must be %d", s.kind, s.num, s.den, x, words, f.words())
			}
		}
	}
}

// TestFixedAttemptsAreIndependentOfTheValue: how many attempts a wide Gaussian takes, against the octile of its size,
// by the chi-square of a table of contingency; the alarm is 1e-7.
func TestFixedAttemptsAreIndependentOfTheValue(t *testing.T) {
	f := mustFix(t, Gaussian, 5*64*5, 4) // between two shapes: many attempts fail
	source := &counting{source: rand.NewChaCha8([32]byte{9})}
	r := NewReader(source)
	const n = 1_000_000
	octiles := []float64{.15731, .31864, .48878, .67449, .88715, 1.15035, 1.53412}
	var table [8][4]float64
	for range n {
		x, words := wordsOf(f, r, source)
		if words%f.words() != 0 || words == 0 {
			t.Fatalf("%d words, must be a multiple of %d", words, f.words())
		}
		row := 0
		for row < len(octiles) && math.Abs(float64(x)) > octiles[row]*20 {
			row++
		}
		table[row][min(words/f.words(), 4)-1]++
	}
	statistic := 0.0
	for i := range table {
		for j := range table[i] {
			row, column := 0.0, 0.0
			for k := range table[i] {
				row += table[i][k]
			}
			for k := range table {
				column += table[k][j]
			}
			if expected := row * column / n; expected > 0 {
				statistic += (table[i][j] - expected) * (table[i][j] - expected) / expected
			}
		}
	}
	stattest.Spend(1e-7)
	if limit := 76.; statistic > limit { // 21 degrees of freedom: exceeded with probability below 1e-7
		t.Errorf("chi-square is %.1f, must be at most %.1f: %v", statistic, limit, table)
	}
	if table[0][1] < n/8/20 {
		t.Errorf("hardly an attempt fails here, so nothing was tested: %v", table)
	}
}

// TestFixedExponentials: the errors of the fixed-point arithmetic, against exact bounds.
func TestFixedExponentials(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 20_000 {
		x := r.Uint64() >> r.IntN(64)
		low, high := ExpBounds(whole(x), new(big.Int).Lsh(big.NewInt(1), pointBits), 64)
		got := whole(expMinusFixed(x))
		if got.Cmp(low.Sub(low, big.NewInt(64))) < 0 || got.Cmp(high.Add(high, big.NewInt(64))) > 0 {
			t.Fatalf("exp(−%d/2^%d): %v, the bounds are %v and %v", x, pointBits, got, low, high)
		}
	}
	for range 2000 {
		num, den := int64(r.Uint64()>>(1+r.IntN(62)))+1, int64(r.Uint64()>>(1+r.IntN(62)))+1
		if num/den < narrowest {
			continue
		}
		f := mustFix(t, Gaussian, num, den)
		if !f.wide.shape.covers(f.d.num, f.d.den) || f.wide.down > 63 {
			t.Fatalf("%d/%d: %+v", num, den, f.wide)
		}
		for range 20 {
			j := uint64(r.IntN(len(f.scan)))
			y := j*f.wide.shape.width + r.Uint64N(f.wide.shape.width)
			a, b := f.wide.shape.ratio(f.d, y, j)
			exact, _ := new(big.Rat).SetFrac(a.Lsh(a, pointBits), b).Float64()
			off := new(big.Rat).SetFrac(a, b)
			off.Sub(off, new(big.Rat).SetInt(whole(f.wide.exponent(y, j))))
			if distance, _ := off.Float64(); math.Abs(distance) >= 8 {
				t.Fatalf("%d/%d, y %d, j %d: the exponent %g is off by %g", num, den, y, j, exact, distance)
			}
		}
	}
}

// TestFixedTies: the words that decide nothing by themselves are gone on from, exactly: with a threshold of a digit as
// the word, a next word above or below the threshold's next digits decides.
func TestFixedTies(t *testing.T) {
	f := mustFix(t, Laplace, 10, 1)
	for i, p := range f.digits {
		for v := range p.scan {
			exact, _ := f.digitBounds(p.shift, i == len(f.digits)-1)(v, 192)
			for _, off := range []int64{-1, 1} {
				words := make([]uint64, len(f.digits)+3)
				words[0] = math.MaxUint64 // positive
				words[i+1] = new(big.Int).Rsh(exact, 128).Uint64()
				words[i+2] = new(big.Int).Rsh(exact, 64).Uint64() + uint64(off)
				if words[i+1] >= math.MaxUint64-1 {
					continue // shared by several thresholds
				}
				want := int64(v)
				if off > 0 {
					want++
				}
				r := NewReader(&script{words: words})
				if want == base {
					continue // beyond all digits
				}
				if got := f.sample(r); got != want<<p.shift {
					t.Fatalf("digit %d, threshold %d, %+d: %d, want %d", i, v, off, got, want<<p.shift)
				}
			}
		}
	}
}

func TestFixedOnAFailingSource(t *testing.T) {
	for _, f := range []*fixed{mustFix(t, Laplace, 10, 1), mustFix(t, Gaussian, 10, 1), mustFix(t, Gaussian, 1000, 1)} {
		r := NewReader(&failing{})
		for range 100 {
			f.sample(r)
		}
		if r.Err() == nil {
			t.Error("no error")
		}
	}
}

// TestFixedWorkGoesWithTheSource: Sample and Fill of a Reader on a marked source draw what a fixed sampler draws of the
// same words, of each kind, and those of any other what they draw without; wrapping the source takes the mark away.
func TestFixedWorkGoesWithTheSource(t *testing.T) {
	words := func() io.Reader { return rand.NewChaCha8([32]byte{42}) }
	for _, s := range samplers {
		d, f := mustNew(t, s.kind, s.num, s.den), mustFix(t, s.kind, s.num, s.den)
		plain, marked, filled, wrapped := NewReader(words()), NewReader(FixedWork(words())), NewReader(FixedWork(words())), NewReader(io.MultiReader(FixedWork(words())))
		if plain.FixedWork() || !marked.FixedWork() || wrapped.FixedWork() {
			t.Fatal("the mark is not where it belongs")
		}
		out, reference, differ := make([]int64, 4000), NewReader(words()), false
		d.Fill(filled, out)
		for i := range out {
			want := f.sample(reference)
			if got := d.Sample(marked); got != want || out[i] != want {
				t.Fatalf("kind %d, %d/%d, draw %d: Sample gives %d and Fill %d, want %d", s.kind, s.num, s.den, i, got, out[i], want)
			}
			differ = differ || d.Sample(plain) != want
		}
		if !differ {
			t.Errorf("kind %d, %d/%d: the ordinary sampler draws the same: nothing was tested", s.kind, s.num, s.den)
		}
	}
}

// TestFixedIsForgotten: what is prepared is bounded.
func TestFixedIsForgotten(t *testing.T) {
	r := NewReader(FixedWork(rand.NewChaCha8([32]byte{1})))
	for i := range int64(prepared.Most + 10) {
		mustNew(t, Laplace, 1, i+1).Sample(r)
	}
	kept := 0
	for i := range int64(prepared.Most + 10) {
		if _, ok := prepared.Load(mustNew(t, Laplace, 1, i+1).law()); ok {
			kept++
		}
	}
	if kept == 0 || kept > prepared.Most {
		t.Errorf("%d samplers are kept, must be at most %d", kept, prepared.Most)
	}
}
