package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// find returns the dataset that goes under an id now.
func (b *book) find(id string) (int64, bool) {
	ds, ok := b.ids[id]
	return ds, ok && b.sets[ds].id == id
}

// Holdings returns what the user holds in a dataset. It takes no disk and makes no garbage.
func (f *keeper) Holdings(user, dataset string) []Release {
	f.mu.RLock()
	defer f.mu.RUnlock()
	ds, ok := f.book.find(dataset)
	if !ok {
		return nil
	}
	list := f.book.held[holderKey{ds, f.book.sets[ds].holder(user)}]
	return list[:len(list):len(list)]
}

// Balance returns one user's account.
func (f *keeper) Balance(_ context.Context, user, dataset string) (Balance, error) {
	now := f.tick()
	f.mu.RLock()
	defer f.mu.RUnlock()
	ds, ok := f.book.find(dataset)
	if !ok {
		return Balance{}, fmt.Errorf("ledger: no dataset %s", dataset)
	}
	account := f.book.sets[ds].holder(user)
	if _, ok := f.book.sets[ds].budget(account); !ok {
		return Balance{}, fmt.Errorf("ledger: no budget in dataset %s", dataset)
	}
	return f.book.balance(ds, account, now), nil
}

func (b *book) balance(ds int64, user string, now int64) Balance {
	set := b.sets[ds]
	terms, _ := set.budget(user)
	life := b.account(store.AccountKey{DS: ds, Scope: store.ScopeLife, Holder: user}, now)
	out := Balance{User: AccountName(user), Group: isGroup(user), Members: b.members(holderKey{ds, user}), Dataset: set.id, LifeSpent: set.shown(life.Filter), LifeLimit: life.Limit}
	out.Spent, out.Limit = out.LifeSpent, out.LifeLimit
	if terms.Refresh > 0 {
		window := b.account(store.AccountKey{DS: ds, Scope: store.ScopeWindow, Holder: user}, now)
		out.Spent, out.Limit, out.WindowEnds = set.shown(window.Filter), window.Limit, time.Unix(0, window.Ends).UTC()
	}
	return out
}

// account is an account as it stands at now.
func (b *book) account(key store.AccountKey, now int64) store.Account {
	a, ok := b.accounts[key]
	if !ok {
		a = b.opening(key, now)
	}
	return a.Rolled(now, b.ends(key, now))
}

// shown is what was spent, without the unit that the dataset's accountant does not count in.
func (d *dataset) shown(f accounting.Filter) privacy.Cost {
	c := f.Shown()
	epsilon, rho := d.terms.Accountant.Takes()
	if !rho {
		c.Rho = privacy.Rho{}
	}
	if !epsilon {
		c.Epsilon = privacy.Epsilon{}
	}
	return c
}

// Balances returns the accounts of all users who are named in the terms or have been charged, by name.
func (f *keeper) Balances(_ context.Context, dataset string) ([]Balance, error) {
	now := f.tick()
	f.mu.RLock()
	defer f.mu.RUnlock()
	ds, ok := f.book.find(dataset)
	if !ok {
		return nil, fmt.Errorf("ledger: no dataset %s", dataset)
	}
	var users []string
	for user := range f.book.sets[ds].terms.Budgets {
		if user != "*" {
			users = append(users, user)
		}
	}
	for key := range f.book.accounts {
		if key.DS == ds && key.Scope == store.ScopeLife {
			users = append(users, key.Holder)
		}
	}
	slices.SortFunc(users, byName)
	var out []Balance
	for _, user := range slices.Compact(users) {
		out = append(out, f.book.balance(ds, user, now))
	}
	return out, nil
}

// Cap returns the dataset's account.
func (f *keeper) Cap(_ context.Context, dataset string) (spent, limit privacy.Cost, err error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	ds, ok := f.book.find(dataset)
	if !ok {
		return spent, limit, fmt.Errorf("ledger: no dataset %s", dataset)
	}
	a := f.book.accounts[store.AccountKey{DS: ds, Scope: store.ScopeCap, Holder: ""}]
	return f.book.sets[ds].shown(a.Filter), a.Limit, nil
}

// Charges returns the latest charges, as they were priced when they were made.
func (f *keeper) Charges(ctx context.Context, user, dataset string, limit int) ([]Charge, error) {
	f.mu.RLock()
	ds, ok := f.book.find(dataset)
	upTo := f.book.links.Head(ds).Seq
	if ok && user != "" {
		user = f.book.sets[ds].holder(user)
	}
	f.mu.RUnlock()
	if !ok {
		return nil, fmt.Errorf("ledger: no dataset %s", dataset)
	}
	return reads(f, func(s store.Store) (out []Charge, err error) {
		err = s.Charges(ds, user, upTo, int64(max(0, limit)), func(r chain.Row) error {
			c, err := decodeCharge(r.Body)
			if err != nil {
				return fmt.Errorf("%w: row %d: %w", ErrCorrupt, r.Seq, err)
			}
			by := c.by
			if by == "" {
				by = r.Holder
			}
			pool := privacy.Cost{}
			if c.capped {
				pool = c.pool
			}
			out = append(out, Charge{Seq: r.Seq, At: time.Unix(0, r.At).UTC(), User: by, Account: r.Holder, Dataset: dataset, Kind: c.kind, Name: c.name, Cost: c.cost,
				Pool: pool, Policy: c.policy, Statement: c.statement})
			return ctx.Err()
		})
		return out, err
	})
}
