package mechanisms

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

func epsilon(micro int64) privacy.Cost { return privacy.Cost{Epsilon: privacy.MicroEpsilon(micro)} }
func rho(pico int64) privacy.Cost      { return privacy.Cost{Rho: privacy.PicoRho(pico)} }

var oneRow = Contribution{Rows: 1, Neighbors: privacy.AddRemove}

func TestPlainNoise(t *testing.T) {
	replaced := Contribution{Rows: 1, Neighbors: privacy.ReplaceOne}
	for _, c := range []struct {
		counters, cells int
		contribution    Contribution
		cost            privacy.Cost
		want            Noise
	}{
		{1, 1, oneRow, epsilon(1_000_000), Noise{Kind: DiscreteLaplace, Num: 1, Den: 1}},
		{1, 1, oneRow, epsilon(100_000), Noise{Kind: DiscreteLaplace, Num: 10, Den: 1}},
		{1, 1, oneRow, epsilon(333_333), Noise{Kind: DiscreteLaplace, Num: 1_000_000, Den: 333_333}},
		{1, 50, oneRow, epsilon(100_000), Noise{Kind: DiscreteLaplace, Num: 10, Den: 1}},
		{3, 50, oneRow, epsilon(100_000), Noise{Kind: DiscreteLaplace, Num: 30, Den: 1}},
		{3, 50, Contribution{Rows: 4, Neighbors: privacy.AddRemove}, epsilon(100_000), Noise{Kind: DiscreteLaplace, Num: 120, Den: 1}},
		{1, 1, replaced, epsilon(100_000), Noise{Kind: DiscreteLaplace, Num: 10, Den: 1}},
		{1, 2, replaced, epsilon(100_000), Noise{Kind: DiscreteLaplace, Num: 20, Den: 1}},
		{3, 2, Contribution{Rows: 4, Neighbors: privacy.ReplaceOne}, epsilon(100_000), Noise{Kind: DiscreteLaplace, Num: 240, Den: 1}},
		{1, 1, oneRow, rho(5_000_000_000), Noise{Kind: DiscreteGaussian, Num: 100, Den: 1}},
		{3, 7, Contribution{Rows: 4, Neighbors: privacy.AddRemove}, rho(5_000_000_000), Noise{Kind: DiscreteGaussian, Num: 4800, Den: 1}},
		{3, 7, Contribution{Rows: 4, Neighbors: privacy.ReplaceOne}, rho(5_000_000_000), Noise{Kind: DiscreteGaussian, Num: 9600, Den: 1}},
		{3, 1, Contribution{Rows: 4, Neighbors: privacy.ReplaceOne}, rho(5_000_000_000), Noise{Kind: DiscreteGaussian, Num: 4800, Den: 1}},
	} {
		s, err := Plain(c.counters, c.cells, c.contribution, c.cost)
		want := Spec{Counters: c.counters, Cells: c.cells, Kind: &Counts{Strategy: Strategy{Kind: Identity}, Noise: c.want}}
		if err != nil || !reflect.DeepEqual(s, want) {
			t.Errorf("%+v: %+v (%v), want %+v", c, s, err, want)
		}
	}
}

// TestNoiseIsNeverTooLittle: the parameter is the claim's or more, whatever the cost and the sensitivity.
func TestNoiseIsNeverTooLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Contribution{Rows: rapid.Int64Range(1, maxRows).Draw(t, "rows"), Neighbors: privacy.Neighbors(rapid.IntRange(1, 2).Draw(t, "neighbors"))}
		counters, cells := rapid.IntRange(1, 100).Draw(t, "counters"), rapid.IntRange(1, 100).Draw(t, "cells")
		units := rapid.Int64Range(1, 1e13).Draw(t, "units")
		if s, err := Plain(counters, cells, c, epsilon(units)); err == nil {
			if got, want := float64(s.Counts().Noise.Num)/float64(s.Counts().Noise.Den), float64(s.Sensitivity(c).L1)/(float64(units)/1e6); math.Abs(got/want-1) > 1e-12 {
				t.Fatalf("scale %g, want %g", got, want)
			}
		}
		if s, err := Plain(counters, cells, c, rho(units)); err == nil {
			got, want := float64(s.Counts().Noise.Num)/float64(s.Counts().Noise.Den), float64(s.Sensitivity(c).L2Squared)/(2*float64(units)/1e12)
			if got < want*(1-1e-12) || got > want*(1+1e-8) {
				t.Fatalf("variance %g, want %g", got, want)
			}
		}
	})
}

