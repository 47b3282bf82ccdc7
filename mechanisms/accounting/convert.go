package accounting

import (
	"fmt"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// LeastEpsilon returns the smallest ε, rounded up, for which every ρ-zCDP mechanism is (ε, δ)-DP.
//
// Claim: as in LargestRho, whose formula solved for ε is, for every order a > 1,
//
//	ε = aρ + (−ln δ − ln(a−1) + a ln(1−1/a)) / (a−1).
//
// Whichever order the search ends at, its ε is proved. A bound of the floating-point error is added before rounding up.
func LeastEpsilon(r privacy.Rho, d privacy.Delta) (privacy.Epsilon, error) {
	if r.Pico() <= 0 {
		return privacy.Epsilon{}, fmt.Errorf("rho is %s, must be greater than 0", r)
	}
	if err := checkDelta(d); err != nil {
		return privacy.Epsilon{}, err
	}
	logDelta := math.Log(d.Float())
	least := -highest(func(u float64) float64 {
		over := math.Exp(u)
		a := 1 + over
		tail := a * (math.Log1p(over) - u)
		size := a*r.Float() + (math.Abs(logDelta)+math.Abs(u)+math.Abs(tail))/over
		return -(a*r.Float() + (-logDelta-u-tail)/over + size*0x1p-44)
	})
	micro := math.Ceil(max(least*1e6, 1))
	if !(micro < 1<<62) {
		return privacy.Epsilon{}, fmt.Errorf("rho is %s, its epsilon is out of range", r)
	}
	return privacy.MicroEpsilon(int64(micro)), nil
}

// LeastDelta returns the smallest δ, rounded up, for which every ρ-zCDP mechanism is (ε, δ)-DP: the formula of LargestRho
// itself, minimised over the order.
func LeastDelta(r privacy.Rho, e privacy.Epsilon) (privacy.Delta, error) {
	if r.Pico() <= 0 {
		return privacy.Delta{}, fmt.Errorf("rho is %s, must be greater than 0", r)
	}
	if e.Micro() <= 0 {
		return privacy.Delta{}, fmt.Errorf("epsilon is %s, must be greater than 0", e)
	}
	least := -highest(func(u float64) float64 {
		over := math.Exp(u)
		a := 1 + over
		tail := a * (math.Log1p(over) - u)
		size := over*(a*r.Float()+e.Float()) + math.Abs(u) + math.Abs(tail)
		return -(over*(a*r.Float()-e.Float()) - u - tail + size*0x1p-44)
	})
	atto := math.Ceil(math.Exp(least) * 1e18 * (1 + 0x1p-40))
	if !(atto < 1e18) {
		return privacy.Delta{}, fmt.Errorf("rho %s at epsilon %s has no delta below 1", r, e)
	}
	return privacy.AttoDelta(int64(max(atto, 1))), nil
}
