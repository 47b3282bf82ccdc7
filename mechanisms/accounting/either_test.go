package accounting

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// A history that satisfies the pure filter or the zCDP filter, whichever: docs/adr/0102 proves that their union is as
// private as either of them. Here an adversary who chooses each release after the answers before it, to tell two
// neighbours apart, is computed exactly: what she can reach at most is the δ of her best way of choosing.

// chooser is such an adversary, with releases of two kinds: randomised response, of ε each, and discrete Gaussian
// noise, of ρ each and with no ε at all.
type chooser struct {
	epsilon, response, variance float64
	allowed                     func(responses, gaussians int) bool
	known                       map[[4]int]float64
}

// reaches is the largest E[(1 − e^(ε−L))⁺] from a state on: so many releases of each kind, the net of the answers of
// the first, the sum of the losses of the second in units of 1/(2σ²).
func (c *chooser) reaches(responses, gaussians, net, sum int) float64 {
	key := [4]int{responses, gaussians, net, sum}
	if v, ok := c.known[key]; ok {
		return v
	}
	loss := float64(net)*c.response + float64(sum)/(2*c.variance)
	best := max(0, -math.Expm1(c.epsilon-loss)) // she stops
	if c.allowed(responses+1, gaussians) {
		p := 1 / (1 + math.Exp(-c.response))
		best = max(best, p*c.reaches(responses+1, gaussians, net+1, sum)+(1-p)*c.reaches(responses+1, gaussians, net-1, sum))
	}
	if c.allowed(responses, gaussians+1) {
		// The centres are 0 and 1: at k the loss is ((k−1)² − k²)/2σ².
		far, total, all := int(10*math.Sqrt(c.variance)), 0., 0.
		for k := -far; k <= far; k++ {
			p := math.Exp(-float64(k*k) / (2 * c.variance))
			total += p
			all += p * c.reaches(responses, gaussians+1, net, sum+1-2*k)
		}
		best = max(best, all/total)
	}
	c.known[key] = best
	return best
}

func TestEitherFilterAgainstTheBestChooser(t *testing.T) {
	epsilon, delta := privacy.MicroEpsilon(1e6), privacy.AttoDelta(5e11)
	limit, err := LargestRho(epsilon, delta)
	if err != nil {
		t.Fatal(err)
	}
	const responses = 5 // of the pure budget
	rho, each := float64(limit.Pico())/1e12, 1./responses
	pure := func(r, g int) bool { return g == 0 && r <= responses }
	for _, gaussians := range []float64{2, 3} {
		zcdp := func(r, g int) bool { return float64(r)*each*each/2+float64(g)*rho/gaussians <= rho*(1+1e-12) }
		reached := func(allowed func(r, g int) bool) float64 {
			c := &chooser{epsilon: 1, response: each, variance: gaussians / (2 * rho), allowed: allowed, known: map[[4]int]float64{}}
			return c.reaches(0, 0, 0, 0)
		}
		either := reached(func(r, g int) bool { return pure(r, g) || zcdp(r, g) })
		// What would be wrong: two budgets side by side, each for its own kind.
		both := reached(func(r, g int) bool { return r <= responses && float64(g) <= gaussians })
		t.Logf("%d responses or %g Gaussian releases: δ %.3g of the pure filter, %.3g of zCDP's, %.3g of either, allowed 5e-07; of both side by side %.3g",
			responses, gaussians, reached(pure), reached(zcdp), either, both)
		if either > 5e-7 {
			t.Errorf("either filter: the best chooser reaches δ %g", either)
		}
		if both <= 5e-7 {
			t.Errorf("two budgets side by side pass: δ %g", both)
		}
	}
}
