package ledger

import (
	"math"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// The scopes of accounts: a user's current window, a user's life, the dataset's cap.
const (
	scopeWindow int64 = 1 + iota
	scopeLife
	scopeCap
)

// accountKey names an account; holder is empty for the cap.
type accountKey struct {
	ds, scope int64
	holder    string
}

// account is one row of the table of accounts: a privacy filter, whose claim and proof stand at accounting.Filter, as it is
// kept. What a charge may take is decided by it, in Go where a charge is foreseen or read from the chain, and in the
// stores by the same condition as SQL (chargeUpdate).
//
// Spent ≤ Limit, but for a limit that was lowered, a re-pricing, or a forfeit: over then keeps what was spent at that
// moment, and Spent ≤ over stays true because nothing is charged that does not fit below Limit. The charges' Converted are
// what the account comes to when a pure dataset becomes a zCDP one.
type account struct {
	accounting.Filter
	over privacy.Cost
	ends int64 // window: the first nanosecond that is outside it; 0: for life
}

// windowEnd is the end of the tumbling window of that length that holds now.
func windowEnd(now int64, length time.Duration) int64 {
	n := int64(length)
	start := now - now%n
	if start > math.MaxInt64-n {
		return math.MaxInt64
	}
	return start + n
}

// rolled is the account as it stands at now: a window that is over begins again with nothing spent.
func (a account) rolled(now, ends int64) account {
	if a.ends != 0 && a.ends <= now {
		a.Spent, a.over, a.ends = accounting.Charge{}, privacy.Cost{}, ends
	}
	return a
}

// charged is the account after a charge; false where it does not hold it.
func (a account) charged(c accounting.Charge) (account, bool) {
	next, ok := a.Charge(c)
	a.Filter = next
	return a, ok
}

// limited gives the account other limits. What is spent stays spent.
func (a account) limited(limit privacy.Cost) account {
	a.Limit = limit
	a.over = above(a.Spent.Cost, limit)
	return a
}

// above keeps, unit by unit, what of a cost exceeds a limit, and zero elsewhere.
func above(c, limit privacy.Cost) (over privacy.Cost) {
	if c.Epsilon.Micro() > limit.Epsilon.Micro() {
		over.Epsilon = c.Epsilon
	}
	if c.Rho.Pico() > limit.Rho.Pico() {
		over.Rho = c.Rho
	}
	if c.Delta.Atto() > limit.Delta.Atto() {
		over.Delta = c.Delta
	}
	return over
}

// repriced carries spending from old terms to new ones.
func repriced(c accounting.Charge, old, now DatasetTerms) accounting.Charge {
	if old.Neighbors == privacy.AddRemove && now.Neighbors == privacy.ReplaceOne {
		c = c.Doubled()
	}
	if old.Accountant == privacy.Pure && now.Accountant == privacy.ZCDP {
		c = c.Concentrated()
	}
	return c
}

// forfeited takes lost away, or, with all, whatever is left.
func (a account) forfeited(lost privacy.Cost, all bool, t DatasetTerms) account {
	lost = lostUnder(lost, t)
	if all {
		lost = a.Left()
	}
	a.Filter = a.Forfeit(accounting.Price(lost))
	a.over = above(a.Spent.Cost, a.Limit)
	return a
}

// lostUnder prices what a rollback has lost for an account under terms t. Of the lost charges only the sums are known, so
// each account is taken to have paid all of them, under the terms that make them dearest.
func lostUnder(lost privacy.Cost, t DatasetTerms) privacy.Cost {
	return repriced(accounting.Price(lost), DatasetTerms{Accountant: privacy.Pure, Neighbors: privacy.AddRemove}, t).Cost
}

// negative tells whether an amount is below zero in some unit.
func negative(c privacy.Cost) bool { return min(c.Epsilon.Micro(), c.Rho.Pico(), c.Delta.Atto()) < 0 }

// free tells whether a cost names neither ε nor ρ.
func free(c privacy.Cost) bool { return c.Epsilon.Micro() == 0 && c.Rho.Pico() == 0 }
