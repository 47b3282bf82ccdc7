package ledger

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// book is the ledger in memory: the fold of all rows of the chain. The same code folds the chain when it is opened or
// verified and each new row after its commit, so that memory cannot say anything else than the disk.
type book struct {
	name    Digest // the ledger's random name
	last    row    // without its body
	policy  Digest
	ruled   bool             // a policy was adopted
	active  map[int64]bool   // datasets of the policy in force
	ids     map[string]int64 // dataset ids ever used, also those that were renamed away
	sets    map[int64]*dataset
	bound   map[string]int64 // base relation -> dataset
	total   privacy.Cost     // Σ of all charges and forfeits: the witness keeps it
	lost    privacy.Cost     // Σ of what accepted rollbacks have lost; accounts not yet opened may have paid it
	lostAll bool             // … or nobody knows how much

	accounts  map[accountKey]account
	open      map[int64]openCharge // charges whose draw is not saved
	releases  map[int64]*record
	byCharge  map[int64]int64
	byMeasure map[measureKey][]*record // live
	paid      map[paidKey]struct{}
	refined   map[int64]bool          // releases that were refined
	held      map[holderKey][]Release // live, oldest first; slices are only appended to or replaced
	charges   int64
	passed    []int64 // the rows of given marks that a replay has met
}

// dataset is what the chain says of one dataset. Values behind the pointer are replaced, never changed.
type dataset struct {
	id      string
	terms   DatasetTerms
	encoded string // the terms' canonical bytes
	charged bool
	delta   bool // a charge named δ
}

type (
	openCharge struct {
		ds     int64
		user   string
		digest Digest
		at     int64
	}
	measureKey struct {
		ds     int64
		holder string // empty: shared
		digest Digest
	}
	paidKey struct {
		id   int64
		user string
	}
	holderKey struct {
		ds   int64
		user string
	}
	// record is one saved release.
	record struct {
		Release
		ds     int64
		holder string
		key    flightKey
		spec   string
		noisy  Digest
		family Digest   // the levels that it was drawn with; zero: it has none
		of     int64    // the release on whose save these were saved; 0: its own
		first  int64    // the release that its ladder began with; 0: none
		topped bool     // rows are missing, of which one may have refined it: its ladder has no further level
		grown  []growth // of a continual release, its steps
	}
)

func newBook() *book {
	return &book{
		active: map[int64]bool{}, ids: map[string]int64{}, sets: map[int64]*dataset{}, bound: map[string]int64{},
		accounts: map[accountKey]account{}, open: map[int64]openCharge{}, releases: map[int64]*record{}, byCharge: map[int64]int64{},
		byMeasure: map[measureKey][]*record{}, paid: map[paidKey]struct{}{}, refined: map[int64]bool{}, held: map[holderKey][]Release{},
	}
}

// draft is a copy on which rows about datasets and accounts can be tried; releases are shared with the original.
func (b *book) draft() *book {
	c := *b
	c.active, c.ids, c.bound = maps.Clone(b.active), maps.Clone(b.ids), maps.Clone(b.bound)
	c.sets, c.accounts = maps.Clone(b.sets), maps.Clone(b.accounts)
	return &c
}

// check tells whether r follows the last row, by number, time and hash.
func (b *book) check(r row) error {
	if r.seq != b.last.seq+1 || r.at < b.last.at || r.link(b.last.hash) != r.hash {
		return fmt.Errorf("%w: row %d does not follow from row %d", ErrCorrupt, r.seq, b.last.seq)
	}
	if (r.kind == rowGenesis) != (r.seq == 1) {
		return fmt.Errorf("%w: row %d is out of place", ErrCorrupt, r.seq)
	}
	return nil
}

// take checks and folds the next row.
func (b *book) take(r row) error {
	if err := b.check(r); err != nil {
		return err
	}
	return b.apply(r)
}

// apply folds one row that follows the last one.
func (b *book) apply(r row) error {
	var err error
	switch r.kind {
	case rowGenesis:
		d := kept(r.body)
		b.name = d.digest()
		err = d.end()
	case rowPolicy:
		err = b.applyPolicy(r)
	case rowTerms:
		err = b.applyTerms(r)
	case rowRename:
		err = b.applyRename(r)
	case rowBind:
		err = b.applyBind(r)
	case rowCharge:
		err = b.applyCharge(r)
	case rowSave:
		err = b.applySave(r)
	case rowRevoke:
		err = b.applyRevoke(r)
	case rowForfeit:
		err = b.applyForfeit(r)
	case rowVouch:
		d := kept(r.body)
		err = d.end()
	case rowStep:
		err = b.applyStep(r)
	case rowGrow:
		err = b.applyGrow(r)
	default:
		err = fmt.Errorf("unknown kind %d", r.kind)
	}
	if err != nil {
		return fmt.Errorf("%w: row %d: %w", ErrCorrupt, r.seq, err)
	}
	r.body = nil
	b.last = r
	return nil
}

