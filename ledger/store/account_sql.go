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

// ChargeUpdate is Account.Rolled and then Account.Charged as one conditional update of both stores: what is set is
// Filter.Forfeit, and the last three lines are Filter.Holds, each unit's line its holds. TestUpdateIsTheFilter holds them
// together. $1 to $3 name the account, $4 is the ledger's time, $5 the end of the window that holds it, $6 to $8 the cost,
// $9 what it comes to under zCDP. A window that is over begins again in the same statement.
//
// Each parameter first stands beside a column, whence PostgreSQL takes its type.
const ChargeUpdate = ` SET
	eps = CASE WHEN ends <> 0 AND ends <= $4 THEN 0 ELSE eps END + $6, eps_over = CASE WHEN ends <> 0 AND ends <= $4 THEN 0 ELSE eps_over END,
	rho = CASE WHEN ends <> 0 AND ends <= $4 THEN 0 ELSE rho END + $7, rho_over = CASE WHEN ends <> 0 AND ends <= $4 THEN 0 ELSE rho_over END,
	delta = CASE WHEN ends <> 0 AND ends <= $4 THEN 0 ELSE delta END + $8, delta_over = CASE WHEN ends <> 0 AND ends <= $4 THEN 0 ELSE delta_over END,
	alt = CASE WHEN ends <> 0 AND ends <= $4 THEN $9 WHEN alt > 9223372036854775807 - $9 THEN 9223372036854775807 ELSE alt + $9 END,
	ends = CASE WHEN ends <> 0 AND ends <= $4 THEN $5 ELSE ends END
WHERE ds = $1 AND scope = $2 AND holder = $3
	AND ($6 <= eps_limit - CASE WHEN ends <> 0 AND ends <= $4 THEN 0 ELSE eps END OR $6 = 0)
	AND ($7 <= rho_limit - CASE WHEN ends <> 0 AND ends <= $4 THEN 0 ELSE rho END OR $7 = 0)
	AND ($8 <= delta_limit - CASE WHEN ends <> 0 AND ends <= $4 THEN 0 ELSE delta END OR $8 = 0)`