func TestPlanRefuses(t *testing.T) {
	one := epsilon(1_000_000)
	for _, c := range []struct {
		counters, cells int
		contribution    Contribution
		cost            privacy.Cost
		want            string
	}{
		{0, 1, oneRow, one, "number of counters is 0, must be from 1 to 1024"},
		{1025, 1, oneRow, one, "number of counters is 1025, must be from 1 to 1024"},
		{1, 0, oneRow, one, "number of cells is 0, must be from 1 to 1048576"},
		{1, -1, oneRow, one, "number of cells is -1, must be from 1 to 1048576"},
		{1, 1<<20 + 1, oneRow, one, "number of cells is 1048577, must be from 1 to 1048576"},
		{17, 1 << 20, oneRow, one, "number of observations is 17825792, must be at most 16777216"},
		{1, 1, Contribution{Rows: 0, Neighbors: privacy.AddRemove}, one, "rows of a unit is 0, must be from 1 to 4194304"},
		{1, 1, Contribution{Rows: math.MaxInt64, Neighbors: privacy.AddRemove}, one, "rows of a unit is 9223372036854775807, must be from 1 to 4194304"},
		{1, 1, Contribution{Rows: 1}, one, "neighbor relation is 0, must be add-remove or replace-one"},
		{1, 1, Contribution{Rows: 1, Neighbors: 3}, one, "neighbor relation is 3, must be add-remove or replace-one"},
		{1, 1, oneRow, privacy.Cost{}, "cost is epsilon 0 and rho 0, must name one of them, greater than 0"},
		{1, 1, oneRow, epsilon(-1), "cost is epsilon -0.000001 and rho 0, must name one of them, greater than 0"},
		{1, 1, oneRow, rho(-1), "cost is epsilon 0 and rho -0.000000000001, must name one of them, greater than 0"},
		{1, 1, oneRow, privacy.Cost{Epsilon: privacy.MicroEpsilon(1), Rho: privacy.PicoRho(1)}, "cost is epsilon 0.000001 and rho 0.000000000001, must name one of them, greater than 0"},
		{1, 1, oneRow, privacy.Cost{Epsilon: privacy.MicroEpsilon(1), Delta: privacy.AttoDelta(1)}, "delta of a count is 1e-18, must be 0"},
		{1000, 2, Contribution{Rows: maxRows, Neighbors: privacy.ReplaceOne}, epsilon(1), "noise scale is 8388608000000000/1, must be below 1099511627776"},
		{1000, 2, Contribution{Rows: maxRows, Neighbors: privacy.ReplaceOne}, rho(1), "noise parameter is 17592186044416000000000000000, out of range: the cost is too small for the rows of a unit"},
	} {
		if _, err := Plain(c.counters, c.cells, c.contribution, c.cost); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c, err, c.want)
		}
		if c.counters != 1 {
			continue
		}
		if _, err := Ranges(c.cells, c.contribution, c.cost); err == nil || err.Error() != c.want {
			t.Errorf("ranges %+v: %v, want %s", c, err, c.want)
		}
	}
}

func TestConfidenceRefuses(t *testing.T) {
	for _, p := range []float64{0, 1, -1, 2, math.NaN(), math.Inf(1), math.Inf(-1)} {
		want := fmt.Sprintf("confidence is %g, must be greater than 0 and less than 1", p)
		if _, err := NewConfidence(p); err == nil || err.Error() != want {
			t.Errorf("%g: %v", p, err)
		}
	}
	if c, err := NewConfidence(.95); err != nil || c.Float() != .95 {
		t.Error(c, err)
	}
}

