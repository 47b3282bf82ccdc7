package online

import (
	"errors"
	"io"
	"math"
	"math/big"
	"math/bits"
	weak "math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

func smallBasic() BasicSpec {
	return BasicSpec{
		Cells: 8, Size: 8, Rows: 100_000_000, Width: 25_000_000, Queries: 1000, Hard: 50,
		Contribution: privacy.Contribution{Rows: 1, Neighbors: privacy.ReplaceOne},
		Cost:         privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000), Delta: privacy.AttoDelta(1e12)},
	}
}

// TestBasicRefuses: where the theorem does not hold, among them one row below its bound on n.
func TestBasicRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*BasicSpec)
		says   string
	}{
		{func(s *BasicSpec) { s.Cost.Delta = privacy.Delta{} }, "delta in atto-units is 0"},
		{func(s *BasicSpec) { s.Cost.Epsilon = privacy.Epsilon{} }, "epsilon in micro-units is 0"},
		{func(s *BasicSpec) { s.Cost.Rho = privacy.PicoRho(1) }, "rho is 1"},
		{func(s *BasicSpec) { s.Contribution.Neighbors = privacy.AddRemove }, "neighbors is 1, must be from 2 to 2"},
		{func(s *BasicSpec) { s.Cells = 1 }, "cells is 1"},
		{func(s *BasicSpec) { s.Size = 0 }, "size is 0"},
		{func(s *BasicSpec) { s.Cells, s.Size = 64, 8 }, "candidates is 1.0"},
		{func(s *BasicSpec) { s.Queries = 1 }, "queries is 1"},
		{func(s *BasicSpec) { s.Hard = 0 }, "hard answers is 0"},
		{func(s *BasicSpec) { s.Width = s.Rows + 1 }, "width is 100000001"},
		{func(s *BasicSpec) { s.Rows, s.Width = 1000, 250 }, "rows is 1000, of which the width is 250: must be at least"},
	} {
		s := smallBasic()
		c.change(&s)
		if _, err := NewBasic(s); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %s", err, c.says)
		}
	}
	s := smallBasic()
	bad, err := badThresholds(50, s.Cost.Delta)
	if err != nil {
		t.Fatal(err)
	}
	// n·ε = Width ≥ 30·ln(2k/α)·log2(k)/α'
	least := int64(math.Ceil(30 * math.Log(2000) * math.Log2(1000) * 2 * float64(100+bad) * (1 + 1e-8)))
	s.Width = least
	if _, err := NewBasic(s); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	s.Width = least - least/1_000_000 - 1
	if _, err := NewBasic(s); err == nil {
		t.Error("below the bound passed")
	}
	t.Logf("c = 50, δ = 1e-6: B = %d (the paper's 8c = 400), width at least %d rows", bad, least)
	if _, err := openBasic(BasicPlan{}, skewed, seeded(1)); err == nil {
		t.Error("zero plan opened")
	}
}

// TestBadThresholdsBound: against the worst that a database can do, a threshold that is bad for certain at every query:
// then each is easy with probability 3/4 at most, and more than B easy ones come before the c-th hard one with the
// binomial's probability.
func TestBadThresholdsBound(t *testing.T) {
	for _, hard := range []int64{1, 10, 50, 100, 1000} {
		for _, delta := range []int64{1e15, 1e12, 1e9} {
			bad, err := badThresholds(hard, privacy.AttoDelta(delta))
			if err != nil {
				t.Fatal(err)
			}
			worst := 0.0 // P(at most hard of B+1+hard trials of 1/4)
			n := float64(bad + 1 + hard)
			for k := 0.0; k <= float64(hard); k++ {
				a, _ := math.Lgamma(n + 1)
				b, _ := math.Lgamma(k + 1)
				c, _ := math.Lgamma(n - k + 1)
				worst += math.Exp(a - b - c + k*math.Log(.25) + (n-k)*math.Log(.75))
			}
			if d := float64(delta) / 1e18; worst > d || worst < d/1e4 {
				t.Errorf("c = %d, δ = %.0e: B = %d, exceeded with probability %.2g", hard, d, bad, worst)
			}
		}
	}
}

