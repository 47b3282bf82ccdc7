package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Ladder says to what a release may be refined, and of what it was made so (privacy rule 17). The zero value stands for
// a release that cannot be refined. Ladders are a user's own, and pure.
type Ladder struct {
	Finest privacy.Epsilon // the level that was drawn first and stays sealed
	Level  privacy.Epsilon // what was paid for the release and all that it refines
	From   int64           // the release that it refines; 0 means it was drawn of the data
}

// sound checks an item's ladder by itself.
func (l Ladder) sound(it *Item) error {
	switch {
	case l == (Ladder{}):
		return nil
	case it.Shared || mechanisms.Is[*mechanisms.Choice](it.Spec) || it.Cost.Epsilon.Micro() == 0 || l.From < 0:
		return errors.New("ledger: such an item has no ladder")
	case l.Level.Micro() > l.Finest.Micro() || l.From == 0 && l.Level != it.Cost.Epsilon:
		return errors.New("ledger: malformed ladder")
	}
	return nil
}

// price is a cost and what it comes to under zCDP, should the dataset become one. A level that is revealed later is
// worth ε²/2 of itself there, with nothing taken off for those before it: a ladder saves nothing under zCDP.
func (l Ladder) price(cost privacy.Cost) accounting.Charge {
	return accounting.Charge{Cost: cost, Converted: accounting.Price(l.whole(cost)).Converted}
}

// whole is a cost as if nothing had been paid before: of what a rollback has lost only the sum is known, from which
// what it comes to under zCDP must be told.
func (l Ladder) whole(cost privacy.Cost) privacy.Cost {
	if l.From != 0 {
		cost.Epsilon = privacy.MicroEpsilon(max(cost.Epsilon.Micro(), l.Level.Micro()))
	}
	return cost
}

// climbs reports whether an item may begin its ladder, or refine what it says: not where the same was drawn at another
// level since it was planned.
func (b *book) climbs(payer holderKey, r Request, p *pendingCharge) error {
	if p.item.Ladder != (Ladder{}) && p.item.Ladder.From == 0 && r.Since > 0 && p.ladder >= r.Since {
		return fmt.Errorf("ledger: %w", ErrRefined)
	}
	return b.refines(payer, p.item)
}

// refines reports whether an item may refine the release that it says: one that the user has paid for, that nobody has
// refined, whose finest level is there, at the price of the difference.
func (b *book) refines(payer holderKey, it *Item) error {
	l, ds, user := it.Ladder, payer.ds, payer.user
	if l == (Ladder{}) {
		return nil
	}
	if set := b.sets[ds]; set == nil || set.terms.Accountant != privacy.Pure {
		return errors.New("ledger: only a pure dataset has ladders")
	}
	if l.From == 0 {
		return nil
	}
	rec := b.releases[l.From]
	if rec == nil || rec.Revoked || b.refined[l.From] || rec.topped || rec.first == 0 || b.releases[rec.first].Revoked {
		return fmt.Errorf("ledger: %w", ErrRefined)
	}
	if _, paid := b.paid[paidKey{l.From, user}]; !paid || rec.ds != ds || rec.holder != user || rec.Item.Digest != it.Digest {
		return fmt.Errorf("ledger: %w", ErrNotHeld)
	}
	paid := rec.Item.Ladder
	if paid.Finest != l.Finest || paid.Level.Micro() >= l.Level.Micro() || it.Cost.Epsilon.Micro() != l.Level.Micro()-paid.Level.Micro() {
		return errors.New("ledger: a refinement costs the difference of its levels")
	}
	return nil
}

// climb notes the ladder of a release that is being saved, and that what it refines is refined.
func (b *book) climb(rec *record) error {
	l := rec.Item.Ladder
	if l == (Ladder{}) {
		return nil
	}
	if l.From == 0 {
		rec.first = rec.ID
		return nil
	}
	below := b.releases[l.From]
	if below == nil || below.first == 0 || b.refined[l.From] || below.holder != rec.holder || below.ds != rec.ds {
		return fmt.Errorf("a refinement of no release")
	}
	rec.first = below.first
	b.refined[l.From] = true
	b.leave(below)
	return nil
}

// leave takes what a user holds off its ladder: it cannot be refined any more, because it was, or because the finest
// level is gone.
func (b *book) leave(rec *record) {
	k := holderKey{rec.ds, rec.holder}
	list := slices.Clone(b.held[k])
	for i := range list {
		if list[i].ID == rec.ID {
			list[i].Item.Ladder = Ladder{}
		}
	}
	b.held[k] = list
}

// fall notes that a release was withdrawn: what was made of its finest level cannot be refined any more.
func (b *book) fall(rec *record) {
	if rec.first != rec.ID {
		return
	}
	for _, o := range b.releases {
		if o.first == rec.ID && !b.refined[o.ID] {
			b.leave(o)
		}
	}
}

// Finest reads the finest level of a ladder.
func (f *keeper) Finest(ctx context.Context, user string, id int64) (mechanisms.Finest, error) {
	f.mu.RLock()
	rec, paid := f.book.heldBy(user, id)
	var first *record
	if rec != nil && paid && !rec.Revoked && !rec.topped && rec.first != 0 {
		first = f.book.releases[rec.first]
	}
	f.mu.RUnlock()
	if first == nil || first.Revoked {
		return mechanisms.Finest{}, fmt.Errorf("ledger: %w", ErrNotHeld)
	}
	blob, err := f.blob(ctx, first)
	if err != nil {
		return mechanisms.Finest{}, err
	}
	_, sealed, err := chain.ReadRelease(blob)
	if err != nil || len(sealed) == 0 {
		return mechanisms.Finest{}, fmt.Errorf("ledger: %w: release %d has no finest level", ErrCorrupt, first.ID)
	}
	finest, err := mechanisms.LoadFinest(sealed)
	if err != nil {
		return mechanisms.Finest{}, fmt.Errorf("ledger: %w: release %d: %w", ErrCorrupt, first.ID, err)
	}
	return finest, nil
}

// blob reads the stored form of a release from disk and holds it against the chain's hash.
func (f *keeper) blob(ctx context.Context, rec *record) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	blob, err := reads(f, func(s store.Store) ([]byte, error) { return s.Noisy(rec.ID) })
	if err != nil {
		return nil, err
	}
	if sha256.Sum256(blob) != rec.noisy {
		return nil, fmt.Errorf("ledger: %w: release %d is not what was saved", ErrCorrupt, rec.ID)
	}
	return blob, nil
}