func TestRangesChooses(t *testing.T) {
	for _, c := range []struct {
		cells int
		cost  privacy.Cost
		want  Spec
	}{
		{1, epsilon(1e6), Spec{Counters: 1, Cells: 1, Kind: &Counts{Strategy: Strategy{Kind: Identity}, Noise: Noise{Kind: DiscreteLaplace, Num: 1, Den: 1}}}},
		{20, epsilon(1e6), Spec{Counters: 1, Cells: 20, Kind: &Counts{Strategy: Strategy{Kind: Identity}, Noise: Noise{Kind: DiscreteLaplace, Num: 1, Den: 1}}}},
		{200, epsilon(1e7), Spec{Counters: 1, Cells: 200, Kind: &Counts{Strategy: Strategy{Kind: Identity}, Noise: Noise{Kind: DiscreteLaplace, Num: 1, Den: 10}}}},
		{4096, epsilon(1e6), Spec{Counters: 1, Cells: 4096, Kind: &Counts{Strategy: Strategy{Kind: PIdentity, Version: 1}, Noise: Noise{Kind: DiscreteLaplace, Num: 65536, Den: 1}}}},
		{1 << 20, epsilon(1e6), Spec{Counters: 1, Cells: 1 << 20, Kind: &Counts{Strategy: Strategy{Kind: Tree,
			Radices: []int{13, 17, 17, 17, 17}, Weights: []int64{111, 121, 122, 122, 128}},
			Noise: Noise{Kind: DiscreteLaplace, Num: 604, Den: 1}}}},
		{1 << 18, rho(5e11), Spec{Counters: 1, Cells: 1 << 18, Kind: &Counts{Strategy: Strategy{Kind: Tree,
			Radices: slices.Repeat([]int{2}, 18),
			Weights: []int64{73, 67, 75, 79, 80, 81, 81, 82, 82, 82, 82, 82, 82, 82, 81, 81, 77, 128}},
			Noise: Noise{Kind: DiscreteGaussian, Num: 123709, Den: 1}}}},
		{120, rho(5e11), Spec{Counters: 1, Cells: 120, Kind: &Counts{Strategy: Strategy{Kind: Sine, Bits: 24, Version: 1}, Noise: Noise{Kind: DiscreteGaussian, Num: 281471800054680, Den: 1}}}},
	} {
		s, err := Ranges(c.cells, oneRow, c.cost)
		if err != nil || !reflect.DeepEqual(s, c.want) {
			t.Errorf("%d cells at %s: %+v (%v), want %+v", c.cells, c.cost, s, err, c.want)
		}
	}
}

// anySpec draws a small Spec of either strategy, with noise that does not matter.
func anySpec(t *rapid.T) Spec {
	s := Spec{Counters: rapid.IntRange(1, 3).Draw(t, "counters"), Cells: rapid.IntRange(1, 20).Draw(t, "cells"), Kind: &Counts{Strategy: Strategy{Kind: Identity}, Noise: Noise{Kind: DiscreteLaplace, Num: 1, Den: 1}}}
	if s.Cells > 1 && rapid.Bool().Draw(t, "tree") {
		block, below := 1, []int{}
		for r := rapid.IntRange(2, 4); len(below) < 3; {
			if n := r.Draw(t, "radix"); block*n < s.Cells {
				block *= n
				below = append(below, n)
			} else {
				break
			}
		}
		s.Kind = &Counts{Strategy: Strategy{Kind: Tree, Radices: append([]int{(s.Cells + block - 1) / block}, below...)}}
	}
	return s
}

// rowsOf draws at most c.Rows rows of one unit: for each, the cell that it is in for each counter (−1: none).
func rowsOf(t *rapid.T, s Spec, c Contribution) [][]int {
	rows := make([][]int, rapid.Int64Range(0, c.Rows).Draw(t, "rows"))
	for i := range rows {
		for range s.Counters {
			rows[i] = append(rows[i], rapid.IntRange(-1, s.Cells-1).Draw(t, "cell"))
		}
	}
	return rows
}

// observedOf is the naive twin of what Release observes: each observation counts the rows whose cell its span holds.
func observedOf(s Spec, rows [][]int) []int64 {
	all := []int64{}
	for counter := range s.Counters {
		for _, span := range spansOf(s) {
			n := int64(0)
			for _, row := range rows {
				if row[counter] >= span.From && row[counter] < span.To {
					n++
				}
			}
			all = append(all, n)
		}
	}
	return all
}

