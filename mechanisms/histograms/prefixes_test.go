package histograms

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

func withDelta(c privacy.Cost, atto int64) privacy.Cost {
	c.Delta = privacy.AttoDelta(atto)
	return c
}

func mustPrefixes(t testing.TB, bits, stride int, c privacy.Contribution, cost privacy.Cost) Prefixes {
	t.Helper()
	p, err := NewPrefixes(bits, stride, c, cost)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestThresholdBySummation: by the masses of the noise, term by term, a unit's own prefixes pass with at most δ over
// all levels however its rows are spread, and with more at a threshold one lower (Laplace; the Gaussian's tail is a
// bound).
func TestThresholdBySummation(t *testing.T) {
	for _, rows := range []int64{1, 3} {
		for _, kind := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
			for _, cost := range []privacy.Cost{eps(1), eps(8), {Rho: privacy.PicoRho(5e11)}} {
				const delta = 1e-4
				p := mustPrefixes(t, 8, 4, privacy.Contribution{Rows: rows, Neighbors: kind}, withDelta(cost, 1e14))
				passes := func(threshold int64) float64 {
					tail := func(m int64) float64 {
						sum := 0.0
						for k := m; k < m+3000; k++ {
							sum += float64(p.noise.Mass(k))
						}
						return sum
					}
					worst := 0.0
					for _, spread := range [][]int64{{1}, {2}, {3}, {1, 1}, {1, 2}, {1, 1, 1}} {
						sum, total := int64(0), 0.0
						for _, c := range spread {
							sum += c
							total += tail(threshold - c)
						}
						if sum <= rows {
							worst = math.Max(worst, total)
						}
					}
					if kind == privacy.ReplaceOne {
						worst *= 2
					}
					return 2 * worst
				}
				if got := passes(p.threshold); got > delta || cost.Rho.Pico() == 0 && p.threshold > rows+1 && passes(p.threshold-1) <= delta {
					t.Errorf("%d rows, %s, %s: threshold %d passes with %g (one lower: %g)", rows, kind, cost, p.threshold, got, passes(p.threshold-1))
				}
			}
		}
	}
}

// TestPrefixesWithoutNoise: kept prefixes are those with as many rows as the threshold, counted naively, and all ranges
// whose rows are in kept prefixes of the last level are exact.
func TestPrefixesWithoutNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		stride := []int{1, 2, 4}[random.IntN(3)]
		p := mustPrefixes(t, 8, stride, oneRow, withDelta(eps(1), 1e12))
		p.noise, _ = noise.New(noise.Laplace, 1, 1_000_000)
		p.threshold = 1 + random.Int64N(6)
		counts, keyed := [256]int64{}, []Keyed{}
		for range random.IntN(40) {
			k := Keyed{random.Uint64(), random.Int64N(7) - 1}
			keyed = append(keyed, k)
			counts[k.Key&255] += max(0, k.Count)
		}
		r, err := p.Release(privacy.Seal(keyed), seeded(1))
		if err != nil {
			t.Fatal(err)
		}
		want := []Node{}
		alive := map[uint64]bool{0: true}
		for level := range p.Levels() {
			width, next := 8-(level+1)*stride, map[uint64]bool{}
			for first := 0; first < 256; first += 1 << width {
				sum := int64(0)
				for _, c := range counts[first : first+1<<width] {
					sum += c
				}
				if alive[uint64(first)>>(width+stride)] && sum >= p.threshold {
					want = append(want, Node{level, uint64(first), sum})
					next[uint64(first)>>width] = true
				}
			}
			alive = next
		}
		if !slices.Equal(r.Value(), want) {
			t.Fatalf("%v: kept %v, want %v", keyed, r.Value(), want)
		}
		reading, err := p.Reading(r)
		if err != nil {
			t.Fatal(err)
		}
		checkReading(t, reading, p, counts[:])
	}
}

