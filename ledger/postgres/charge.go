package postgres

import (
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/ledger/store"
)

// Charge moves all accounts in one turn. Those after one that refuses may have moved too: the job is undone then.
func (s *Store) Charge(now int64, moves []store.Move) (int, error) {
	if s.now = now; s.presumes {
		s.held.moves = append(s.held.moves, moves...)
		return -1, nil
	}
	refused := -1
	for i, m := range moves {
		if m.Fresh != nil {
			s.later(pgOpenAccount, nil, m.Fresh.Args(m.Key)...)
		}
		s.later(pgCharge, func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() != 1 && refused < 0 {
				refused = i
			}
			return nil
		}, m.Args(s.now)...)
	}
	return refused, s.flush()
}

// merged are the moves of several charges at one time, one for each account. Costs are at least zero: so an account
// holds the sum where it holds one after the other, and the other way round.
func merged(moves []store.Move) []store.Move {
	var list []store.Move
	at := map[store.AccountKey]int{}
	for _, m := range moves {
		i, ok := at[m.Key]
		if !ok {
			at[m.Key] = len(list)
			list = append(list, m)
			continue
		}
		list[i].Charge = list[i].Charge.Plus(m.Charge)
	}
	return list
}

// moveAll moves accounts that are presumed to hold what they are charged, each once.
func (s *Store) moveAll(moves []store.Move) {
	if len(moves) == 0 {
		return
	}
	numbers := make([][]int64, 9)
	holders := make([]string, len(moves))
	for i, m := range moves {
		if m.Fresh != nil {
			s.later(pgOpenAccount, nil, m.Fresh.Args(m.Key)...)
		}
		for at, arg := range m.Args(s.now) {
			if n, ok := arg.(int64); ok {
				numbers[at] = append(numbers[at], n)
			} else {
				holders[i] = arg.(string)
			}
		}
	}
	args := make([]any, 9)
	for at := range args {
		args[at] = numbers[at]
	}
	args[2] = holders
	s.later(pgChargeSure, nil, args...)
}

func (s *Store) OpenAccount(key store.AccountKey, a store.Account) error {
	s.later(pgOpenAccount, nil, a.Args(key)...)
	return nil
}

func (s *Store) ClearAccounts() error {
	s.later("DELETE FROM dpproxy_ledger.account", nil)
	return nil
}
