package simulation

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// world is one run: a machine with a disk, processes that may hold the ledger on it, analysts, and what they have seen.
type world struct {
	t       testing.TB
	seed    uint64
	rng     *rand.Rand // the director's own
	shm     string
	started time.Time
	disk    *Disk
	nodes   []*node
	boots   int
	asks    int
	zombies sync.WaitGroup

	measures []measure
	cap      int64
	users    []analyst

	mu       sync.Mutex // never held by anybody who waits for time
	waiting  int        // asks without an outcome yet
	book     journal
	trace    []event
	broken   string // the first thing that must not be
	freezing []*time.Timer
}

// measure is something that may be asked. What it costs is fixed, so that what an answer cost is known to who sees it.
type measure struct {
	item ledger.Item
	cost int64
}

// analyst is a user and her terms.
type analyst struct {
	name        string
	limit, life int64
	window      time.Duration
	granted     ledger.BudgetTerms
}

// event is a line of the schedule. Lines of one moment are put in the order of their actors: what happens at one moment
// is done by goroutines in no order, and no outcome may depend on it.
type event struct {
	at    time.Duration
	actor int
	text  string
}

const (
	window      = 5 * time.Second
	refresh     = 7 * time.Second
	theDataset  = "lab"
	director    = 0
	restartTime = 2 * time.Second
)

// actors of the schedule: the director, its nodes, then one for each ask.
const firstAsk = 100

func newWorld(t testing.TB, seed uint64, shm string) *world {
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), shm: shm, started: time.Now(), disk: NewDisk(rand.New(rand.NewPCG(seed, 2)))}
	w.book = newJournal()
	w.cap = 1000 + w.rng.Int64N(15000)
	for n := range 10 {
		m := measure{cost: 1 + w.rng.Int64N(300)}
		m.item = ledger.Item{Digest: sha256.Sum256([]byte{byte(n)}), Kind: "count", Name: fmt.Sprintf("m%d", n), Table: "public.people", Cost: w.cost(m.cost), Shared: n%3 == 0,
			Spec: mechanisms.Spec{Counters: 1, Cells: 1, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Identity}, Noise: mechanisms.Noise{Kind: mechanisms.DiscreteLaplace, Num: 1, Den: 10}}}}
		if n%4 == 1 {
			m.item.Refresh = refresh
		}
		w.measures = append(w.measures, m)
	}
	for i, name := range []string{"ann", "bob", "cid"} {
		a := analyst{name: name, life: 500 + w.rng.Int64N(8000)}
		a.granted = ledger.BudgetTerms{Limit: w.limit(a.life)}
		if i < 2 {
			a.window, a.limit = window, 100+w.rng.Int64N(1000)
			a.granted = ledger.BudgetTerms{Limit: w.limit(a.limit), Refresh: window, Lifetime: w.limit(a.life)}
		}
		w.users = append(w.users, a)
	}
	for i := range 2 {
		w.nodes = append(w.nodes, &node{w: w, id: i + 1})
	}
	return w
}

// accountant is that of the world's dataset, by its seed: pure, or either, whose costs are then all in ε or all in ρ.
func (w *world) accountant() (a privacy.Accountant, concentrated bool) {
	if w.seed%3 == 0 {
		return privacy.Pure, false
	}
	return privacy.Either, w.seed%3 == 2
}

// cost is an amount of the unit that the world's costs are in, limit a limit of it, which of the other unit names next
// to nothing.
func (w *world) cost(n int64) privacy.Cost {
	if _, concentrated := w.accountant(); concentrated {
		return privacy.Cost{Rho: privacy.PicoRho(n)}
	}
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(n)}
}

func (w *world) limit(n int64) privacy.Cost {
	switch a, concentrated := w.accountant(); {
	case a == privacy.Pure:
		return w.cost(n)
	case concentrated:
		return w.cost(n).Plus(privacy.Cost{Epsilon: privacy.MicroEpsilon(1)})
	}
	return w.cost(n).Plus(privacy.Cost{Rho: privacy.PicoRho(1)})
}

// amount is what a cost, or what was spent, is in that unit.
func (w *world) amount(c privacy.Cost) int64 {
	if _, concentrated := w.accountant(); concentrated {
		return c.Rho.Pico()
	}
	return c.Epsilon.Micro()
}

var policyDigest = ledger.Digest{1}