// checkReading: pieces cover all keys once, counts add up, quantiles invert them; with the threshold 1 all is exact.
func checkReading(t *testing.T, r *Reading, p Prefixes, counts []int64) {
	t.Helper()
	next := uint64(0)
	for _, piece := range r.pieces {
		if piece.first != next || piece.last < piece.first || piece.count < 0 {
			t.Fatalf("pieces %v", r.pieces)
		}
		next = piece.last + 1
	}
	if next != 256 {
		t.Fatalf("pieces %v", r.pieces)
	}
	for first := range uint64(256) {
		sum := int64(0)
		for last := first; last < 256; last++ {
			sum += counts[last]
			got := r.Count(first, last).Value()
			if p.threshold == 1 && math.Abs(got-float64(sum)) > 1e-9 {
				t.Fatalf("count %d to %d is %g of %d", first, last, got, sum)
			}
		}
	}
	total := r.below[len(r.pieces)]
	for _, q := range []float64{0, .1, .5, .9, 1} {
		share, _ := NewShare(q)
		key := r.Quantile(share).Value()
		if total > 0 && (r.upTo(key) < q*total-1e-9 || key > 0 && q > 0 && r.upTo(key-1) >= q*total+1e-9) {
			t.Fatalf("quantile %g is %d: %g of %g up to it", q, key, r.upTo(key), total)
		}
	}
}

// TestPrefixesOf64Bits: 100,000 rows around two far keys and a wide stretch, ε = 1: counts within a few hundred rows,
// quantiles among the rows.
func TestPrefixesOf64Bits(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	keyed := []Keyed{{17, 20_000}, {math.MaxUint64, 30_000}}
	for range 50_000 {
		keyed = append(keyed, Keyed{1<<63 + random.Uint64N(1<<40), 1})
	}
	for _, cost := range []privacy.Cost{eps(1), {Rho: privacy.PicoRho(5e11)}} {
		p := mustPrefixes(t, 64, 8, oneRow, withDelta(cost, 1e12))
		r, err := p.Release(privacy.Seal(keyed), seeded(4))
		if err != nil {
			t.Fatal(err)
		}
		reading, err := p.Reading(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			first, last uint64
			want        float64
		}{{0, math.MaxUint64, 100_000}, {0, 1 << 62, 20_000}, {17, 17, 20_000}, {math.MaxUint64, math.MaxUint64, 30_000}, {1 << 63, 1<<63 + 1<<39 - 1, 25_000}, {18, 1 << 62, 0}} {
			if got := reading.Count(c.first, c.last).Value(); math.Abs(got-c.want) > 600 {
				t.Errorf("%s: count %d to %d is %.0f of %.0f", cost, c.first, c.last, got, c.want)
			}
		}
		median, _ := NewShare(.5)
		if m := reading.Quantile(median).Value(); m < 1<<63 || m > 1<<63+1<<40 {
			t.Errorf("%s: median %d", cost, m)
		}
		t.Logf("%s: threshold %d, deviation %.1f, %d prefixes kept", cost, p.Threshold(), math.Sqrt(p.Variance()), len(r.Value()))
	}
}

func TestAuditOfPrefixes(t *testing.T) {
	// A key that the unit has alone beside a common one that it adds to: δ is seen at the first, ε at the second. The
	// plan's δ is large, so that it can be seen.
	const delta = .05
	p := mustPrefixes(t, 2, 1, privacy.Contribution{Rows: 2, Neighbors: privacy.AddRemove}, withDelta(eps(1), 5e16))
	one, other := []Keyed{{0, 30}}, []Keyed{{0, 31}, {3, 1}}
	alone := []Keyed{{0, 30}, {2, 1}, {3, 1}}
	sample := func(p Prefixes, keyed []Keyed, common int64) []float64 {
		random, answers := seeded(6), make([]float64, stattest.Length(40_000, 1_000_000))
		for i := range answers {
			r, err := p.Release(privacy.Seal(keyed), random)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range r.Value() {
				if n.First >= 2 {
					answers[i] = 1000 // the unit shows
					break
				}
				answers[i] += float64(min(max(n.Count, common), common+2) - common)
			}
		}
		return answers
	}
	for _, c := range []struct {
		name   string
		change func(p *Prefixes)
		faulty bool
	}{
		{"as it is", func(*Prefixes) {}, false},
		{"one level of two charged", func(p *Prefixes) { p.noise, _ = noise.New(noise.Laplace, 2, 1) }, true},
		{"a threshold for a tenth of the rows", func(p *Prefixes) { p.threshold -= 12 }, true},
	} {
		q := p
		c.change(&q)
		worst := 0.0
		for _, larger := range [][]Keyed{other, alone, {{0, 32}}} {
			// Counts are judged by what lies between the neighbours' own.
			bound, err := stattest.Audit{One: sample(q, larger, 30), Other: sample(q, one, 30), Delta: delta}.Epsilon(auditAlarm)
			if err != nil {
				t.Fatal(err)
			}
			worst = math.Max(worst, bound)
			without, err := stattest.Audit{One: sample(q, larger, 30), Other: sample(q, one, 30)}.Epsilon(auditAlarm)
			if err != nil {
				t.Fatal(err)
			}
			if len(larger) == 1 { // no key of the unit's own: no δ is needed
				worst = math.Max(worst, without)
			}
		}
		t.Logf("%s: epsilon at least %.3f of 1", c.name, worst)
		if (worst > 1) != c.faulty {
			t.Errorf("seed %q: %s: epsilon at least %.3f; paid: (1, %g)", seed, c.name, worst, delta)
		}
	}
}

