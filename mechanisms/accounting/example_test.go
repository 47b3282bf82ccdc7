package accounting_test

import (
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// A budget of (1, 1e-6): half of δ buys ρ, half pays for thresholds. A sparse vector is open while counts and discovered
// keys are released; all are chosen as answers come in.
func Example() {
	half := privacy.AttoDelta(5e11)
	rho, err := accounting.LargestRho(privacy.MicroEpsilon(1_000_000), half)
	if err != nil {
		panic(err)
	}
	budget, err := accounting.NewConcentratedFilter(privacy.Cost{Rho: rho, Delta: half})
	if err != nil {
		panic(err)
	}
	sparse, _ := accounting.NewPureSession(privacy.MicroEpsilon(100_000))
	count, _ := accounting.Concentrated(privacy.Cost{Rho: privacy.PicoRho(10_000_000_000)})
	discovered, _ := accounting.Concentrated(privacy.Cost{Rho: privacy.PicoRho(5_000_000_000), Delta: privacy.AttoDelta(2e11)})
	fmt.Println(budget.Open(sparse.Concentrated()), budget.Charge(count), budget.Charge(discovered))
	fmt.Println(budget.Charge(count))
	e, d, err := budget.Guarantee(half)
	fmt.Println(e, d, err)
	// Output:
	// <nil> <nil> <nil>
	// budget is spent: ρ 0.002937446688, δ 3e-07 is left, the release costs ρ 0.01
	// 1 1e-06 <nil>
}
