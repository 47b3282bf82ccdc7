package ledger

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// book is the ledger in memory: the fold of all rows of its chains. The same code folds them when the ledger is opened
// or verified and each new row after its commit, so that memory cannot say anything else than the disk. Rows of two
// datasets may be folded in either order: what one says is kept with its dataset, and what it asks about is its
// dataset's, or chain 0's.
type book struct {
	name    Digest       // the ledger's random name
	links   *chain.Links // its chains
	policy  Digest
	ruled   bool             // a policy was adopted
	active  map[int64]bool   // datasets of the policy in force
	ids     map[string]int64 // dataset ids ever used, also those that were renamed away
	sets    map[int64]*dataset
	bound   map[string]int64       // base relation -> dataset
	total   privacy.Cost           // Σ of all charges and forfeits: the witness keeps it
	totals  map[int64]privacy.Cost // of each dataset alone
	lost    privacy.Cost           // Σ of what accepted rollbacks have lost; accounts not yet opened may have paid it
	lostAll bool                   // … or nobody knows how much

	accounts  map[store.AccountKey]store.Account
	brought   map[holderKey]prefixes                     // of each account, what it has not paid itself: see teams.go
	caused    map[holderKey]map[string]accounting.Charge // of each group, what its members have spent, as it was priced then
	open      map[int64]openCharge                       // charges whose draw is not saved
	releases  map[int64]*record
	byCharge  map[int64]int64
	byMeasure map[measureKey][]*record // live
	paid      map[paidKey]struct{}
	refined   map[int64]bool          // releases that were refined
	held      map[holderKey][]Release // live, oldest first; slices are only appended to or replaced
	charges   int64
	passed    map[end]bool  // the ends of given marks that a replay has met
	later     map[end]since // and what was charged after the times of theirs
}

// since is what was charged after a time, and at it.
type since struct{ after, beside privacy.Cost }

// dataset is what the chain says of one dataset. Values behind the pointer are replaced, never changed.
type dataset struct {
	id      string
	terms   DatasetTerms
	encoded string            // the terms' canonical bytes
	groups  map[string]string // by member, the account of her group
	paths   map[string]string // by base relation, how its rows name their unit, of all terms since something is spent
	charged bool
	delta   bool // a charge named δ
}

type (
	openCharge struct {
		ds     int64
		user   string
		digest Digest
		at     int64
		also   []string // accounts that were charged for it when groups changed before it was saved; replaced, never changed
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
		key    store.Key
		spec   string
		noisy  Digest
		family Digest   // the levels that it was drawn with; zero: it has none
		of     int64    // the release on whose save these were saved; 0 means its own
		first  int64    // the release that its ladder began with; 0 means none
		topped bool     // rows are missing, of which one may have refined it: its ladder has no further level
		grown  []growth // of a continual release, its steps
	}
)

func newBook() *book {
	return &book{
		links: &chain.Links{}, totals: map[int64]privacy.Cost{}, passed: map[end]bool{}, later: map[end]since{},
		active: map[int64]bool{}, ids: map[string]int64{}, sets: map[int64]*dataset{}, bound: map[string]int64{},
		accounts: map[store.AccountKey]store.Account{}, brought: map[holderKey]prefixes{}, caused: map[holderKey]map[string]accounting.Charge{}, open: map[int64]openCharge{}, releases: map[int64]*record{}, byCharge: map[int64]int64{},
		byMeasure: map[measureKey][]*record{}, paid: map[paidKey]struct{}{}, refined: map[int64]bool{}, held: map[holderKey][]Release{},
	}
}

// draft is a copy on which rows about datasets, accounts and groups can be tried; releases are shared with the
// original.
func (b *book) draft() *book {
	c := *b
	c.totals, c.active, c.ids, c.bound = maps.Clone(b.totals), maps.Clone(b.active), maps.Clone(b.ids), maps.Clone(b.bound)
	c.sets, c.accounts, c.brought = maps.Clone(b.sets), maps.Clone(b.accounts), maps.Clone(b.brought)
	c.paid, c.held, c.open = maps.Clone(b.paid), maps.Clone(b.held), maps.Clone(b.open) // which a change of groups adds to
	return &c
}

// clone is a copy that goes on by itself. What the maps hold is replaced and never changed, but for lists, which are
// added to.
func (b *book) clone() *book {
	c := b.draft()
	c.links = b.links.Clone()
	c.releases, c.byCharge, c.refined = maps.Clone(b.releases), maps.Clone(b.byCharge), maps.Clone(b.refined)
	c.byMeasure, c.caused = maps.Clone(b.byMeasure), maps.Clone(b.caused)
	for k, list := range c.held {
		c.held[k] = slices.Clip(list)
	}
	for k, list := range c.byMeasure {
		c.byMeasure[k] = slices.Clip(list)
	}
	for k, caused := range c.caused {
		c.caused[k] = maps.Clone(caused)
	}
	return c
}

