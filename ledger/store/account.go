package store

import (
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// The scopes of accounts: a user's current window, a user's life, the dataset's cap. Numbers are on disk: never change
// one.
const (
	ScopeWindow int64 = 1 + iota
	ScopeLife
	ScopeCap
)

// AccountKey names an account; Holder is empty for the cap.
type AccountKey struct {
	DS, Scope int64
	Holder    string
}

// Account is one row of the table of accounts: a privacy filter, whose claim and proof are at accounting.Filter, as
// it is kept. What a charge may take is decided by it, in Go where a charge is foreseen or read from the chain, and in
// the stores by the same condition as SQL (ChargeUpdate).
//
// Spent is within Limit, but for a limit that was lowered, a re-pricing, or a forfeit: Over then keeps what was spent
// at that moment, and Spent ≤ Over stays true because nothing is charged that does not fit below Limit. The charges'
// Converted are what the account comes to under zCDP: what a pure dataset has spent when it becomes one, and one of the
// two sums that a dataset of either accountant is held to.
type Account struct {
	accounting.Filter
	Over privacy.Cost
	Ends int64 // window: the first nanosecond that is outside it; 0 means for life
}

// Rolled returns the account as it is at now: a window that is over begins again with nothing spent.
func (a Account) Rolled(now, ends int64) Account {
	if a.Ends != 0 && a.Ends <= now {
		a.Spent, a.Over, a.Ends = accounting.Charge{}, privacy.Cost{}, ends
	}
	return a
}

// Charged is the account after a charge; false where it does not hold it.
func (a Account) Charged(c accounting.Charge) (Account, bool) {
	next, ok := a.Charge(c)
	a.Filter = next
	return a, ok
}

// Limited gives the account other limits. What is spent stays spent.
func (a Account) Limited(limit privacy.Cost) Account {
	a.Limit = limit
	a.Over = a.above()
	return a
}

// Forfeited takes a charge from the account, whether it holds it or not.
func (a Account) Forfeited(c accounting.Charge) Account {
	a.Filter = a.Forfeit(c)
	a.Over = a.above()
	return a
}

// above is what was spent of ε and ρ, where neither filter holds it, and of δ, where it exceeds the limit's; and zero
// elsewhere.
func (a Account) above() (over privacy.Cost) {
	f := a.Filter
	if f.Spent.Cost.Delta.Atto() > f.Limit.Delta.Atto() {
		over.Delta = f.Spent.Cost.Delta
	}
	if f.Spent.Cost.Delta, f.Limit.Delta = (privacy.Delta{}), (privacy.Delta{}); !f.Within() {
		over.Epsilon, over.Rho = f.Spent.Cost.Epsilon, f.Spent.Cost.Rho
	}
	return over
}
