// Package store is what lies between a ledger and where its rows lie: the interface of a store, the accounts as stores
// keep them, and the disk. Package sqlite keeps one file, package postgres a database that proxies share; the ledger's
// keeper knows both by this interface.
//
// A charge of Alice's is one batch: Begin, which has her dataset's chain kept for this process alone, and for her a
// Savepoint; Charge moves her window, her life and the dataset's cap by one conditional update each (ChargeUpdate),
// whose condition is that of accounting.Filter; Insert writes the row of the chain; Keep, and for all of the batch one
// Commit, durable when it returns. Where an account does not hold the cost the job is undone, and the others of the
// batch go on.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
)

// Errors of stores; a ledger's own are beside them in package ledger.
var (
	// ErrUnavailable: the disk failed. ErrFull says in addition that it has no space.
	ErrUnavailable = errors.New("the ledger is not available")
	ErrFull        = errors.New("the ledger's disk is full")
	// ErrLocked: another process has the ledger open.
	ErrLocked = errors.New("the ledger is open in another process")
	// ErrCorrupt: what lies there is not what was written.
	ErrCorrupt = errors.New("the ledger is damaged")
	// ErrServer: the PostgreSQL server is not one that a ledger can be entrusted to.
	ErrServer = errors.New("the server cannot hold a ledger")
	// ErrPresumed: something was otherwise than a batch has presumed. Nothing is done.
	ErrPresumed = errors.New("otherwise than presumed")
	// ErrMoved: a chain ends elsewhere than a batch has presumed, or somebody else is about to write it. Nothing is
	// done.
	ErrMoved = errors.New("another process has gone on")
)

// ErrForm: what lies there is whole, and not in a form that this program reads. It is an ErrCorrupt to those who ask no
// more.
var ErrForm = errors.New("the ledger was written by another version of dpproxy")

// otherForm is an ErrForm.
type otherForm struct{ what string }

// OtherForm is the error of a ledger of which something is in a form that this program does not read.
func OtherForm(format string, args ...any) error { return otherForm{fmt.Sprintf(format, args...)} }

func (o otherForm) Error() string {
	return ErrForm.Error() + ": " + o.what + ", and this one does not read it. Nothing is damaged or changed. Go on with the version that wrote it; " +
		"or begin a new ledger, which knows of nothing that was spent: lower the policy's cap and budgets by what that version's dpproxy budget shows"
}

func (o otherForm) Is(target error) bool { return target == ErrForm || target == ErrCorrupt }

// Site is where a ledger lies: an SQLite file, or a PostgreSQL database that many proxies share.
type Site interface {
	// Locks are the files to lock so that nobody else writes there.
	Locks() []string
	// Witness is where the ledger's witness is by default.
	Witness() string
	// Open connects. After a fault of the disk, opening for writing makes sure that what will be read is on the disk.
	Open(ctx context.Context, writes bool) (Store, error)
	// Shared reports whether other processes may write there too; its stores are Shared then.
	Shared() bool
	// Clock is the ledger's own time.
	Clock() time.Time
	// Probe reports whether the site takes writes of so many bytes; Explain adds to a fault's error what it has lost.
	Probe(room int) error
	Explain(err error) error
}

// Store is one connection to where a ledger's rows lie. It belongs to one goroutine at a time. After an error it is
// closed and opened anew.
type Store interface {
	// Empty reports whether there is no ledger yet, and checks that it is one of a known version otherwise.
	Empty() (bool, error)
	// Create makes a ledger of its first row.
	Create(first chain.Row) error
	// Settle makes what was read, at the opening or since, durable, as far as the site needs it.
	Settle() error

	// Begin opens the transaction of a batch: until its end nobody else writes the chains that it says. known is where
	// the chains end as far as they were read.
	Begin(known []chain.Head, want Wanted) (Begun, error)
	// Savepoint begins one job within it, Keep ends the job, Undo takes back what it wrote and ends it.
	Savepoint() error
	Keep() error
	Undo() error
	// Commit makes the batch durable, and with it all that it has read; the chains of which it has added rows now end
	// there. early has others begin, and read its rows, before it is durable.
	Commit(moved []chain.Head, early bool) error
	Rollback() error
	// Tidy is done after a commit, Finish before the last Close.
	Tidy() error
	Finish() error

	// Insert writes the next row of the chain.
	Insert(r chain.Row) error
	// Charge moves all of the accounts if the cost fits each, and otherwise says which one refused, by its place in
	// moves; the job is then to be undone. refused is −1 when all have moved.
	Charge(now int64, moves []Move) (refused int, err error)
	OpenAccount(key AccountKey, a Account) error
	ClearAccounts() error
	// KeepRelease stores a drawn release; Charge is unique among them, and so is Key among those not withdrawn.
	KeepRelease(r Release) error
	WithdrawRelease(id int64) error

	// Snapshot has what follows read from one state, until Rollback or Close.
	Snapshot() error
	// Sound has the database look itself over.
	Sound() error
	// Rows walks the rows of all chains, in the order of their numbers.
	Rows(ctx context.Context, do func(chain.Row) error) error
	Accounts() (map[AccountKey]Account, error)
	Releases(do func(Release) error) error // what it hands out may be kept
	// Body is that of one row of the chain, Noisy the stored form of one release.
	Body(seq int64) ([]byte, error)
	Noisy(id int64) ([]byte, error)
	// Charges walks the charge rows of a user (empty means of all) in a dataset up to a row, newest first.
	Charges(ds int64, user string, upTo, limit int64, do func(chain.Row) error) error

	Close() error
}