// take checks and folds the next row of a chain.
func (b *book) take(r chain.Row) error {
	if err := b.links.Take(r); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return b.apply(r)
}

// retake folds a row that another book of the same chains has taken.
func (b *book) retake(r chain.Row) error {
	if err := b.links.Move(r); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return b.apply(r)
}

// apply folds one row that follows.
func (b *book) apply(r chain.Row) error {
	var err error
	switch r.Kind {
	case chain.RowGenesis:
		d := chain.Read(r.Body)
		if b.name = d.Digest(); d.More() {
			d.Bool() // whether datasets have chains of their own: package chain's to read
		}
		err = d.End()
	case chain.RowPolicy:
		err = b.applyPolicy(r)
	case chain.RowTerms:
		err = b.applyTerms(r)
	case chain.RowRename:
		err = b.applyRename(r)
	case chain.RowBind:
		err = b.applyBind(r)
	case chain.RowCharge:
		err = b.applyCharge(r)
	case chain.RowSave:
		err = b.applySave(r)
	case chain.RowRevoke:
		err = b.applyRevoke(r)
	case chain.RowForfeit:
		err = b.applyForfeit(r)
	case chain.RowVouch, chain.RowChains:
		d := chain.Read(r.Body)
		err = d.End()
	case chain.RowStep:
		err = b.applyStep(r)
	case chain.RowGrow:
		err = b.applyGrow(r)
	default:
		err = fmt.Errorf("%w: of kind %d", chain.ErrMalformed, r.Kind)
	}
	if errors.Is(err, chain.ErrMalformed) { // its hash follows, so that this is what was written
		return store.OtherForm("row %d is of another form (%v)", r.Seq, err)
	}
	if err != nil {
		return fmt.Errorf("%w: row %d: %w", ErrCorrupt, r.Seq, err)
	}
	return nil
}

// spend adds to what was charged in a dataset.
func (b *book) spend(ds int64, cost privacy.Cost) {
	b.total, b.totals[ds] = b.total.Plus(cost), b.totals[ds].Plus(cost)
}

func (b *book) applyPolicy(r chain.Row) error {
	d := chain.Read(r.Body)
	digest := d.Digest()
	active := map[int64]bool{}
	for range d.Count() {
		ds := d.Int()
		if b.sets[ds] == nil {
			return chain.ErrMalformed
		}
		active[ds] = true
	}
	if err := d.End(); err != nil {
		return err
	}
	b.policy, b.ruled, b.active = digest, true, active
	return nil
}

func (b *book) applyBind(r chain.Row) error {
	d := chain.Read(r.Body)
	relations := readRelations(&d)
	if err := d.End(); err != nil {
		return err
	}
	for _, relation := range relations {
		if ds, ok := b.bound[relation]; ok && ds != r.DS {
			return ErrBound
		}
		b.bound[relation] = r.DS
	}
	return nil
}

func (b *book) applyCharge(r chain.Row) error {
	c, err := decodeCharge(r.Body)
	if err != nil {
		return err
	}
	set := b.sets[r.DS]
	if set == nil {
		return chain.ErrMalformed
	}
	if negative(c.cost) || negative(c.pool) || !c.cost.Fits(c.pool) {
		return chain.ErrMalformed
	}
	for _, key := range b.payers(r.DS, r.Holder, c.capped) {
		a, held := b.account(key, r.At).Charged(c.ladder.price(c.paid(key.Scope == store.ScopeCap)))
		if !held {
			return fmt.Errorf("a charge above a limit")
		}
		b.accounts[key] = a
	}
	if c.joins != 0 {
		if rec := b.releases[c.joins]; rec == nil || rec.ds != r.DS {
			return fmt.Errorf("a payment in another dataset")
		}
		if err := b.pay(r.Holder, c.joins, r.At); err != nil {
			return err
		}
	} else {
		b.open[r.Seq] = openCharge{ds: r.DS, user: r.Holder, digest: c.digest, at: r.At}
	}
	if next := *set; !next.charged || c.cost.Delta.Atto() != 0 && !next.delta {
		next.charged, next.delta = true, next.delta || c.cost.Delta.Atto() != 0
		b.sets[r.DS] = &next
	}
	b.note(holderKey{r.DS, r.Holder}, c.by, c.ladder.price(c.cost))
	b.spend(r.DS, c.ladder.whole(c.paid(c.capped))) // a rollback that loses the charge loses what was drawn
	b.charges++
	return nil
}

