package ledger

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/sqlite"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// open opens file and witness, folds the chain and compares. known is what this process itself knows to be durable;
// where it knows something the operator's options no longer apply.
func (f *keeper) open(ctx context.Context, known mark) error {
	began := time.Now()
	accept, vouch := f.opts.AcceptRollback && known.none(), f.opts.VouchForLedger && known.none()
	seen, turn, present, err := readWitness(f.disk, f.opts.Witness)
	lostWitness := err != nil || !present
	if err != nil && !accept && !vouch {
		return f.formOr(ctx, err)
	}
	if f.store, err = f.site.Open(ctx, true); err != nil {
		return openFailed(err)
	}
	marks := []mark{known}
	if !lostWitness {
		marks = append(marks, seen)
	}
	b, err := f.load(ctx, marks)
	if err != nil {
		return err
	}
	if f.witness, err = openWitness(f.disk, f.opts.Witness, turn); err != nil {
		return fmt.Errorf("%w: %w", store.Unavailable(sqlite.Full(err)), err)
	}
	behind := errBehind(b, seen)
	switch {
	case !known.none() && errBehind(b, known) != nil:
		return errBehind(b, known)
	case lostWitness && b.links.Rows > 1 && !(f.Shared() && err == nil && !present):
		if !accept && !vouch {
			return fmt.Errorf("%w: %s is missing, so nobody knows whether this ledger is the latest", ErrWitness, f.opts.Witness)
		}
		err = f.own(b, seen, true)
	case !lostWitness && behind != nil:
		if !accept {
			return behind
		}
		err = f.own(b, seen, false)
	}
	if err != nil {
		return err
	}
	return f.settle(b, began)
}

// formOr returns ErrForm where the ledger whose witness cannot be read is itself in another form, and the witness's
// error else.
func (f *keeper) formOr(ctx context.Context, unread error) error {
	s, err := f.site.Open(ctx, false)
	if err != nil {
		return unread
	}
	defer s.Close()
	if _, err := readAll(ctx, s, nil); errors.Is(err, ErrForm) {
		return err
	}
	return unread
}

// settle makes what was loaded durable and current.
func (f *keeper) settle(b *book, began time.Time) error {
	// First the ledger, then what vouches for it: a power cut in between must not leave a witness of a file without a
	// name.
	err := f.store.Settle()
	if err == nil {
		err = f.witness.write(markOf(b))
	}
	if err == nil {
		err = errors.Join(f.witness.flush(), store.SyncDirs(f.disk, f.opts.Witness))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", store.Unavailable(sqlite.Full(err)), err)
	}
	f.setBook(b)
	f.seen.Store(max(f.seen.Load(), b.links.Time))
	if behind := b.links.Time - f.opts.Clock().UnixNano(); behind > int64(time.Minute) {
		f.log.Warn("ledger: the clock is behind the ledger's own time, which stands still until then", "behind", time.Duration(behind))
	}
	f.fault.Store(nil)
	f.log.Info("ledger open", "rows", b.links.Rows, "charges", b.charges, "took", time.Since(began))
	return nil
}

// load folds the chains of the open store, making a new ledger if there is none.
func (f *keeper) load(ctx context.Context, marks []mark) (*book, error) {
	fresh, err := f.store.Empty()
	if err != nil {
		return nil, openFailed(err)
	}
	if fresh {
		for _, m := range marks {
			if !m.none() && !f.opts.AcceptRollback {
				return nil, fmt.Errorf("%w: the ledger is gone, and its witness has seen row %d", ErrRollback, m.ends[0].seq)
			}
		}
		if err := f.genesis(); err != nil {
			return nil, fmt.Errorf("%w: %w", store.Unavailable(sqlite.Full(err)), err)
		}
	}
	b, err := readAll(ctx, f.store, marks)
	if err != nil {
		return nil, err
	}
	return b, f.store.Rollback()
}

