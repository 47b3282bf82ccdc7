package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	random "math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/mechanisms"
)

// simWorld is a run of three proxies that share a ledger: they die and come again, the server restarts, connections are
// lost before and after a commit. The schedule is the seed's (docs/adr/0035).
type simWorld struct {
	seed    uint64
	rng     *random.Rand
	server  *simServer
	dir     string
	started time.Time
	boots   int
	zombies sync.WaitGroup
	asks    sync.WaitGroup

	mu      sync.Mutex // never held by anybody who waits for time
	live    [3]*simProxy
	seen    map[paidKey]int64 // the cost of what users have seen
	values  map[int64]int64   // of releases seen or acknowledged
	first   map[string]int64  // the release of a measure and holder
	acked   map[string]int64  // charges acknowledged, by user
	draws   int64
	trace   []string
	broken  string
	answers int
}

type simProxy struct {
	l    *keeper
	site *simSite
}

const simCap, simLife = 6000, 4000

var simSets = []string{"census", "survey", "trial"}

func (w *simWorld) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, fmt.Sprintf("%14.9f %s", time.Since(w.started).Seconds(), fmt.Sprintf(format, args...)))
}

func (w *simWorld) broke(format string, args ...any) {
	w.note("BROKEN: "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

func (w *simWorld) proxy(n int) *simProxy {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.live[n]
}

func (w *simWorld) put(n int, p *simProxy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live[n] = p
}

func (w *simWorld) start(n int) {
	if w.proxy(n) != nil {
		return
	}
	w.boots++
	site := &simSite{server: w.server, number: w.boots, mark: filepath.Join(w.dir, fmt.Sprintf("witness-%d", n))}
	l, err := Open(ctx, "", Options{site: site})
	if err == nil {
		var sets []DatasetTerms
		for _, name := range simSets {
			d := census()
			d.ID, d.Relations = name, []string{"public." + name}
			d.Cap, d.Budgets = eps(simCap), map[string]BudgetTerms{"*": {Limit: eps(simLife)}}
			sets = append(sets, d)
		}
		if err = l.Adopt(ctx, terms(sets...)); err != nil {
			site.kill()
			_ = l.Close() // it has no connection
		}
	}
	if err != nil {
		if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrRollback) || errors.Is(err, ErrWitness) {
			w.broke("proxy %d does not start: %v", n, err)
		}
		w.note("proxy %d does not start", n)
		return
	}
	w.put(n, &simProxy{l.(*keeper), site})
	w.note("proxy %d is up", n)
}

func (w *simWorld) kill(n int) {
	p := w.proxy(n)
	if p == nil {
		return
	}
	w.note("proxy %d is killed", n)
	w.put(n, nil)
	p.site.kill()
	w.zombies.Go(func() { _ = p.l.Close() }) // it has no connection
}

// paced is a context whose owner has moments of her own also within a call: a charge that has waited looks at its
// context before it tries again, and pauses here. Else those who waited for one thing would race for it.
type paced struct {
	context.Context
	pause func(most int64)
}

func (p paced) Err() error {
	p.pause(1e6)
	return nil
}

// ask is one purchase by one user at one proxy, by the pipeline's way.
func (w *simWorld) ask(id uint64) {
	rng := random.New(random.NewPCG(w.seed, 100+id))
	pause := func(most int64) { time.Sleep(time.Duration(1 + rng.Int64N(most))) }
	pause(5e8)
	p := w.proxy(rng.IntN(3))
	if p == nil {
		return
	}
	user, n := []string{"ann", "bob", "cid"}[rng.IntN(3)], byte(rng.IntN(8))
	it := item(n, eps(50+30*int64(n)))
	it.Shared = n%2 == 0
	if p.l.Follow(ctx) != nil {
		return
	}
	set := simSets[rng.IntN(len(simSets))]
	bought := request(user, it)
	bought.Dataset = set
	account := user + " of " + set
	out, err := p.l.Charge(paced{ctx, pause}, bought)
	if err != nil {
		w.note("%s is not charged for %d: %v", account, n, errors.Is(err, ErrUnavailable))
		if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrRollback) {
			w.broke("%v", err)
		}
		return
	}
	defer p.l.Abandon(out[0].Receipt)
	if !p.site.isDead() {
		if r := out[0].Receipt; r != nil && !w.server.durable(func(x simState) bool {
			return slices.ContainsFunc(x.rows, func(row chain.Row) bool { return row.Seq == r.charge })
		}) {
			w.broke("charge %d is acknowledged before it is durable", r.charge)
		}
		w.mu.Lock()
		w.acked[account] += out[0].Charged.Epsilon.Micro()
		w.mu.Unlock()
	}
	at := out[0].ID
	if r := out[0].Receipt; r != nil {
		pause(3e7)
		if err := r.Spend(r.digest); err != nil {
			w.broke("%v", err)
		}
		w.mu.Lock()
		w.draws++
		value := w.draws
		w.mu.Unlock()
		for try := 0; ; try++ {
			if at, err = p.l.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(value)}); err == nil {
				break
			}
			if try == 2 {
				w.note("%s: %d is not saved", account, n)
				return
			}
			pause(4e8)
		}
	}
	pause(1e6)
	got, err := p.l.Load(ctx, user, at)
	pause(1e6)
	if err != nil || p.site.isDead() {
		return
	}
	if !w.server.durable(func(x simState) bool { _, saved := x.releases[got.ID]; return saved }) {
		w.broke("release %d is handed out before it is durable", got.ID)
	}
	w.sees(account, it, n, got)
}

