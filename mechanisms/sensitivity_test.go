package mechanisms

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// contents lists every vector of cells that one unit can put into a counter: all numbers of rows in each cell within
// the contribution, and all sums that so many rows of values within the bound can have. It is the naive twin of moves.
func contents(cells int, c Contribution, b Bound) [][]int64 {
	lists := [][]int64{}
	var fill func(sums []int64, rows, groups int64)
	fill = func(sums []int64, rows, groups int64) {
		if len(sums) == cells {
			lists = append(lists, append([]int64(nil), sums...))
			return
		}
		fill(append(sums, 0), rows, groups)
		for n := int64(1); n <= rows && groups > 0 && (c.PerGroup == 0 || n <= c.PerGroup); n++ {
			for sum := n * min(b.Low, 0); sum <= n*max(b.High, 0); sum++ {
				if sum != 0 {
					fill(append(sums, sum), rows-n, groups-1)
				}
			}
		}
	}
	groups := c.Groups
	if groups == 0 {
		groups = c.Rows
	}
	fill(nil, c.Rows, groups)
	return lists
}

// weighedOf is observedOf for a vector of cells: each observation is its level's weight times the sum of its cells.
// What a matrix observes has its own twin in package ranges.
func weighedOf(s Spec, cells []int64) []int64 {
	if s.Counts().Strategy.Kind > Tree {
		return s.matrix().Observe(cells)
	}
	all, spans := []int64{}, spansOf(s)
	level := 0
	for i, span := range spans {
		if i > 0 && span.From == 0 {
			level++
		}
		sum := int64(0)
		for _, n := range cells[span.From:span.To] {
			sum += n
		}
		if s.Counts().Strategy.Weights != nil {
			sum *= s.Counts().Strategy.Weights[level]
		}
		all = append(all, sum)
	}
	return all
}

// TestSensitivityAgainstEveryContribution: over small domains, no contribution of a unit moves the observations further
// than Sensitivity says, and where it is to be exact, one moves them as far.
func TestSensitivityAgainstEveryContribution(t *testing.T) {
	identity := Strategy{Kind: Identity}
	for _, k := range []struct {
		cells    int
		strategy Strategy
		c        Contribution
		b        Bound
		exact    bool // both norms are attained (L1 and L2 perhaps by different contributions)
	}{
		{5, identity, Contribution{Rows: 3}, counted, true},
		{5, identity, Contribution{Rows: 4, Groups: 2, PerGroup: 2}, counted, true},
		{6, identity, Contribution{Rows: 3, Groups: 2, PerGroup: 2}, counted, true},
		{6, identity, Contribution{Rows: 3, PerGroup: 1}, counted, true},
		{2, identity, Contribution{Rows: 5, PerGroup: 1}, counted, false},
		{5, identity, Contribution{Rows: 3, Groups: 1}, counted, true},
		{1, identity, Contribution{Rows: 3, Groups: 3, PerGroup: 1}, counted, true},
		{1, identity, Contribution{Rows: 2}, Bound{-2, 3}, true},
		{3, identity, Contribution{Rows: 2}, Bound{-2, 3}, true},
		{3, identity, Contribution{Rows: 2}, Bound{-1, 3}, true},
		{4, identity, Contribution{Rows: 2, PerGroup: 1}, Bound{-1, 2}, true},
		{4, identity, Contribution{Rows: 3, Groups: 2, PerGroup: 2}, Bound{-3, 10}, true}, // a rest that meets a full
		{3, identity, Contribution{Rows: 2}, Bound{2, 4}, true},
		{3, identity, Contribution{Rows: 2}, Bound{-4, -2}, true},
		{8, Strategy{Kind: Tree, Radices: []int{2, 2, 2}}, Contribution{Rows: 3, Groups: 3, PerGroup: 1}, counted, false},
		{8, Strategy{Kind: Tree, Radices: []int{4, 2}}, Contribution{Rows: 3}, counted, true},
		{8, Strategy{Kind: Tree, Radices: []int{4, 2}}, Contribution{Rows: 2, PerGroup: 1}, counted, true},
		{8, Strategy{Kind: Tree, Radices: []int{4, 2}}, Contribution{Rows: 4, Groups: 2, PerGroup: 2}, counted, true},
		{7, Strategy{Kind: Tree, Radices: []int{4, 2}}, Contribution{Rows: 3, Groups: 2, PerGroup: 2}, counted, true},
		{6, Strategy{Kind: Tree, Radices: []int{2, 3}, Weights: []int64{3, 2}}, Contribution{Rows: 3, PerGroup: 1}, counted, true},
		{4, Strategy{Kind: Tree, Radices: []int{2, 2}}, Contribution{Rows: 2}, Bound{-1, 2}, true},
		{4, Strategy{Kind: Tree, Radices: []int{2, 2}, Weights: []int64{1, 5}}, Contribution{Rows: 2, PerGroup: 1}, Bound{-2, 1}, false},
		{4, Strategy{Kind: Sine, Bits: 16, Version: 1}, Contribution{Rows: 3}, counted, false},
		{4, Strategy{Kind: Cosine, Bits: 16, Version: 1}, Contribution{Rows: 2}, Bound{0, 3}, false},
		{4, Strategy{Kind: Sine, Bits: 16, Version: 1}, Contribution{Rows: 4, Groups: 2, PerGroup: 2}, counted, false},
		{12, Strategy{Kind: PIdentity, Version: 1}, Contribution{Rows: 2, PerGroup: 1}, Bound{1, 2}, false},
		{3, Strategy{Kind: Matrix, Matrix: []int64{1, -2, 0, 3, 3, 1, -1, 0, 5}}, Contribution{Rows: 3}, counted, true},
		{3, Strategy{Kind: Matrix, Matrix: []int64{1, -2, 0, 3, 3, 1, -1, 0, 5}}, Contribution{Rows: 3, Groups: 3, PerGroup: 1}, Bound{0, 2}, false},
	} {
		s := Spec{Counters: 1, Cells: k.cells, Kind: &Counts{Strategy: k.strategy, Sums: []Sum{{Bound: k.b}}}}
		all := [][]int64{}
		for _, cells := range contents(k.cells, k.c, k.b) {
			all = append(all, weighedOf(s, cells))
		}
		for _, k.c.Neighbors = range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
			if err := checkContribution(k.c); err != nil && k.cells > 2 {
				t.Fatal(err)
			}
			others := all
			if k.c.Neighbors == privacy.AddRemove {
				others = [][]int64{make([]int64, len(all[0]))}
			}
			most := privacy.Sensitivity{}
			for _, one := range all {
				for _, other := range others {
					d := distances(one, other)
					most.L1, most.L2Squared = max(most.L1, d.L1), max(most.L2Squared, d.L2Squared)
				}
			}
			bound := s.Sensitivity(k.c)
			name := fmt.Sprintf("%d cells, %+v, %+v, %+v", k.cells, k.strategy, k.c, k.b)
			if most.L1 > bound.L1 || most.L2Squared > bound.L2Squared {
				t.Errorf("%s: a unit moves by %+v, bound %+v", name, most, bound)
			}
			if k.exact && most != bound {
				t.Errorf("%s: a unit moves by at most %+v, bound %+v", name, most, bound)
			}
		}
	}
}

