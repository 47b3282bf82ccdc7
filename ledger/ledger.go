// Package ledger remembers: who may spend how much of what, what was charged, and every release that was drawn. It is
// the only durable, changing state of dpproxy. Each charge is one conditional update, durable before Charge returns,
// and one link of a hash chain; nothing is ever given back.
//
// What enters are terms, requests and drawn releases; what leaves are receipts, saved releases and balances. One
// goroutine writes; it commits all waiting work at once, so that many charges share one flush of the disk. The chain
// is the truth: the accounts, which the charge updates under a CHECK, and everything held in memory are functions of
// it, compared at each opening. A fault of the disk closes the ledger for writing until it is re-opened and compared
// again. A witness file beside it (or better, on another disk) shows when an older copy was put back.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// The errors that callers tell apart. All others mean that the ledger cannot be trusted now: fail closed (DP003).
var (
	// ErrExhausted: the user's budget (window or lifetime) does not hold the cost.
	ErrExhausted = errors.New("budget spent")
	// ErrCap: the dataset's cap does not hold the cost. An analyst learns this much and no more.
	ErrCap = errors.New("the dataset's budget is spent")
	// ErrBound: a base relation or identity is bound otherwise (privacy rule 8).
	ErrBound = errors.New("bound to another dataset")
	// ErrPolicy: the request was planned under another policy than the one in force.
	ErrPolicy = errors.New("the policy in force is another one")
	// ErrUnavailable: the ledger's disk failed; nothing is charged or answered until it is re-opened, which each later
	// call tries. ErrFull says in addition that it has no space. These and the next ones are the stores' own.
	ErrUnavailable = store.ErrUnavailable
	ErrFull        = store.ErrFull
	// ErrLocked: another process has the ledger open.
	ErrLocked = store.ErrLocked
	// ErrCorrupt: the chain, an account or a release is not what was written.
	ErrCorrupt = store.ErrCorrupt
	// ErrForm: the ledger is whole, and of a form that this version does not read. It is an ErrCorrupt too.
	ErrForm = store.ErrForm
	// ErrServer: the PostgreSQL server is not one that a ledger can be entrusted to.
	ErrServer = store.ErrServer
	// ErrRollback: the witness has seen more than the ledger holds. ErrWitness: the witness is missing or unreadable.
	ErrRollback = errors.New("the ledger is older than its witness")
	ErrWitness  = errors.New("the ledger's witness cannot be read")
	// ErrClosed: the ledger was closed.
	ErrClosed = errors.New("the ledger is closed")
	// ErrRefined: the release was refined in the meantime, or is gone, or what was to be drawn was, at another level.
	// Nothing was charged; planning anew finds out.
	ErrRefined = errors.New("the release was refined already")
	// ErrElsewhere: the online release lives in another process, or was taken over by one.
	ErrElsewhere = errors.New("the release is open in another proxy")
	// ErrNotHeld: there is no such live release that the user has paid for.
	ErrNotHeld = errors.New("no such release")
)

// Digest names a measure; it is plans.Digest.
type Digest = [32]byte

// Item is one measure to be paid for.
type Item struct {
	Digest    Digest
	Kind      string // "count", "histogram", "range"
	Name      string
	Table     string // as the analyst sees it
	Shared    bool   // one draw for the dataset; each user pays once, the cap once
	Cost      privacy.Cost
	Spec      mechanisms.Spec
	Described []byte        // the planner's description of the measure
	Refresh   time.Duration // 0: the release never goes stale
	AsOf      int64         // nanoseconds since 1970: of the snapshot whose rows are drawn from; 0 means they are read live
	Ladder    Ladder
	Levels    []mechanisms.Level // of a draw for several levels of trust, the finest first; Cost and Spec are one of them
}

// Request charges a user, or the group that she is in, for all items of a statement at once, or for none.
type Request struct {
	User, Dataset string
	Statement     Digest
	Items         []Item
	PolicyDigest  Digest
	Since         int64 // releases of this number and later were not there when it was planned; 0 means that is not known
}

// Outcome says, per item, what happened.
type Outcome struct {
	Receipt *Receipt     // set: the caller must execute, draw and Save; nil means the release is already saved
	ID      int64        // of the saved release when Receipt is nil
	Charged privacy.Cost // what this user paid now
}

// Release is a saved release.
type Release struct {
	ID      int64
	Item    Item
	At      time.Time
	Revoked bool
	Refined bool // another release of the user's has refined it
	Noisy   privacy.Released[mechanisms.Noisy]
	Steps   [][]byte // of an online release: what happened since; only Load sets it
}

// Balance is an account in one dataset: a user's, or that of the group that she is in.
type Balance struct {
	User, Dataset string // User: the group's name, where it is one's
	Group         bool
	Members       []Share      // of a group: what its members have spent for life, by name
	Spent, Limit  privacy.Cost // of the current window, or of life where there is none
	WindowEnds    time.Time    // zero: no window
	LifeSpent     privacy.Cost
	LifeLimit     privacy.Cost
}

// Share is what one member of a group has spent, as it was priced when she did.
type Share struct {
	User  string
	Spent privacy.Cost
}

// Charge is one line of the account.
type Charge struct {
	Seq           int64
	At            time.Time
	User, Dataset string // User: who asked, also where the group that she was in has paid
	Account       string // whose account has paid: hers, or her group's (GroupAccount)
	Kind, Name    string
	Cost          privacy.Cost
	Pool          privacy.Cost // what the cap paid: nothing for what was drawn already
	Policy        Digest       // of the policy that it was charged under
	Statement     Digest       // for which it was charged
}

