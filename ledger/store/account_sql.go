package store

import (
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// AccountColumns are an account's numbers as both stores keep them, alt being the charges' Converted.
const AccountColumns = "ends, eps, eps_limit, eps_over, rho, rho_limit, rho_over, delta, delta_limit, delta_over, alt"

// Numbers are an account's numbers in the order of AccountColumns.
type Numbers [11]int64

func (a Account) numbers() Numbers {
	s, l, o := a.Spent.Cost, a.Limit, a.Over
	return Numbers{a.Ends, s.Epsilon.Micro(), l.Epsilon.Micro(), o.Epsilon.Micro(), s.Rho.Pico(), l.Rho.Pico(), o.Rho.Pico(),
		s.Delta.Atto(), l.Delta.Atto(), o.Delta.Atto(), a.Spent.Converted.Pico()}
}

// Account is the account of the numbers.
func (n Numbers) Account() Account {
	cost := func(i int) privacy.Cost {
		return privacy.Cost{Epsilon: privacy.MicroEpsilon(n[i]), Rho: privacy.PicoRho(n[i+3]), Delta: privacy.AttoDelta(n[i+6])}
	}
	spent := accounting.Charge{Cost: cost(1), Converted: privacy.PicoRho(n[10])}
	return Account{Filter: accounting.Filter{Limit: cost(2), Spent: spent}, Over: cost(3), Ends: n[0]}
}

// Args are the arguments of an account that is opened.
func (a Account) Args(key AccountKey) []any {
	list := []any{key.DS, key.Scope, key.Holder}
	for _, n := range a.numbers() {
		list = append(list, n)
	}
	return list
}

// Args are the arguments of ChargeUpdate.
func (m Move) Args(now int64) []any {
	c := m.Charge.Cost
	return []any{m.Key.DS, m.Key.Scope, m.Key.Holder, now, m.Ends, c.Epsilon.Micro(), c.Rho.Pico(), c.Delta.Atto(), m.Charge.Converted.Pico()}
}

// What an account has spent in the window that holds $4, and what is left of its limits.
const (
	over     = "CASE WHEN ends <> 0 AND ends <= $4 THEN "
	epsNow   = "(" + over + "0 ELSE eps END)"
	rhoNow   = "(" + over + "0 ELSE rho END)"
	altNow   = "(" + over + "0 ELSE alt END)"
	deltaNow = "(" + over + "0 ELSE delta END)"
	rhoLeft  = "rho_limit - " + rhoNow + " - " + altNow
)

// ChargeUpdate is Account.Rolled and then Account.Charged as one conditional update of both stores: what is set is
// Filter.Forfeit, and the condition is Filter.Holds: a line for its holdsConcentrated, whose differences cannot
// overflow, one for holdsPure, one for what is free, and one for δ. TestUpdateIsTheFilter holds them together. $1 to $3
// name the account, $4 is the ledger's time, $5 the end of the window that holds it, $6 to $8 the cost, $9 what its ε
// come to under zCDP. A window that is over begins again in the same statement.
//
// Each parameter of the condition is first beside a column, whence PostgreSQL takes its type.
const ChargeUpdate = ` SET
	eps = ` + over + `$6 WHEN eps > 9223372036854775807 - $6 THEN 9223372036854775807 ELSE eps + $6 END, eps_over = ` + over + `0 ELSE eps_over END,
	rho = ` + rhoNow + ` + $7, rho_over = ` + over + `0 ELSE rho_over END,
	delta = ` + deltaNow + ` + $8, delta_over = ` + over + `0 ELSE delta_over END,
	alt = ` + over + `$9 WHEN alt > 9223372036854775807 - $9 THEN 9223372036854775807 ELSE alt + $9 END,
	ends = ` + over + `$5 ELSE ends END
WHERE ds = $1 AND scope = $2 AND holder = $3
	AND (CASE WHEN ` + altNow + ` > rho_limit - ` + rhoNow + ` THEN 0 = 1 WHEN $9 > ` + rhoLeft + ` THEN 0 = 1 ELSE $7 <= ` + rhoLeft + ` - $9 END
		OR $6 <= eps_limit - ` + epsNow + ` AND ` + rhoNow + ` = 0 AND $7 = 0
		OR $6 = 0 AND $7 = 0 AND $9 = 0)
	AND ($8 <= delta_limit - ` + deltaNow + ` OR $8 = 0)`

// Within is the CHECK of both stores' tables, the last wall: an account is within a filter of its limit, or what it had
// spent when it was last above it.
const Within = `CHECK (eps >= 0 AND rho >= 0 AND (rho = 0 AND eps <= eps_limit OR alt <= rho_limit - rho OR eps <= eps_over AND rho <= rho_over)),
	CHECK (delta >= 0 AND (delta <= delta_limit OR delta <= delta_over))`
