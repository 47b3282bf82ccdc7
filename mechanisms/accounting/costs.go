package accounting

import (
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// The three ways of saying what a release costs. They cannot be added to each other: a filter takes one of them. From
// pure one gets to each of the others, from concentrated to approximate only at the end, by the filter's Guarantee: a
// conversion each time would pay its δ each time. From approximate there is no way back. Zero values are refused.

// PureCost is that of a δ-approximate ε-DP release: M(D) = (1−δ)P' + δP”, M(D') = (1−δ)Q' + δQ”, P' and Q' within ε. An
// ε-DP release has δ = 0; thresholded keys take a δ.
type PureCost struct {
	epsilon privacy.Epsilon
	delta   privacy.Delta
}

// ConcentratedCost is that of a δ-approximate ρ-zCDP release, P' and Q' within ρ.
type ConcentratedCost struct {
	rho   privacy.Rho
	delta privacy.Delta
}

// ApproximateCost is that of an (ε, δ)-DP release.
type ApproximateCost struct {
	epsilon privacy.Epsilon
	delta   privacy.Delta
}

// Pure takes the cost of a mechanism made under the pure accountant.
func Pure(c privacy.Cost) (PureCost, error) {
	if c.Epsilon.Micro() <= 0 || c.Rho.Pico() != 0 {
		return PureCost{}, fmt.Errorf("cost is epsilon %s and rho %s, must name epsilon alone, greater than 0", c.Epsilon, c.Rho)
	}
	if err := checkThreshold(c.Delta); err != nil {
		return PureCost{}, err
	}
	return PureCost{c.Epsilon, c.Delta}, nil
}

// Concentrated takes the cost of a mechanism made under the zcdp accountant.
func Concentrated(c privacy.Cost) (ConcentratedCost, error) {
	if c.Rho.Pico() <= 0 || c.Epsilon.Micro() != 0 {
		return ConcentratedCost{}, fmt.Errorf("cost is epsilon %s and rho %s, must name rho alone, greater than 0", c.Epsilon, c.Rho)
	}
	if err := checkThreshold(c.Delta); err != nil {
		return ConcentratedCost{}, err
	}
	return ConcentratedCost{c.Rho, c.Delta}, nil
}

// Approximate makes the cost of an (ε, δ)-DP release.
func Approximate(e privacy.Epsilon, d privacy.Delta) (ApproximateCost, error) {
	if e.Micro() <= 0 {
		return ApproximateCost{}, fmt.Errorf("epsilon is %s, must be greater than 0", e)
	}
	if err := checkThreshold(d); err != nil {
		return ApproximateCost{}, err
	}
	return ApproximateCost{e, d}, nil
}

// checkThreshold allows a δ of 0.
func checkThreshold(d privacy.Delta) error {
	if d.Atto() < 0 || d.Atto() >= 1e18 {
		return fmt.Errorf("delta is %s, must be at least 0 and below 1", d)
	}
	return nil
}

// Cost returns c as the ledger books it.
func (c PureCost) Cost() privacy.Cost { return privacy.Cost{Epsilon: c.epsilon, Delta: c.delta} }

// Cost returns c as the ledger books it.
func (c ConcentratedCost) Cost() privacy.Cost { return privacy.Cost{Rho: c.rho, Delta: c.delta} }

// Concentrated returns what the release costs under zCDP: ε²/2 (Bun and Steinke 2016, Proposition 1.4), rounded up. A
// mechanism that knows better, as the exponential mechanism with ε²/8, says so itself.
func (c PureCost) Concentrated() ConcentratedCost { return ConcentratedCost{c.epsilon.Rho(), c.delta} }

// Approximate returns c as (ε, δ): M(D)(O) ≤ (1−δ)e^ε Q'(O) + δ ≤ e^ε M(D')(O) + δ.
func (c PureCost) Approximate() ApproximateCost { return ApproximateCost(c) }
