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

// Ladder says to what a release may be refined, and of what it was made so (privacy rule 17). The zero value is a
// release that cannot be refined. Ladders are a user's own, and pure.
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
// what it comes to under zCDP must be known.
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

// A shared release may be drawn at several levels of trust at once (docs/adr/0028). Each level is a saved release of
// its own, which a user holds when she has paid for it; all are saved in one transaction, on the charge of whoever came
// first. The cap pays the finest level once. The family names the levels that were drawn together: an item joins the
// draw of its own family only.

// soundLevels checks an item's levels by themselves.
func (it *Item) soundLevels() error {
	if len(it.Levels) == 0 {
		return nil
	}
	if !it.Shared || it.Ladder != (Ladder{}) || it.Spec.Grows() || len(it.Levels) > mechanisms.MaxLevels || it.level() < 0 {
		return errors.New("ledger: such an item has no levels")
	}
	for i, l := range it.Levels {
		if negative(l.Cost) || l.Cost.Delta.Atto() != 0 || free(l.Cost) || !l.Spec.HasNoise() || i > 0 && (l.Cost == it.Levels[i-1].Cost || !l.Cost.Fits(it.Levels[i-1].Cost)) {
			return errors.New("ledger: malformed levels")
		}
	}
	return nil
}

// level is the place of the item's own level; −1: it is none of them.
func (it *Item) level() int {
	own := specKey(it.Spec)
	return slices.IndexFunc(it.Levels, func(l mechanisms.Level) bool { return l.Cost == it.Cost && specKey(l.Spec) == own })
}

// pool is what a draw of the item costs the cap.
func (it *Item) pool() privacy.Cost {
	if len(it.Levels) > 0 {
		return it.Levels[0].Cost
	}
	return it.Cost
}

// family names the levels of an item; zero: it has none.
func (it *Item) family() Digest {
	if len(it.Levels) == 0 {
		return Digest{}
	}
	var e chain.Encoder
	for _, l := range it.Levels {
		e.Cost(l.Cost)
		e.Spec(l.Spec)
	}
	return e.Hash()
}

// saveLevels is the writer's part of saving a draw: the level that was paid for first, the others on its save.
func (f *keeper) saveLevels(t *batch, r *Receipt, levels [][]byte, own int) (int64, error) {
	body := func(i int) saveBody {
		b := saveBody{charge: r.charge, at: r.at, key: r.key, noisy: sha256.Sum256(levels[i]), item: r.item, family: r.item.family()}
		if i != own {
			b.item.Cost, b.item.Spec = r.item.Levels[i].Cost, r.item.Levels[i].Spec
			var e chain.Encoder
			e.Text("level")
			e.Digest(Digest(r.key))
			e.Int(int64(i))
			b.key = e.Hash()
		}
		return b
	}
	_, again := t.book.byCharge[r.charge]
	id, err := f.save(t, r, body(own), levels[own])
	if err != nil || again {
		return id, err
	}
	for i := range levels {
		if i == own {
			continue
		}
		b := body(i)
		b.of = id
		row, err := t.add(chain.RowSave, r.ds, "", b.encode())
		if err != nil {
			return 0, err
		}
		if err := t.store.KeepRelease(store.Release{ID: row.Seq, Charge: -row.Seq, Key: b.key[:], Noisy: levels[i]}); err != nil {
			return 0, err
		}
	}
	return id, nil
}

// applyLevel folds the save of a level that was not the one first paid for.
func (b *book) applyLevel(r chain.Row, s saveBody) error {
	first := b.releases[s.of]
	if first == nil || first.Revoked || first.of != 0 || first.ds != r.DS || first.family != s.family || first.Item.Digest != s.item.Digest ||
		b.byCharge[s.charge] != s.of || !s.item.Shared || r.Holder != "" || s.at != first.Release.At.UnixNano() {
		return fmt.Errorf("a level without its draw")
	}
	b.keep(r, s)
	return nil
}

// root is the release on whose save a release's levels were saved; its own number where it has none.
func (r *record) root() int64 {
	if r.of != 0 {
		return r.of
	}
	return r.ID
}

// levelsOf are the live releases that were drawn with one, and that one.
func (b *book) levelsOf(rec *record) []*record {
	if rec.family == (Digest{}) {
		return []*record{rec}
	}
	return slices.DeleteFunc(slices.Clone(b.byMeasure[measureKey{rec.ds, rec.holder, rec.Item.Digest}]), func(o *record) bool { return o.root() != rec.root() })
}

// outgrow notes that of the levels of one draw, or of one ladder, that an account holds only the finest is read: they
// are no independent answers. It looks again when one comes, and when one was withdrawn.
func (b *book) outgrow(k holderKey, rec *record) {
	if rec.family == (Digest{}) && (rec.first == 0 || rec.first == rec.ID && !b.refined[rec.ID]) {
		return // it has no other level
	}
	list, finest := slices.Clone(b.held[k]), -1
	for i := range list {
		if !rec.drawnWith(b.releases[list[i].ID]) {
			continue
		}
		if list[i].Refined = true; finest < 0 || b.releases[list[finest].ID].coarser(b.releases[list[i].ID]) {
			finest = i
		}
	}
	if finest >= 0 {
		list[finest].Refined = false
		b.held[k] = list
	}
}

// drawnWith reports whether two releases are levels of one draw or of one ladder.
func (r *record) drawnWith(o *record) bool {
	if r.family == (Digest{}) {
		return r.first != 0 && r.first == o.first
	}
	return r.family == o.family && r.root() == o.root()
}

// coarser reports whether of two levels the other is the finer one.
func (r *record) coarser(o *record) bool {
	if r.first != 0 {
		return r.Item.Ladder.Level.Micro() < o.Item.Ladder.Level.Micro()
	}
	return r.Item.Cost.Fits(o.Item.Cost)
}
