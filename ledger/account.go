package ledger

import (
	"math"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// The scopes of accounts: a user's current window, a user's life, the dataset's cap.
const (
	scopeWindow int64 = 1 + iota
	scopeLife
	scopeCap
)

// amounts are the three units as plain integers, each at least zero.
type amounts struct{ eps, rho, delta int64 }

func amountsOf(c privacy.Cost) amounts {
	return amounts{c.Epsilon.Micro(), c.Rho.Pico(), c.Delta.Atto()}
}

func (a amounts) cost() privacy.Cost {
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(a.eps), Rho: privacy.PicoRho(a.rho), Delta: privacy.AttoDelta(a.delta)}
}

// saturating adds two numbers that are not negative. A sum that does not fit stays at the largest number, which no limit
// holds: an account that reaches it is spent for good.
func saturating(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func (a amounts) plus(b amounts) amounts {
	return amounts{saturating(a.eps, b.eps), saturating(a.rho, b.rho), saturating(a.delta, b.delta)}
}

// minus never goes below zero.
func (a amounts) minus(b amounts) amounts {
	return amounts{max(0, a.eps-b.eps), max(0, a.rho-b.rho), max(0, a.delta-b.delta)}
}

// above keeps, unit by unit, what of a exceeds limit, and zero elsewhere.
func (a amounts) above(limit amounts) (over amounts) {
	if a.eps > limit.eps {
		over.eps = a.eps
	}
	if a.rho > limit.rho {
		over.rho = a.rho
	}
	if a.delta > limit.delta {
		over.delta = a.delta
	}
	return over
}

// accountKey names an account; holder is empty for the cap.
type accountKey struct {
	ds, scope int64
	holder    string
}

// account is one row of the table of accounts.
//
// spent ≤ limit, but for a limit that was lowered, a re-pricing, or a forfeit: over then keeps what was spent at that
// moment, and spent ≤ over stays true because nothing is charged that does not fit below limit. alt is Σ ε²/2 over the
// charges in pico-ρ, rounded up each: what the account comes to when a pure dataset becomes a zCDP one.
type account struct {
	spent, limit, over amounts
	alt                int64
	ends               int64 // window: the first nanosecond that is outside it; 0: for life
}

// windowEnd is the end of the tumbling window of that length that holds now.
func windowEnd(now int64, length time.Duration) int64 {
	n := int64(length)
	start := now - now%n
	return saturating(start, n)
}

// rolled is the account as it stands at now: a window that is over begins again with nothing spent.
func (a account) rolled(now, ends int64) account {
	if a.ends != 0 && a.ends <= now {
		a.spent, a.over, a.alt, a.ends = amounts{}, amounts{}, 0, ends
	}
	return a
}

// holds tells whether cost fits. Limits and spendings are at least zero, so the differences cannot overflow. Nothing always
// fits: a unit that a charge does not name cannot refuse it.
func (a account) holds(cost amounts) bool {
	return (cost.eps == 0 || cost.eps <= a.limit.eps-a.spent.eps) &&
		(cost.rho == 0 || cost.rho <= a.limit.rho-a.spent.rho) &&
		(cost.delta == 0 || cost.delta <= a.limit.delta-a.spent.delta)
}

// altOf is the price of a pure charge under zCDP: ε-DP implies (ε²/2)-zCDP (Bun and Steinke 2016, Proposition 1.4), rounded
// up; a δ stays what it is (there, Lemma 8.8: (ε, δ)-DP implies δ-approximate ε²/2-zCDP).
func altOf(cost amounts) int64 { return privacy.MicroEpsilon(cost.eps).Rho().Pico() }

func (a account) charged(cost amounts, alt int64) account {
	a.spent = a.spent.plus(cost)
	a.alt = saturating(a.alt, alt)
	return a
}

// limited gives the account other limits. What is spent stays spent.
func (a account) limited(limit amounts) account {
	a.limit = limit
	a.over = a.spent.above(limit)
	return a
}

// doubled re-prices for replace-one neighbours what was priced for add-remove ones. Replacing a unit is removing one and
// adding another, so group privacy for two holds: an ε-DP release is 2ε-DP (Dwork and Roth 2014, Theorem 2.2), a ρ-zCDP
// one 4ρ-zCDP (Bun and Steinke 2016, Proposition 1.9). A sum of ε doubles, a sum of ρ is taken four times, and so is
// alt, because (2ε)²/2 = 4·ε²/2. There is no such price for δ here: the caller refuses where δ was spent.
func (a account) doubled() account {
	a.spent.eps = saturating(a.spent.eps, a.spent.eps)
	for range 2 {
		a.spent.rho = saturating(a.spent.rho, a.spent.rho)
		a.alt = saturating(a.alt, a.alt)
	}
	return a
}

// concentrated re-prices pure charges under zCDP.
func (a account) concentrated() account {
	a.spent.rho, a.spent.eps, a.alt = saturating(a.spent.rho, a.alt), 0, 0
	return a
}

// forfeited takes lost away, or, with all, whatever is left.
func (a account) forfeited(lost amounts, all bool, t DatasetTerms) account {
	lost = lostUnder(lost, t)
	if all {
		lost = amounts{max(0, a.limit.eps-a.spent.eps), max(0, a.limit.rho-a.spent.rho), max(0, a.limit.delta-a.spent.delta)}
	}
	a = a.charged(lost, altOf(lost))
	a.over = a.spent.above(a.limit)
	return a
}

// lostUnder prices what a rollback has lost for an account under terms t. Of the lost charges only the sums are known, so
// each account is taken to have paid all of them, under the terms that make them dearest.
func lostUnder(lost amounts, t DatasetTerms) amounts {
	a := account{spent: lost, alt: altOf(lost)}
	if t.Neighbors == privacy.ReplaceOne {
		a = a.doubled()
	}
	if t.Accountant == privacy.ZCDP {
		a = a.concentrated()
	}
	return a.spent
}
