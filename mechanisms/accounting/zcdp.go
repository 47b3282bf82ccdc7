// Package accounting says what several releases cost together: it holds the Filter, the budget that stays valid when
// each release is chosen after the answers of those before it, which the ledger's accounts are, and what costs come to
// in another unit: ε in ρ, an (ε, δ) in ρ, a unit replaced instead of removed. docs/mechanisms/accounting.md says which
// composition is valid when. All of it is arithmetic on public numbers.
package accounting

import (
	"fmt"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// LargestRho returns the largest ρ, rounded down, for which every ρ-zCDP mechanism is (ε, δ)-DP.
//
// Claim: for every order a > 1, ρ-zCDP implies (ε, δ)-DP with
//
//	δ = exp((a−1)(aρ−ε)) / (a−1) · (1−1/a)^a
//
// (Canonne, Kamath, Steinke 2020, Corollary 13). Solved for ρ, an order a proves every
//
//	ρ ≤ [ε + (ln δ + ln(a−1) − a ln(1−1/a)) / (a−1)] / a,
//
// so whichever order the search ends at, the ρ that it returns is proved; a bad search costs budget, not privacy.
// Floating-point error is subtracted before rounding down to whole pico-units. The relation between neighbours is
// whatever the mechanism's is.
func LargestRho(e privacy.Epsilon, d privacy.Delta) (privacy.Rho, error) {
	if err := checkPair(e, d); err != nil {
		return privacy.Rho{}, err
	}
	best := highest(func(u float64) float64 { return provedRho(u, e, d) })
	rho := privacy.PicoRho(int64(math.Floor(max(0, best) * 1e12)))
	if rho.Pico() == 0 {
		return privacy.Rho{}, fmt.Errorf("epsilon %s with delta %s is worth less than the smallest rho, 0.000000000001", e, d)
	}
	return rho, nil
}

// provedRho is the ρ that the order 1+exp(u) proves, less a bound of its floating-point error: the three terms are
// within a few units in the last place of their magnitudes, of which 2^-44 is 2^8 times as much.
func provedRho(u float64, e privacy.Epsilon, d privacy.Delta) float64 {
	over := math.Exp(u) // a−1
	a := 1 + over
	logDelta := math.Log(d.Float())
	tail := a * (math.Log1p(over) - u) // −a ln(1−1/a), which is a·ln(a/(a−1))
	value := e.Float() + (logDelta+u+tail)/over
	size := e.Float() + (math.Abs(logDelta)+math.Abs(u)+math.Abs(tail))/over
	return (value - size*0x1p-44) / a
}

// checkPair refuses an (ε, δ) outside of (0, ∞) × (0, 1).
func checkPair(e privacy.Epsilon, d privacy.Delta) error {
	if e.Micro() <= 0 {
		return fmt.Errorf("epsilon is %s, must be greater than 0", e)
	}
	if d.Atto() <= 0 || d.Atto() >= 1e18 {
		return fmt.Errorf("delta is %s, must be greater than 0 and below 1", d)
	}
	return nil
}

// highest returns the highest value of f that a search over u = ln(a−1), a an order, sees: a grid, then thirds around
// its best point.
func highest(f func(u float64) float64) float64 {
	const from, to, step = -30.0, 60.0, 0.25
	best, value := from, f(from)
	for u := from; u <= to; u += step {
		if v := f(u); v > value {
			best, value = u, v
		}
	}
	low, high := best-step, best+step
	for range 100 {
		a, b := low+(high-low)/3, high-(high-low)/3
		if f(a) < f(b) {
			low = a
		} else {
			high = b
		}
	}
	return max(value, f(low+(high-low)/2))
}