// TestExpUnits against float64 where it is exact enough, and against itself: exp(−a)·exp(−b) = exp(−a−b).
func TestExpUnits(t *testing.T) {
	random := weak.New(generator(1))
	for range 2000 {
		a, b := random.Int64N(1<<40), 1+random.Int64N(1<<40)
		if random.IntN(4) == 0 {
			b = 1 + random.Int64N(1<<20)
		}
		got := float64(expUnits(big.NewInt(a), big.NewInt(b)).Int64())
		want := math.Exp(-float64(a)/float64(b)) * basicUnit
		if got > want+.001 || got < want-1.001 {
			t.Errorf("exp(−%d/%d) is %.1f, want %.4f", a, b, got, want)
		}
	}
	if expUnits(big.NewInt(0), big.NewInt(5)).Int64() != basicUnit {
		t.Error("exp(0)")
	}
}

// TestEasinessEqualsTheNaiveTwin: the mean over the candidates, one by one, in float64; and one row moves it by no more
// than the sensitivity that its noise is made for.
func TestEasinessEqualsTheNaiveTwin(t *testing.T) {
	s := smallBasic()
	s.Cells, s.Size = 4, 5
	p, err := NewBasic(s)
	if err != nil {
		t.Fatal(err)
	}
	c := enumerate(4, 5)
	if c.left() != 56 { // C(8, 5)
		t.Fatalf("%d candidates", c.left())
	}
	random := weak.New(generator(2))
	for range 200 {
		q, sum := randomQuery(t, 4, random), random.Int64N(s.Rows)
		held := c.histogram(q)
		want := 0.0
		for i := range c.left() {
			rows := 0
			for cell := range 4 {
				if q.has(cell) {
					rows += int(c.rows[i*4+cell])
				}
			}
			want += math.Exp(-math.Abs(float64(sum)/float64(s.Rows)-float64(rows)/5) / (float64(s.Width) / float64(s.Rows)))
		}
		want *= basicUnit / float64(c.left())
		got, next := p.easiness(sum, held), p.easiness(sum+1, held)
		if math.Abs(float64(got)-want) > 3 {
			t.Errorf("r is %d, want %.1f", got, want)
		}
		if d := next - got; d > p.moves || d < -p.moves {
			t.Errorf("one row moves r by %d, the noise is for %d", d, p.moves)
		}
	}
}

// TestBasicIsAccurate: at the theorem's n every answer is within the width; it stops after its hard answers or queries,
// by type.
func TestBasicIsAccurate(t *testing.T) {
	p, err := NewBasic(smallBasic())
	if err != nil {
		t.Fatal(err)
	}
	cells := []int64{50_000_000, 0, 12_500_000, 0, 25_000_000, 0, 0, 12_500_000}
	b, err := openBasic(p, cells, seeded(3))
	if err != nil {
		t.Fatal(err)
	}
	random, hard, asked, largest := weak.New(generator(4)), 0, 0, int64(0)
	for {
		q := randomQuery(t, 8, random)
		a, err := b.Answer(q)
		if stopped := (*Stopped)(nil); errors.As(err, &stopped) {
			if stopped.Reason != NoQueries || asked != 1000 {
				t.Errorf("stopped after %d queries: %v", asked, stopped)
			}
			break
		}
		if a.Value().Hard {
			hard++
		}
		off := a.Value().Value - q.sum(cells)
		largest = max(largest, off, -off)
		asked++
	}
	t.Logf("%d queries, %d hard of 50, largest error %d of width %d", asked, hard, largest, p.spec.Width)
	if largest > p.spec.Width || hard == 0 {
		t.Errorf("largest error %d of width %d, %d hard", largest, p.spec.Width, hard)
	}
	if b, err = openBasic(p, cells, io.LimitReader(seeded(3), 10)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := b.Answer(only(t, 8, 1)); !errors.As(err, new(*Stopped)) {
			t.Errorf("no randomness: %v", err)
		}
	}
}

