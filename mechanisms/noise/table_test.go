package noise

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// TestExpBounds: the interval is narrow, holds the 53 digits of package math, and shrinks into itself.
func TestExpBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		a, b := r.Uint64()>>r.IntN(64), r.Uint64()>>r.IntN(64)|1
		low, high := ExpBounds(whole(a), whole(b), 64)
		finerLow, finerHigh := ExpBounds(whole(a), whole(b), 300)
		if finerLow.Rsh(finerLow, 300-64).Cmp(low) < 0 || finerHigh.Rsh(finerHigh, 300-64).Cmp(high) > 0 || new(big.Int).Sub(high, low).Cmp(big.NewInt(3)) > 0 {
			t.Fatalf("exp(−%d/%d): [%v, %v] and [%v, %v]", a, b, low, high, finerLow, finerHigh)
		}
		x, _ := new(big.Float).SetInt(low).Float64()
		if want := math.Exp(-float64(a) / float64(b)); math.Abs(x/(1<<64)-want) > 1e-15+1e-18 {
			t.Fatalf("exp(−%d/%d) is %g, the float says %g", a, b, x/(1<<64), want)
		}
	}
}

var laws = []law{
	{Laplace, 64, 1, false}, {Laplace, 1, 1, true}, {Laplace, 1, 100, true}, {Laplace, 10, 1, true}, {Laplace, 300, 1, true}, {Laplace, 1_000_003, 99_999, true},
	{Gaussian, 1, 1, false}, {Gaussian, 2, 1, false}, {Gaussian, 64, 1, false}, {Gaussian, 1, 1, true}, {Gaussian, 1, 1000, true}, {Gaussian, 100, 1, true}, {Gaussian, 7, 3, true},
	{Gaussian, 1_000_000, 1, true},
}

// TestDigitsAreCertified: 63 digits of every entry by intervals (of a large table, of some), and the law by its masses.
func TestDigitsAreCertified(t *testing.T) {
	for _, l := range laws {
		table := build(l)
		step := 1
		if n := len(table.digits); n > 500 {
			step = n/3 - 1
		}
		for k := 0; k < len(table.digits); k += step {
			low, high := l.bounds(k, 63)
			if d := table.digits[k]; whole(d).Cmp(low) > 0 || whole(d+2).Cmp(high) < 0 {
				t.Errorf("%+v: entry %d is %d, the bounds are %v and %v", l, k, d, low, high)
			}
		}
		parameter := float64(l.num) / float64(l.den)
		mass := textbookMass(l.kind, parameter)
		total := 0.0
		for k := range table.digits[:min(len(table.digits), 200)] {
			m := 2 * mass(int64(k))
			switch {
			case k == 0 && l.folded:
				m /= 2
			case !l.folded:
				m /= 1 + mass(0)
			}
			total += m
			if got := float64(table.digits[k]) / (1 << 63); math.Abs(got-total) > 1e-12 {
				t.Fatalf("%+v: P(K ≤ %d) is %.15f, the definition says %.15f", l, k, got, total)
			}
		}
	}
}

// script hands out words, and zeros after them.
type script struct {
	words []uint64
	taken int
}

func (s *script) Read(p []byte) (int, error) {
	w := uint64(0)
	if s.taken < len(s.words) {
		w = s.words[s.taken]
	}
	s.taken++
	var text [8]byte
	binary.LittleEndian.PutUint64(text[:], w)
	return copy(p, text[:]), nil
}

// inverted is the naive twin of a table: the least k with U < P(K ≤ k), all by intervals.
func inverted(l law, slot uint64, words []uint64) int {
	u := whole(slot)
	known := uint(slotBits)
	u.Lsh(u, restBits).Add(u, whole(words[0]>>(64-restBits)))
	known += restBits
	for _, w := range words[1:] {
		u.Lsh(u, 64).Add(u, whole(w))
		known += 64
	}
	for k := 0; ; k++ {
		if low, _ := l.bounds(k, known); u.Cmp(low) < 0 {
			return k
		}
	}
}

