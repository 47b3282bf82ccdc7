package mechanisms

import (
	"fmt"
	"math"
	"math/bits"
	"testing"

	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestContinualAgainstFresh prints the figures of docs/benchmarks.md: what a year and three years of daily refreshes
// are off by, at one total cost, read from a release that grows, from a fresh range release for each day, from the
// binary mechanism as it was published, and from days counted once each. All are expected errors, exact but for the
// numerical one of algebra.
func TestContinualAgainstFresh(t *testing.T) {
	againstFresh(t, 365, 10)
	againstFresh(t, 1095, 20)
}

// againstFresh compares over so many days; the release that grows must be at least so many times nearer than fresh
// ones.
func againstFresh(t *testing.T, days int, times float64) {
	t.Helper()
	c := Contribution{Rows: 1, Neighbors: privacy.AddRemove}
	for _, total := range []privacy.Cost{{Epsilon: privacy.MicroEpsilon(1e6)}, {Rho: privacy.PicoRho(5e11)}} {
		each := privacy.Cost{Epsilon: privacy.MicroEpsilon(total.Epsilon.Micro() / int64(days)), Rho: privacy.PicoRho(total.Rho.Pico() / int64(days))}
		grows, err := Continual(days, c, total)
		if err != nil {
			t.Fatal(err)
		}
		once, err := Plain(1, days, c, total)
		if err != nil {
			t.Fatal(err)
		}
		ours, fresh, binary, daily := overTime{}, overTime{}, overTime{}, overTime{}
		node := variancePer(t, once)
		if levels := float64(bits.Len(uint(days))); total.Rho.Pico() > 0 {
			node *= levels
		} else {
			node *= levels * levels
		}
		for day := days / 15; day <= days; day += days / 15 { // 15 moments
			all := []Span{{0, day}}
			confidence, _ := NewConfidence(.95)
			now := grows.Through(day)
			ours.add(now.mean(AllRanges), now.Error(all, confidence).Variance)
			one, err := Ranges(day, c, each)
			if err != nil {
				t.Fatal(err)
			}
			fresh.add(one.mean(AllRanges), one.Error(all, confidence).Variance)
			ranges := 0.0
			for from := range day {
				for to := from + 1; to <= day; to++ {
					ranges += node * float64(dyadic(from, to))
				}
			}
			binary.add(ranges/rangesOf(day), node*float64(dyadic(0, day)))
			daily.add(variancePer(t, once)*float64(day+2)/3, variancePer(t, once)*float64(day))
		}
		for _, side := range []struct {
			name string
			of   overTime
		}{{"release that grows", ours}, {"binary mechanism, as published", binary}, {"each day counted once", daily}, {"fresh range release each day", fresh}} {
			ranges, sofar := side.of.rmse()
			figures.Row(fmt.Sprintf("RMSE in rows, %d days", days), side.name, total.String()+": all ranges", figures.Number(ranges), total.String()+": so far", figures.Number(sofar))
		}
		if r, s := ours.rmse(); r*times > math.Sqrt(fresh.ranges/fresh.times) || s*times > math.Sqrt(fresh.sofar/fresh.times) {
			t.Errorf("%s: %s is not %g times nearer than %s", total, ours, times, fresh)
		}
		if r, s := ours.rmse(); r*2 > math.Sqrt(binary.ranges/binary.times) || s*1.5 > math.Sqrt(binary.sofar/binary.times) {
			t.Errorf("%s: %s is not clearly nearer than the binary mechanism's %s", total, ours, binary)
		}
	}
}

// overTime are mean variances, added up over the time.
type overTime struct{ ranges, sofar, times float64 }

func (f *overTime) add(ranges, sofar float64) {
	f.ranges, f.sofar, f.times = f.ranges+ranges, f.sofar+sofar, f.times+1
}

func (f overTime) rmse() (ranges, sofar float64) {
	return math.Sqrt(f.ranges / f.times), math.Sqrt(f.sofar / f.times)
}

func (f overTime) String() string {
	ranges, sofar := f.rmse()
	return fmt.Sprintf("%.1f, so far %.1f", ranges, sofar)
}

// rangesOf is the number of ranges of so many cells.
func rangesOf(cells int) float64 { return float64(cells) * float64(cells+1) / 2 }

func variancePer(t *testing.T, s Spec) float64 {
	d, err := s.Counts().Noise.distribution()
	if err != nil {
		t.Fatal(err)
	}
	return d.Variance()
}

// dyadic is the number of dyadic blocks that make up a range: the nodes that the binary mechanism adds up.
func dyadic(from, to int) (n int) {
	for from < to {
		size := 1 << bits.TrailingZeros(uint(from)|1<<20)
		for from+size > to {
			size /= 2
		}
		from += size
		n++
	}
	return n
}
