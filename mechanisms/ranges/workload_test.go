package ranges

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// continuous is the variance of noise at ε = 1, or in multiples of σ² for one row.
func continuous(n Norm) func(privacy.Sensitivity) float64 {
	return func(s privacy.Sensitivity) float64 {
		if n == L1 {
			return 2 * float64(s.L1) * float64(s.L1)
		}
		return float64(s.L2Squared)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		d    Description
		want string
	}{
		{Description{}, "strategy is 0"}, {Description{Kind: 99, Cells: 4}, "strategy is 99"},
		{Description{Kind: KindIdentity, Cells: 0}, "at least 2 cells"}, {Description{Kind: KindIdentity, Cells: 4, Radices: []int{4}}, "radices of strategy identity is given"},
		{Description{Kind: KindIdentity, Cells: 4, Bits: 3}, "bits of strategy identity"}, {Description{Kind: KindTree, Cells: 4, Version: 1}, "version of strategy tree"},
		{Description{Kind: KindTree, Cells: 4}, "1 radix"}, {Description{Kind: KindTree, Cells: 4, Radices: []int{4}, Weights: []int64{0}}, "weight 1 is 0"},
		{Description{Kind: KindSine, Cells: 4, Bits: 24}, "version of strategy sine is 0"}, {Description{Kind: KindSine, Cells: 4, Bits: 24, Version: 2}, "must be 1"},
		{Description{Kind: KindSine, Cells: 4, Version: 1}, "bits of strategy sine is 0"}, {Description{Kind: KindCosine, Cells: 4, Version: 1, Bits: 24, Weights: []int64{1}}, "weights of strategy cosine"},
		{Description{Kind: KindMatrix, Cells: 1}, "entries of a matrix is 0"}, {Description{Kind: KindTree, Cells: 1, Radices: []int{1}, Matrix: []int64{1}}, "matrix of strategy tree"},
	} {
		if s, err := Open(c.d); err == nil || s != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, %v, want %s", c.d, s, err, c.want)
		}
	}
}

func TestOpenRemembers(t *testing.T) {
	d := Description{Kind: KindSine, Cells: 500, Bits: 20, Version: 1}
	one, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := Open(d); err != nil || one != other {
		t.Errorf("opened twice: %p, %p, %v", one, other, err)
	}
	// More cells than are remembered: still right.
	for _, cells := range []int{1 << 17, 1<<17 - 1, 1000} {
		s, err := Open(Description{Kind: KindSine, Cells: cells, Bits: 24, Version: 1})
		if err != nil || s.Cells() != cells {
			t.Errorf("%d cells: %v", cells, err)
		}
	}
}

// TestChoose: the choice has the error that it says, which is no more than that of any other kind.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		goal Goal
		kind Kind
		most float64 // root of the mean variance
	}{
		{Goal{1, AllRanges, L1, privacy.AddRemove}, KindIdentity, math.Sqrt2},
		{Goal{4096, EachCell, L1, privacy.AddRemove}, KindIdentity, math.Sqrt2},
		{Goal{4096, EachCell, L2, privacy.ReplaceOne}, KindIdentity, math.Sqrt2},
		{Goal{4096, AllRanges, L2, privacy.AddRemove}, KindSine, 1.005 * 4.134},
		{Goal{4096, AllRanges, L2, privacy.ReplaceOne}, KindSine, 1.005 * 4.134 * math.Sqrt2},
		{Goal{1024, AllPrefixes, L2, privacy.AddRemove}, KindCosine, 1.005 * 2.994},
		{Goal{1 << 14, AllRanges, L2, privacy.AddRemove}, KindSine, 4.76},
		{Goal{64, AllRanges, L1, privacy.AddRemove}, KindPIdentity, 1.005 * 5.552},
		{Goal{1000, AllPrefixes, L1, privacy.AddRemove}, KindPIdentity, 1.005 * 9.520},
		{Goal{1 << 18, AllRanges, L2, privacy.AddRemove}, KindTree, 7.547},
		{Goal{1 << 18, AllPrefixes, L1, privacy.AddRemove}, KindTree, 23.674},
	} {
		d, e := Choose(c.goal, continuous(c.goal.Norm))
		if d.Kind != c.kind || math.Sqrt(e) > c.most {
			t.Errorf("%+v: %+v with %.4f, want %s with %.4f", c.goal, d, math.Sqrt(e), c.kind, c.most)
		}
		s, err := Open(d)
		if err != nil {
			t.Fatal(err)
		}
		if c.goal.Workload == EachCell {
			continue
		}
		if got := s.MeanVariance(c.goal.Workload) * continuous(c.goal.Norm)(s.Sensitivity(c.goal.Neighbors)); got != e {
			t.Errorf("%+v: the error is %g, not %g", c.goal, got, e)
		}
	}
}

