package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
)

// site is where a ledger lies: an SQLite file, or a PostgreSQL database that many proxies share.
type site interface {
	// locks are the files to lock so that nobody else writes there.
	locks() []string
	// witness is where the ledger's witness is by default.
	witness() string
	// open connects. After a fault of the disk, opening for writing makes sure that what will be read is on the disk.
	open(ctx context.Context, writes bool) (store, error)
	// shared tells whether other processes may write there too; its stores are sharedStores then.
	shared() bool
	// clock is the ledger's own time.
	clock() time.Time
	// probe tells whether the site takes writes again after a fault; explain adds to a fault's error what it has lost.
	probe() error
	explain(err error) error
	// backup writes a consistent and compact copy, an SQLite file, to path.
	backup(ctx context.Context, path string) error
}

// store is one connection to where a ledger's rows lie. It belongs to one goroutine at a time. After an error it is closed
// and opened anew.
type store interface {
	// empty tells whether there is no ledger yet, and checks that it is one of a known version otherwise.
	empty() (bool, error)
	// create makes a ledger of its first row.
	create(first chain.Row) error
	// settle makes what was read at the opening durable, as far as the site needs it.
	settle() error

	// begin opens the transaction of a batch: until its end nobody else writes. Where the chain no longer ends with last,
	// because others have written since, news are its rows from last on; they are nil otherwise.
	begin(last chain.Row) (news []chain.Row, err error)
	// savepoint begins one job within it, keep ends the job, undo takes back what it wrote and ends it.
	savepoint() error
	keep() error
	undo() error
	// commit makes the batch durable, with the rows that it has added in the end.
	commit(rows []chain.Row) error
	rollback() error
	// tidy is done after a commit, finish before the last close.
	tidy() error
	finish() error

	// insert writes the next row of the chain.
	insert(r chain.Row) error
	// charge moves all of the accounts if the cost fits each, and otherwise says which one refused, by its place in moves;
	// the job is then to be undone. refused is −1 when all have moved.
	charge(now int64, moves []move) (refused int, err error)
	openAccount(key accountKey, a account) error
	clearAccounts() error
	// keepRelease stores a drawn release; charge is unique among them, and so is key among those not withdrawn.
	keepRelease(r keptRelease) error
	withdrawRelease(id int64) error

	// snapshot has what follows read from one state, until rollback or close.
	snapshot() error
	// sound has the database look itself over.
	sound() error
	// rows walks the chain after a number, in order.
	rows(ctx context.Context, after int64, do func(chain.Row) error) error
	accounts() (map[accountKey]account, error)
	releases(do func(keptRelease) error) error
	// body is that of one row of the chain, noisy the stored form of one release.
	body(seq int64) ([]byte, error)
	noisy(id int64) ([]byte, error)
	// charges walks the charge rows of a user (empty: of all) in a dataset up to a row, newest first.
	charges(ds int64, user string, upTo, limit int64, do func(chain.Row) error) error

	close() error
}

// move is what a charge does to one account.
type move struct {
	key    accountKey
	fresh  *account // how the account begins, where the chain has not heard of it
	charge accounting.Charge
	ends   int64 // of the window that holds the charge; 0: for life
}

// sharedStore is a store that other processes write too.
type sharedStore interface {
	store
	// end is the chain's last row as it is now, of which only number and hash are set.
	end() (chain.Row, error)
	// wrote tells whether the batch of a name is durable, which is certain while the transaction of another batch is open.
	wrote(request Digest) (bool, error)
	// claim makes a key this process's own, unless another one that lives has it: then fence is 0. A claim that was lost to
	// another process has another fence for ever. holds tells whether a claim is still this process's, yield gives it up.
	claim(key flightKey) (fence int64, err error)
	// presume has the batch that has begun take it for granted that what charge, claim and holds ask is so. Where it is not,
	// the batch's end, commit or rollback, is errPresumed, and nothing is done.
	presume()
	holds(key flightKey, fence int64) (bool, error)
	yield(key flightKey, fence int64) error
	// others is how many other processes have the ledger open for writing.
	others() (int, error)
}

// keptRelease is a stored release.
type keptRelease struct {
	id, charge int64
	withdrawn  bool
	key, noisy []byte
}

// rewriteAccounts makes the table equal to what the chain says, after rows that touch many accounts.
func rewriteAccounts(s store, accounts map[accountKey]account) error {
	if err := s.clearAccounts(); err != nil {
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
func compareAccounts(s store, b *book) error {
	stored, err := s.accounts()
	if err != nil {
		return openFailed(err)
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
