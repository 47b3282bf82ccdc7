package pipeline

import (
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

// What a statement costs may change between EXPLAIN and the statement: a policy is reloaded, a release is revoked, another session of hers
// refines one. SET dp.max_cost = 0.1 has it refused then, before anything of it is charged: who was shown a price pays that or less
// (docs/adr/0134). It looks at the plan, so that it depends on what the price depends on, and on nothing else.
//
//	SET dp.max_cost = 0; SELECT count(*) FROM people   -- answered if it is free, and else not

// tooDear is the error of a plan that costs more than the session lets it, together with what was bought first for it. A cost is in ρ
// where it names ρ, and else in ε, as amounts are in dp.budget. δ is bounded by dp.delta.
func tooDear(x *execution, cost privacy.Cost) error {
	if x.Settings.MaxCost == nil || cost.IsZero() {
		return nil
	}
	whole := x.prior.cost.Plus(cost)
	if withinMax(whole, *x.Settings.MaxCost) {
		return nil
	}
	kept := "nothing was charged"
	if !x.prior.cost.IsZero() {
		kept = "nothing more was charged"
	}
	return &pgerror.Failure{SQLState: "53400", Message: fmt.Sprintf("this costs %s, and dp.max_cost is %s; %s", whole, x.Settings.MaxCost, kept),
		Hint: "EXPLAIN shows what it costs and why. SET dp.max_cost = off lets it cost as much as dp.epsilon allows."}
}

// withinMax compares in units of 1e-12, in which both are whole. A δ alone is more than nothing.
func withinMax(cost privacy.Cost, most privacy.Rho) bool {
	const picoPerMicro = 1_000_000
	epsilon := cost.Epsilon.Micro()
	return cost.Rho.Pico() <= most.Pico() && epsilon <= most.Pico()/picoPerMicro && (most.Pico() > 0 || cost.IsZero())
}
