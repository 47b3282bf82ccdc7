package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Who pays for what. Of a request for two measures, of which she has paid for the first in this epoch,
//
//	lockItems looks both up in the book: the first is free, and the second is locked, so that nobody else draws it meanwhile;
//	pay       hands a job to the writer (jobs.go), which looks again, since the book may have moved on (errOutdated), and then
//	charge    takes the cost from her window, her lifetime and the dataset's cap, one conditional update each, and adds a row to the chain.
//
// The outcome of the first is the number of its saved release, and that of the second a receipt: backend.Execute spends
// it, and Save (save.go) gives its lock back.

// specKey gives equal specs equal strings.
func specKey(s mechanisms.Spec) string {
	var e chain.Encoder
	e.Spec(s)
	return string(e.Bytes())
}

// pendingCharge is one item of a request on its way through Charge.
type pendingCharge struct {
	item   *Item
	cost   privacy.Cost
	pool   privacy.Cost // what a draw of it costs the cap
	free   int64        // the saved release that the user has paid for
	joins  int64        // the saved shared release that she pays her share of
	key    store.Key
	ladder int64 // the user's latest release of the same measure that a ladder began with, or that refines one
	lock   *itemLock
	charge int64
	fence  int64 // of the claim on the draw
}

// Charge pays for the items of one statement at once. See Ledger.
func (f *keeper) Charge(ctx context.Context, r Request) ([]Outcome, error) {
	if err := checkRequest(r); err != nil {
		return nil, err
	}
	for stepwise := false; ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		pending, payer, wait, err := f.lockItems(r)
		if err != nil {
			return nil, err
		}
		if wait == nil {
			out, err := f.pay(ctx, r, payer, pending, stepwise)
			switch {
			case errors.Is(err, errOutdated):
				continue
			case errors.Is(err, errElsewhere):
				if err := f.await(ctx); err != nil {
					return nil, err
				}
				stepwise = true // it may be so still
				continue
			}
			return out, err
		}
		select {
		case <-wait.released:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func checkRequest(r Request) error {
	if r.User == "" || r.User == "*" || isGroup(r.User) || r.Dataset == "" || len(r.Items) == 0 {
		return errors.New("ledger: a request needs a user, a dataset and items")
	}
	if len(r.Items) > 1<<12 {
		return errors.New("ledger: too many items")
	}
	for i := range r.Items {
		if err := r.Items[i].sound(); err != nil {
			return err
		}
	}
	return nil
}

// MaxNamed and MaxDescribed are how many bytes the kind, name and table of an item may have together, and its
// description.
const MaxNamed, MaxDescribed = 1 << 12, 1 << 24

// sound checks an item before it is charged.
func (it *Item) sound() error {
	if negative(it.Cost) || free(it.Cost) {
		return errors.New("ledger: the cost of an item must be greater than zero")
	}
	if it.Cost.Epsilon.Micro() != 0 && it.Cost.Rho.Pico() != 0 {
		return errors.New("ledger: the cost of an item must name ε or ρ")
	}
	if it.Refresh < 0 || it.Kind == "" || it.Spec.Counters < 1 || it.Spec.Cells < 1 || !it.Spec.HasNoise() {
		return errors.New("ledger: malformed item")
	}
	if err := errors.Join(it.Ladder.sound(it), it.soundLevels()); err != nil {
		return err
	}
	if len(it.Kind)+len(it.Name)+len(it.Table) > MaxNamed || len(it.Described) > MaxDescribed {
		return errors.New("ledger: item too long")
	}
	return nil
}

// lockItems looks each item up and locks each that must be paid. If another request is paying for one of them it locks
// none and returns that lock to wait for.
func (f *keeper) lockItems(r Request) (pending []pendingCharge, payer holderKey, wait *itemLock, err error) {
	f.itemLocks.mu.Lock()
	defer f.itemLocks.mu.Unlock()
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.itemLocks.closed {
		return nil, payer, nil, ErrClosed
	}
	now := max(f.tick(), f.book.links.Time) // as the writer dates rows, or it would find this look outdated again and again
	if payer, err = f.book.lookup(r); err != nil {
		return nil, payer, nil, err
	}
	pending = make([]pendingCharge, len(r.Items))
	started := map[store.Key]bool{}
	for i := range r.Items {
		p := &pending[i]
		*p = f.book.resolve(payer, &r.Items[i], now)
		if p.free != 0 {
			continue
		}
		if l := f.itemLocks.held[p.key]; l != nil {
			return nil, payer, l, nil
		}
		if err := f.book.climbs(payer, r, p); err != nil {
			return nil, payer, nil, err
		}
		if started[p.key] {
			return nil, payer, nil, errors.New("ledger: one item twice in a request")
		}
		started[p.key] = true
	}
	for i := range pending {
		if p := &pending[i]; p.free == 0 {
			p.lock = f.itemLocks.take(p.key)
		}
	}
	return pending, payer, nil, nil
}

// lookup finds the dataset and the account that pays, and checks that the request was planned under the policy in
// force.
func (b *book) lookup(r Request) (payer holderKey, _ error) {
	if !b.ruled || b.policy != r.PolicyDigest {
		return payer, fmt.Errorf("ledger: %w", ErrPolicy)
	}
	ds, ok := b.find(r.Dataset)
	if !ok || !b.active[ds] {
		return payer, fmt.Errorf("ledger: %w: no dataset %s in it", ErrPolicy, r.Dataset)
	}
	for i := range r.Items {
		it := &r.Items[i]
		if err := errors.Join(measures(b.sets[ds].terms.Accountant, it.Cost), measures(b.sets[ds].terms.Accountant, it.pool())); err != nil {
			return payer, fmt.Errorf("ledger: item %s: %w", it.Name, err)
		}
	}
	payer = holderKey{ds, b.sets[ds].holder(r.User)}
	if _, ok := b.sets[ds].budget(payer.user); !ok {
		return payer, fmt.Errorf("ledger: %w: no budget in dataset %s", ErrExhausted, r.Dataset)
	}
	return payer, nil
}

// resolve tells how one item would be served: free, by joining a saved shared release, or by a new draw.
func (b *book) resolve(payer holderKey, it *Item, now int64) pendingCharge {
	p := pendingCharge{item: it, cost: it.Cost, pool: it.pool()}
	ds, user := payer.ds, payer.user
	holder := user
	if it.Shared {
		holder = ""
	}
	spec, family := specKey(it.Spec), it.family()
	for _, rec := range b.byMeasure[measureKey{ds, holder, it.Digest}] {
		if rec.Item.Ladder != (Ladder{}) {
			p.ladder = max(p.ladder, rec.ID)
		}
		if rec.spec != spec || rec.family != family || !rec.current(it, now) {
			continue
		}
		if _, ok := b.paid[paidKey{rec.ID, user}]; ok {
			p.free = rec.ID
			return p
		}
		p.joins = max(p.joins, rec.ID)
	}
	if family != (Digest{}) { // of its levels one is drawn at a time: it is drawn for all
		spec = string(family[:])
	}
	if it.Ladder != (Ladder{}) { // of one measure one ladder begins at a time, at whatever level: who waits for it is planned anew, and refines it
		spec = fmt.Sprint("ladder after ", p.ladder)
	}
	var e chain.Encoder
	e.Int(ds)
	e.Text(holder)
	e.Digest(it.Digest)
	e.Text(spec)
	e.Int(int64(it.Refresh))
	if it.Refresh > 0 {
		e.Int(now / int64(it.Refresh))
	}
	if p.joins != 0 {
		e.Int(p.joins)
		e.Text(user)
	}
	if it.Ladder.From != 0 { // of one release one level is drawn at a time
		e = chain.Encoder{}
		e.Text("refine")
		e.Int(it.Ladder.From)
	}
	p.key = e.Hash()
	return p
}

// current reports whether a saved release is of the epoch in which it is asked for.
func (r *record) current(it *Item, now int64) bool {
	return it.Refresh == 0 || r.At.UnixNano()/int64(it.Refresh) == now/int64(it.Refresh)
}

// pay charges for the items that are not free. Whatever fails, their locks are given back here.
func (f *keeper) pay(ctx context.Context, r Request, payer holderKey, pending []pendingCharge, stepwise bool) ([]Outcome, error) {
	var at int64
	err := error(nil)
	if slices.ContainsFunc(pending, func(p pendingCharge) bool { return p.free == 0 }) {
		err = f.do(ctx, &job{stepwise: stepwise, ds: payer.ds, run: func(t *batch) error {
			at = t.now
			return t.charge(r, payer, pending)
		}})
	}
	out := make([]Outcome, len(pending))
	for i := range pending {
		p := &pending[i]
		switch {
		case p.free != 0:
			out[i] = Outcome{ID: p.free}
		case err != nil:
			f.itemLocks.release(p.lock)
		case p.joins != 0:
			out[i] = Outcome{ID: p.joins, Charged: p.item.Cost}
			f.itemLocks.release(p.lock)
		default:
			receipt := &Receipt{digest: p.item.Digest, charge: p.charge, fence: p.fence, at: at, key: p.key, lock: p.lock, ds: payer.ds, user: payer.user, item: *p.item}
			receipt.state.Store(receiptFresh)
			out[i] = Outcome{Receipt: receipt, Charged: p.item.Cost}
		}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// errOutdated: between the look at the book and the charge the book or the time has moved on, so that an item is served
// otherwise: its epoch is over, or a ledger opened anew after a fault holds a save that had no acknowledgement.
var errOutdated = errors.New("looked up too early")

// outdated reports whether an item would be served otherwise now.
func (b *book) outdated(payer holderKey, p *pendingCharge, now int64) bool {
	again := b.resolve(payer, p.item, now)
	return again.free != 0 || again.joins != p.joins || again.key != p.key
}

// movesOf returns what each account pays, where the payer pays all and the cap pays what is drawn.
func (t *batch) movesOf(payer holderKey, all, drawn accounting.Charge) (moves []store.Move, err error) {
	b := t.book
	for _, key := range b.payers(payer.ds, payer.user, !drawn.Cost.IsZero()) {
		m := store.Move{Key: key, Charge: all, Ends: b.ends(key, t.now)}
		if key.Scope == store.ScopeCap {
			m.Charge = drawn
		}
		if c := m.Charge.Cost; max(c.Epsilon.Micro(), c.Rho.Pico(), c.Delta.Atto()) == math.MaxInt64 { // more than can be written
			return nil, refusal{fmt.Errorf("ledger: %w", spentOf(key))}
		}
		if _, ok := b.accounts[key]; !ok {
			a := b.opening(key, t.now)
			m.Fresh = &a
		}
		moves = append(moves, m)
	}
	return moves, nil
}

// charge is what the writer does: one conditional update for each account, and the rows. The batch's book is what it
// decides on.
func (t *batch) charge(r Request, payer holderKey, pending []pendingCharge) error {
	b, ds := t.book, payer.ds
	if now, err := b.lookup(r); err != nil || now != payer {
		return refusal{errors.Join(err, ErrPolicy)}
	}
	if err := t.bind(ds); err != nil {
		return err
	}
	var all, drawn accounting.Charge // what she pays, and what the cap pays
	var whole accounting.Charge      // what the cap would pay if each item were drawn
	for i := range pending {
		p := &pending[i]
		if p.free != 0 {
			continue
		}
		if b.outdated(payer, p, t.now) {
			return refusal{errOutdated}
		}
		if err := b.climbs(payer, r, p); err != nil {
			return refusal{err}
		}
		all, whole = all.Plus(p.item.Ladder.price(p.cost)), whole.Plus(p.item.Ladder.price(p.pool))
		if p.joins == 0 {
			fence, err := t.claim(ds, p.key)
			if err != nil {
				return err
			}
			p.fence = fence
			drawn = drawn.Plus(p.item.Ladder.price(p.pool))
		}
	}
	moves, err := t.movesOf(payer, all, drawn)
	if err != nil {
		return err
	}
	if err := t.foresee(b, moves); err != nil {
		return err
	}
	if refused, err := t.store.Charge(t.now, moves); err != nil {
		return err
	} else if refused >= 0 {
		return refusal{fmt.Errorf("ledger: %w", spentOf(moves[refused].Key))}
	}
	if whole != drawn && !b.capHolds(ds, whole, t.now) {
		return refusal{fmt.Errorf("ledger: %w", ErrCap)}
	}
	return addCharges(t, r, payer, pending)
}

// spentOf is the error of an account that does not hold a cost.
func spentOf(key store.AccountKey) error {
	if key.Scope == store.ScopeCap {
		return ErrCap
	}
	return ErrExhausted
}

// capHolds reports whether the cap could pay for all items if each were drawn. A release that another analyst has had
// drawn costs the cap nothing more, but it is sold only while the cap could have paid for it: else, with the cap spent,
// what is still for sale would tell what others have chosen (privacy rule 1).
func (b *book) capHolds(ds int64, all accounting.Charge, now int64) bool {
	return b.account(store.AccountKey{DS: ds, Scope: store.ScopeCap}, now).Holds(all)
}

func addCharges(t *batch, r Request, payer holderKey, pending []pendingCharge) error {
	by := r.User
	if by == payer.user {
		by = ""
	}
	for i := range pending {
		p := &pending[i]
		if p.free != 0 {
			continue
		}
		body := chargeBody{statement: r.Statement, policy: r.PolicyDigest, digest: p.item.Digest, kind: p.item.Kind, name: p.item.Name,
			table: p.item.Table, cost: p.item.Cost, capped: p.joins == 0, pool: p.item.pool(), joins: p.joins, ladder: p.item.Ladder, by: by}
		row, err := t.add(chain.RowCharge, payer.ds, payer.user, body.encode())
		if err != nil {
			return err
		}
		p.charge = row.Seq
	}
	return nil
}

// bind makes the dataset's base relations its own, with the first charge.
func (t *batch) bind(ds int64) error {
	var free []string
	for _, relation := range t.book.sets[ds].terms.Relations {
		owner, ok := t.book.bound[relation]
		if ok && owner != ds {
			return refusal{errBoundBy("relation %s belongs to dataset %s", relation, t.book.sets[owner].id)}
		}
		if !ok {
			free = append(free, relation)
		}
	}
	if len(free) == 0 {
		return nil
	}
	_, err := t.add(chain.RowBind, ds, "", encodeRelations(free))
	return err
}

// The states of a receipt. It only ever moves forward, but for a save that failed, which may be tried again.
const (
	receiptFresh int32 = 1 + iota
	receiptSpent
	receiptSaving
	receiptClosed // saved or abandoned
)

// Receipt proves that one measure is paid for. It is spent once, by the execution of exactly that measure. The zero
// value is invalid; only Charge and Grow make receipts.
type Receipt struct {
	digest Digest
	charge int64 // the charge's sequence number
	fence  int64 // of the claim on the draw, which a save needs
	at     int64 // the charge's time, which is the release's
	key    store.Key
	lock   *itemLock
	ds     int64
	user   string
	item   Item
	grows  int64           // the continual release that a step is of; then there is no charge
	step   mechanisms.Step // of grows
	state  atomic.Int32    // 0: invalid
}

// Levels are those that must be drawn together, the finest first; none means one release is drawn.
func (r *Receipt) Levels() []mechanisms.Level { return r.item.Levels }

// Spend uses the receipt up for the measure of that digest. It fails on a zero, spent or foreign receipt.
func (r *Receipt) Spend(d Digest) error {
	if r == nil || r.state.Load() == 0 {
		return errors.New("ledger: not a receipt")
	}
	if r.digest != d {
		return errors.New("ledger: receipt of another measure")
	}
	if !r.state.CompareAndSwap(receiptFresh, receiptSpent) {
		return errors.New("ledger: receipt already spent")
	}
	return nil
}