func TestContributionsRefused(t *testing.T) {
	for _, k := range []struct {
		c    Contribution
		want string
	}{
		{Contribution{Rows: 3, Groups: -1}, "groups of a unit is -1, must be from 0 (not bounded) to its 3 rows"},
		{Contribution{Rows: 3, Groups: 4}, "groups of a unit is 4, must be from 0 (not bounded) to its 3 rows"},
		{Contribution{Rows: 3, PerGroup: 4}, "rows of a unit in one group is 4, must be from 0 (not bounded) to its 3 rows"},
		{Contribution{Rows: 3, PerGroup: -4}, "rows of a unit in one group is -4, must be from 0 (not bounded) to its 3 rows"},
		{Contribution{Rows: 7, Groups: 2, PerGroup: 3}, "rows of a unit is 7, must be at most the 6 of 2 groups with 3 rows each"},
	} {
		k.c.Neighbors = privacy.AddRemove
		if _, err := Plain(1, 3, k.c, epsilon(1e6)); err == nil || err.Error() != k.want {
			t.Errorf("%+v: %v, want %s", k.c, err, k.want)
		}
	}
}

// TestSumsShareTheCost: the shares of all counters together cost what was paid and not more, in exact arithmetic.
func TestSumsShareTheCost(t *testing.T) {
	c := Contribution{Rows: 6, Groups: 3, PerGroup: 2, Neighbors: privacy.ReplaceOne}
	for _, counters := range [][]Counter{
		{{Bound: counted}},
		{{Bound: counted}, {Bound: Bound{0, 120_000}}},
		{{Bound: counted}, {Bound: Bound{-50_000, 120_000}}, {Bound: Bound{-7, -3}, Weight: 3.7}},
		{{Bound: Bound{0, maxMagnitude}, Weight: 1e-9}, {Bound: counted, Weight: 1e9}},
	} {
		for _, cost := range []privacy.Cost{epsilon(100_000), epsilon(1), rho(5_000_000_000), rho(1_234_567)} {
			s, err := Sums(counters, 9, c, cost)
			if err != nil {
				if strings.Contains(err.Error(), "noise") {
					continue // too small a cost for such sums
				}
				t.Fatal(err)
			}
			total, paid := new(big.Rat), big.NewRat(cost.Epsilon.Micro(), 1e6)
			for _, sum := range s.Counts().Sums {
				one := s.movesBy(c, sum, sum.Noise.step())
				spent := new(big.Rat).SetInt(one.l1)
				if cost.Epsilon.Micro() == 0 {
					paid.SetFrac64(cost.Rho.Pico(), 1e12)
					spent.SetFrac(one.squared, big.NewInt(2))
				}
				total.Add(total, spent.Quo(spent, big.NewRat(sum.Noise.Num, sum.Noise.Den)))
			}
			ratio, _ := new(big.Rat).Quo(total, paid).Float64()
			if total.Cmp(paid) > 0 || ratio < 1-1e-8 {
				t.Errorf("%+v at %s costs %s, %.9f of it", counters, cost, total.FloatString(15), ratio)
			}
		}
	}
}

