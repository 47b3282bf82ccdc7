package sqlite

import (
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/dpproxy/dpproxy/ledger/store"
)

const sqlOpenAccount = "INSERT OR IGNORE INTO account (ds, scope, holder, " + store.AccountColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

var sqlCharge = "UPDATE account" + strings.ReplaceAll(store.ChargeUpdate, "$", "?")

// OpenAccount makes an account unless it is there.
func (s *Store) OpenAccount(key store.AccountKey, a store.Account) error {
	return s.run(sqlOpenAccount, nil, a.Args(key)...)
}

// Charge moves the accounts of one job.
func (s *Store) Charge(now int64, moves []store.Move) (int, error) {
	for i, m := range moves {
		if m.Fresh != nil {
			if err := s.OpenAccount(m.Key, *m.Fresh); err != nil {
				return i, err
			}
		}
		if err := s.run(sqlCharge, nil, m.Args(now)...); err != nil {
			return i, err
		}
		if s.Conn.Changes() != 1 {
			return i, nil
		}
	}
	return -1, nil
}

// Accounts reads the whole table.
func (s *Store) Accounts() (map[store.AccountKey]store.Account, error) {
	out := map[store.AccountKey]store.Account{}
	err := s.run("SELECT ds, scope, holder, "+store.AccountColumns+" FROM account", func(st *sqlite3.Stmt) error {
		key := store.AccountKey{DS: st.ColumnInt64(0), Scope: st.ColumnInt64(1), Holder: st.ColumnText(2)}
		var n store.Numbers
		for i := range n {
			n[i] = st.ColumnInt64(3 + i)
		}
		out[key] = n.Account()
		return nil
	})
	return out, err
}

func (s *Store) ClearAccounts() error { return s.run("DELETE FROM account", nil) }
