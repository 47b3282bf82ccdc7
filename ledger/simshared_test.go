package ledger

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	random "math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
)

var (
	simSeeds = flag.Int("seeds", 0, "how many seeds of the simulation to run; 0: as many as fit CI")
	simSeed  = flag.Uint64("seed", 0, "run this seed of the simulation alone and print its schedule")
)

// simWorld is a run of three proxies that share a ledger: they die and come again, the server restarts, connections are lost
// before and after a commit. The schedule is the seed's (docs/adr/0035).
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
	site := &simSite{server: w.server, mark: filepath.Join(w.dir, fmt.Sprintf("witness-%d", n))}
	l, err := Open(ctx, "", Options{site: site})
	if err == nil {
		d := census()
		d.Cap, d.Budgets = eps(simCap), map[string]BudgetTerms{"*": {Limit: eps(simLife)}}
		if err = l.Adopt(ctx, terms(d)); err != nil {
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
	out, err := p.l.Charge(ctx, request(user, it))
	if err != nil {
		w.note("%s is not charged for %d: %v", user, n, errors.Is(err, ErrUnavailable))
		if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrRollback) {
			w.broke("%v", err)
		}
		return
	}
	defer p.l.Abandon(out[0].Receipt)
	if !p.site.isDead() {
		w.mu.Lock()
		w.acked[user] += out[0].Charged.Epsilon.Micro()
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
			if at, err = p.l.Save(ctx, r, noisy(value)); err == nil {
				break
			}
			if try == 2 {
				w.note("%s: %d is not saved", user, n)
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
	w.sees(user, it, n, got)
}

func (w *simWorld) sees(user string, it Item, n byte, got Release) {
	value, holder := got.Noisy.Value().Observations[0], user
	if it.Shared {
		holder = ""
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
	list := w.server.state.rows
	w.server.mu.Unlock()
	sums, pool := map[string]int64{}, int64(0)
	for i, r := range list {
		if i > 0 && (r.link(list[i-1].hash) != r.hash || r.at < list[i-1].at) {
			w.broke("row %d does not follow", r.seq)
		}
		if r.kind != rowCharge {
			continue
		}
		c, err := decodeCharge(r.body)
		if err != nil {
			w.broke("%v", err)
		}
		if sums[r.holder] += c.cost.Epsilon.Micro(); c.capped {
			pool += c.cost.Epsilon.Micro()
		}
	}
	for _, user := range []string{"ann", "bob", "cid"} {
		if seen[user] > sums[user] || acked[user] > sums[user] || sums[user] > simLife {
			w.broke("%s has seen answers for %d, charges of %d are acknowledged, charged are %d of %d", user, seen[user], acked[user], sums[user], simLife)
		}
	}
	if pool > simCap {
		w.broke("the dataset has spent %d of %d", pool, simCap)
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
			w.server.mu.Lock()
			w.server.epoch++
			w.server.mu.Unlock()
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
			if got, err := p.l.Load(ctx, k.user, k.id); err != nil || got.Noisy.Value().Observations[0] != w.values[k.id] {
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

func runShared(t *testing.T, seed uint64, dir string) *simWorld {
	var w *simWorld
	defer func() {
		if r := recover(); r != nil { // a bubble that does not end
			t.Fatalf("seed %d: %v\n%s", seed, r, strings.Join(w.trace, "\n"))
		}
	}()
	synctest.Test(t, func(*testing.T) {
		w = &simWorld{seed: seed, rng: random.New(random.NewPCG(seed, 1)), server: newSimServer(seed), dir: dir, started: time.Now(),
			seen: map[paidKey]int64{}, values: map[int64]int64{}, first: map[string]int64{}, acked: map[string]int64{}}
		w.run()
	})
	slices.Sort(w.trace) // by time; what happens at one moment has no order
	return w
}

// TestSharedSimulated runs three proxies on one ledger under seeds.
func TestSharedSimulated(t *testing.T) {
	from, n := uint64(1), *simSeeds
	if n == 0 {
		n = threats.Length(400, 20_000)
	}
	if *simSeed != 0 {
		from, n = *simSeed, 1
	}
	began, answers, cuts, boots := time.Now(), 0, 0, 0
	for s := from; s < from+uint64(n); s++ {
		w := runShared(t, s, t.TempDir())
		answers, cuts, boots = answers+w.answers, cuts+w.server.cuts, boots+w.boots
		if *simSeed != 0 {
			t.Logf("seed %d\n%s", s, strings.Join(w.trace, "\n"))
		}
		if w.broken != "" {
			t.Fatalf("seed %d: %s\nreplay: go test ./ledger -run '^TestSharedSimulated$' -seed %d -v\n%s", s, w.broken, s, strings.Join(w.trace, "\n"))
		}
	}
	t.Logf("%d seeds, %.0f a second", n, float64(n)/time.Since(began).Seconds())
	threats.Reached(t, "T31", "simulated: %d seeds of 3 proxies, %d starts, %d commits without an answer; of %d answers none without its charge, none drawn twice", n, boots, cuts, answers)
}

// TestSharedReplays: a seed runs the same way twice.
func TestSharedReplays(t *testing.T) {
	for s := uint64(1); s <= 20; s++ {
		sum := func() [32]byte {
			return sha256.Sum256([]byte(strings.Join(runShared(t, s, t.TempDir()).trace, "\n")))
		}
		if a, b := sum(), sum(); a != b {
			t.Errorf("seed %d runs another way the second time", s)
		}
	}
}