// TestChooseFollowsTheNoise: where the noise of long columns cannot be calibrated, shorter ones and at last trees
// serve.
func TestChooseFollowsTheNoise(t *testing.T) {
	goal := Goal{1000, AllRanges, L2, privacy.AddRemove}
	for _, c := range []struct {
		most int64
		want Description
	}{
		{1 << 50, Description{Kind: KindSine, Cells: 1000, Bits: 24, Version: 1}},
		{1 << 44, Description{Kind: KindSine, Cells: 1000, Bits: 20, Version: 1}},
		{1 << 33, Description{Kind: KindSine, Cells: 1000, Bits: 16, Version: 1}},
		{1, Description{Kind: KindIdentity, Cells: 1000}},
		{0, Description{}},
	} {
		d, _ := Choose(goal, func(s privacy.Sensitivity) float64 {
			if s.L2Squared > c.most {
				return 0
			}
			return float64(s.L2Squared)
		})
		if !reflect.DeepEqual(d, c.want) {
			t.Errorf("at most %d: %+v, want %+v", c.most, d, c.want)
		}
	}
	for _, none := range []Goal{{1000, 0, L2, privacy.AddRemove}, {1000, 9, L2, privacy.AddRemove}, {1000, AllRanges, 0, privacy.AddRemove}, {0, AllRanges, L2, privacy.AddRemove}, {-3, AllPrefixes, L1, privacy.AddRemove}} {
		if d, _ := Choose(none, continuous(L2)); d.Kind != 0 {
			t.Errorf("%+v: %+v", none, d)
		}
	}
	// Discrete noise of one level at a large ε is nearly never felt.
	d, _ := Choose(Goal{200, AllRanges, L1, privacy.AddRemove}, func(s privacy.Sensitivity) float64 {
		q := math.Exp(-10 / float64(s.L1))
		return 2 * q / ((1 - q) * (1 - q))
	})
	if d.Kind != KindIdentity {
		t.Errorf("at ε = 10: %+v", d)
	}
}

const auditDelta = .1

// gaussianEpsilon returns the ε of auditDelta for Gaussian noise of deviation sensitivity/mu (Balle and Wang 2018).
func gaussianEpsilon(mu float64) float64 {
	low, high := 0.0, 50.0
	for range 60 {
		e := (low + high) / 2
		if distuv.UnitNormal.CDF(mu/2-e/mu)-math.Exp(e)*distuv.UnitNormal.CDF(-mu/2-e/mu) > auditDelta {
			low = e
		} else {
			high = e
		}
	}
	return high
}

// TestAuditStrategies: neighbouring cells, observed with noise for the strategy's sensitivity, are distinguished no
// better than that noise allows; and better, seen by the same audit, when the sensitivity is off by 1.2, or
// add-remove's under replace-one. The judged number is the projection on the direction in which the observations
// differ, which with Gaussian noise is all that there is. Alarm 1e-6 for each of 16 audits.
func TestAuditStrategies(t *testing.T) {
	claim := gaussianEpsilon(1)
	for _, d := range []Description{
		{Kind: KindTree, Cells: 9, Radices: []int{3, 3}, Weights: []int64{2, 3}},
		{Kind: KindSine, Cells: 9, Bits: 24, Version: 1},
		{Kind: KindCosine, Cells: 9, Bits: 16, Version: 1},
		{Kind: KindMatrix, Cells: 2, Matrix: []int64{30, -40, 7, 25, 1, 1}},
	} {
		s, err := Open(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, neighbors := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
			right := float64(s.Sensitivity(neighbors).L2Squared)
			wrong, fault := right/1.44, "a sensitivity off by 1.2"
			if neighbors == privacy.ReplaceOne {
				wrong, fault = float64(s.Sensitivity(privacy.AddRemove).L2Squared), "that of add-remove"
			}
			if bound := audit(t, s, neighbors, right); bound > claim {
				t.Errorf("%s, %s: ε is at least %.3f, claimed %.3f", d.Kind, neighbors, bound, claim)
			} else if bound < .5*claim {
				t.Errorf("%s, %s: the audit found only %.3f of %.3f: it is blind", d.Kind, neighbors, bound, claim)
			}
			if bound := audit(t, s, neighbors, wrong); bound <= claim {
				t.Errorf("%s, %s: %s passed: %.3f", d.Kind, neighbors, fault, bound)
			}
		}
	}
}

// audit returns a lower bound of the ε at auditDelta of s under Gaussian noise.
func audit(t *testing.T, s Strategy, neighbors privacy.Neighbors, variance float64) float64 {
	t.Helper()
	d, err := noise.New(noise.Gaussian, int64(variance*1024), 1024)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]int64, s.Cells())
	for i := range x {
		x[i] = int64(10 * (i + 1))
	}
	one := s.Observe(x)
	var other []int64 // the neighbour that is furthest
	most := 0.0
	consider := func() {
		y := s.Observe(x)
		sum := 0.0
		for j := range y {
			sum += float64(y[j]-one[j]) * float64(y[j]-one[j])
		}
		if sum > most {
			most, other = sum, y
		}
	}
	for i := range x {
		x[i]++
		if neighbors == privacy.AddRemove {
			consider()
		}
		for k := range x {
			x[k]--
			if neighbors == privacy.ReplaceOne {
				consider()
			}
			x[k]++
		}
		x[i]--
	}
	r := noise.NewReader(rand.NewChaCha8([32]byte{13}))
	sample := func(center []int64) []float64 {
		answers := make([]float64, stattest.Length(30_000, 300_000))
		for k := range answers {
			for j, c := range center {
				answers[k] += float64(c-one[j]+d.Sample(r)) * float64(other[j]-one[j]) / most
			}
		}
		return answers
	}
	bound, err := stattest.Audit{One: sample(one), Other: sample(other), Delta: auditDelta}.Epsilon(1e-6)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}
