package accounting_test

import (
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// A budget of (1, 1e-6): half of δ buys ρ, half pays for thresholds. A sparse vector is open while counts and
// discovered keys are released; all are chosen as answers come in.
func Example() {
	half := privacy.AttoDelta(5e11)
	rho, err := accounting.LargestRho(privacy.MicroEpsilon(1_000_000), half)
	if err != nil {
		panic(err)
	}
	budget := accounting.Filter{Limit: privacy.Cost{Rho: rho, Delta: half}}
	sparse := accounting.Price(privacy.Cost{Epsilon: privacy.MicroEpsilon(100_000)}).Concentrated()
	count := accounting.Charge{Cost: privacy.Cost{Rho: privacy.PicoRho(10_000_000_000)}}
	discovered := accounting.Charge{Cost: privacy.Cost{Rho: privacy.PicoRho(5_000_000_000), Delta: privacy.AttoDelta(2e11)}}
	for _, c := range []accounting.Charge{sparse, count, discovered, count} {
		next, held := budget.Charge(c)
		fmt.Println(c.Cost, held)
		budget = next
	}
	fmt.Println(budget.Left(), "is left")
	// Output:
	// ρ 0.005 true
	// ρ 0.01 true
	// ρ 0.005, δ 2e-07 true
	// ρ 0.01 false
	// ρ 0.002937446688, δ 3e-07 is left
}
