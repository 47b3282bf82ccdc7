package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/sqlite"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
)

// open opens file and witness, folds the chain and compares. known is what this process itself knows to be durable; where
// it knows something the operator's options no longer apply.
func (f *keeper) open(ctx context.Context, known mark) error {
	began := time.Now()
	accept, vouch := f.opts.AcceptRollback && known.seq == 0, f.opts.VouchForLedger && known.seq == 0
	seen, turn, present, err := readWitness(f.disk, f.opts.Witness)
	lostWitness := err != nil || !present
	if err != nil && !accept && !vouch {
		return err
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
	if f.witness, err = openWitness(f.disk, f.opts.Witness, turn, f.opts.SyncWitness); err != nil {
		return fmt.Errorf("%w: %w", store.Unavailable(sqlite.Full(err)), err)
	}
	behind := errBehind(b, seen)
	switch {
	case known.seq > 0 && errBehind(b, known) != nil:
		return errBehind(b, known)
	case lostWitness && b.last.Seq > 1 && !(f.shared() && err == nil && !present):
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

// settle makes what was loaded durable and current.
func (f *keeper) settle(b *book, began time.Time) error {
	// First the ledger, then what vouches for it: a power cut in between must not leave a witness of a file without a name.
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
	f.mu.Lock()
	f.book = b
	f.mu.Unlock()
	f.seen.Store(max(f.seen.Load(), b.last.At))
	if behind := b.last.At - f.opts.Clock().UnixNano(); behind > int64(time.Minute) {
		f.log.Warn("ledger: the clock is behind the ledger's own time, which stands still until then", "behind", time.Duration(behind))
	}
	f.fault.Store(nil)
	f.log.Info("ledger open", "rows", b.last.Seq, "charges", b.charges, "took", time.Since(began))
	return nil
}

func markOf(b *book) mark { return mark{b.name, b.last.Seq, b.last.Hash, b.total} }

// load folds the chain of the open store, making a new one if there is none.
func (f *keeper) load(ctx context.Context, marks []mark) (*book, error) {
	fresh, err := f.store.Empty()
	if err != nil {
		return nil, openFailed(err)
	}
	if fresh {
		for _, m := range marks {
			if m.seq > 0 && !f.opts.AcceptRollback {
				return nil, fmt.Errorf("%w: the ledger is gone, and its witness has seen row %d", ErrRollback, m.seq)
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

// readAll folds the chain and holds the accounts against it, in one snapshot that stays open.
func readAll(ctx context.Context, s store.Store, marks []mark) (*book, error) {
	if err := s.Snapshot(); err != nil {
		return nil, openFailed(err)
	}
	if fresh, err := s.Empty(); err != nil || fresh {
		return nil, openFailed(errors.Join(err, fmt.Errorf("%w: not a ledger", ErrCorrupt)))
	}
	b, err := replay(ctx, s, marks)
	if err != nil {
		return nil, err
	}
	return b, compareAccounts(s, b)
}

func (f *keeper) genesis() error {
	var name Digest
	rand.Read(name[:])
	e := chain.Body()
	e.Digest(name)
	r := chain.Row{Seq: 1, Kind: chain.RowGenesis, At: f.tick(), Body: e.Bytes()}
	r.Hash = r.Link(Digest{})
	return f.store.Create(r)
}

// own writes down that rows may be missing: a forfeit, or the operator's word. b takes the row in.
func (f *keeper) own(b *book, seen mark, lost bool) error {
	t := &batch{store: f.store, last: b.last, now: max(f.tick(), b.last.At)}
	if news, err := f.store.Begin(b.last); err != nil || news != nil {
		return fmt.Errorf("%w: %w", store.Unavailable(sqlite.Full(err)), errors.Join(err, errors.New("another proxy is at work on it")))
	}
	e := chain.Body()
	kind := chain.RowVouch
	if f.opts.AcceptRollback {
		kind = chain.RowForfeit
		e.Cost(accounting.Less(seen.total, b.total))
		e.Bool(lost || seen.name != b.name)
	}
	r, err := t.add(kind, 0, "", e.Bytes())
	if err == nil {
		err = b.apply(r)
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
		err = f.store.Commit(t.rows)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", store.Unavailable(sqlite.Full(err)), err)
	}
	f.log.Warn("ledger: rows may be missing; the chain says so from now on", "forfeit", kind == chain.RowForfeit)
	return nil
}

// replay folds the chain from its beginning, and notes in the book's passed which of the marks it has met.
func replay(ctx context.Context, s store.Store, marks []mark) (*book, error) {
	b := newBook()
	err := s.Rows(ctx, 0, func(r chain.Row) error {
		if err := b.take(r); err != nil {
			return err
		}
		for _, m := range marks {
			if m.seq == r.Seq && m.hash == r.Hash && m.name == b.name {
				b.passed = append(b.passed, m.seq)
			}
		}
		return nil
	})
	if err != nil {
		return nil, openFailed(err)
	}
	if b.last.Seq == 0 {
		return nil, fmt.Errorf("%w: the chain is empty", ErrCorrupt)
	}
	return b, nil
}

// errBehind tells whether the chain of b lacks the row of a mark.
func errBehind(b *book, m mark) error {
	for _, seq := range b.passed {
		if seq == m.seq {
			return nil
		}
	}
	if m.name != b.name {
		return fmt.Errorf("%w: the witness is another ledger's", ErrRollback)
	}
	return fmt.Errorf("%w: it ends at row %d, and its witness has seen another row %d", ErrRollback, b.last.Seq, m.seq)
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