func TestPrefixesRefusals(t *testing.T) {
	plan := mustPrefixes(t, 8, 4, oneRow, withDelta(eps(1), 1e12))
	for want, f := range map[string]func() error{
		"bits of a key are 65, must be from 1 to 64":     func() error { _, err := NewPrefixes(65, 1, oneRow, withDelta(eps(1), 1)); return err },
		"bits of a level are 3, must divide the key's 8": func() error { _, err := NewPrefixes(8, 3, oneRow, withDelta(eps(1), 1)); return err },
		"delta is 0, must be greater than 0":             func() error { _, err := NewPrefixes(8, 4, oneRow, eps(1)); return err },
		"must name one of them":                          func() error { _, err := NewPrefixes(8, 4, oneRow, withDelta(privacy.Cost{}, 1)); return err },
		"rows of a unit is 0":                            func() error { _, err := NewPrefixes(8, 4, privacy.Contribution{}, withDelta(eps(1), 1)); return err },
		"plan is the zero value":                         func() error { _, err := Prefixes{}.Release(privacy.Seal([]Keyed{}), seeded(1)); return err },
		"truth was never sealed":                         func() error { _, err := plan.Release(privacy.Sensitive[[]Keyed]{}, seeded(1)); return err },
		"node 1 is out of order":                         func() error { _, err := plan.Reading(privacy.Published([]Node{{1, 0, 9}, {0, 0, 9}})); return err },
		"share is NaN":                                   func() error { _, err := NewShare(math.NaN()); return err },
		"share is 1.5":                                   func() error { _, err := NewShare(1.5); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if r, err := plan.Release(privacy.Seal([]Keyed{{1, 1}}), iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(make([]byte, 9))))); err == nil || r.Valid() {
		t.Error("9 bytes of randomness were enough")
	}
}

func ExamplePrefixes() {
	// Amounts in cents, anywhere in 64 bits: 10,000 of about 20.00 and 5,000 of about 3,000,000.00.
	rows := []Keyed{}
	for i := range uint64(10_000) {
		rows = append(rows, Keyed{2000 + i%100, 1})
	}
	rows = append(rows, Keyed{300_000_000, 5000})
	plan, err := NewPrefixes(64, 8, privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, withDelta(eps(1), 1e12))
	if err != nil {
		fmt.Println(err)
		return
	}
	kept, err := plan.Release(privacy.Seal(rows), seeded(9))
	if err != nil {
		fmt.Println(err)
		return
	}
	reading, _ := plan.Reading(kept)
	median, _ := NewShare(.5)
	fmt.Printf("threshold %d; below 1000.00: %.0f; median %d\n", plan.Threshold(), reading.Count(0, 99_999).Value(), reading.Quantile(median).Value())
	// The median is 2074 among the rows; keys with fewer rows than the threshold are read as even over their prefix.
	// Output:
	// threshold 124; below 1000.00: 9988; median 2178
}

// BenchmarkPrefixes: a release of a million rows with as many keys, and its reading, by the bits of a level.
func BenchmarkPrefixes(b *testing.B) {
	random := rand.New(rand.NewPCG(15, 16))
	keyed := make([]Keyed, 1_000_000)
	for i := range keyed {
		keyed[i] = Keyed{uint64(math.Abs(random.NormFloat64()) * (1 << 50)), 1}
	}
	truth := privacy.Seal(keyed)
	for _, stride := range []int{4, 8, 16} {
		b.Run(fmt.Sprintf("stride%d", stride), func(b *testing.B) {
			p := mustPrefixes(b, 64, stride, oneRow, withDelta(eps(1), 1e12))
			bytes := seeded(17)
			for b.Loop() {
				r, err := p.Release(truth, bytes)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := p.Reading(r); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(r.Value())), "kept")
				b.ReportMetric(float64(p.Threshold()), "threshold")
			}
		})
	}
}
