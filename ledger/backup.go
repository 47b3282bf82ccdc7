package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/postgres"
	"github.com/dpproxy/dpproxy/ledger/sqlite"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// Backup writes a copy to path: consistent, compact, verified, flushed, and only then under its name.
func (f *keeper) Backup(ctx context.Context, path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("ledger: backup: %s exists", path)
	}
	partial := path + ".partial"
	if err := os.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("ledger: backup: %w", err)
	}
	err := copyTo(ctx, f.site, partial)
	if err != nil {
		err = openFailed(err)
	}
	if err == nil {
		err = os.Chmod(partial, 0o600)
	}
	if err == nil {
		err = flushFile(partial)
	}
	if err == nil {
		_, err = verifyFile(ctx, partial, nil)
	}
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err == nil {
		err = store.SyncDirs(store.OSDisk{}, path)
	}
	if err != nil {
		os.Remove(partial)
		return fmt.Errorf("ledger: backup: %w", err)
	}
	return nil
}

// Restore puts a backup in the place of the ledger at url, which no process may have open. What was there is kept
// beside it: a file with ".replaced" added, a schema with "_replaced_" and the time. A backup that lacks rows which the
// witness has seen is refused with ErrRollback, unless opts.AcceptRollback is set; the first Open must then have the
// same option, and forfeits what is missing.
func Restore(ctx context.Context, backup, url string, opts Options) error {
	opts.Disk = store.OSDisk{}
	where, err := siteAt(url, opts)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if opts.Witness == "" {
		opts.Witness = where.Witness()
	}
	for _, name := range where.Locks() {
		held, err := store.OSDisk{}.Lock(name)
		if err != nil {
			return fmt.Errorf("ledger: restore: %w", err)
		}
		defer held.Close()
	}
	switch to := where.(type) {
	case *sqlite.Site:
		err = to.Restore(backup, func(partial string) error { return restorable(ctx, partial, opts) })
	case *postgres.Site:
		if err = restorable(ctx, backup, opts); err == nil {
			err = restoreShared(ctx, backup, to)
		}
	}
	if err != nil {
		return fmt.Errorf("ledger: restore: %w", err)
	}
	return nil
}

// copyTo writes a consistent and compact copy of the ledger that lies at a site, an SQLite file: a backup of either
// kind can be restored into either kind.
func copyTo(ctx context.Context, where store.Site, path string) error {
	if file, ok := where.(*sqlite.Site); ok {
		return file.Backup(ctx, path)
	}
	from, err := where.Open(ctx, false)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := from.Snapshot(); err != nil {
		return err
	}
	if fresh, err := from.Empty(); err != nil || fresh {
		return errors.Join(err, errors.New("there is no ledger yet"))
	}
	return sqlite.Write(path, func(to store.Store) (split bool, err error) {
		links, err := store.Copy(ctx, from, to)
		return links.Split(), err
	})
}

// restoreShared puts a verified backup in the place of a ledger that proxies share.
func restoreShared(ctx context.Context, backup string, to *postgres.Site) error {
	file, err := sqlite.At(backup, store.OSDisk{})
	if err != nil {
		return err
	}
	from, err := file.Open(ctx, false)
	if err != nil {
		return err
	}
	defer from.Close()
	return to.Restore(ctx, from)
}

// restorable verifies the copy and holds it against the witness of the ledger that it is to replace.
func restorable(ctx context.Context, partial string, opts Options) error {
	place := opts.Witness
	seen, _, present, err := readWitness(store.OSDisk{}, place)
	if err == nil && !present {
		err = fmt.Errorf("%w: %s is missing", ErrWitness, place)
	}
	lost := err
	b, err := verifyFile(ctx, partial, []mark{seen})
	if err != nil {
		return err
	}
	if lost != nil && (opts.AcceptRollback || opts.VouchForLedger) || opts.AcceptRollback {
		return nil
	}
	if lost != nil {
		return lost
	}
	return errBehind(b, seen)
}

func flushFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Adopt puts a policy in force. What has not changed leaves no row. A ledger that is opened for reading is left as it
// is, and says whether it would take the policy.
func (f *keeper) Adopt(ctx context.Context, p Terms) error {
	for _, t := range p.Datasets {
		if err := t.sound(); err != nil {
			return err
		}
	}
	if f.opts.ReadOnly {
		f.mu.RLock()
		defer f.mu.RUnlock()
		base := f.book.links
		t := &batch{store: keepsNothing{}, book: f.book, base: base, links: base.Clone(), now: max(f.tick(), base.Time)}
		err := adopt(t, p, f.opts.oneChain)
		var refused refusal
		if errors.As(err, &refused) {
			return refused.error
		}
		return err
	}
	return f.do(ctx, &job{alone: true, after: func() { f.sharing.adopted = true }, run: func(t *batch) error {
		if err := f.alone(t, p); err != nil {
			return err
		}
		return adopt(t, p, f.opts.oneChain)
	}})
}

