package ranges

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// TestPIdentityFigures holds the shipped strategies against the best known: RMSE at ε = 1 with continuous Laplace noise
// of scale L1/ε, by exact algebra from the integers of B. Bound is what they were when they were made.
func TestPIdentityFigures(t *testing.T) {
	for _, c := range []struct {
		workload     Workload
		cells        int
		known, bound float64
	}{
		{AllRanges, 64, 5.552, 5.5525}, {AllRanges, 256, 8.057, 8.0536}, {AllRanges, 1024, 11.018, 11.0212}, {AllRanges, 4096, 14.277, 14.2792},
		{AllPrefixes, 64, 5.322, 5.3222}, {AllPrefixes, 256, 7.348, 7.3295}, {AllPrefixes, 1024, 9.520, 9.5264}, {AllPrefixes, 4096, 12.199, 12.0507},
	} {
		s, err := pIdentityOf(c.cells, PIdentityVersion(c.workload))
		if err != nil {
			t.Fatal(err)
		}
		ours, limit := pureError(s, c.workload), math.Sqrt(2*Limit(c.workload, c.cells))
		t.Logf("%s, %d cells: %.4f, best known %.3f, limit %.3f", c.workload, c.cells, ours, c.known, limit)
		if ours > 1.005*c.known || ours > c.bound || ours < limit {
			t.Errorf("%s, %d cells: %.4f, best known %.3f, must be at most %.4f and at least %.3f", c.workload, c.cells, ours, c.known, c.bound, limit)
		}
	}
}

// TestPIdentityAtOtherNumbersOfCells: what is stretched is nearly as good as what is optimised.
func TestPIdentityAtOtherNumbersOfCells(t *testing.T) {
	for _, c := range []struct {
		cells int
		bound float64
	}{{9, 1.15}, {11, 1.15}, {14, 1.06}, {20, 1.01}, {28, 1.01}, {40, 1.01}, {55, 1.01}, {79, 1.01}, {101, 1.01}, {120, 1.01}, {158, 1.01}} {
		for _, workload := range []Workload{AllRanges, AllPrefixes} {
			s, err := pIdentityOf(c.cells, PIdentityVersion(workload))
			if err != nil {
				t.Fatal(err)
			}
			_, value := optimiseIdentity(workload, c.cells, starts(workload, c.cells, layouts(workload, c.cells)), 10, 200)
			ours, optimised := pureError(s, workload), math.Sqrt(2*value/workload.queries(c.cells))
			if ours > c.bound*optimised {
				t.Errorf("%s, %d cells: %.4f, optimised %.4f", workload, c.cells, ours, optimised)
			}
		}
	}
}

// TestAuditPIdentity: neighbouring cells, observed with discrete Laplace noise for the strategy's sensitivity at ε = 1,
// are distinguished no better than that; and better, seen by the same audit, when the sensitivity is off by 1.2. The
// judged number is the likelihood ratio. Alarm 1e-6 for each of 4 audits.
func TestAuditPIdentity(t *testing.T) {
	for _, cells := range []int{12, 16} {
		s, err := pIdentityOf(cells, PIdentityVersion(AllPrefixes))
		if err != nil {
			t.Fatal(err)
		}
		if bound := auditPure(t, s, 1); bound > 1 {
			t.Errorf("seed 17, %d cells: ε is at least %.3f, claimed 1", cells, bound)
		} else if bound < .85 {
			t.Errorf("seed 17, %d cells: the audit found only %.3f of 1: it is blind", cells, bound)
		}
		if bound := auditPure(t, s, 1.2); bound <= 1 {
			t.Errorf("seed 17, %d cells: a sensitivity off by 1.2 was not caught: %.3f", cells, bound)
		}
	}
}

// auditPure returns a lower bound of ε with noise for ε = 1 whose scale is too small by a factor.
func auditPure(t *testing.T, s Strategy, factor float64) float64 {
	t.Helper()
	scale := float64(s.Sensitivity(privacy.AddRemove).L1) / factor
	d, err := noise.New(noise.Laplace, int64(scale), 1)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]int64, s.Cells())
	one := s.Observe(x)
	x[s.Cells()/2] = 1
	other := s.Observe(x)
	r := noise.NewReader(rand.NewChaCha8([32]byte{17}))
	sample := func(center []int64) []float64 {
		answers := make([]float64, stattest.Length(60_000, 1_000_000))
		for k := range answers {
			for j, c := range center {
				if one[j] == other[j] {
					continue
				}
				y := float64(c + d.Sample(r))
				answers[k] += (math.Abs(y-float64(one[j])) - math.Abs(y-float64(other[j]))) / scale
			}
		}
		return answers
	}
	bound, err := stattest.Audit{One: sample(one), Other: sample(other)}.Epsilon(1e-6)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}
