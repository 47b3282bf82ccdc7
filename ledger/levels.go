package ledger

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

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
