package mechanisms

import (
	"math"
	"math/big"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// moneyCosts are costs from the dearest to the cheapest that a session may ask for.
func moneyCosts(t *testing.T) (costs []privacy.Cost) {
	for _, e := range []string{"0.0001", "0.01", "0.1", "1", "1000", "1000000"} {
		own, err := privacy.ParseEpsilon(e)
		if err != nil {
			t.Fatal(err)
		}
		half := new(big.Rat).Mul(big.NewRat(own.Micro(), 1e6), big.NewRat(own.Micro(), 2e6))
		pico := half.Mul(half, big.NewRat(1e12, 1))
		rho := new(big.Int).Quo(pico.Num(), pico.Denom())
		costs = append(costs, privacy.Cost{Epsilon: own})
		if rho.IsInt64() && rho.Sign() > 0 {
			costs = append(costs, privacy.Cost{Rho: privacy.PicoRho(rho.Int64())})
		}
	}
	return costs
}

// TestMoneyIsNeverRefused: sums of up to 2^40 a unit are planned at every cost, with noise that is as wide as the exact
// bound asks for, and by less than 2 % wider.
func TestMoneyIsNeverRefused(t *testing.T) {
	planned, stepped := 0, 0
	for _, high := range []int64{1, 200, 1e7, 1e9, 1 << 40} {
		for _, rows := range []int64{1, 40, 1000} {
			if high > (1<<40)/rows {
				continue
			}
			for _, bound := range []Bound{{0, high}, {-high, high}, {-high / 2, high}} {
				for _, neighbors := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
					for _, cells := range []int{1, 7} {
						for _, cost := range moneyCosts(t) {
							c := Contribution{Rows: rows, Neighbors: neighbors}
							s, err := Sums([]Counter{{Bound: bound}, {Bound: counted}}, cells, c, cost)
							if err != nil {
								t.Fatalf("%v of %d rows, %d cells, %v: %v", bound, rows, cells, cost, err)
							}
							n := s.Counts().Sums[0].Noise
							if planned++; n.Step > 1 {
								stepped++
							}
							checkWidth(t, s, c, cost)
						}
					}
				}
			}
		}
	}
	if stepped == 0 {
		t.Error("no noise has steps: the test tested nothing")
	}
	t.Logf("%d planned, %d in steps", planned, stepped)
}

// checkWidth compares what the noises cost by the exact moves with what was paid.
func checkWidth(t *testing.T, s Spec, c Contribution, cost privacy.Cost) {
	t.Helper()
	spent := 0.
	for _, sum := range s.Counts().Sums {
		n, m := sum.Noise, s.movesBy(c, sum, sum.Noise.step())
		size := float64(n.Num) / float64(n.Den)
		l1, _ := m.l1.Float64()
		squared, _ := m.squared.Float64()
		if n.Kind == DiscreteLaplace {
			spent += l1 / size
		} else {
			spent += squared / (2 * size)
		}
		exact := s.movesOf(c, sum)
		fine, _ := exact.l1.Float64()
		if l1*float64(n.step()) < fine || l1*float64(n.step()) > 1.02*fine {
			t.Errorf("%v: moves by %g steps of %d, exactly by %g", sum.Bound, l1, n.step(), fine)
		}
	}
	if paid := cost.Epsilon.Float() + cost.Rho.Float(); spent > paid*(1+1e-9) {
		t.Errorf("%v: the noise costs %g, paid %g", s.Counts().Sums, spent, paid)
	}
}

// TestStepsCoverAllMoves: for every true value and move, the law of noise in steps is no further apart than Z's is for
// the rounded-up move, outcome by outcome; with a move rounded down it is.
func TestStepsCoverAllMoves(t *testing.T) {
	n := Noise{Kind: DiscreteLaplace, Num: 5, Den: 3, Step: 7}
	law := func(x int64) float64 { // P(X = x)·c·(1+q)/(1−q)
		z := math.Round(float64(x) / float64(n.Step))
		return math.Exp(-math.Abs(z) * float64(n.Den) / float64(n.Num))
	}
	for move := int64(0); move < 40; move++ {
		worst := 0.
		for x := int64(-300); x <= 300; x++ {
			worst = max(worst, math.Log(law(x)/law(x-move)))
		}
		up := float64((move+n.Step-1)/n.Step) * float64(n.Den) / float64(n.Num)
		if worst > up+1e-9 {
			t.Errorf("move %d: loss %g, bound %g", move, worst, up)
		}
		if down := float64(move/n.Step) * float64(n.Den) / float64(n.Num); move%n.Step != 0 && worst <= down+1e-9 {
			t.Errorf("move %d: rounded down it would do as well", move)
		}
	}
}

