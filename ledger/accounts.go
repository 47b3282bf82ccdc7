package ledger

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// windowEnd is the end of the tumbling window of that length that holds now.
func windowEnd(now int64, length time.Duration) int64 {
	n := int64(length)
	start := now - now%n
	if start > math.MaxInt64-n {
		return math.MaxInt64
	}
	return start + n
}

// repriced carries spending from old terms to new ones.
func repriced(c accounting.Charge, old, now DatasetTerms) accounting.Charge {
	if old.Neighbors == privacy.AddRemove && now.Neighbors == privacy.ReplaceOne {
		c = c.Doubled()
	}
	if old.Accountant != privacy.ZCDP && now.Accountant == privacy.ZCDP {
		c = c.Concentrated()
	}
	return c
}

// forfeited takes lost away from an account, or, with all, whatever is left.
func forfeited(a store.Account, lost privacy.Cost, all bool, t DatasetTerms) store.Account {
	lost = lostUnder(lost, t)
	if all {
		lost = a.Left()
	}
	return a.Forfeited(accounting.Price(lost))
}

// lostUnder prices what a rollback has lost for an account under terms t. Of the lost charges only the sums are known,
// so each account is taken to have paid all of them, under the terms that make them dearest. An account that has only
// ever been pure has paid no ρ.
func lostUnder(lost privacy.Cost, t DatasetTerms) privacy.Cost {
	if t.Accountant == privacy.Pure {
		lost.Rho = privacy.Rho{}
	}
	return repriced(accounting.Price(lost), DatasetTerms{Accountant: privacy.Pure, Neighbors: privacy.AddRemove}, t).Cost
}

// negative reports whether an amount is below zero in some unit.
func negative(c privacy.Cost) bool { return min(c.Epsilon.Micro(), c.Rho.Pico(), c.Delta.Atto()) < 0 }

// free reports whether a cost names neither ε nor ρ.
func free(c privacy.Cost) bool { return c.Epsilon.Micro() == 0 && c.Rho.Pico() == 0 }

// rewriteAccounts makes a store's table equal to what the chain says, after rows that touch many accounts.
func rewriteAccounts(s store.Store, accounts map[store.AccountKey]store.Account) error {
	if err := s.ClearAccounts(); err != nil {
		return err
	}
	for key, a := range accounts {
		if err := s.OpenAccount(key, a); err != nil {
			return err
		}
	}
	return nil
}

// compareAccounts holds the table against the accounts recomputed from the chain.
func compareAccounts(s store.Store, b *book) error {
	stored, err := s.Accounts()
	if err != nil {
		return openFailed(err)
	}
	var faults []error
	for key, a := range b.accounts {
		if stored[key] != a {
			faults = append(faults, fmt.Errorf("%w: an account of dataset %q differs from the chain", ErrCorrupt, b.sets[key.DS].id))
		}
		delete(stored, key)
	}
	if len(stored) != 0 {
		faults = append(faults, fmt.Errorf("%w: %d accounts that the chain does not know", ErrCorrupt, len(stored)))
	}
	return errors.Join(faults...)
}
