package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dpproxy/dpproxy/internal/deadline"
	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/postgres"
	"github.com/dpproxy/dpproxy/ledger/sqlite"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// Options say how a ledger is opened. The zero value is the usual way.
type Options struct {
	Clock func() time.Time // nil: time.Now, and of PostgreSQL the server's time
	Log   *slog.Logger     // nil: nothing is logged
	// ReadOnly opens beside the process that writes, for Balances, Cap, Charges, Verify and Backup. It shows the state
	// at Open; whatever would write is refused.
	ReadOnly bool
	// Witness is the path of the witness file; empty means the ledger's path with "-witness" added. It is worth most on
	// another disk than the ledger's.
	Witness string
	// AcceptRollback opens a ledger that is older than its witness, or whose witness is lost. The charges that are
	// missing are not known, so every account of every dataset, also those not opened yet, forfeits what the witness
	// saw charged in all and the ledger does not hold; if there is no readable witness, all that is left. A row says
	// so.
	AcceptRollback bool
	// VouchForLedger opens a ledger whose witness is lost without forfeits: the operator vouches, in a row of the
	// chain, that no charge is missing. It does not help against a witness that says otherwise.
	VouchForLedger bool
	// CacheBytes bounds the saved releases kept decoded in memory; 0 means 256 MiB.
	CacheBytes int64

	// Disk is where the files are; nil means the operating system's.
	Disk store.Disk

	// DataRoles are the PostgreSQL roles under which the private database and the sandbox are asked. A ledger in
	// PostgreSQL that one of them can reach is refused.
	DataRoles []string

	oneChain bool // tests: a new ledger is made as programs before ADR 148 did

	site  store.Site    // tests: where the ledger lies, in place of what the URL says
	again time.Duration // tests: how long to wait after a fault; 0 means reopenNotSoon
}

// keeper is a Ledger on one site: it keeps the book, has the rows written, and the witness notified.
type keeper struct {
	site store.Site
	opts Options
	disk store.Disk
	log  *slog.Logger
	seen atomic.Int64 // the ledger's time never shown smaller than this

	mu    sync.RWMutex          // guards book, which the writer alone changes
	book  *book                 // what is durable, and so may be shown
	fault atomic.Pointer[error] // why the ledger is not available; nil means it is

	// the writer's own
	ahead     *book       // what it decides on: the book, and what other proxies have written since; the same one while that is nothing
	unshown   []chain.Row // by which it is ahead
	fileLocks []io.Closer
	store     store.Store
	witness   *witness
	retry     time.Time // not to be re-opened before
	written   time.Time // when the disks were last known to take writes
	waiting   []*job    // taken from the queue, the oldest first

	queue   chan *job
	closing chan struct{}
	stopped chan struct{}
	once    sync.Once

	sharing
	itemLocks lockTable
	cache     cache
	reading   deadline.Gate // of reader
	reader    store.Store
	frozen    atomic.Bool // a job was not done within patience, and the writer has not gone on since
}

// Open opens the ledger at url ("sqlite:path"), making it if there is none, and compares all of it: the chain, the
// accounts, the witness. It refuses a ledger that another process has open for writing.
func Open(ctx context.Context, url string, opts Options) (Ledger, error) {
	if opts.Disk == nil {
		opts.Disk = store.OSDisk{}
	}
	where, err := opts.site, error(nil)
	if where == nil {
		where, err = siteAt(url, opts)
	}
	if err != nil {
		return nil, err
	}
	f := &keeper{site: where, opts: opts, disk: opts.Disk, log: opts.Log,
		queue: make(chan *job, 1024), closing: make(chan struct{}), stopped: make(chan struct{}), reading: deadline.NewGate()}
	f.setBook(newBook())
	if f.opts.Clock == nil {
		f.opts.Clock = where.Clock
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if f.opts.Witness == "" {
		f.opts.Witness = where.Witness()
	}
	if f.opts.Witness == "" && !opts.ReadOnly {
		return nil, errors.New("a ledger in PostgreSQL needs a file for its witness")
	}
	if f.opts.CacheBytes == 0 {
		f.opts.CacheBytes = 256 << 20
	}
	if f.opts.again == 0 {
		f.opts.again = reopenNotSoon
	}
	f.cache.limit, f.itemLocks.held, f.sharing.leases, f.sharing.rivals = f.opts.CacheBytes, map[store.Key]*itemLock{}, map[int64]int64{}, map[int64]time.Time{}
	if opts.ReadOnly {
		return f.openReadOnly(ctx)
	}
	if err := f.lock(); err != nil {
		_ = f.unlockFiles()
		return nil, err
	}
	if err := f.open(ctx, mark{}); err != nil {
		_ = f.shut()
		_ = f.unlockFiles()
		return nil, err
	}
	go f.write()
	return f, nil
}

// lock keeps other processes off. The witness has a lock too, so that two copies of a ledger that name one witness
// cannot live at the same time. Processes that share a ledger and a directory each have a witness of their own.
func (f *keeper) lock() error {
	for _, name := range f.site.Locks() {
		if err := f.lockFile(name); err != nil {
			return err
		}
	}
	first := f.opts.Witness
	for n := 2; ; n++ {
		err := f.lockFile(f.opts.Witness + "-lock")
		if err == nil || !f.Shared() || !errors.Is(err, ErrLocked) || n > maxWitnesses {
			return err
		}
		f.opts.Witness = fmt.Sprintf("%s-%d", first, n)
	}
}

func (f *keeper) lockFile(name string) error {
	l, err := f.disk.Lock(name)
	if err != nil {
		return err
	}
	f.fileLocks = append(f.fileLocks, l)
	return nil
}

// maxWitnesses is how many processes may share a ledger and a directory.
const maxWitnesses = 64

// siteAt is the site that a URL names.
func siteAt(url string, opts Options) (store.Site, error) {
	if strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://") {
		return postgres.At(url, opts.DataRoles, opts.ReadOnly)
	}
	path, ok := strings.CutPrefix(url, "sqlite:")
	if !ok || path == "" {
		return nil, errors.New("url must be sqlite:path or postgres://…")
	}
	return sqlite.At(path, opts.Disk)
}