// TestSumsSplitTheCostBest: no other split between two counters has less weighted variance.
func TestSumsSplitTheCostBest(t *testing.T) {
	c := Contribution{Rows: 2, Neighbors: privacy.AddRemove}
	for _, weights := range [][2]float64{{1, 1e-8}, {1, 1}, {100, 1e-12}, {0, 0}} {
		for _, cost := range []privacy.Cost{epsilon(100_000), rho(5_000_000_000)} {
			s, err := Sums([]Counter{{counted, weights[0], 0}, {Bound{-2_000, 10_000}, weights[1], 0}}, 1, c, cost)
			if err != nil {
				t.Fatal(err)
			}
			if weights[0] == 0 {
				weights = [2]float64{1, 1e-8}
			}
			weighed := func(a, b Noise) float64 {
				one, _ := a.distribution()
				other, _ := b.distribution()
				return weights[0]*one.Variance() + weights[1]*other.Variance()
			}
			ours := weighed(s.Counts().Sums[0].Noise, s.Counts().Sums[1].Noise)
			for part := int64(1); part < 100; part++ {
				first, err := calibrate(s.moves(c, counted), cost, big.NewRat(part, 100))
				if err != nil {
					t.Fatal(err)
				}
				second, err := calibrate(s.moves(c, s.Counts().Sums[1].Bound), cost, big.NewRat(100-part, 100))
				if err != nil {
					t.Fatal(err)
				}
				if other := weighed(first, second); other < ours*(1-1e-3) { // the discrete variance is not exactly 2t²
					t.Errorf("weights %v at %s: %g, with %d %% for the first %g", weights, cost, ours, part, other)
				}
			}
		}
	}
}

func TestSumsRefuse(t *testing.T) {
	for _, k := range []struct {
		counters []Counter
		want     string
	}{
		{nil, "number of counters is 0, must be from 1 to 1024"},
		{[]Counter{{Bound: Bound{3, 2}}}, "counter 1: bound of a sum is from 3 to 2, must not be empty"},
		{[]Counter{{Bound: counted}, {}}, "counter 2: bound of a sum is from 0 to 0, must hold another number"},
		{[]Counter{{Bound: Bound{0, maxMagnitude + 1}}}, "counter 1: bound of a sum is from 0 to 1099511627777, must be within ±1099511627776"},
		{[]Counter{{Bound: Bound{-maxMagnitude - 1, 0}}}, "counter 1: bound of a sum is from -1099511627777 to 0, must be within ±1099511627776"},
		{[]Counter{{Bound: counted, Weight: -1}}, "weight of counter 1 is -1, must be from 1e-40 to 1e40"},
		{[]Counter{{Bound: counted, Weight: 1 / zero}}, "weight of counter 1 is +Inf, must be from 1e-40 to 1e40"},
		{[]Counter{{Bound: counted, Weight: zero / zero}}, "weight of counter 1 is NaN, must be from 1e-40 to 1e40"},
	} {
		if _, err := Sums(k.counters, 2, oneRow, epsilon(1e6)); err == nil || err.Error() != k.want {
			t.Errorf("%+v: %v, want %s", k.counters, err, k.want)
		}
	}
	good := Spec{Counters: 1, Cells: 2, Kind: &Counts{Strategy: Strategy{Kind: Identity}, Sums: []Sum{{Bound: counted, Noise: Noise{Kind: DiscreteLaplace, Num: 1, Den: 1}}}}}
	for want, change := range map[string]func(*Spec, *Counts){
		"number of sums is 1, must be the number of counters, 2":   func(s *Spec, _ *Counts) { s.Counters = 2 },
		"noise is {1 1 1}, must be absent: each sum has its own":   func(_ *Spec, c *Counts) { c.Noise = Noise{Kind: DiscreteLaplace, Num: 1, Den: 1} },
		"noise kind is 0, must be discrete Laplace or discrete Ga": func(_ *Spec, c *Counts) { c.Sums = []Sum{{Bound: counted}} },
	} {
		s, own := good, good.Counts()
		s.Kind = &own
		change(&s, &own)
		if err := s.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

var zero float64
