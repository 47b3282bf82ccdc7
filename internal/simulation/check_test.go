package simulation

import (
	"errors"
	"fmt"

	"github.com/dpproxy/dpproxy/ledger"
)

// journal is what is known outside of the ledger: what analysts have seen, and what the ledger has reported.
type journal struct {
	draws   int64
	acked   map[string]int64 // by user: charges that the ledger has acknowledged; of the dataset: draws
	open    map[string]int64 // by user: charges asked for and not refused: what may have been charged
	drawn   map[int64]int64  // by release that the ledger has acknowledged: its value
	seen    map[sight]int64  // what analysts have seen: the cost of each
	epochs  map[epoch]int64  // which release answers what
	answers int
}

type sight struct {
	user string
	id   int64
}

type epoch struct {
	holder  string
	measure int
	number  int64
}

func newJournal() journal {
	return journal{acked: map[string]int64{}, open: map[string]int64{}, drawn: map[int64]int64{}, seen: map[sight]int64{}, epochs: map[epoch]int64{}}
}

func (w *world) price(wanted []int) (sum int64) {
	for _, n := range wanted {
		sum += w.measures[n].cost
	}
	return sum
}

// begin notes that a charge may come.
func (w *world) begin(user string, wanted []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.book.open[user] += w.price(wanted)
}

// charged notes what the ledger said to a request. An error other than a refusal leaves it open what was charged; so
// does a process that has died.
func (w *world) charged(b *boot, user string, wanted []int, out []ledger.Outcome, err error) {
	dead := b.m.Dead()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case dead:
	case errors.Is(err, ledger.ErrExhausted) || errors.Is(err, ledger.ErrCap):
		w.book.open[user] -= w.price(wanted)
	case err == nil:
		sum := int64(0)
		for _, o := range out {
			sum += w.amount(o.Charged)
			if o.Receipt != nil {
				w.book.acked[theDataset] += w.amount(o.Charged)
			}
		}
		w.book.acked[user] += sum
		w.book.open[user] -= w.price(wanted) - sum
	}
}

// saved notes an acknowledged save.
func (w *world) saved(id, value int64) {
	w.mu.Lock()
	old, known := w.book.drawn[id]
	w.book.drawn[id] = value
	w.mu.Unlock()
	if known && old != value {
		w.broke("release %d was %d and is saved as %d", id, old, value)
	}
}

// receive is an answer, or a refusal, that reaches an analyst.
func (w *world) receive(ask int, user string, wanted []int, releases []ledger.Release, err error) {
	if err != nil {
		w.note(ask, "%s hears: %v", user, class(err))
		if untrue(err) || class(err) == errUnknown {
			w.broke("%s: %v", user, err)
		}
		return
	}
	text := ""
	for k, r := range releases {
		text += fmt.Sprint(" ", wanted[k], "=", r.Noisy.Value().Observations[0], " of ", r.ID)
		w.sight(user, wanted[k], r)
	}
	w.note(ask, "%s sees%s", user, text)
}

// sight holds one answer against what was seen before.
func (w *world) sight(user string, n int, r ledger.Release) {
	value, m := r.Noisy.Value().Observations[0], w.measures[n]
	e := epoch{holder: user, measure: n}
	if m.item.Shared {
		e.holder = ""
	}
	if m.item.Refresh > 0 {
		e.number = r.At.UnixNano() / int64(m.item.Refresh)
	}
	w.mu.Lock()
	old, known := w.book.drawn[r.ID]
	first, asked := w.book.epochs[e]
	w.book.drawn[r.ID], w.book.seen[sight{user, r.ID}] = value, m.cost
	if !asked {
		w.book.epochs[e] = r.ID
	}
	w.book.answers++
	w.mu.Unlock()
	if known && old != value {
		w.broke("%s sees %d in release %d, which was %d", user, value, r.ID, old)
	}
	if asked && first != r.ID {
		w.broke("measure %d was release %d and is drawn anew as %d", n, first, r.ID)
	}
}

