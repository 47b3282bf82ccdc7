package noise

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

const seed = "the same every time, and printed." // 32 bytes are used

func seeded(stream byte) *Reader {
	key := [32]byte([]byte(seed)[:32])
	key[31] = stream
	return NewReader(rand.NewChaCha8(key))
}

func mustNew(t testing.TB, kind Kind, num, den int64) Distribution {
	t.Helper()
	d, err := New(kind, num, den)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// textbookMass is the probability from the definition, with its sum taken term by term.
func textbookMass(kind Kind, parameter float64) func(k int64) float64 {
	weight := func(k float64) float64 { return math.Exp(-math.Abs(k) / parameter) }
	if kind == Gaussian {
		weight = func(k float64) float64 { return math.Exp(-k * k / (2 * parameter)) }
	}
	total := 1.0
	for k := 1.0; weight(k) > 1e-18; k++ {
		total += 2 * weight(k)
	}
	return func(k int64) float64 { return weight(float64(k)) / total }
}

var samplers = []struct {
	kind     Kind
	num, den int64
}{
	{Laplace, 1, 1}, {Laplace, 10, 1}, {Laplace, 1, 3}, {Laplace, 7, 3}, {Laplace, 1_000_000, 99_999}, {Laplace, 3_000_000_000_000_000_019, 1_000_000_000_000_000_003},
	{Laplace, 1, 6}, {Laplace, 20, 1},
	{Gaussian, 1, 1}, {Gaussian, 100, 1}, {Gaussian, 1, 10}, {Gaussian, 7, 3}, {Gaussian, 250_000_000_000, 833_333_333},
	{Gaussian, 2_000_000_000_000_000_011, 1_000_000_000_000_000_003}, {Gaussian, 3_000_000_000_000_000_019, 17}, {Gaussian, 500, 1}, {Gaussian, 4_611_686_018_427_387_847, 4_611_686_018_427_387_817},
}

// TestSamplersAgainstTheirDefinition: three judgements a sampler, with the usual alarm of 1e-7 each.
func TestSamplersAgainstTheirDefinition(t *testing.T) {
	const n = 200_000
	for i, s := range samplers {
		d, r := mustNew(t, s.kind, s.num, s.den), seeded(byte(i))
		parameter := float64(s.num) / float64(s.den)
		if parameter > 1e6 {
			continue // below, by its moments
		}
		mass := textbookMass(s.kind, parameter)
		whole, real := make([]int64, n), make([]float64, n)
		for j := range n {
			whole[j] = d.Sample(r)
			real[j] = float64(whole[j])
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		claim := stattest.MomentsOf(mass, int64(60*parameter+60))
		for _, err := range []error{stattest.ChiSquare(whole, mass, stattest.Usual), stattest.Variance(real, claim, stattest.Usual), stattest.Mean(real, claim, stattest.Usual)} {
			if err != nil {
				t.Errorf("seed %q: kind %d, %d/%d: %v", seed, s.kind, s.num, s.den, err)
			}
		}
		if v := d.Variance(); math.Abs(v/claim.Variance-1) > 1e-9 {
			t.Errorf("kind %d, %d/%d: variance %g, the definition says %g", s.kind, s.num, s.den, v, claim.Variance)
		}
		for k := int64(-3); k < 4; k++ {
			if m := float64(d.Mass(k)); math.Abs(m/mass(k)-1) > 1e-9 {
				t.Errorf("kind %d, %d/%d: P(%d) is %g, the definition says %g", s.kind, s.num, s.den, k, m, mass(k))
			}
		}
	}
}

// TestWideSamplersByMoments: the parameters whose distribution is too wide for a chi-square by values.
func TestWideSamplersByMoments(t *testing.T) {
	const n = 100_000
	for i, s := range []struct {
		kind     Kind
		num, den int64
	}{{Laplace, 1 << 39, 1}, {Laplace, 999_999_999_999_999_989, 1_000_003}, {Gaussian, 3_000_000_000_000_000_019, 17}, {Gaussian, 1 << 61, 1}} {
		d, r := mustNew(t, s.kind, s.num, s.den), seeded(byte(100+i))
		deviation := math.Sqrt(d.Variance())
		claim := stattest.Moments{Variance: 1, Fourth: 3}
		if s.kind == Laplace {
			claim.Fourth = 6
		}
		real := make([]float64, n)
		for j := range real {
			real[j] = float64(d.Sample(r)) / deviation
		}
		for _, err := range []error{stattest.Mean(real, claim, stattest.Usual), stattest.Variance(real, claim, stattest.Usual)} {
			if err != nil {
				t.Errorf("seed %q: kind %d, %d/%d: %v", seed, s.kind, s.num, s.den, err)
			}
		}
	}
}

// TestTheThreeArithmeticsAgree: 64, 128 and any number of bits accept with the same probability, exp(−a/b).
func TestTheThreeArithmeticsAgree(t *testing.T) {
	const n = 100_000
	for i, c := range []struct{ a, b uint64 }{{1, 3}, {5, 2}, {1 << 40, 1<<41 + 1}, {0, 7}, {4, 1}} {
		want := math.Exp(-float64(c.a) / float64(c.b))
		hits := [3]int{}
		r := seeded(byte(50 + i))
		for range n {
			if expMinus128(r, uint128{0, c.a}, uint128{0, c.b}) {
				hits[0]++
			}
			if expMinus128(r, uint128{c.a, 0}, uint128{c.b, 0}) {
				hits[1]++
			}
			if expMinusBig(r, new(big.Int).Lsh(whole(c.a), 100), new(big.Int).Lsh(whole(c.b), 100)) {
				hits[2]++
			}
		}
		for j, h := range hits {
			if err := (stattest.Coverage{Hits: h, Trials: n, Claim: want}).Exactly(stattest.Usual); err != nil {
				t.Errorf("seed %q: exp(−%d/%d), arithmetic %d: %v", seed, c.a, c.b, j, err)
			}
		}
	}
}

// TestExpMinusOfMuchIsSoonDecided: how many words a choice takes does not grow with the exponent, not even where every
// word is 0.
func TestExpMinusOfMuchIsSoonDecided(t *testing.T) {
	for _, x := range []*big.Rat{big.NewRat(1<<62, 3), new(big.Rat).SetFrac(new(big.Int).Lsh(big.NewInt(1), 200), big.NewInt(3)), new(big.Rat).SetFrac(new(big.Int).Lsh(big.NewInt(1), 200), new(big.Int).Lsh(big.NewInt(3), 90))} {
		r := NewReader(bytes.NewReader(make([]byte, firstRead)))
		if r.ExpMinus(x) || r.Err() != nil {
			t.Errorf("exp(−%s) of words that are 0: %v", x, r.Err())
		}
	}
}

// TestLessBySixteenBits: for each of the 2^16 values of the first bits, a/b is decided as it must be; where they do not
// decide, the next draw does with what is left of a/b.
func TestLessBySixteenBits(t *testing.T) {
	for _, c := range []struct{ a, b uint128 }{{uint128{0, 1}, uint128{0, 3}}, {uint128{0, 0}, uint128{0, 7}}, {uint128{0, 65535}, uint128{0, 65536}}, {uint128{1 << 40, 77}, uint128{1 << 41, 1}}, {uint128{5, 1 << 63}, uint128{1 << 50, 12345}}} {
		scaled := new(big.Int).Lsh(c.a.big(), 16)
		undecided := 0
		for v := range uint64(1 << 16) {
			left := new(big.Int).Sub(scaled, new(big.Int).Mul(whole(v), c.b.big())) // of b: what U has still to be below
			r := &Reader{source: &failing{}, rest: v, left: 1}
			got := less(r, c.a, c.b)
			switch {
			case r.err != nil: // it asked for more
				undecided++
				if left.Sign() <= 0 || left.Cmp(c.b.big()) >= 0 {
					t.Fatalf("%v/%v: first bits %d ask for more", c.a, c.b, v)
				}
				hits := 0
				for i := range 4000 {
					more := NewReader(rand.NewChaCha8([32]byte{byte(i), byte(i >> 8), byte(v)}))
					more.rest, more.left = v, 1
					if less(more, c.a, c.b) {
						hits++
					}
				}
				claim, _ := new(big.Rat).SetFrac(left, c.b.big()).Float64()
				if err := (stattest.Coverage{Hits: hits, Trials: 4000, Claim: claim}).Exactly(stattest.Usual); err != nil {
					t.Errorf("%v/%v: first bits %d: %v", c.a, c.b, v, err)
				}
			case got != (left.Sign() > 0) || got && left.Cmp(c.b.big()) < 0:
				t.Fatalf("%v/%v: first bits %d say %t", c.a, c.b, v, got)
			}
		}
		if undecided > 3 {
			t.Errorf("%v/%v: %d of the first bits do not decide", c.a, c.b, undecided)
		}
	}
}

func TestRatio128AgainstBig(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fitting := 0
	for range 20_000 {
		num, den := int64(r.Uint64()>>(1+r.IntN(62)))+1, int64(r.Uint64()>>(1+r.IntN(62)))+1
		d, err := New(Gaussian, num, den)
		if err != nil {
			continue
		}
		j := r.Uint64() >> (40 + r.IntN(24))
		y := d.shape.width*j + r.Uint64N(d.shape.width)
		much := math.Ldexp(float64(d.shape.width*d.shape.width), int(d.shape.level)) / eighth / d.parameter()
		if !d.shape.covers(d.num, d.den) || d.num>>20 >= d.den && much > 1.15 || d.parameter() >= 1./8 && much > 2.001 {
			t.Fatalf("%d/%d: shape %+v", num, den, d.shape)
		}
		a, b := d.shape.ratio(d, y, j)
		gotA, gotB, ok := d.shape.ratio128(d, y, j)
		if !ok {
			continue
		}
		fitting++
		if a.Sign() < 0 || gotA.big().Cmp(a) != 0 || gotB.big().Cmp(b) != 0 {
			t.Fatalf("%d/%d at %d: %v/%v, want %v/%v", num, den, y, gotA.big(), gotB.big(), a, b)
		}
	}
	if fitting < 15_000 {
		t.Errorf("only %d of the cases fit", fitting)
	}
}

func TestUniformIntegers(t *testing.T) {
	r := seeded(200)
	for _, n := range []uint64{1, 2, 3, 7, 1 << 31, 1<<31 + 1, 3 << 62, math.MaxUint64} {
		sum := 0.0
		for range 20_000 {
			x := r.below(n)
			if x >= n {
				t.Fatalf("%d is not below %d", x, n)
			}
			sum += float64(x) / float64(n)
		}
		mean := (1 - 1/float64(n)) / 2
		if math.Abs(sum/20_000-mean) > 6*math.Sqrt(1./12/20_000) { // false alarm 2e-9
			t.Errorf("mean below %d is %g of it, want %g", n, sum/20_000, mean)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		kind     Kind
		num, den int64
		want     string
	}{
		{0, 1, 1, "noise kind is 0, must be discrete Laplace or discrete Gaussian"},
		{9, 1, 1, "noise kind is 9, must be discrete Laplace or discrete Gaussian"},
		{Laplace, 0, 1, "noise scale is 0/1, must have a numerator and a denominator greater than 0"},
		{Laplace, 1, 0, "noise scale is 1/0, must have a numerator and a denominator greater than 0"},
		{Laplace, -1, -1, "noise scale is -1/-1, must have a numerator and a denominator greater than 0"},
		{Gaussian, 1, math.MinInt64, "noise variance is 1/-9223372036854775808, must have a numerator and a denominator greater than 0"},
		{Laplace, Most, 1, "noise scale is 1099511627776/1, must be below 1099511627776"},
	} {
		if _, err := New(c.kind, c.num, c.den); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if (Distribution{}).Valid() || !mustNew(t, Gaussian, math.MaxInt64, 1).Valid() {
		t.Error("validity")
	}
}

// TestClippingAtTheEnds: the geometric quotient does not wrap.
func TestClippingAtTheEnds(t *testing.T) {
	r := seeded(201)
	ends := map[int64]int{}
	for range 2000 {
		// A scale of 2^64 is more than New allows; with it nearly half of the draws are beyond the int64 range.
		d := Distribution{kind: Laplace, num: math.MaxUint64, den: 1}
		x := d.laplace(r)
		if x == math.MaxInt64 || x == math.MinInt64 {
			ends[x]++
		}
	}
	share := math.Exp(-.5) / 2
	for _, end := range []int64{math.MinInt64, math.MaxInt64} {
		if err := (stattest.Coverage{Hits: ends[end], Trials: 2000, Claim: share}).Exactly(stattest.Usual); err != nil {
			t.Errorf("seed %q: end %d: %v", seed, end, err)
		}
	}
}

func TestAFailingSourceSticks(t *testing.T) {
	broken := errors.New("no entropy")
	for _, kind := range []Kind{Laplace, Gaussian} {
		for _, good := range []int{0, 255, 256, 300, 5000} {
			source := io.MultiReader(bytes.NewReader(bytes.Repeat([]byte{0x5a, 0x33, 0xc1, 0x77, 0x0f}, good)[:good]), &failing{broken})
			r, d := NewReader(source), mustNew(t, kind, 1_000_003, 7)
			for range 10_000 {
				d.Sample(r)
			}
			if !errors.Is(r.Err(), broken) {
				t.Errorf("kind %d, %d good bytes: %v", kind, good, r.Err())
			}
		}
		r := NewReader(nil)
		if mustNew(t, kind, 3, 2).Sample(r); r.Err() == nil || !strings.Contains(r.Err().Error(), "no source") {
			t.Errorf("nil source: %v", r.Err())
		}
		r = NewReader(&failing{})
		if mustNew(t, kind, 3, 2).Sample(r); !errors.Is(r.Err(), io.ErrNoProgress) {
			t.Errorf("idle source: %v", r.Err())
		}
		r = NewReader(iotest.OneByteReader(rand.NewChaCha8([32]byte{})))
		if mustNew(t, kind, 3, 2).Sample(r); r.Err() != nil {
			t.Errorf("slow source: %v", r.Err())
		}
		r = NewReader(strings.NewReader(""))
		if mustNew(t, kind, 3, 2).Sample(r); !errors.Is(r.Err(), io.EOF) {
			t.Errorf("empty source: %v", r.Err())
		}
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func TestSampleOfTheZeroValuePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Distribution{}.Sample(seeded(0))
}