func (w *world) terms() ledger.Terms {
	budgets := map[string]ledger.BudgetTerms{}
	for _, a := range w.users {
		budgets[a.name] = a.granted
	}
	accountant, _ := w.accountant()
	return ledger.Terms{PolicyDigest: policyDigest, Datasets: []ledger.DatasetTerms{{ID: theDataset, Accountant: accountant, Neighbors: privacy.AddRemove,
		Unit: "person people.id", Relations: []string{"public.people"}, Cap: w.limit(w.cap), Budgets: budgets}}}
}

// note adds a line to the schedule.
func (w *world) note(actor int, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, event{time.Since(w.started), actor, fmt.Sprintf(format, args...)})
}

// broke notes what must not be. The run goes on to its end, so that nothing is left behind.
func (w *world) broke(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	w.trace = append(w.trace, event{time.Since(w.started), director, "BROKEN: " + text})
	if w.broken == "" {
		w.broken = text
	}
}

// schedule is all that happened, in order.
func (w *world) schedule() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.trace, func(a, b event) int {
		if a.at != b.at {
			return int(min(1, max(-1, a.at-b.at)))
		}
		return a.actor - b.actor
	})
	var out strings.Builder
	for _, e := range w.trace {
		fmt.Fprintf(&out, "%14.9f %4d %s\n", e.at.Seconds(), e.actor, e.text)
	}
	return out.String()
}

// run is the director: it lets so many things happen, heals what it has broken, and looks at what is left.
func (w *world) run(steps int) {
	for _, n := range w.nodes {
		n.start()
	}
	w.freezes()
	for i := range steps {
		time.Sleep(time.Duration(1 + w.rng.Int64N([]int64{2e6, 2e7, 3e8, 1e9}[w.rng.IntN(4)])))
		w.step()
		w.reap()
		if w.serving() == nil && w.rng.IntN(2) == 0 { // what watches over processes starts one again
			w.nodes[w.rng.IntN(len(w.nodes))].start()
		}
		w.check(i%5 == 0)
	}
	w.settle()
}

// step is one thing that happens.
func (w *world) step() {
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	switch p := w.rng.IntN(100); {
	case p < 55:
		for range 1 + w.rng.IntN(4) {
			w.ask()
		}
	case p < 59:
		n.kill(w.rng.IntN(2) == 0)
	case p < 71:
		n.killAt(1+w.rng.IntN(24), w.rng.IntN(3) > 0)
	case p < 79:
		x := Fault{Kind: 1 + FaultKind(w.rng.IntN(int(FaultKinds)-1)), After: w.rng.IntN(6), Once: w.rng.IntN(2) == 0, Room: w.rng.Int64N(20000)}
		w.disk.Fail(x)
		w.note(director, "disk: %v after %d, once %v", x.Kind, x.After, x.Once)
	case p < 88:
		w.disk.Fail(Fault{})
	case p < 93:
		n.setClock(time.Duration(w.rng.Int64N(int64(4*window))) - 2*window)
	case p < 94:
		n.close()
	default:
		n.start()
	}
}

// reap takes away processes that have died.
func (w *world) reap() {
	for _, n := range w.nodes {
		if b := n.boot(); b != nil && b.m.Dead() {
			w.note(n.id, "died")
			n.bury(b)
		}
	}
}

// settle heals everything, waits for what is under way, and compares; then cuts the power once more and compares again.
func (w *world) settle() {
	w.disk.Fail(Fault{})
	w.thaw()
	for _, n := range w.nodes {
		n.disarm()
	}
	for range 600 {
		w.reap()
		if w.serving() == nil {
			w.nodes[0].boots(false)
		}
		w.mu.Lock()
		left := w.waiting
		w.mu.Unlock()
		if left == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.mu.Lock()
	left := w.waiting
	w.mu.Unlock()
	if left > 0 {
		w.broke("%d asks have no outcome a minute after everything was healed", left)
	}
	time.Sleep(time.Second)
	w.last("at the end")
	for _, n := range w.nodes {
		n.kill(true)
	}
	w.reap()
	w.nodes[0].boots(false)
	w.last("after the last power cut")
	for _, n := range w.nodes {
		n.close()
	}
	w.zombies.Wait()
}

// last compares all that can be compared on a healthy disk.
func (w *world) last(when string) {
	b := w.serving()
	if b == nil {
		w.broke("%s: no process can open the ledger", when)
		return
	}
	w.check(true)
	if _, err := b.l.Verify(background); err != nil {
		w.broke("%s: %v", when, err)
	}
	w.reread(b)
}
