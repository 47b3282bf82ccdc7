// Package accounting converts between the units in which privacy is counted.
package accounting

import "github.com/dpproxy/dpproxy/mechanisms/privacy"

// LargestRho returns the largest ρ, rounded down, for which every ρ-zCDP mechanism is (ε, δ)-DP.
func LargestRho(e privacy.Epsilon, d privacy.Delta) (privacy.Rho, error) { panic("to be written") }
