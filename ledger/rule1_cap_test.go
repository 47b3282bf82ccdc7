package ledger

import (
	"errors"
	"testing"
)

// TestRule1CapTellsNothingOfChoices: with a cap that pays for one of two declared releases, what is left for bob to buy
// does not depend on which of them alice had drawn.
func TestRule1CapTellsNothingOfChoices(t *testing.T) {
	for drawn := range byte(2) {
		d := census()
		d.Cap, d.Budgets = eps(60), map[string]BudgetTerms{"*": {Limit: eps(1000)}}
		f := fresh(t, Options{}, d)
		buy(t, f, "alice", shared(drawn, eps(50)), 1)
		for n := range byte(2) {
			if _, err := f.Charge(ctx, request("bob", shared(n, eps(50)))); !errors.Is(err, ErrCap) {
				t.Errorf("alice had release %d drawn; release %d for bob: %v, want %v", drawn, n, err, ErrCap)
			}
		}
	}
}
