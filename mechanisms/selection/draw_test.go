package selection

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

var shapes = [][]uint64{{0}, {0, 0, 0}, {0, 1, 2, 3}, {5, 0, 3, 0, 9}, {0, 2, 2, 2, 2, 40}, {0, 1 << 62, 1}}

func TestDrawsHaveTheirProbabilities(t *testing.T) {
	draws := stattest.Length(20_000, 400_000)
	for s, losses := range shapes {
		for _, c := range []struct{ num, den int64 }{{1, 2}, {3, 10}, {1_234_567_891, 1_000_000_000}} {
			rate := must(t, mustOf(NewRate(c.num, c.den))(t), nil)
			random := reader(byte(s))
			for rule, claim := range map[Rule][]float64{
				Exponential:    exponentialTwin(losses, rate.Float()),
				PermuteAndFlip: flipTwin(losses, rate.Float()),
			} {
				judge(t, rule.String(), draws, claim, func() int { return mustOf(Draw(rule, losses, rate, random))(t) })
			}
		}
	}
}

// TestPermuteAndFlipIsExponentialNoise: both twins agree.
func TestPermuteAndFlipIsExponentialNoise(t *testing.T) {
	for _, losses := range shapes[:5] {
		a, b := flipTwin(losses, .5), exponentialRace(losses, .5)
		for i := range a {
			if math.Abs(a[i]-b[i]) > 1e-4 {
				t.Errorf("%v: %v by flips, %v by noise", losses, a, b)
			}
		}
	}
}

// TestPeelingIsRepeatedDrawing: Gumbel and Peeling against sequences of draws by the twins.
func TestPeelingIsRepeatedDrawing(t *testing.T) {
	draws := stattest.Length(20_000, 400_000)
	losses := []uint64{3, 0, 1, 1, 7}
	rate := mustOf(NewRate(2, 5))(t)
	twins := map[Method]func([]uint64, float64) []float64{Gumbel: exponentialTwin, Peeling: flipTwin}
	for method, twin := range twins {
		claim := make([]float64, 125)
		var walk func(left []int, depth, code int, reached float64)
		walk = func(left []int, depth, code int, reached float64) {
			if depth == 3 {
				claim[code] += reached
				return
			}
			rest := []uint64{}
			for _, i := range left {
				rest = append(rest, losses[i])
			}
			least := slices.Min(rest)
			for i := range rest {
				rest[i] -= least
			}
			for at, p := range twin(rest, rate.Float()) {
				next := append(append([]int{}, left[:at]...), left[at+1:]...)
				walk(next, depth+1, code*5+left[at], reached*p)
			}
		}
		walk([]int{0, 1, 2, 3, 4}, 0, 0, 1)
		random, few := reader(9), 7
		judge(t, method.String(), draws, claim, func() int {
			chosen := []int(nil)
			if method == Gumbel {
				few = 7 - few // blocks and plain rejection in turn
				chosen = peelExponential(losses, 3, rate, few, random)
			} else {
				chosen = peelFlip(losses, 3, rate, random)
			}
			return (chosen[0]*5+chosen[1])*5 + chosen[2]
		})
	}
}

// TestAFailingSourceGivesNothing: at any point of the draw, and only there something.
func TestAFailingSourceGivesNothing(t *testing.T) {
	cells := []int64{10, 0, 3, 4, 9, 9, 1, 0, 0, 200}
	cells = append(cells, make([]int64, 990)...) // blocks, and numbers of several words
	truth := privacy.Seal(cells)
	scores := mustOf(Counts(len(cells)))(t)
	failures, releases := 0, 0
	check := func(what fmt.Stringer, source *breaking, valid bool, err error) {
		t.Helper()
		if (err != nil) != source.failed || valid == source.failed || err != nil && !errors.Is(err, errBroken) {
			t.Fatalf("%v: failed %t, released %t, %v", what, source.failed, valid, err)
		}
		if failures++; !source.failed {
			failures, releases = failures-1, releases+1
		}
	}
	for bytes := int64(0); bytes < 20_000; bytes += 256 {
		for rule := Exponential; rule <= PermuteAndFlip; rule++ {
			m, source := mustOf(New(rule, scores, one, epsilon(100_000)))(t), breaksAfter(bytes, seeded(1))
			r, err := m.Select(truth, source)
			check(rule, source, r.Valid(), err)
		}
		for method := Gumbel; method <= Bins; method++ {
			top, source := mustOf(NewTop(method, 9, scores, one, epsilon(100_000)))(t), breaksAfter(bytes, seeded(1))
			r, err := top.Select(truth, source)
			check(method, source, r.Valid(), err)
		}
	}
	if failures < 20 || releases < 20 {
		t.Errorf("%d failures, %d releases", failures, releases)
	}
}