// readAll folds the chains and holds the accounts against it, in one snapshot that stays open.
func readAll(ctx context.Context, s store.Store, marks []mark) (*book, error) {
	if err := s.Snapshot(); err != nil {
		return nil, openFailed(err)
	}
	switch fresh, err := s.Empty(); {
	case err != nil:
		return nil, openFailed(err)
	case fresh:
		return nil, fmt.Errorf("%w: not a ledger", ErrCorrupt)
	}
	b, err := replay(ctx, s, marks)
	if err != nil {
		return nil, err
	}
	if err := compareAccounts(s, b); err != nil {
		return nil, err
	}
	return b, compareHeads(s, b)
}

// compareHeads holds what a shared store says of the ends of the chains against their rows.
func compareHeads(s store.Store, b *book) error {
	shared, ok := s.(store.Shared)
	if !ok {
		return nil
	}
	ends, err := shared.Ends()
	if err != nil {
		return openFailed(err)
	}
	if !b.links.At(ends) {
		return fmt.Errorf("%w: the chains do not end where the table of their heads says", ErrCorrupt)
	}
	return nil
}

func (f *keeper) genesis() error {
	var name Digest
	rand.Read(name[:])
	e := chain.Body()
	e.Digest(name)
	if !f.opts.oneChain {
		e.Bool(true) // each dataset has a chain of its own; left out, as programs before did, none has
	}
	r := chain.Row{Seq: 1, Kind: chain.RowGenesis, At: f.tick(), Body: e.Bytes()}
	new(chain.Links).Link(&r)
	return f.store.Create(r)
}

// own writes down that rows may be missing: a forfeit, or the operator's word. b takes the row in.
func (f *keeper) own(b *book, seen mark, lost bool) error {
	begun, err := f.store.Begin(b.links.Heads(), store.Wanted{})
	if err != nil || begun.News != nil {
		return fmt.Errorf("%w: %w", store.Unavailable(sqlite.Full(err)), errors.Join(err, errors.New("another proxy is at work on it")))
	}
	t := &batch{store: f.store, begun: begun, base: b.links, links: b.links.Clone(), now: max(f.tick(), b.links.Time)}
	e := chain.Body()
	kind := chain.RowVouch
	if f.opts.AcceptRollback {
		kind = chain.RowForfeit
		e.Cost(seen.missing(b))
		e.Bool(lost || seen.name != b.name)
	}
	r, err := t.add(kind, 0, "", e.Bytes())
	moved := t.links.Moved(b.links)
	if err == nil {
		err = b.take(r)
	}
	for id, rec := range b.releases {
		if err == nil && rec.Revoked {
			err = f.store.WithdrawRelease(id)
		}
	}
	if err == nil {
		err = rewriteAccounts(f.store, b.accounts)
	}
	if err == nil {
		err = f.store.Commit(moved, false)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", store.Unavailable(sqlite.Full(err)), err)
	}
	f.log.Warn("ledger: rows may be missing; the chain says so from now on", "forfeit", kind == chain.RowForfeit)
	return nil
}