// TestTablesAgainstTheirTwin: at, just below and just above every entry, and at random, tables invert the law exactly.
// Each word after the first two is an extreme or random, so that ties are resolved both ways, by one more word or two.
func TestTablesAgainstTheirTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, l := range []law{{Laplace, 10, 1, true}, {Laplace, 3, 2, false}, {Gaussian, 9, 1, true}, {Gaussian, 7, 3, false}} {
		table := build(l)
		ties := 0
		for k := 0; k < 3*len(table.digits); k++ {
			u := random.Uint64() >> 1
			if k < 2*len(table.digits) {
				u = min(table.digits[k%len(table.digits)]+uint64(random.IntN(4))-1, 1<<63-1)
			}
			exact, _ := l.bounds(k%len(table.digits), 63+64+64)
			next := random.Uint64()
			if k < len(table.digits) { // tie with the exact next digits, and less or more by one
				u = new(big.Int).Rsh(exact, 128).Uint64()
				next = new(big.Int).Rsh(exact, 64).Uint64() + uint64(random.IntN(3)) - 1
			}
			words := []uint64{u << (64 - restBits), next, random.Uint64()}
			slot := u >> restBits
			if l.kind == Laplace && u >= table.digits[len(table.digits)-1] {
				continue // the tail starts anew
			}
			r := NewReader(&script{words: append(words, random.Uint64(), random.Uint64())})
			r.rest, r.left = slot<<1|uint64(random.IntN(2)), 1
			got, _ := table.draw(r)
			if want := inverted(l, slot, words); got != uint64(want) {
				t.Fatalf("%+v: u %d, then %d: %d, the twin says %d", l, u, next, got, want)
			}
			if r.next > 8 {
				ties++
			}
		}
		if ties < len(table.digits)/2 {
			t.Errorf("%+v: only %d draws needed more than 63 digits", l, ties)
		}
	}
}

// TestTablesByDistribution: two judgements a table.
func TestTablesByDistribution(t *testing.T) {
	n := stattest.Length(400_000, 4_000_000)
	out, real := make([]int64, n), make([]float64, n)
	for i, s := range samplers {
		d := mustNew(t, s.kind, s.num, s.den)
		if d.law().entries() > maxEntries-1 {
			continue
		}
		r := seeded(byte(150 + i))
		build(d.law()).fill(r, out)
		for j, x := range out {
			real[j] = float64(x)
		}
		mass := textbookMass(s.kind, d.parameter())
		claim := stattest.MomentsOf(mass, int64(60*d.parameter()+60))
		for _, err := range []error{r.Err(), stattest.ChiSquare(out, mass, stattest.Usual), stattest.Variance(real, claim, stattest.Usual)} {
			if err != nil {
				t.Errorf("seed %q: kind %d, %d/%d: %v", seed, s.kind, s.num, s.den, err)
			}
		}
	}
}

// TestTheTailStartsAnew: a table of one entry, P(K = 0), and the rest by the law itself.
func TestTheTailStartsAnew(t *testing.T) {
	d := mustNew(t, Laplace, 3, 1)
	short := build(d.law())
	short.digits = short.digits[:1]
	short.addGuide()
	out := make([]int64, 200_000)
	short.fill(seeded(140), out)
	if err := stattest.ChiSquare(out, textbookMass(Laplace, 3), stattest.Usual); err != nil {
		t.Errorf("seed %q: %v", seed, err)
	}
}

