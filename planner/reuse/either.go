package reuse

import (
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Better tells which of two prices of one thing is taken in a dataset of either accountant: one in ε, one in ρ, the
// squared error for the first being so many times that for the other. Where one alone is held by what is left of her
// budget, it is that one. Else it is the one of which more are held, if those in ρ were bought at the error of the
// first: noise grows with 1/√ρ, so that they cost as many times less. An ε goes by what is left of ε, or of ρ by what
// it comes to there, whichever is more; where both hold as many, it is ε, after which both are still open.
func (c Context) Better(epsilon, rho accounting.Charge, times float64) (privacy.Accountant, string) {
	left := c.left()
	of := func(left, each int64) float64 { return float64(left) / float64(max(each, 1)) }
	some := max(of(left.Epsilon.Micro(), epsilon.Cost.Epsilon.Micro()), of(left.Rho.Pico(), epsilon.Converted.Pico()))
	others := of(left.Rho.Pico(), rho.Cost.Rho.Pico()) * times
	chosen := privacy.Pure
	switch first, second := c.Holds(epsilon), c.Holds(rho); {
	case first != second && second, first == second && others > some:
		chosen = privacy.ZCDP
	}
	return chosen, fmt.Sprintf("what is left holds about %.3g such statements in ε, and %.3g as exact ones in ρ", some, others)
}

// Holds reports whether what is left to her holds a charge.
func (c Context) Holds(charge accounting.Charge) bool {
	return accounting.Filter{Limit: c.left()}.Holds(charge)
}

// left is what is left to her.
func (c Context) left() privacy.Cost {
	if c.Unspent != nil {
		return *c.Unspent
	}
	budget, _ := c.Dataset.Budget(c.User)
	return budget.Cost
}