// replay folds the chains from their beginning, and notes in the book's passed which ends of the marks it has met.
func replay(ctx context.Context, s store.Store, marks []mark) (*book, error) {
	b := newBook()
	sought, dated := map[int64][]end{}, map[int64][]end{}
	for _, m := range marks {
		for _, e := range m.ends {
			if sought[e.seq] = append(sought[e.seq], e); e.at != 0 && !slices.Contains(dated[e.chain], e) {
				dated[e.chain] = append(dated[e.chain], e)
			}
		}
	}
	err := s.Rows(ctx, func(r chain.Row) error {
		before := b.total
		if err := b.take(r); err != nil {
			return err
		}
		if b.total != before && r.Kind != chain.RowForfeit { // so it is a dataset's
			for _, e := range slices.Concat(dated[0], dated[r.DS]) {
				l := b.later[e]
				switch more := b.total.Less(before); {
				case r.At > e.at:
					l.after = l.after.Plus(more)
				case r.At == e.at:
					l.beside = l.beside.Plus(more)
				}
				b.later[e] = l
			}
		}
		for _, e := range sought[r.Seq] {
			if e.of(b) {
				b.passed[e] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, openFailed(err)
	}
	if b.links.Rows == 0 {
		return nil, fmt.Errorf("%w: the chain is empty", ErrCorrupt)
	}
	return b, nil
}

// errBehind reports whether the chains of b lack the row that one of them ended with at a mark.
func errBehind(b *book, m mark) error {
	if m.name != b.name {
		return fmt.Errorf("%w: the witness is another ledger's", ErrRollback)
	}
	for _, e := range m.ends {
		if b.passed[e] {
			continue
		}
		if set := b.sets[e.chain]; set != nil {
			return fmt.Errorf("%w: the chain of dataset %q ends at row %d, and its witness has seen another row %d", ErrRollback, set.id, b.links.Head(e.chain).Seq, e.seq)
		}
		return fmt.Errorf("%w: it ends at row %d, and its witness has seen another row %d", ErrRollback, b.links.Last, e.seq)
	}
	return nil
}

// openFailed names the error of opening or reading where the ledger lies.
func openFailed(err error) error {
	if errors.Is(err, ErrCorrupt) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if named := sqlite.Fault(err); named != nil {
		return fmt.Errorf("%w: %w", named, err)
	}
	return fmt.Errorf("%w: %w", store.Unavailable(sqlite.Full(err)), err)
}

// Verify reads everything that is on disk, on a connection and in a snapshot of its own, while the ledger goes on.
func (f *keeper) Verify(ctx context.Context) (int64, error) {
	f.mu.RLock()
	known := markOf(f.book)
	f.mu.RUnlock()
	marks := []mark{known}
	seen, _, present, err := readWitness(f.disk, f.opts.Witness)
	if err != nil {
		return 0, fmt.Errorf("ledger: %w", err)
	}
	if present {
		marks = append(marks, seen)
	}
	b, err := verifySite(ctx, f.site, marks)
	if err != nil {
		return 0, fmt.Errorf("ledger: %w", err)
	}
	for _, m := range marks {
		if err := errBehind(b, m); err != nil {
			return 0, fmt.Errorf("ledger: %w", err)
		}
	}
	return b.links.Rows, nil
}

// verifyFile verifies a ledger in an SQLite file.
func verifyFile(ctx context.Context, path string, marks []mark) (*book, error) {
	where, err := sqlite.At(path, store.OSDisk{})
	if err != nil {
		return nil, err
	}
	return verifySite(ctx, where, marks)
}

// verifySite compares all that lies in a site with itself.
func verifySite(ctx context.Context, p store.Site, marks []mark) (*book, error) {
	s, err := p.Open(ctx, false)
	if err != nil {
		return nil, openFailed(err)
	}
	defer s.Close()
	if err := s.Sound(); err != nil {
		return nil, openFailed(err)
	}
	b, err := readAll(ctx, s, marks)
	if err != nil {
		return nil, err
	}
	return b, compareReleases(ctx, s, b)
}

// compareReleases holds each stored release against the chain's hash of it.
func compareReleases(ctx context.Context, s store.Store, b *book) error {
	found := 0
	err := s.Releases(func(r store.Release) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		rec := b.releases[r.ID]
		if rec == nil || rec.of == 0 && b.byCharge[r.Charge] != rec.ID || rec.of != 0 && r.Charge != -rec.ID || r.Withdrawn != rec.Revoked ||
			!rec.Revoked && string(r.Key) != string(rec.key[:]) || sha256.Sum256(r.Noisy) != rec.noisy {
			return fmt.Errorf("%w: release %d differs from the chain", ErrCorrupt, r.ID)
		}
		found++
		return nil
	})
	if err == nil && found != len(b.releases) {
		err = fmt.Errorf("%w: %d saved releases are missing", ErrCorrupt, len(b.releases)-found)
	}
	return err
}
