// Package ledger remembers: who may spend how much of what, what was charged, and every release that was drawn. It is
// the only durable, changing state of dpproxy. Each charge is one conditional update, durable before Charge returns,
// and one link of a hash chain; nothing is ever given back.
package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
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
)

// Digest names a measure; it is planner.Digest.
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
}

// Request charges a user for all items of a statement at once, or for none.
type Request struct {
	User, Dataset string
	Statement     Digest
	Items         []Item
	PolicyDigest  Digest
}

// Outcome says, per item, what happened.
type Outcome struct {
	Receipt *Receipt     // set: the caller must execute, draw and Save; nil: the release is already saved
	ID      int64        // of the saved release when Receipt is nil
	Charged privacy.Cost // what this user paid now
}

// Release is a saved release.
type Release struct {
	ID      int64
	Item    Item
	At      time.Time
	Revoked bool
	Noisy   privacy.Released[mechanisms.Noisy]
}

// Balance is a user's account in one dataset.
type Balance struct {
	User, Dataset string
	Spent, Limit  privacy.Cost // of the current window, or of life where there is none
	WindowEnds    time.Time    // zero: no window
	LifeSpent     privacy.Cost
	LifeLimit     privacy.Cost
}

// Charge is one line of the account.
type Charge struct {
	Seq           int64
	At            time.Time
	User, Dataset string
	Kind, Name    string
	Cost          privacy.Cost
}

// Ledger is the account book. All methods are safe for concurrent use.
type Ledger interface {
	// Adopt registers the datasets, caps and budgets of a policy before it serves, refuses what privacy rule 8 forbids.
	Adopt(ctx context.Context, p Terms) error
	// Charge pays for the items, durably, in one conditional update each for user, lifetime and cap. Of two requests for
	// one item at a time, one gets the Receipt and the other waits until the release is saved or given up.
	Charge(ctx context.Context, r Request) ([]Outcome, error)
	// Save stores the drawn release of a spent receipt, durably, and returns its id. Sending follows saving.
	Save(ctx context.Context, r *Receipt, noisy privacy.Released[mechanisms.Noisy]) (int64, error)
	// Abandon gives a receipt up: the charge stays, the item is drawn anew on a new charge.
	Abandon(r *Receipt)
	// Load returns a saved release that the user has paid for.
	Load(ctx context.Context, user string, id int64) (Release, error)
	// Holdings returns the live releases that the user has paid for in a dataset, from memory.
	Holdings(user, dataset string) []Release
	// Balance returns a user's account; Balances those of all users (for admins); Cap the dataset's.
	Balance(ctx context.Context, user, dataset string) (Balance, error)
	Balances(ctx context.Context, dataset string) ([]Balance, error)
	Cap(ctx context.Context, dataset string) (spent, limit privacy.Cost, err error)
	// Charges returns the latest charges of a user (empty: of all users) in a dataset, newest first.
	Charges(ctx context.Context, user, dataset string, limit int) ([]Charge, error)
	// Verify walks the hash chain and recomputes every account.
	Verify(ctx context.Context) (rows int64, err error)
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
	Unit            string   // canonical text of the privacy unit
	Relations       []string // base relations, canonical: "schema.name" or the file's path
	Cap             privacy.Cost
	Budgets         map[string]BudgetTerms // by user; "*" for each other
}

// BudgetTerms are one user's terms.
type BudgetTerms struct {
	Limit    privacy.Cost
	Refresh  time.Duration // 0: Limit is for life
	Lifetime privacy.Cost  // with Refresh
}
