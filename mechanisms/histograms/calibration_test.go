package histograms

import (
	"errors"
	"io"
	"math"
	"testing"
	"testing/iotest"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

var (
	bounded = []privacy.Contribution{
		oneRow, {Rows: 1, Neighbors: privacy.ReplaceOne}, {Rows: 3, Neighbors: privacy.AddRemove}, {Rows: 3, Neighbors: privacy.ReplaceOne},
	}
	paid = []privacy.Cost{eps(1), eps(.37), {Rho: privacy.PicoRho(5e11)}, {Rho: privacy.PicoRho(777_777_777_777)}}
)

// perStep returns the ε, or ρ, that a step of 1 takes: 1/t of a Laplace noise, 1/(2σ²) of a narrow Gaussian.
func perStep(d noise.Distribution) float64 { return math.Log(float64(d.Mass(0) / d.Mass(1))) }

// lost returns the ε, or ρ, that noise takes for numbers that move by so much.
func lost(d noise.Distribution, s privacy.Sensitivity, rows int64, pure bool) float64 {
	switch {
	case pure:
		return perStep(d) * float64(rows*s.L1)
	case d.Variance() < 5: // where that is not the parameter
		return perStep(d) * float64(rows*rows*s.L2Squared)
	}
	return float64(rows*rows*s.L2Squared) / (2 * d.Variance())
}

// TestDawaTakesWhatItCosts: what the noises of the partition and of any number of buckets lose, computed from them and
// the sensitivities, is the cost, not more and hardly less, for several rows a unit under both relations.
func TestDawaTakesWhatItCosts(t *testing.T) {
	for _, cost := range paid {
		for _, c := range bounded {
			d, err := NewDawa(64, c, cost)
			if err != nil {
				t.Fatal(err)
			}
			pure, steps := cost.Rho.Pico() == 0, c.Rows
			if c.Neighbors == privacy.ReplaceOne {
				steps *= 2
			}
			partition := 32 * float64(steps) * perStep(d.partition.noise)
			if !pure {
				partition *= partition / 2
			}
			for _, n := range []int{1, 2, 5, 64} {
				described, buckets, err := d.buckets(n)
				if err != nil {
					t.Fatal(err)
				}
				strategy, err := ranges.Open(described)
				if err != nil {
					t.Fatal(err)
				}
				all := partition + lost(buckets, strategy.Sensitivity(c.Neighbors), c.Rows, pure)
				if most := cost.Epsilon.Float() + cost.Rho.Float(); all > most*(1+1e-9) || all < most*(1-1e-5) {
					t.Errorf("%s, %+v, %d buckets: takes %.9f", cost, c, n, all)
				}
			}
		}
	}
}

// TestPrefixesTakeWhatTheyCost: the same for the noise of a tree of prefixes.
func TestPrefixesTakeWhatTheyCost(t *testing.T) {
	for _, cost := range paid {
		for _, c := range bounded {
			p := mustPrefixes(t, 12, 3, c, withDelta(cost, 1e12))
			times := int64(1)
			if c.Neighbors == privacy.ReplaceOne {
				times = 2
			}
			all := lost(p.noise, privacy.Sensitivity{L1: 4 * times, L2Squared: 4 * times}, c.Rows, cost.Rho.Pico() == 0)
			if most := cost.Epsilon.Float() + cost.Rho.Float(); all > most*(1+1e-9) || all < .8*most {
				t.Errorf("%s, %+v: takes %.9f", cost, c, all)
			}
		}
	}
}

// TestAFailingSourceGivesNothing: neither in the partition nor after it.
func TestAFailingSourceGivesNothing(t *testing.T) {
	cells := make([]int64, 340)
	for i := range cells {
		cells[i] = int64(i * i)
	}
	d, err := NewDawa(len(cells), oneRow, eps(50)) // many buckets
	if err != nil {
		t.Fatal(err)
	}
	late, released := 0, 0
	for stream := range byte(20) {
		whole := int64(0) // what the partition takes
		for source := breaksAfter(0, seeded(stream)); ; source = breaksAfter(whole, seeded(stream)) {
			if d.partition.choose(cells, noise.NewReader(source)); !source.failed {
				break
			}
			if r, err := d.Release(privacy.Seal(cells), breaksAfter(whole, seeded(stream))); err == nil || r.Valid() {
				t.Fatal("released without a partition")
			}
			whole += 256
		}
		source := breaksAfter(whole, seeded(stream))
		r, err := d.Release(privacy.Seal(cells), source)
		if (err != nil) != source.failed || r.Valid() == source.failed || err != nil && !errors.Is(err, errBroken) {
			t.Fatal(source.failed, r.Valid(), err)
		}
		if released++; source.failed {
			late, released = late+1, released-1
		}
	}
	if late == 0 || released == 0 {
		t.Errorf("%d failures after the partition, %d releases", late, released)
	}
}

// breaking is a source that fails after some bytes, and reports whether it has.
type breaking struct {
	io.Reader
	failed bool
}

var errBroken = errors.New("broken")

func breaksAfter(bytes int64, source io.Reader) *breaking {
	return &breaking{Reader: io.MultiReader(io.LimitReader(source, bytes), iotest.ErrReader(errBroken))}
}

func (b *breaking) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.failed = b.failed || err != nil
	return n, err
}
