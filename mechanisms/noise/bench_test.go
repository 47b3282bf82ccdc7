package noise

import (
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"syscall"
	"testing"

	google "github.com/google/differential-privacy/go/v3/noise"
)

// counting counts the bytes that a Reader takes, less what it has read ahead.
type counting struct {
	source io.Reader
	bytes  int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.source.Read(p)
	c.bytes += n
	return n, err
}

func (c *counting) words(r *Reader) float64 {
	return float64(c.bytes-(len(r.buffer)-r.next))/8 - float64(r.left)/4 - float64(r.half>>32)/2
}

// processor returns the nanoseconds that this process has computed, which a busy machine stretches less than its clock.
func processor() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return math.NaN()
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

const batch = 1024

// measured runs draw, of batch samples, and prints for one sample: the time, the processor's time, the target and the
// best figure known elsewhere (reference implementations on a machine of 2.8 GHz, by a generator of 7.6 ns a word where
// crypto/rand took 18), where there is one.
func measured(b *testing.B, target, best float64, draw func(r *Reader)) {
	source := &counting{source: rand.Reader}
	r := NewReader(source)
	draw(r)
	source.bytes = len(r.buffer) - r.next // as if nothing had been taken yet
	r.left, r.half = 0, 0
	start := processor()
	for b.Loop() {
		draw(r)
	}
	samples := float64(b.N) * batch
	used := processor() - start
	if r.Err() != nil {
		b.Fatal(r.Err())
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/samples, "ns")
	b.ReportMetric(used/samples, "cpu-ns")
	b.ReportMetric(source.words(r)/samples, "words")
	if target > 0 {
		b.ReportMetric(target, "target-ns")
	}
	if best > 0 {
		b.ReportMetric(best, "best-known-ns")
	}
}

// BenchmarkSamplers: all with crypto/rand, read ahead, as in production.
func BenchmarkSamplers(b *testing.B) {
	b.Run("floor/word", func(b *testing.B) {
		measured(b, 0, 0, func(r *Reader) {
			for range batch {
				r.word()
			}
		})
	})
	scales := []struct {
		name          string
		kind          Kind
		num, den      int64
		table, direct float64 // the best known
	}{
		{"Laplace/t=1", Laplace, 1, 1, 0, 0},
		{"Laplace/t=10", Laplace, 10, 1, 14, 116},
		{"Laplace/t=300", Laplace, 300, 1, 22, 0},
		{"Laplace/t=1e6", Laplace, 1_000_000, 1, 80, 116},
		{"Laplace/t=10.0001", Laplace, 1_000_003, 99_999, 0, 0},
		{"Gaussian/s=1", Gaussian, 1, 1, 0, 0},
		{"Gaussian/s=10", Gaussian, 100, 1, 15, 201},
		{"Gaussian/s=1000", Gaussian, 1_000_000, 1, 26, 206},
		{"Gaussian/s=1e6", Gaussian, 1_000_000_000_000, 1, 0, 0},
		{"Gaussian/s=17.32", Gaussian, 250_000_000_000, 833_333_333, 0, 0},
	}
	out := make([]int64, batch)
	for _, s := range scales {
		d := mustNew(b, s.kind, s.num, s.den)
		if l := d.law(); l.entries() < maxEntries {
			b.Run("table/"+s.name, func(b *testing.B) {
				table := build(l)
				measured(b, 20, s.table, func(r *Reader) { table.fill(r, out) })
			})
		}
	}
	for _, s := range scales {
		d := mustNew(b, s.kind, s.num, s.den)
		b.Run("any/"+s.name, func(b *testing.B) {
			measured(b, 120, s.direct, func(r *Reader) {
				for i := range out {
					out[i] = d.Sample(r)
				}
			})
		})
	}
	for _, s := range scales {
		f := mustFix(b, s.kind, s.num, s.den)
		best := map[string]float64{"Laplace/t=10": 131, "Laplace/t=1e6": 301}[s.name]
		b.Run("fixed/"+s.name, func(b *testing.B) {
			measured(b, 300, best, func(r *Reader) {
				for i := range out {
					out[i] = f.sample(r)
				}
			})
		})
	}
	benchmarkGoogle(b)
}

// benchmarkGoogle: the same work by another library, its noise on 64-bit integers; it takes its own randomness.
func benchmarkGoogle(b *testing.B) {
	deviation := func(epsilon float64) float64 { return google.SigmaForGaussian(1, 1, epsilon, 1e-6) }
	for _, scale := range []float64{1, 10, 300, 1e6} {
		laplace, gaussian := google.Laplace(), google.Gaussian()
		low, high := 1e-9, 100.0
		for range 60 { // the ε whose deviation is the scale
			if middle := math.Sqrt(low * high); deviation(middle) > scale {
				low = middle
			} else {
				high = middle
			}
		}
		for _, s := range []struct {
			name string
			add  func() (int64, error)
		}{
			{"google/Laplace/t", func() (int64, error) { return laplace.AddNoiseInt64(0, 1, 1, 1/scale, 0) }},
			{"google/Gaussian/s", func() (int64, error) { return gaussian.AddNoiseInt64(0, 1, 1, high, 1e-6) }},
		} {
			b.Run(fmt.Sprintf("%s=%g", s.name, scale), func(b *testing.B) {
				start := processor()
				for b.Loop() {
					if _, err := s.add(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric((processor()-start)/float64(b.N), "cpu-ns")
			})
		}
	}
}

// BenchmarkBuild: what a table costs before its first sample.
func BenchmarkBuild(b *testing.B) {
	for _, l := range []law{{Laplace, 10, 1, true}, {Laplace, 300, 1, true}, {Gaussian, 100, 1, true}, {Gaussian, 1_000_000, 1, true}} {
		b.Run(fmt.Sprintf("%d/%d", l.kind, l.num), func(b *testing.B) {
			for b.Loop() {
				build(l)
			}
		})
	}
}