func (b *book) applyPolicy(r row) error {
	d := kept(r.body)
	digest := d.digest()
	active := map[int64]bool{}
	for range d.count() {
		ds := d.i64()
		if b.sets[ds] == nil {
			return errBody
		}
		active[ds] = true
	}
	if err := d.end(); err != nil {
		return err
	}
	b.policy, b.ruled, b.active = digest, true, active
	return nil
}

func (b *book) applyBind(r row) error {
	d := kept(r.body)
	relations := d.relations()
	if err := d.end(); err != nil {
		return err
	}
	for _, relation := range relations {
		if ds, ok := b.bound[relation]; ok && ds != r.ds {
			return ErrBound
		}
		b.bound[relation] = r.ds
	}
	return nil
}

func (b *book) applyCharge(r row) error {
	c, err := decodeCharge(r.body)
	if err != nil {
		return err
	}
	set := b.sets[r.ds]
	if set == nil {
		return errBody
	}
	if negative(c.cost) || negative(c.pool) || !c.cost.Fits(c.pool) {
		return errBody
	}
	for _, key := range b.payers(r.ds, r.holder, c.capped) {
		a, ok := b.accounts[key]
		if !ok {
			a = b.opening(key, r.at)
		}
		paid := c.cost
		if key.scope == scopeCap {
			paid = c.pool
		}
		a, held := a.rolled(r.at, b.ends(key, r.at)).charged(c.ladder.price(paid))
		if !held {
			return fmt.Errorf("a charge above a limit")
		}
		b.accounts[key] = a
	}
	if c.joins != 0 {
		if err := b.pay(r.holder, c.joins, r.at); err != nil {
			return err
		}
	} else {
		b.open[r.seq] = openCharge{r.ds, r.holder, c.digest, r.at}
	}
	if next := *set; !next.charged || c.cost.Delta.Atto() != 0 && !next.delta {
		next.charged, next.delta = true, next.delta || c.cost.Delta.Atto() != 0
		b.sets[r.ds] = &next
	}
	cost := c.cost
	if c.capped {
		cost = c.pool // a rollback that loses the charge loses that
	}
	b.total = accounting.Sum(b.total, c.ladder.whole(cost))
	b.charges++
	return nil
}

func (b *book) applySave(r row) error {
	s, err := decodeSave(r.body)
	if err != nil {
		return err
	}
	if s.of != 0 {
		return b.applyLevel(r, s)
	}
	o, ok := b.open[s.charge]
	if !ok || o.ds != r.ds || o.digest != s.item.Digest || o.at != s.at || (!s.item.Shared && o.user != r.holder) || (s.item.Shared && r.holder != "") {
		return fmt.Errorf("a release without its charge")
	}
	delete(b.open, s.charge)
	b.byCharge[s.charge] = r.seq
	if err := b.climb(b.keep(r, s)); err != nil {
		return err
	}
	return b.pay(o.user, r.seq, s.at)
}

// keep notes a saved release.
func (b *book) keep(r row, s saveBody) *record {
	rec := &record{Release: Release{ID: r.seq, Item: s.item, At: time.Unix(0, s.at).UTC()}, ds: r.ds, holder: r.holder,
		key: s.key, spec: specKey(s.item.Spec), noisy: s.noisy, family: s.family, of: s.of}
	b.releases[r.seq] = rec
	m := measureKey{r.ds, r.holder, s.item.Digest}
	b.byMeasure[m] = append(b.byMeasure[m], rec)
	return rec
}

// pay notes that the user has paid for a live release at that time. What she holds bears the time of her own payment: that
// of the draw would tell when another analyst chose to ask (privacy rule 1).
func (b *book) pay(user string, id int64, at int64) error {
	rec := b.releases[id]
	if rec == nil || rec.Revoked {
		return fmt.Errorf("a payment for no release")
	}
	if _, ok := b.paid[paidKey{id, user}]; ok {
		return fmt.Errorf("a second payment for one release")
	}
	b.paid[paidKey{id, user}] = struct{}{}
	k := holderKey{rec.ds, user}
	held := rec.Release
	held.At = time.Unix(0, at).UTC()
	b.held[k] = append(b.held[k], held)
	b.outgrow(k, rec)
	return nil
}

func (b *book) applyRevoke(r row) error {
	d := kept(r.body)
	id := d.i64()
	if err := d.end(); err != nil {
		return err
	}
	old := b.releases[id]
	if old == nil || old.Revoked {
		return errBody
	}
	for _, rec := range b.levelsOf(old) {
		b.withdraw(rec)
	}
	return nil
}

// withdraw takes a release from everybody.
func (b *book) withdraw(old *record) {
	id, rec := old.ID, *old
	rec.Revoked = true
	b.releases[id] = &rec
	m := measureKey{rec.ds, rec.holder, rec.Item.Digest}
	b.byMeasure[m] = slices.DeleteFunc(slices.Clone(b.byMeasure[m]), func(o *record) bool { return o.ID == id })
	for k, list := range b.held {
		if _, ok := b.paid[paidKey{id, k.user}]; ok && k.ds == rec.ds {
			b.held[k] = slices.DeleteFunc(slices.Clone(list), func(o Release) bool { return o.ID == id })
		}
	}
	b.fall(&rec)
}
