package ledger

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

const (
	accountColumns = "ends, eps, eps_limit, eps_over, rho, rho_limit, rho_over, delta, delta_limit, delta_over, alt"

	sqlOpenAccount = "INSERT OR IGNORE INTO account (ds, scope, holder, " + accountColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

	// One conditional update. ?1 to ?3 name the account, ?4 is the ledger's time, ?5 the end of the window that holds it,
	// ?6 to ?8 the cost, ?9 its price under zCDP. A window that is over begins again in the same statement.
	sqlCharge = `
UPDATE account SET
	eps = iif(ends <> 0 AND ends <= ?4, 0, eps) + ?6, eps_over = iif(ends <> 0 AND ends <= ?4, 0, eps_over),
	rho = iif(ends <> 0 AND ends <= ?4, 0, rho) + ?7, rho_over = iif(ends <> 0 AND ends <= ?4, 0, rho_over),
	delta = iif(ends <> 0 AND ends <= ?4, 0, delta) + ?8, delta_over = iif(ends <> 0 AND ends <= ?4, 0, delta_over),
	alt = iif(ends <> 0 AND ends <= ?4, ?9, iif(alt > 9223372036854775807 - ?9, 9223372036854775807, alt + ?9)),
	ends = iif(ends <> 0 AND ends <= ?4, ?5, ends)
WHERE ds = ?1 AND scope = ?2 AND holder = ?3
	AND (?6 = 0 OR ?6 <= eps_limit - iif(ends <> 0 AND ends <= ?4, 0, eps))
	AND (?7 = 0 OR ?7 <= rho_limit - iif(ends <> 0 AND ends <= ?4, 0, rho))
	AND (?8 = 0 OR ?8 <= delta_limit - iif(ends <> 0 AND ends <= ?4, 0, delta))`
)

func (a account) args(key accountKey) []any {
	return []any{key.ds, key.scope, key.holder, a.ends, a.spent.eps, a.limit.eps, a.over.eps, a.spent.rho, a.limit.rho, a.over.rho,
		a.spent.delta, a.limit.delta, a.over.delta, a.alt}
}

// openAccount makes an account unless it is there.
func (s *store) openAccount(key accountKey, a account) error {
	return s.run(sqlOpenAccount, nil, a.args(key)...)
}

// charge moves one account if the cost fits, and tells whether it did.
func (s *store) charge(key accountKey, cost amounts, alt, now, ends int64) (bool, error) {
	if err := s.run(sqlCharge, nil, key.ds, key.scope, key.holder, now, ends, cost.eps, cost.rho, cost.delta, alt); err != nil {
		return false, err
	}
	return s.conn.Changes() == 1, nil
}

// accounts reads the whole table.
func (s *store) accounts() (map[accountKey]account, error) {
	out := map[accountKey]account{}
	err := s.run("SELECT ds, scope, holder, "+accountColumns+" FROM account", func(st *sqlite3.Stmt) error {
		key := accountKey{st.ColumnInt64(0), st.ColumnInt64(1), st.ColumnText(2)}
		a := account{ends: st.ColumnInt64(3), alt: st.ColumnInt64(13)}
		a.spent.eps, a.limit.eps, a.over.eps = st.ColumnInt64(4), st.ColumnInt64(5), st.ColumnInt64(6)
		a.spent.rho, a.limit.rho, a.over.rho = st.ColumnInt64(7), st.ColumnInt64(8), st.ColumnInt64(9)
		a.spent.delta, a.limit.delta, a.over.delta = st.ColumnInt64(10), st.ColumnInt64(11), st.ColumnInt64(12)
		out[key] = a
		return nil
	})
	return out, err
}

// rewriteAccounts makes the table equal to what the chain says, after rows that touch many accounts.
func (s *store) rewriteAccounts(accounts map[accountKey]account) error {
	if err := s.run("DELETE FROM account", nil); err != nil {
		return err
	}
	for key, a := range accounts {
		if err := s.openAccount(key, a); err != nil {
			return err
		}
	}
	return nil
}

// compareAccounts holds the table against the accounts recomputed from the chain.
func (s *store) compareAccounts(b *book) error {
	stored, err := s.accounts()
	if err != nil {
		return err
	}
	var faults []error
	for key, a := range b.accounts {
		if stored[key] != a {
			faults = append(faults, fmt.Errorf("%w: an account of dataset %q differs from the chain", ErrCorrupt, b.sets[key.ds].id))
		}
		delete(stored, key)
	}
	if len(stored) != 0 {
		faults = append(faults, fmt.Errorf("%w: %d accounts that the chain does not know", ErrCorrupt, len(stored)))
	}
	return errors.Join(faults...)
}