// spansOf returns the cells of each observation of one counter by Identity or a Tree: level by level from the top, each
// left to right.
func spansOf(s Spec) []Span {
	blocks := []int{1}
	for i := len(s.Counts().Strategy.Radices) - 1; i > 0; i-- {
		blocks = append([]int{blocks[0] * s.Counts().Strategy.Radices[i]}, blocks...)
	}
	spans := []Span{}
	for _, block := range blocks {
		for from := 0; from < s.Cells; from += block {
			spans = append(spans, Span{from, min(from+block, s.Cells)})
		}
	}
	return spans
}

func distances(a, b []int64) privacy.Sensitivity {
	d := privacy.Sensitivity{}
	for i := range a {
		d.L1 += max(a[i]-b[i], b[i]-a[i])
		d.L2Squared += (a[i] - b[i]) * (a[i] - b[i])
	}
	return d
}

func TestSensitivityBoundsEveryNeighbor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpec(t)
		c := Contribution{Rows: rapid.Int64Range(1, 5).Draw(t, "bound"), Neighbors: privacy.Neighbors(rapid.IntRange(1, 2).Draw(t, "neighbors"))}
		own, other := rowsOf(t, s, c), [][]int(nil)
		if c.Neighbors == privacy.ReplaceOne {
			other = rowsOf(t, s, c)
		}
		d, bound := distances(observedOf(s, own), observedOf(s, other)), s.Sensitivity(c)
		if d.L1 > bound.L1 || d.L2Squared > bound.L2Squared {
			t.Fatalf("%+v %+v: moved by %+v, bound %+v", s, c, d, bound)
		}
	})
}

func TestSensitivityIsAttained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpec(t)
		c := Contribution{Rows: rapid.Int64Range(1, 5).Draw(t, "bound"), Neighbors: privacy.Neighbors(rapid.IntRange(1, 2).Draw(t, "neighbors"))}
		own, other := [][]int{}, [][]int{}
		for range c.Rows {
			own = append(own, make([]int, s.Counters))
			last := make([]int, s.Counters)
			for i := range last {
				last[i] = s.Cells - 1
			}
			other = append(other, last)
		}
		if c.Neighbors == privacy.AddRemove || s.Cells == 1 {
			other = nil
		}
		if d, bound := distances(observedOf(s, own), observedOf(s, other)), s.Sensitivity(c); d != bound {
			t.Fatalf("%+v %+v: moved by %+v, bound %+v", s, c, d, bound)
		}
	})
}

func TestSpecsOfOthersAreChecked(t *testing.T) {
	good := Spec{Counters: 1, Cells: 4, Kind: &Counts{Strategy: Strategy{Kind: Identity}, Noise: Noise{Kind: DiscreteLaplace, Num: 1, Den: 1}}}
	for _, c := range []struct {
		change func(*Spec, *Counts)
		want   string
	}{
		{func(s *Spec, _ *Counts) { *s = Spec{} }, "number of counters is 0"},
		{func(_ *Spec, c *Counts) { c.Strategy.Kind = 0 }, "strategy is 0, must be from 1 to 11"},
		{func(_ *Spec, c *Counts) { c.Strategy.Radices = []int{4} }, "radices of the identity strategy are [4], must be none"},
		{func(_ *Spec, c *Counts) { c.Strategy = Strategy{Kind: Tree, Radices: []int{2}} }, "radices are [2], must multiply to at least 4 cells"},
		{func(_ *Spec, c *Counts) { c.Noise = Noise{} }, "noise kind is 0, must be discrete Laplace or discrete Gaussian"},
		{func(_ *Spec, c *Counts) { c.Noise.Num = 0 }, "noise scale is 0/1, must have a numerator and a denominator greater than 0"},
		{func(_ *Spec, c *Counts) { c.Noise.Den = -1 }, "noise scale is 1/-1, must have a numerator and a denominator greater than 0"},
	} {
		s, own := good, good.Counts()
		s.Kind = &own
		c.change(&s, &own)
		if _, err := Release(s, inOrder, privacy.Seal([]privacy.Group{}), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("release: %v, want %s", err, c.want)
		}
		if _, err := NewEstimate(s, privacy.Published(Noisy{Observations: make([]int64, 4)})); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("estimate: %v, want %s", err, c.want)
		}
	}
}
