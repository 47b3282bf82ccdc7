package ledger

import "github.com/ncruces/go-sqlite3"

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
func (s *sqliteStore) openAccount(key accountKey, a account) error {
	return s.run(sqlOpenAccount, nil, a.args(key)...)
}

// charge moves the accounts of one job.
func (s *sqliteStore) charge(now int64, moves []move) (int, error) {
	for i, m := range moves {
		if m.fresh != nil {
			if err := s.openAccount(m.key, *m.fresh); err != nil {
				return i, err
			}
		}
		if err := s.run(sqlCharge, nil, m.key.ds, m.key.scope, m.key.holder, now, m.ends, m.cost.eps, m.cost.rho, m.cost.delta, m.alt); err != nil {
			return i, err
		}
		if s.conn.Changes() != 1 {
			return i, nil
		}
	}
	return -1, nil
}

// accounts reads the whole table.
func (s *sqliteStore) accounts() (map[accountKey]account, error) {
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

func (s *sqliteStore) clearAccounts() error { return s.run("DELETE FROM account", nil) }