func TestFillChoosesATableWhenItPays(t *testing.T) {
	c := cache{most: 300_000}
	few, many := law{Laplace, 10, 1, true}, law{Gaussian, 100, 1, true}
	if c.of(few, 1000) != nil || c.bytes != 0 {
		t.Error("a table for a thousand samples")
	}
	first := c.of(few, 1000)
	if first == nil || c.of(few, 1) != first || c.bytes != first.bytes() {
		t.Error("no table, or another one, after two thousand samples")
	}
	if c.of(law{Laplace, 1 << 30, 1, true}, 1<<30) != nil || c.of(law{Gaussian, 1 << 30, 1, true}, 1<<30) != nil {
		t.Error("a table without an end")
	}
	for i := uint64(2); i < 10; i++ { // each 64 KiB and something
		c.of(law{Gaussian, 100 + i, 1, true}, 1<<20)
		if c.bytes > c.most {
			t.Fatalf("%d bytes are kept, must be at most %d", c.bytes, c.most)
		}
	}
	if c.known[few].table != nil || c.of(many, 100) != nil {
		t.Error("the oldest table is not forgotten")
	}
	for i := range uint64(3 * maxKnown) {
		c.of(law{Laplace, i + 1, 1_000_003, true}, 1)
	}
	if len(c.known) > maxKnown {
		t.Errorf("%d laws are remembered, must be at most %d", len(c.known), maxKnown)
	}
	a, b := mustNew(t, Laplace, 20, 2), mustNew(t, Laplace, 10, 1)
	if a.law() != b.law() {
		t.Error("20/2 is not 10/1")
	}
}

// TestFillWithAndWithoutATable: few samples and many, from many goroutines at once, have the same distribution.
func TestFillWithAndWithoutATable(t *testing.T) {
	d := mustNew(t, Gaussian, 31, 3)
	results := make([][]int64, 8)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() {
			r := seeded(byte(160 + i))
			for len(results[i]) < 100_000 {
				out := make([]int64, 1+37*i)
				d.Fill(r, out)
				results[i] = append(results[i], out...)
			}
		})
	}
	group.Wait()
	for i, all := range results {
		if err := stattest.ChiSquare(all, textbookMass(Gaussian, 31./3), stattest.Usual); err != nil {
			t.Errorf("seed %q: %d at a time: %v", seed, 1+37*i, err)
		}
	}
}

// TestSaturation: what lies beyond the ends of int64 ends there, by each way to draw.
func TestSaturation(t *testing.T) {
	for _, c := range []struct {
		magnitude uint64
		plus      int64
		minus     int64
	}{{0, 0, 0}, {5, 5, -5}, {math.MaxInt64, math.MaxInt64, -math.MaxInt64}, {1 << 63, math.MaxInt64, math.MinInt64}, {math.MaxUint64, math.MaxInt64, math.MinInt64}} {
		if signed(c.magnitude, false) != c.plus || signed(c.magnitude, true) != c.minus {
			t.Errorf("±%d are %d and %d", c.magnitude, signed(c.magnitude, false), signed(c.magnitude, true))
		}
	}
	huge := Distribution{kind: Laplace, num: math.MaxUint64, den: 1} // New allows a 2^24th of it
	table := &table{law: huge.law(), digits: []uint64{0}}
	table.addGuide()
	fixed := &fixed{d: huge}
	for name, draw := range map[string]func(r *Reader) int64{
		"table": func(r *Reader) int64 { out := make([]int64, 4); table.fill(r, out); return out[0] },
		"one":   func(r *Reader) int64 { k, negative := table.draw(r); return signed(k, negative) },
		"fixed": func(r *Reader) int64 { return fixed.beyond(r, r.Below(2), 4) },
	} {
		r, ends := seeded(141), map[int64]int{}
		for range 4000 {
			ends[draw(r)]++
		}
		least := int64(math.MinInt64)
		for _, end := range []int64{least, math.MaxInt64} {
			if err := (stattest.Coverage{Hits: ends[end], Trials: 4000, Claim: math.Exp(-.5) / 2}).Exactly(stattest.Usual); err != nil {
				t.Errorf("seed %q: %s, end %d: %v", seed, name, end, err)
			}
		}
	}
}

func ExampleDistribution_Fill() {
	d, err := New(Gaussian, 100, 1) // a variance of 100
	if err != nil {
		fmt.Println(err)
		return
	}
	r := seeded(1) // in production, NewReader(crypto/rand.Reader)
	noise := make([]int64, 5)
	d.Fill(r, noise)
	if r.Err() != nil {
		fmt.Println(r.Err())
		return
	}
	fmt.Println(len(noise))
	// Output: 5
}