// Ledger is the account book. All methods are safe for concurrent use.
type Ledger interface {
	// Adopt registers the datasets, caps and budgets of a policy before it serves, refuses what privacy rule 8 forbids.
	// A ledger opened for reading alone registers nothing, and refuses the same.
	Adopt(ctx context.Context, p Terms) error
	// Charge pays for the items, durably, in one conditional update each for user, lifetime and cap. Of two requests
	// for one item at a time, one gets the Receipt and the other waits until the release is saved or given up.
	Charge(ctx context.Context, r Request) ([]Outcome, error)
	// Save stores what was drawn on a spent receipt, durably, and returns the id of the release that was paid for.
	// Sending follows saving. The first level of a ladder has its finest level with it, which stays sealed; several
	// levels are in the order of the item's.
	Save(ctx context.Context, r *Receipt, drawn mechanisms.Drawn) (int64, error)
	// Finest returns the finest level of the ladder of a release that the user has paid for.
	Finest(ctx context.Context, user string, id int64) (mechanisms.Finest, error)
	// Abandon gives a receipt up: the charge stays, the item is drawn anew on a new charge.
	Abandon(r *Receipt)
	// Extend adds a step to an online release of the user's, durably. Sending what it tells follows.
	Extend(ctx context.Context, user string, id int64, step []byte) error
	// Resume adds a step and returns a receipt on which the release's measure is run once more, for an online release
	// whose process was lost. Nothing can be saved on it.
	Resume(ctx context.Context, user string, id int64, step []byte) (*Receipt, error)
	// Ask returns a receipt on which one question of a run of alarms is run, by the digest of its measure. It is free.
	Ask(ctx context.Context, user string, id int64, question Digest) (*Receipt, error)
	// Grow begins the step of a continual release that the user has paid for up to so many cells, for which she pays
	// nothing more: the caller must execute, draw and Save. No receipt: it has grown so far already. Of two callers at
	// a time one gets the receipt and the other waits.
	Grow(ctx context.Context, user string, id int64, through int) (*Receipt, mechanisms.Step, error)
	// Grown tells to how many cells a continual release has grown.
	Grown(id int64) int
	// Leads tells, by ErrElsewhere, an online release that no longer lives in this process: what its instance here has
	// answered must not be sent then.
	Leads(ctx context.Context, id int64) error
	// Follow takes in what other proxies have written to a shared ledger until now; of a ledger of one process there is
	// nothing to take in.
	Follow(ctx context.Context) error
	// Shared reports whether other processes may write the ledger, so that there may be something to follow.
	Shared() bool
	// Sound tells, by ErrUnavailable or what else is wrong, that nothing can be charged now, after trying to mend it.
	Sound(ctx context.Context) error
	// Load returns a saved release that the user has paid for.
	Load(ctx context.Context, user string, id int64) (Release, error)
	// Revoke withdraws a saved release from everybody, for the operator. Nothing is given back.
	Revoke(ctx context.Context, id int64) error
	// Holdings returns the live releases that the user has paid for in a dataset, from memory, oldest first. The slice
	// is shared and must not be changed. Noisy is not set in it: Load has it.
	Holdings(user, dataset string) []Release
	// Balance returns a user's account; Balances those of all users (for admins); Cap the dataset's.
	Balance(ctx context.Context, user, dataset string) (Balance, error)
	Balances(ctx context.Context, dataset string) ([]Balance, error)
	Cap(ctx context.Context, dataset string) (spent, limit privacy.Cost, err error)
	// Charges returns the latest charges of a user (empty means of all users) in a dataset, newest first.
	Charges(ctx context.Context, user, dataset string, limit int) ([]Charge, error)
	// Verify walks the hash chain, recomputes every account and compares every saved release, as they are on disk.
	Verify(ctx context.Context) (rows int64, err error)
	// Backup writes a consistent copy to path, which must not exist, while the ledger goes on.
	Backup(ctx context.Context, path string) error
	// Policy returns the digest of the policy in force, and false before the first Adopt of the ledger's life.
	Policy() (Digest, bool)
	// Secret is a secret for a purpose, the same in all proxies that share the ledger and never sent.
	Secret(purpose string) Digest
	// Now is the ledger's own time, which never runs backwards.
	Now() time.Time
	Close() error
}

// Terms is what a policy grants, in the ledger's words.
type Terms struct {
	PolicyDigest Digest
	Datasets     []DatasetTerms
}

// DatasetTerms are the terms of one dataset.
type DatasetTerms struct {
	ID, RenamedFrom string
	Accountant      privacy.Accountant
	Neighbors       privacy.Neighbors
	Unit            string            // canonical text of the privacy unit
	Relations       []string          // base relations, canonical: "schema.name" or the file's path
	Paths           map[string]string // by base relation, how its rows name their unit; of one that is not here nobody says
	Cap             privacy.Cost
	Budgets         map[string]BudgetTerms // by user, by GroupAccount of a group; "*" for each other user or group
	Groups          map[string][]string    // members by name of the group: users with one account
}

// BudgetTerms are one user's terms.
type BudgetTerms struct {
	Limit    privacy.Cost
	Refresh  time.Duration // 0: Limit is for life
	Lifetime privacy.Cost  // with Refresh
}

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

// account returns an account as it is at now.
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