func (f *keeper) unlockFiles() (err error) {
	for _, l := range f.fileLocks {
		err = errors.Join(err, l.Close())
	}
	f.fileLocks = nil
	return err
}

func (f *keeper) openReadOnly(ctx context.Context) (Ledger, error) {
	b, err := f.readBook(ctx)
	if err != nil {
		return nil, errors.Join(err, f.closeReader())
	}
	f.setBook(b)
	f.seen.Store(b.links.Time)
	close(f.stopped)
	return f, nil
}

func (f *keeper) readBook(ctx context.Context) (*book, error) {
	s, err := f.openReader(ctx)
	if err != nil {
		return nil, err
	}
	b, err := readAll(ctx, s, nil)
	if err != nil {
		return nil, err
	}
	return b, s.Rollback()
}

// Now is the ledger's own time.
func (f *keeper) Now() time.Time { return time.Unix(0, f.tick()).UTC() }

// tick returns the clock's time, or the largest time seen so far if the clock has gone back.
func (f *keeper) tick() int64 {
	now := max(0, f.opts.Clock().UnixNano())
	for {
		seen := f.seen.Load()
		if now <= seen {
			return seen
		}
		if f.seen.CompareAndSwap(seen, now) {
			return now
		}
	}
}

// Policy returns the digest of the policy in force.
func (f *keeper) Policy() (Digest, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.book.policy, f.book.ruled
}

// Secret is Ledger's: the ledger's random name is known to nobody outside.
func (f *keeper) Secret(purpose string) Digest {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var e chain.Encoder
	e.Text("secret")
	e.Text(purpose)
	e.Digest(f.book.name)
	return e.Hash()
}

// Close ends the writer after the work in hand and closes the file.
func (f *keeper) Close() error {
	var err error
	f.once.Do(func() {
		close(f.closing)
		<-f.stopped
		f.itemLocks.close()
		err = f.closeReader()
		if f.store != nil {
			if ferr := f.store.Finish(); ferr != nil {
				f.log.Warn("ledger: last checkpoint", "error", ferr)
			}
		}
		err = errors.Join(err, f.shut(), f.unlockFiles())
	})
	return err
}

// shut closes what open has opened.
func (f *keeper) shut() error {
	var err error
	if f.store != nil {
		err = f.store.Close()
		f.store = nil
	}
	if f.witness != nil {
		err = errors.Join(err, f.witness.close())
		f.witness = nil
	}
	return err
}

// A batch of a shared ledger holds the heads of chains, for which other proxies wait. So it asks the server nothing in
// between: whether an account holds a cost, and whether a claim is free or still this process's, is presumed to be as
// the book says, which has these chains' last rows by then; and all of the batch's statements go out in one turn with
// its commit. The server decides all the same, by the same conditions: where one is not met the statement fails, the
// commit behind it is not carried out, and the batch is done again step by step. A job of which the book knows that the
// server will refuse it is left out beforehand and done step by step by itself, so that nobody without a budget slows
// those who have one.

// errStepwise takes a job out of a batch that presumes.
var errStepwise = errors.New("to be done step by step")

// presume begins a batch that presumes, where the store can and the jobs may.
func (t *batch) presume(jobs []*job) {
	if t.presumesEnds {
		t.presumed = map[store.AccountKey]store.Account{}
	} else if s, ok := t.store.(store.Shared); ok && len(jobs) > 0 && !jobs[0].alone && !jobs[0].stepwise {
		t.presumed = map[store.AccountKey]store.Account{}
		s.Presume()
	}
}

// foresee tells how a charge will leave the accounts; errStepwise where one of them does not hold it.
func (t *batch) foresee(b *book, moves []store.Move) error {
	if t.presumed == nil {
		return nil
	}
	for _, m := range moves {
		a, ok := t.presumed[m.Key]
		if !ok {
			a, ok = b.accounts[m.Key]
		}
		if !ok {
			a = *m.Fresh
		}
		if a, ok = a.Rolled(t.now, m.Ends).Charged(m.Charge); !ok {
			return refusal{errStepwise}
		}
		t.presumed[m.Key] = a
	}
	return nil
}

// doStepwise has jobs done step by step.
func doStepwise(jobs []*job) []*job {
	for _, j := range jobs {
		j.stepwise = true
	}
	return jobs
}