func (w *simWorld) sees(user string, it Item, n byte, got Release) {
	value, holder := got.Noisy.Value().Observations[0], user
	if it.Shared {
		_, holder, _ = strings.Cut(user, " of ")
	}
	key := fmt.Sprint(n, holder)
	w.mu.Lock()
	w.answers++
	w.seen[paidKey{got.ID, user}] = it.Cost.Epsilon.Micro()
	old, known := w.values[got.ID]
	w.values[got.ID] = value
	id, had := w.first[key]
	w.first[key] = got.ID
	w.mu.Unlock()
	w.note("%s sees %d of %d", user, value, got.ID)
	if known && old != value {
		w.broke("release %d was %d and is %d", got.ID, old, value)
	}
	if had && id != got.ID {
		w.broke("measure %d of %q was release %d and is drawn anew as %d", n, holder, id, got.ID)
	}
}

// check reads the server itself: invariant P4.
func (w *simWorld) check() {
	w.mu.Lock()
	seen, acked := map[string]int64{}, map[string]int64{}
	for k, cost := range w.seen {
		seen[k.user] += cost
	}
	for user, sum := range w.acked {
		acked[user] = sum
	}
	w.mu.Unlock()
	w.server.mu.Lock()
	states := slices.Clone(w.server.since) // the last of which is as it is now
	w.server.mu.Unlock()
	for _, x := range states {
		w.holds(slices.Clone(x.rows), slices.Collect(maps.Values(x.heads)), seen, acked)
	}
}

// holds checks what the server holds, or what a restart would leave.
func (w *simWorld) holds(list []chain.Row, heads []chain.Head, seen, acked map[string]int64) {
	slices.SortFunc(list, func(a, b chain.Row) int { return cmp.Compare(a.Seq, b.Seq) })
	sums, pools, names := map[string]int64{}, map[int64]int64{}, map[int64]string{}
	var links chain.Links
	for _, r := range list {
		if err := links.Take(r); err != nil {
			w.broke("%v", err)
		}
		if r.Kind == chain.RowTerms {
			d, _ := decodeTerms(r.Body)
			names[r.DS] = d.ID
		}
		if r.Kind != chain.RowCharge {
			continue
		}
		c, err := decodeCharge(r.Body)
		if err != nil {
			w.broke("%v", err)
		}
		if sums[r.Holder+" of "+names[r.DS]] += c.cost.Epsilon.Micro(); c.capped {
			pools[r.DS] += c.cost.Epsilon.Micro()
		}
	}
	if len(list) > 0 && !links.At(heads) {
		w.broke("a chain does not end where its head is")
	}
	for user := range sums {
		if seen[user] > sums[user] || acked[user] > sums[user] || sums[user] > simLife {
			w.broke("%s has seen answers for %d, charges of %d are acknowledged, charged are %d of %d", user, seen[user], acked[user], sums[user], simLife)
		}
	}
	for user := range acked {
		if acked[user] > sums[user] {
			w.broke("%s has acknowledged charges of %d, and charged are %d", user, acked[user], sums[user])
		}
	}
	for ds, pool := range pools {
		if pool > simCap {
			w.broke("dataset %s has spent %d of %d", names[ds], pool, simCap)
		}
	}
}

func (w *simWorld) run() {
	for n := range w.live {
		w.start(n)
	}
	for step := range uint64(40) {
		time.Sleep(time.Duration(1 + w.rng.Int64N([]int64{2e6, 5e7, 6e8}[w.rng.IntN(3)])))
		switch p := w.rng.IntN(100); {
		case p < 60:
			for k := range 1 + w.rng.Uint64N(4) {
				w.asks.Go(func() { w.ask(8*step + k) })
			}
		case p < 68:
			w.kill(w.rng.IntN(3))
		case p < 72:
			for range 100 { // by then somebody has committed what is not flushed yet, if anybody is at work
				if w.server.early() {
					break
				}
				time.Sleep(time.Duration(1 + w.rng.Int64N(1e6)))
			}
			w.server.restart(w.rng)
			w.note("the server restarts")
		case p < 82:
			w.server.mu.Lock()
			w.server.bad = []float64{0, 0.02, 0.2, 0.6}[w.rng.IntN(4)]
			w.server.mu.Unlock()
		default:
			w.start(w.rng.IntN(3))
		}
		w.check()
	}
	w.server.mu.Lock()
	w.server.bad = 0
	w.server.mu.Unlock()
	w.finish()
	w.check()
	for n := range w.live {
		w.start(n)
	}
	for n := range w.live {
		p := w.proxy(n)
		if p == nil {
			w.broke("proxy %d does not start on a healthy server", n)
			continue
		}
		err := p.l.Follow(ctx)
		for tries := 0; err != nil && tries < 20; tries++ { // its connection may be lost, which the first call finds out
			time.Sleep(100 * time.Millisecond)
			err = p.l.Follow(ctx)
		}
		if err != nil {
			w.broke("proxy %d does not follow: %v", n, err)
		}
		if _, err := p.l.Verify(ctx); err != nil {
			w.broke("proxy %d: %v", n, err)
		}
		for k := range w.seen {
			user, _, _ := strings.Cut(k.user, " of ")
			if got, err := p.l.Load(ctx, user, k.id); err != nil || got.Noisy.Value().Observations[0] != w.values[k.id] {
				w.broke("proxy %d has lost release %d: %v", n, k.id, err)
			}
		}
	}
	for n := range w.live {
		w.kill(n)
	}
	w.zombies.Wait()
}

// finish waits for what is under way. A minute on a healthy server must do.
func (w *simWorld) finish() {
	done := make(chan struct{})
	go func() {
		w.asks.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-time.After(time.Minute):
	}
	w.server.mu.Lock()
	for _, c := range w.server.state.claims {
		defer w.broke("somebody waits for a claim of %s, fence %d", filepath.Base(c.owner.mark), c.fence)
	}
	w.server.mu.Unlock()
	for n := range w.live {
		w.kill(n)
	}
	<-done
}