func (b *book) applySave(r chain.Row) error {
	s, err := decodeSave(r.Body)
	if err != nil {
		return err
	}
	if s.of != 0 {
		return b.applyLevel(r, s)
	}
	o, ok := b.open[s.charge]
	if !ok || o.ds != r.DS || o.digest != s.item.Digest || o.at != s.at || (!s.item.Shared && o.user != r.Holder) || (s.item.Shared && r.Holder != "") {
		return fmt.Errorf("a release without its charge")
	}
	delete(b.open, s.charge)
	b.byCharge[s.charge] = r.Seq
	if err := b.climb(b.keep(r, s)); err != nil {
		return err
	}
	if err := b.pay(o.user, r.Seq, s.at); err != nil {
		return err
	}
	b.handLate(o, r.Seq)
	return nil
}

// keep notes a saved release.
func (b *book) keep(r chain.Row, s saveBody) *record {
	rec := &record{Release: Release{ID: r.Seq, Item: s.item, At: time.Unix(0, s.at).UTC()}, ds: r.DS, holder: r.Holder,
		key: s.key, spec: specKey(s.item.Spec), noisy: s.noisy, family: s.family, of: s.of}
	b.releases[r.Seq] = rec
	m := measureKey{r.DS, r.Holder, s.item.Digest}
	b.byMeasure[m] = append(b.byMeasure[m], rec)
	return rec
}

// pay notes that the user has paid for a live release at that time. What she holds bears the time of her own payment:
// that of the draw would tell when another analyst chose to ask (privacy rule 1).
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

func (b *book) applyRevoke(r chain.Row) error {
	d := chain.Read(r.Body)
	id := d.Int()
	if err := d.End(); err != nil {
		return err
	}
	old := b.releases[id]
	if old == nil || old.Revoked || old.ds != r.DS {
		return chain.ErrMalformed
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
			b.outgrow(k, &rec)
		}
	}
	b.fall(&rec)
}

// windowEnd is the end of the tumbling window of that length that holds now.
func windowEnd(now int64, length time.Duration) int64 {
	n := int64(length)
	start := now - now%n
	if start > math.MaxInt64-n {
		return math.MaxInt64
	}
	return start + n
}

// repriced carries spending from old terms to new ones.
func repriced(c accounting.Charge, old, now DatasetTerms) accounting.Charge {
	if old.Neighbors == privacy.AddRemove && now.Neighbors == privacy.ReplaceOne {
		c = c.Doubled()
	}
	if old.Accountant != privacy.ZCDP && now.Accountant == privacy.ZCDP {
		c = c.Concentrated()
	}
	return c
}

// forfeited takes lost away from an account, or, with all, whatever is left.
func forfeited(a store.Account, lost privacy.Cost, all bool, t DatasetTerms) store.Account {
	lost = lostUnder(lost, t)
	if all {
		lost = a.Left()
	}
	return a.Forfeited(accounting.Price(lost))
}

// lostUnder prices what a rollback has lost for an account under terms t. Of the lost charges only the sums are known,
// so each account is taken to have paid all of them, under the terms that make them dearest. An account that has only
// ever been pure has paid no ρ.
func lostUnder(lost privacy.Cost, t DatasetTerms) privacy.Cost {
	if t.Accountant == privacy.Pure {
		lost.Rho = privacy.Rho{}
	}
	return repriced(accounting.Price(lost), DatasetTerms{Accountant: privacy.Pure, Neighbors: privacy.AddRemove}, t).Cost
}

// negative reports whether an amount is below zero in some unit.
func negative(c privacy.Cost) bool { return min(c.Epsilon.Micro(), c.Rho.Pico(), c.Delta.Atto()) < 0 }

// free reports whether a cost names neither ε nor ρ.
func free(c privacy.Cost) bool { return c.Epsilon.Micro() == 0 && c.Rho.Pico() == 0 }

// rewriteAccounts makes a store's table equal to what the chain says, after rows that touch many accounts.
func rewriteAccounts(s store.Store, accounts map[store.AccountKey]store.Account) error {
	if err := s.ClearAccounts(); err != nil {
		return err
	}
	for key, a := range accounts {
		if err := s.OpenAccount(key, a); err != nil {
			return err
		}
	}
	return nil
}

// compareAccounts holds the table against the accounts recomputed from the chain.
func compareAccounts(s store.Store, b *book) error {
	stored, err := s.Accounts()
	if err != nil {
		return openFailed(err)
	}
	var faults []error
	for key, a := range b.accounts {
		if stored[key] != a {
			faults = append(faults, fmt.Errorf("%w: an account of dataset %q differs from the chain", ErrCorrupt, b.sets[key.DS].id))
		}
		delete(stored, key)
	}
	if len(stored) != 0 {
		faults = append(faults, fmt.Errorf("%w: %d accounts that the chain does not know", ErrCorrupt, len(stored)))
	}
	return errors.Join(faults...)
}
