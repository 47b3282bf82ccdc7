package marginals

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// auditAlarm is for one audit: a plan that keeps its claim is accused with at most this probability.
const auditAlarm = 1e-6

// audited releases two neighbouring cubes again and again and returns a lower bound of ε. The judged number is the
// observations' weighted sum in the direction in which the neighbours differ, by inverse variance: under Gaussian noise the
// log-likelihood ratio. Under Laplace noise each is first cut to between the neighbours' own, which leaves the ratio as it is.
func audited(t *testing.T, p Plan, one, other []int64, delta float64) float64 {
	t.Helper()
	a, b, v := silent(p, one), silent(p, other), noiseVariances(p)
	random := seeded(20)
	sample := func(cube []int64) []float64 {
		sealed := []privacy.Sensitive[[]int64]{}
		for _, cells := range tallies(p, cube) {
			sealed = append(sealed, privacy.Seal(cells))
		}
		sums := make([]float64, stattest.Length(30_000, 1_000_000))
		for i := range sums {
			r, err := Release(p, sealed, random)
			if err != nil {
				t.Fatal(err)
			}
			for j, x := range r.Value().Observations {
				if p.cost.Epsilon.Micro() > 0 {
					x = min(max(x, min(a[j], b[j])), max(a[j], b[j]))
				}
				sums[i] += float64(x-a[j]) * float64(b[j]-a[j]) / v[j]
			}
		}
		return sums
	}
	bound, err := stattest.Audit{One: sample(one), Other: sample(other), Delta: delta}.Epsilon(auditAlarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

// neighbors are cubes of 2 × 3 cells: a row comes, or moves to a cell that differs in both attributes, or in one.
var neighbors = []struct {
	contribution privacy.Contribution
	one, other   []int64
}{
	{oneRow, []int64{4, 0, 2, 1, 0, 9}, []int64{4, 1, 2, 1, 0, 9}},
	{oneReplace, []int64{4, 1, 2, 1, 0, 9}, []int64{4, 0, 2, 2, 0, 9}},
	{oneReplace, []int64{4, 1, 2, 1, 0, 9}, []int64{4, 0, 2, 1, 1, 9}},
}

func small(t *testing.T) Workload {
	t.Helper()
	d, err := NewDomain(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWorkload(d, Marginal{1, 4}, Marginal{2, 1}, Marginal{3, 1})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// rhoOfOne is the ρ that is (1, 0.01)-DP.
func rhoOfOne(t *testing.T) privacy.Cost {
	t.Helper()
	r, err := accounting.LargestRho(privacy.MicroEpsilon(1_000_000), privacy.AttoDelta(1e16))
	if err != nil {
		t.Fatal(err)
	}
	return privacy.Cost{Rho: r}
}

func TestAuditsFindNoMoreThanIsPaid(t *testing.T) {
	for _, n := range neighbors {
		for _, m := range []struct {
			name  string
			make  maker
			cost  privacy.Cost
			delta float64
		}{{"residuals", Residuals, rhoOfOne(t), .01}, {"histograms", Histograms, eps(1), 0}, {"independent", Independent, eps(1), 0}} {
			p, err := m.make(small(t), n.contribution, m.cost)
			if err != nil {
				t.Fatal(err)
			}
			bound := audited(t, p, n.one, n.other, m.delta)
			t.Logf("%s, %s: epsilon at least %.3f of 1", m.name, n.contribution.Neighbors, bound)
			if bound > 1 {
				t.Errorf("seed %q: %s, %s: epsilon is at least %.3f; paid: 1", seed, m.name, n.contribution.Neighbors, bound)
			}
		}
	}
}

// TestAuditsCatchPlantedFaults: noise for too small a sensitivity, for the frame's scale forgotten on one axis, and for
// replace-one taken as twice the loss of add-remove, which for residuals it is not.
func TestAuditsCatchPlantedFaults(t *testing.T) {
	n := neighbors[0]
	thinner := func(p Plan, factor float64) Plan {
		for i := range p.observations {
			d, err := normalAtLeast(p.observations[i].noise.Variance() / factor)
			if err != nil {
				t.Fatal(err)
			}
			p.observations[i].noise = d
		}
		return p
	}
	residuals, err := Residuals(small(t), n.contribution, rhoOfOne(t))
	if err != nil {
		t.Fatal(err)
	}
	if bound := audited(t, thinner(residuals, 4), n.one, n.other, .01); bound <= 1 {
		t.Errorf("seed %q: half of the noise passed: %.3f", seed, bound)
	}
	residuals, _ = Residuals(small(t), n.contribution, rhoOfOne(t))
	for i, o := range residuals.observations {
		if o.set.Has(1) {
			residuals.observations[i].noise, _ = normalAtLeast(o.noise.Variance() / 9)
		}
	}
	if bound := audited(t, residuals, n.one, n.other, .01); bound <= 1 {
		t.Errorf("seed %q: a frame without its scale passed: %.3f", seed, bound)
	}
	// Replace-one that differs in both of two columns loses more than twice as much as add-remove.
	d, err := NewDomain(2, 2)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWorkload(d, Marginal{1, 1}, Marginal{2, 1})
	if err != nil {
		t.Fatal(err)
	}
	twice, err := Residuals(w, oneRow, privacy.Cost{Rho: privacy.PicoRho(rhoOfOne(t).Rho.Pico() / 2)})
	if err != nil {
		t.Fatal(err)
	}
	if all := lost(twice, observing(twice), 0, 3, 1); all < 1.1*rhoOfOne(t).Rho.Float() {
		t.Errorf("twice the loss of add-remove covers replace-one: %.4f of %.4f", all, rhoOfOne(t).Rho.Float())
	}
	// The noise that a sensitivity 1/1.5 of the true one would ask for.
	pure, err := Independent(small(t), n.contribution, eps(1.5))
	if err != nil {
		t.Fatal(err)
	}
	if bound := audited(t, pure, n.one, n.other, 0); bound <= 1 {
		t.Errorf("seed %q: 1/1.5 of the noise passed: %.3f", seed, bound)
	}
}
