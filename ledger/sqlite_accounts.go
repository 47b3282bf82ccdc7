package ledger

import "github.com/ncruces/go-sqlite3"

const sqlOpenAccount = "INSERT OR IGNORE INTO account (ds, scope, holder, " + accountColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

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
		if err := s.run(sqlCharge, nil, m.args(now)...); err != nil {
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
		var n stored
		for i := range n {
			n[i] = st.ColumnInt64(3 + i)
		}
		out[key] = n.account()
		return nil
	})
	return out, err
}

func (s *sqliteStore) clearAccounts() error { return s.run("DELETE FROM account", nil) }