// adopt writes what a policy changes.
func adopt(t *batch, p Terms, oneChain bool) error {
	a := adoption{batch: t, book: t.book.draft(), owner: map[string]string{}}
	if !t.links.Split() && !oneChain { // a ledger of a program before
		e := chain.Body()
		if err := a.note(chain.RowChains, 0, e.Bytes()); err != nil {
			return err
		}
	}
	return a.adopt(p)
}

// keepsNothing is a store for rows that are tried, and not written.
type keepsNothing struct{ store.Store }

func (keepsNothing) Insert(chain.Row) error                            { return nil }
func (keepsNothing) ClearAccounts() error                              { return nil }
func (keepsNothing) OpenAccount(store.AccountKey, store.Account) error { return nil }

// adoption writes the rows of one Adopt, trying each on a draft of the book first.
type adoption struct {
	*batch
	book  *book
	owner map[string]string // base relation -> dataset id, within the policy
}

func (a *adoption) adopt(p Terms) error {
	before := len(a.rows)
	active := make([]int64, 0, len(p.Datasets))
	for _, t := range p.Datasets {
		ds, err := a.dataset(t)
		if err != nil {
			return err
		}
		if slices.Contains(active, ds) {
			return refusal{errBoundBy("dataset %s is named twice", t.ID)}
		}
		active = append(active, ds)
	}
	slices.Sort(active)
	same := a.book.ruled && a.book.policy == p.PolicyDigest && len(active) == len(a.book.active)
	for _, ds := range active {
		same = same && a.book.active[ds]
	}
	if !same {
		e := chain.Body()
		e.Digest(p.PolicyDigest)
		e.Int(int64(len(active)))
		for _, ds := range active {
			e.Int(ds)
		}
		if err := a.note(chain.RowPolicy, 0, e.Bytes()); err != nil {
			return err
		}
	}
	if len(a.rows) == before {
		return nil
	}
	return rewriteAccounts(a.store, a.book.accounts)
}

// note adds a row and folds it into the draft.
func (a *adoption) note(kind chain.Kind, ds int64, body []byte) error {
	r, err := a.add(kind, ds, "", body)
	if err != nil {
		return err
	}
	return a.book.apply(r)
}

// dataset finds or makes the dataset of t, under its new name if it was renamed, and gives it its terms.
func (a *adoption) dataset(t DatasetTerms) (int64, error) {
	for _, relation := range slices.Compact(slices.Sorted(slices.Values(t.Relations))) {
		if other, ok := a.owner[relation]; ok {
			return 0, refusal{errBoundBy("relation %s is in dataset %s and in dataset %s", relation, other, t.ID)}
		}
		a.owner[relation] = t.ID
	}
	ds, err := a.identify(t)
	if err != nil {
		return 0, err
	}
	for _, relation := range t.Relations {
		if owner, ok := a.book.bound[relation]; ok && owner != ds {
			return 0, refusal{errBoundBy("relation %s belongs to dataset %s", relation, a.book.sets[owner].id)}
		}
	}
	body := encodeTerms(t)
	if set := a.book.sets[ds]; set != nil {
		if set.encoded == string(body) {
			return ds, nil
		}
		if err := set.change(t); err != nil {
			return 0, refusal{fmt.Errorf("ledger: %w", err)}
		}
		if err := a.book.draft().applyTerms(chain.Row{DS: ds, At: a.now, Body: body}); errors.Is(err, ErrBound) {
			return 0, refusal{fmt.Errorf("ledger: %w", err)}
		}
	}
	return ds, a.note(chain.RowTerms, ds, body)
}

// identify returns the number of the dataset that t speaks of: its old one, or for a new dataset that of the row to
// come.
func (a *adoption) identify(t DatasetTerms) (int64, error) {
	b := a.book
	ds, used := b.ids[t.ID]
	if _, current := b.find(t.ID); used && !current {
		return 0, refusal{errBoundBy("dataset id %s was renamed to %s; an id is never used twice", t.ID, b.sets[ds].id)}
	}
	old, known := b.ids[t.RenamedFrom]
	switch {
	case used && known && t.RenamedFrom != "" && old != ds:
		return 0, refusal{errBoundBy("dataset %s has an account of its own; it cannot take over that of %s", t.ID, t.RenamedFrom)}
	case used:
		return ds, nil
	case t.RenamedFrom == "" || !known && b.charges == 0:
		return a.next(), nil
	case !known:
		return 0, refusal{errBoundBy("dataset %s is renamed from %s, which the ledger does not know", t.ID, t.RenamedFrom)}
	case b.sets[old].id != t.RenamedFrom:
		return 0, refusal{errBoundBy("dataset %s was renamed to %s already", t.RenamedFrom, b.sets[old].id)}
	}
	e := chain.Body()
	e.Text(t.ID)
	return old, a.note(chain.RowRename, old, e.Bytes())
}