// TestAuditOfBasic: an honest mechanism has so much noise at the theorem's n that the audit sees next to nothing; with
// the noise of its bit and its answer divided by share/2 the same audit sees more than is paid. One alarm of 1e-6.
func TestAuditOfBasic(t *testing.T) {
	s := smallBasic()
	s.Cells, s.Size, s.Hard = 2, 4, 1
	p, err := NewBasic(s)
	if err != nil {
		t.Fatal(err)
	}
	q := only(t, 2, 0)
	bound := func(p BasicPlan) float64 {
		random := seeded(7)
		sample := func(cells []int64) []float64 {
			scores := make([]float64, stattest.Length(4000, 200_000))
			for i := range scores {
				b, err := openBasic(p, cells, random)
				if err != nil {
					t.Fatal(err)
				}
				a, err := b.Answer(q)
				if err != nil {
					t.Fatal(err)
				}
				if scores[i] = -1e18; a.Value().Hard {
					scores[i] = float64(a.Value().Value)
				}
			}
			return scores
		}
		e, err := stattest.Audit{One: sample([]int64{37_000_001, 62_999_999}), Other: sample([]int64{37_000_000, 63_000_000}), Delta: p.spec.Cost.Delta.Float()}.Epsilon(auditAlarm)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if e := bound(p); e > 1 {
		t.Errorf("seed %q: epsilon is at least %.3f, paid 1", seed, e)
	}
	if p.answer, err = noise.New(noise.Laplace, 1, 3); err != nil {
		t.Fatal(err)
	}
	if e := bound(p); e <= 1 {
		t.Errorf("seed %q: too little noise passed: %.3f", seed, e)
	}
}

// TestBasicHaltsAtItsCap: with every query hard, and candidates put back that did not agree, it is the cap that ends
// it.
func TestBasicHaltsAtItsCap(t *testing.T) {
	p, err := NewBasic(smallBasic())
	if err != nil {
		t.Fatal(err)
	}
	p.spec.Width = 1 // no candidate is so near: all is hard
	cells := make([]int64, 8)
	for i := range cells {
		cells[i] = 12_500_000
	}
	b, err := openBasic(p, cells, seeded(9))
	if err != nil {
		t.Fatal(err)
	}
	hard := 0
	for range 1000 {
		alive := slices.Clone(b.candidates.alive)
		a, err := b.Answer(only(t, 8, 0))
		if stopped := (*Stopped)(nil); errors.As(err, &stopped) {
			if stopped.Reason != Spent {
				t.Error(stopped)
			}
			break
		}
		if !a.Value().Hard {
			t.Fatal("an easy answer")
		}
		if hard++; a.Value().Left != p.spec.Hard-hard {
			t.Errorf("%d left after %d of %d", a.Value().Left, hard, p.spec.Hard)
		}
		if b.candidates.alive = alive; b.stopped != nil && b.stopped.Reason == NoCandidate {
			b.stopped = nil
		}
	}
	if hard != p.spec.Hard {
		t.Errorf("%d hard answers, declared %d", hard, p.spec.Hard)
	}
}

// TestTossesInFixedWork: from a source of fixed work all coins of a threshold are tossed at once, so that no loop ends
// where it lies: it is the number of heads at the end of so many fair coins, which has the law of those before the
// first tail.
func TestTossesInFixedWork(t *testing.T) {
	for _, most := range []int64{0, 1, 7, 14, 20, 40, 62} {
		fixed, same := noise.NewReader(noise.FixedWork(seeded(111))), noise.NewReader(seeded(111))
		for range 1000 {
			coins := same.Below(1 << most)
			if got, want := tosses(fixed, most), int64(bits.TrailingZeros64(^coins)); got != want || got > most {
				t.Fatalf("%d of the %d coins %b, want %d", got, most, coins, want)
			}
		}
		if err := fixed.Err(); err != nil {
			t.Fatal(err)
		}
	}
}
