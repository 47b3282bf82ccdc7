package noise

import (
	"crypto/rand"
	"math"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// drawnFor are twelve parameters of what releases are drawn with.
var drawnFor = []struct {
	kind     Kind
	num, den int64
}{
	{Laplace, 1, 1}, {Laplace, 10, 1}, {Laplace, 1, 3}, {Laplace, 7, 3}, {Laplace, 1_000_000, 99_999}, {Laplace, 20, 1},
	{Gaussian, 1, 1}, {Gaussian, 100, 1}, {Gaussian, 7, 3}, {Gaussian, 300, 1}, {Gaussian, 500, 1}, {Gaussian, 1, 10},
}

// TestT21ExactChances: as many draws of the samplers that releases use against the exact chances, by chi-square. False
// alarm: 1e-7 each.
func TestT21ExactChances(t *testing.T) {
	n := threats.Length(200_000, 1_000_000)
	out, worst := make([]int64, n), 0
	for i, s := range drawnFor {
		d, r := mustNew(t, s.kind, s.num, s.den), seeded(byte(210+i))
		d.Fill(r, out)
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		if err := stattest.ChiSquare(out, textbookMass(s.kind, d.parameter()), stattest.Usual); err != nil {
			worst++
			t.Errorf("seed %q: kind %d, %d/%d: %v", seed, s.kind, s.num, s.den, err)
		}
	}
	threats.Reached(t, "T21", "chi-square of %d draws of %d parameters: %d rejected at 1e-7", n, len(drawnFor), worst)
}

// timed returns the size and the time of so many draws.
func timed(n int, draw func() int64) (sizes, times []float64) {
	for range n {
		begun := time.Now()
		x := draw()
		times = append(times, float64(time.Since(begun)))
		sizes = append(sizes, math.Abs(float64(x)))
	}
	return sizes, times
}

// TestT19SamplerTime: the time of a sampler of fixed work does not go with the size of its noise; that of one that
// takes a few nanoseconds more for each unit of it does, so the test sees what it is to see. The ordinary sampler's is
// shown: what releases draw without `sampling: fixed-work` is covered by the grid of answers, not by this.
func TestT19SamplerTime(t *testing.T) {
	n := threats.Length(100_000, 100_000)
	f, r := mustFix(t, Laplace, 20, 1), NewReader(rand.Reader)
	fixed := stattest.Spearman(timed(n, func() int64 { return f.sample(r) }))
	d := mustNew(t, Laplace, 20, 1)
	ordinary := stattest.Spearman(timed(n, func() int64 { return d.Sample(r) }))
	steps := 0
	slower := stattest.Spearman(timed(n, func() int64 {
		x := f.sample(r)
		for range 10 * max(x, -x) {
			steps++
		}
		return x
	}))
	t.Logf("ρ of |noise| and time: fixed work %.4f, ordinary %.4f, slower by the unit %.4f (%d steps)", fixed, ordinary, slower, steps)
	if math.Abs(fixed) > 0.02 {
		t.Errorf("fixed work: Spearman's ρ of |noise| and time is %.4f, must be within 0.02", fixed)
	}
	if slower < 0.1 {
		t.Errorf("a sampler that is slower by the unit: Spearman's ρ is %.4f: the test sees nothing", slower)
	}
	threats.Reached(t, "T19", "ρ %.4f of %d draws by fixed work (ordinary %.3f)", fixed, n, ordinary)
}