// TestStepsAreDrawn: what fill draws has the law, by its residues, its steps and its variance; three judgements.
func TestStepsAreDrawn(t *testing.T) {
	n := Noise{Kind: DiscreteLaplace, Num: 40, Den: 1, Step: 9}
	out := make([]int64, 90_000)
	if err := n.fill(noise.NewReader(seeded(77)), out); err != nil {
		t.Fatal(err)
	}
	residues, squares, sum := map[int64]int{}, 0., 0.
	for _, x := range out {
		residues[((x%9)+9)%9]++
		squares += float64(x) * float64(x)
		sum += float64(x)
	}
	for r := range int64(9) {
		if k := residues[r]; math.Abs(float64(k)-10_000) > 600 {
			t.Errorf("residue %d: %d of 90000", r, k)
		}
	}
	if v := squares / float64(len(out)); math.Abs(v/n.variance()-1) > .05 {
		t.Errorf("variance %g, told %g", v, n.variance())
	}
	if mean := sum / float64(len(out)); math.Abs(mean) > 6*math.Sqrt(n.variance()/float64(len(out))) {
		t.Errorf("mean %g", mean)
	}
}

// TestStepsAreTold: the half-width holds what is drawn, alone, over cells and mixed, and is less than 5 % too wide.
func TestStepsAreTold(t *testing.T) {
	confidence, err := NewConfidence(.95)
	if err != nil {
		t.Fatal(err)
	}
	law := Noise{Kind: DiscreteGaussian, Num: 1 << 40, Den: 1, Step: 1<<12 - 1}
	s := Spec{Counters: 1, Cells: 16, Kind: &Counts{Strategy: Strategy{Kind: Identity}, Sums: []Sum{{Bound: Bound{0, 1 << 30}, Noise: law}}}}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	deviation := float64(law.Step) * math.Sqrt(1<<40)
	for _, cells := range []int{1, 16} {
		e := s.Error([]Span{{0, cells}}, confidence)
		want := 1.96 * deviation * math.Sqrt(float64(cells))
		if k := float64(e.HalfWidth); k < .999*want || k > 1.05*want {
			t.Errorf("%d cells: half-width %g, must be about %g", cells, k, want)
		}
		if v := e.Variance / float64(cells) / deviation / deviation; math.Abs(v-1) > .01 {
			t.Errorf("%d cells: variance %g", cells, e.Variance)
		}
	}
	e := MixedError([]Weighted{{s, 0, []Span{{0, 1}}, 1}, {s, 0, []Span{{1, 2}}, -1}}, confidence)
	if want := 1.96 * deviation * math.Sqrt2; float64(e.HalfWidth) < .999*want || float64(e.HalfWidth) > 1.05*want {
		t.Errorf("difference: half-width %d, must be about %g", e.HalfWidth, want)
	}
}

// TestStepsRefine: a sum in steps is shown coarser first and refined, and each level has the variance that it tells.
func TestStepsRefine(t *testing.T) {
	fine := Noise{Kind: DiscreteLaplace, Num: 1000, Den: 1, Step: 101}
	spec := Spec{Counters: 1, Cells: 2000, Kind: &Counts{Strategy: Strategy{Kind: Identity}, Sums: []Sum{{Bound: Bound{0, 1000}, Noise: fine}}}}
	one, two, ten := epsilonOf(t, "1"), epsilonOf(t, "2"), epsilonOf(t, "10")
	finest := spec
	middle, ok := spec.At(ten, two)
	first, also := spec.At(ten, one)
	if !ok || !also || !middle.Refinable(first, finest) {
		t.Fatal("no ladder")
	}
	place := func([]int32, int) int { return 0 }
	random := seeded(78)
	shown, sealed, err := ReleaseFirst(first, finest, place, privacy.Seal([]privacy.Group{}), random)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err = LoadFinest(sealed.AppendTo(nil))
	if err != nil {
		t.Fatal(err)
	}
	refined, err := Refine(first, shown, middle, sealed, random)
	if err != nil {
		t.Fatal(err)
	}
	for i, level := range []struct {
		spec Spec
		of   privacy.Released[Noisy]
	}{{first, shown}, {middle, refined}} {
		squares := 0.
		for _, x := range level.of.Value().Observations {
			squares += float64(x) * float64(x)
		}
		if v := squares / 2000; math.Abs(v/level.spec.Counts().Sums[0].Noise.variance()-1) > .25 {
			t.Errorf("level %d: variance %g, told %g", i, v, level.spec.Counts().Sums[0].Noise.variance())
		}
	}
}

func epsilonOf(t *testing.T, text string) privacy.Epsilon {
	t.Helper()
	e, err := privacy.ParseEpsilon(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestAddFar: a sum at the ends of the range is the exact one, cut.
func TestAddFar(t *testing.T) {
	ends := []int64{0, 1, -1, 2, -2, math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64/2 + 1, math.MinInt64, math.MinInt64 + 1, math.MinInt64 / 2}
	for _, a := range ends {
		for _, b := range ends {
			want := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
			for _, end := range []int64{math.MaxInt64, math.MinInt64} {
				if !want.IsInt64() && (want.Sign() > 0) == (end > 0) {
					want.SetInt64(end)
				}
			}
			if got := addFar(a, b); got != want.Int64() {
				t.Errorf("%d + %d: %d, want %d", a, b, got, want)
			}
		}
	}
}