// Wanted are the chains that a batch would write.
type Wanted struct {
	Chains []int64 // the one that waits longest first; none means all that there are
	Wait   bool    // for the first one, also where others are free; where none is, it is waited for anyway
	Look   bool    // at all chains, since somebody follows; else news may be of these alone, and of chain 0
}

// Begun is a batch that has begun.
type Begun struct {
	Chains []int64 // which nobody else writes until its end; nil means all that there are
	News   *News   // what others have written, or what is no longer there; nil means nothing
	First  int64   // the number of its first row; 0 means they go on from the last one
	// Numbers is how many it has, where First is one.
	Numbers int64
}

// Block is how many numbers a batch has, where others write at the same time.
const Block = 1 << 16

// News are what others have written. Of each chain that does not end as it was known to, Rows begin with the row that
// it was known to end with.
type News struct {
	Heads []chain.Head // of all chains, as they are at the end of Rows
	Rows  []chain.Row  // by number
	Part  bool         // of the chains alone that a batch asks for, which are all there, and of chain 0, which has not moved
}

// Move is what a charge does to one account.
type Move struct {
	Key    AccountKey
	Fresh  *Account // how the account begins, where the chain has not heard of it
	Charge accounting.Charge
	Ends   int64 // of the window that holds the charge; 0 means for life
}

// Key names what a process claims, and a release on disk: a hash.
type Key [32]byte

// Shared is a store that other processes write too.
type Shared interface {
	Store
	// Ends is where the chains end now, of which their times are not set. News are what others have written, nil:
	// nothing; they, and all that was read before, are durable then. What Ends and Begin tell of may not be yet.
	Ends() ([]chain.Head, error)
	News(known []chain.Head) (*News, error)
	// Wrote reports whether the batch of a name is durable, which is certain while another batch holds all chains.
	Wrote(request [32]byte) (bool, error)
	// Claim makes a key this process's own, unless another one that lives has it: then fence is 0. A claim that was
	// lost to another process has another fence for ever. Holds reports whether a claim is still this process's, Yield
	// gives it up.
	Claim(key Key) (fence int64, err error)
	// BeginPresuming begins a batch as Begin does and asks nothing: it presumes, besides what Presume does, that chain
	// 0 and the chains that it writes end as they are known to, and that nobody waits for them. Where that is not so
	// its end is ErrMoved, and nothing is done. Not ok: there was no batch within that time, or it has left no numbers.
	BeginPresuming(all chain.Head, chains []chain.Head, within time.Duration) (b Begun, ok bool)
	// Presume has the batch that has begun take it for granted that what Charge, Claim and Holds ask is so. Where it is
	// not, the batch's end, Commit or Rollback, is ErrPresumed, and nothing is done.
	Presume()
	Holds(key Key, fence int64) (bool, error)
	Yield(key Key, fence int64) error
	// Others is how many other processes have the ledger open for writing.
	Others() (int, error)
}

// UnknownCommit is the error of a commit whose outcome nobody has reported.
type UnknownCommit struct {
	Request [32]byte // the batch's name
	Cause   error
}

func (u UnknownCommit) Error() string {
	return "whether the commit took place is not known: " + u.Cause.Error()
}

func (u UnknownCommit) Unwrap() error { return u.Cause }

// Release is a stored release.
type Release struct {
	ID, Charge int64
	Withdrawn  bool
	Key, Noisy []byte
}

// Copy copies all that one store holds into another, whose transaction has begun, and returns its chains.
func Copy(ctx context.Context, from, to Store) (links chain.Links, err error) {
	err = from.Rows(ctx, func(r chain.Row) error {
		r.Chain = links.Of(r)
		return errors.Join(links.Take(r), to.Insert(r))
	})
	if err != nil {
		return links, err
	}
	accounts, err := from.Accounts()
	if err != nil {
		return links, err
	}
	for key, a := range accounts {
		if err := to.OpenAccount(key, a); err != nil {
			return links, err
		}
	}
	return links, from.Releases(to.KeepRelease)
}