// check is invariant P4, after each step: Σ of the answers seen ≤ Σ of the charges ≤ the limits, for each user and for
// the dataset; what was acknowledged is there; nothing is charged that nobody asked for; no window holds more than its
// limit.
func (w *world) check(thorough bool) {
	b := w.serving()
	if b == nil {
		return
	}
	acked, seen := w.before()
	if spent, drawn, err := w.balances(b); err == nil && !b.m.Dead() {
		w.compare(acked, seen, spent, spent, drawn)
	}
	if !thorough {
		return
	}
	failed := w.disk.Failures()
	list, err := b.l.Charges(background, "", theDataset, 1<<20)
	if err != nil {
		// A ledger that has met a fault stays closed until it is written to.
		if !b.m.Dead() && !errors.Is(err, ledger.ErrUnavailable) && w.disk.Failures() == failed {
			w.broke("charges cannot be read: %v", err)
		}
		return
	}
	spent, drawn, err := w.balances(b)
	if err != nil || b.m.Dead() {
		return
	}
	sums, windows := map[string]int64{}, map[string]int64{}
	for i, c := range list {
		if i > 0 && c.At.After(list[i-1].At) {
			w.broke("the ledger's time went back before charge %d", list[i-1].Seq)
		}
		sums[c.User] += w.amount(c.Cost)
		windows[fmt.Sprint(c.User, c.At.UnixNano()/int64(window))] += w.amount(c.Cost)
		for _, a := range w.users {
			if key := fmt.Sprint(c.User, c.At.UnixNano()/int64(window)); a.name == c.User && a.window > 0 && windows[key] > a.limit {
				w.broke("%s: a window holds %d of %d", a.name, windows[key], a.limit)
			}
		}
	}
	w.compare(acked, seen, sums, spent, drawn)
}

// compare holds what was known at first against the sums of charges, the accounts, and what is known now.
func (w *world) compare(acked, seen, sums, spent map[string]int64, drawn int64) {
	for _, a := range w.users {
		w.mu.Lock()
		open := w.book.open[a.name]
		w.mu.Unlock()
		switch {
		case seen[a.name] > sums[a.name]:
			w.broke("%s has seen answers for %d, charged are %d", a.name, seen[a.name], sums[a.name])
		case acked[a.name] > sums[a.name]:
			w.broke("%s: charges of %d were acknowledged, the ledger has %d", a.name, acked[a.name], sums[a.name])
		case sums[a.name] > open:
			w.broke("%s: charged %d, asked for at most %d", a.name, sums[a.name], open)
		case spent[a.name] > a.life || sums[a.name] > a.life:
			w.broke("%s: spent %d and charged %d of %d", a.name, spent[a.name], sums[a.name], a.life)
		case spent[a.name] < sums[a.name]:
			w.broke("%s: spent %d, charged %d", a.name, spent[a.name], sums[a.name])
		}
	}
	if drawn > w.cap || drawn < acked[theDataset] || seen[theDataset] > drawn {
		w.broke("the dataset has spent %d of %d; draws for %d were acknowledged, releases for %d were seen", drawn, w.cap, acked[theDataset], seen[theDataset])
	}
}

// before is the sums of what was acknowledged and seen so far.
func (w *world) before() (acked, seen map[string]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	acked, seen = map[string]int64{}, map[string]int64{}
	for user, sum := range w.book.acked {
		acked[user] = sum
	}
	releases := map[int64]bool{}
	for s, cost := range w.book.seen {
		seen[s.user] += cost
		if !releases[s.id] { // the dataset pays for a release once
			releases[s.id] = true
			seen[theDataset] += cost
		}
	}
	return acked, seen
}

func (w *world) balances(b *boot) (spent map[string]int64, drawn int64, err error) {
	spent = map[string]int64{}
	for _, a := range w.users {
		balance, err := b.l.Balance(background, a.name, theDataset)
		if err != nil {
			return nil, 0, err
		}
		spent[a.name] = w.amount(balance.LifeSpent)
	}
	c, _, err := b.l.Cap(background, theDataset)
	return spent, w.amount(c), err
}

// reread loads every release that an analyst has seen: it is there and as it was.
func (w *world) reread(b *boot) {
	w.mu.Lock()
	var all []sight
	for s := range w.book.seen {
		all = append(all, s)
	}
	w.mu.Unlock()
	for _, s := range all {
		got, err := b.l.Load(background, s.user, s.id)
		w.mu.Lock()
		want := w.book.drawn[s.id]
		w.mu.Unlock()
		if err != nil || got.Noisy.Value().Observations[0] != want {
			w.broke("%s has seen release %d as %d; it is %v, %v", s.user, s.id, want, got.Noisy, err)
		}
	}
}
