package mechanisms

import (
	"math"
	"math/big"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestSharesAddUpToTheCost: whatever the weights are, the counters together spend what was paid, or are refused.
func TestSharesAddUpToTheCost(t *testing.T) {
	contribution := Contribution{Rows: 1, Neighbors: privacy.AddRemove}
	paid := privacy.Cost{Epsilon: privacy.MicroEpsilon(1e6)}
	for _, weight := range []float64{0, 1, 1e-40, 1e40, 1e-41, 1e41, 1e308, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.NaN(), -1} {
		for _, other := range []float64{weight, 1} {
			s, err := Sums([]Counter{{Bound: Bound{0, 1000}, Weight: weight}, {Bound: Bound{-5, 900}, Weight: other}, {Bound: Bound{0, 1}, Weight: weight}}, 4, contribution, paid)
			if refused := !(weight == 0 || weight >= 1e-40 && weight <= 1e40); refused != (err != nil) {
				t.Errorf("weight %g: %v", weight, err)
			}
			if err != nil {
				continue
			}
			spent := new(big.Rat)
			for _, sum := range s.Counts().Sums {
				large, _ := sum.extremes()
				spent.Add(spent, new(big.Rat).Mul(big.NewRat(large, 1), big.NewRat(sum.Noise.Den, sum.Noise.Num)))
			}
			if spent.Cmp(big.NewRat(1, 1)) > 0 || spent.Cmp(big.NewRat(999, 1000)) < 0 {
				t.Errorf("weights %g and %g spend %s of 1", weight, other, spent.FloatString(9))
			}
		}
	}
}

// TestAChosenSpecIsTheCallersOwn: who writes to a Spec changes no other.
func TestAChosenSpecIsTheCallersOwn(t *testing.T) {
	cost := privacy.Cost{Epsilon: privacy.MicroEpsilon(1e6)}
	for _, cells := range []int{20_000, 20_001} {
		first, err := Ranges(cells, Contribution{Rows: 1, Neighbors: privacy.AddRemove}, cost)
		if err != nil {
			t.Fatal(err)
		}
		radices := len(first.Counts().Strategy.Radices)
		for i := range first.Counts().Strategy.Radices {
			first.Counts().Strategy.Radices[i] = 1
		}
		for i := range first.Counts().Strategy.Weights {
			first.Counts().Strategy.Weights[i] = 1 << 30
		}
		again, err := Ranges(cells, Contribution{Rows: 1, Neighbors: privacy.AddRemove}, cost)
		if err != nil || again.check() != nil || len(again.Counts().Strategy.Radices) != radices || radices > 0 && again.Counts().Strategy.Radices[0] == 1 {
			t.Errorf("%d cells: %v %v", cells, again.Counts().Strategy, err)
		}
	}
}

// Sums is SumsBy where each cell is counted once.
func Sums(counters []Counter, cells int, c Contribution, cost privacy.Cost) (Spec, error) {
	return SumsBy(Strategy{Kind: Identity}, counters, cells, c, cost)
}
