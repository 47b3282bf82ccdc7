package whole

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/internal/seeds"
	"github.com/dpproxy/dpproxy/internal/simulation"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/policy"
)

const (
	nodes    = 2
	price    = 100_000 // of a question, in micro-ε
	thePlace = "lab"
)

var names = []string{"ann", "bob", "cid"}

const policyText = `version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: "postgres://nobody@127.0.0.1:1/none"}
ledger: {url: "sqlite:ledger.db"}
users:
%s
datasets:
  - id: lab
    unit: {name: person, key: people.uid}
    neighbors: add-remove
    accountant: pure
    cap: {epsilon: %d.5, delta: 0}
    budgets: {"*": {epsilon: %d, delta: 0}}
    defaults: {epsilon: 0.1, max_epsilon: 1, confidence: 0.95}
    tables:
      - name: people
        source: public.people
        expected_rows: 1000
        max_rows_per_unit: 1
        columns:
          - {name: age, type: integer, domain: {min: 0, max: 119, step: 1}, outside: clamp}
          - {name: income, type: double precision, domain: {min: 0, max: 100000, step: 1000}}
`

// house is what is made once for all runs: policies that differ in their budgets, and how each user logs in.
type house struct {
	policies []*policy.Policy
	configs  map[string]*pgconn.Config
	shm      string
}

func newHouse(t testing.TB) *house {
	h := &house{configs: map[string]*pgconn.Config{}}
	var users strings.Builder
	for _, name := range names {
		v, err := policy.Verifier(name, strings.NewReader(strings.Repeat(name+"-salt", 20)))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&users, "  - {name: %s, password: %q}\n", name, v)
		c, err := pgconn.ParseConfig(fmt.Sprintf("postgres://%s:%s@127.0.0.1:6432/lab?sslmode=disable", name, name))
		if err != nil {
			t.Fatal(err)
		}
		c.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
		h.configs[name] = c
	}
	for budget := 1; budget <= 2; budget++ {
		p, err := policy.Parse([]byte(fmt.Sprintf(policyText, users.String(), 2, budget)), "policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		h.policies = append(h.policies, p)
	}
	h.shm = memory.Dir(t)
	return h
}

func terms(p *policy.Policy) ledger.Terms {
	d := p.Datasets[0]
	b := d.Budgets["*"]
	return ledger.Terms{PolicyDigest: p.Digest, Datasets: []ledger.DatasetTerms{{ID: d.ID, Accountant: d.Accountant, Neighbors: d.Neighbors, Unit: "person people.uid",
		Relations: []string{"public.people"}, Cap: d.Cap.Cost, Budgets: map[string]ledger.BudgetTerms{"*": {Limit: b.Cost}}}}}
}

// world is one run.
type world struct {
	*house
	t       testing.TB
	seed    uint64
	rng     *rand.Rand
	policy  *policy.Policy
	started time.Time
	disk    *simulation.Disk
	boots   int
	zombies sync.WaitGroup

	mu      sync.Mutex
	live    [nodes]*process
	skew    [nodes]time.Duration
	answers map[string]string // by user and question
	asked   map[string]int    // by user: questions sent
	astray  map[string]int    // by user: questions sent whose outcome is not known, or that failed
	count   int
	trace   []string
	broken  string
}

func (w *world) process(node int) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.live[node]
}

func (w *world) clock(node int) func() time.Time {
	return func() time.Time {
		w.mu.Lock()
		defer w.mu.Unlock()
		return time.Now().Add(w.skew[node])
	}
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, fmt.Sprintf("%14.9f %s", time.Since(w.started).Seconds(), fmt.Sprintf(format, args...)))
}

func (w *world) broke(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.note("BROKEN: %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken == "" {
		w.broken = text
	}
}

func (w *world) sent(user string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[user]++
}

func (w *world) lost(user string) {
	w.note("%s hears nothing", user)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.astray[user]++
}

func (w *world) refused(user, sql, code string) {
	w.note("%s hears %s: %s", user, code, sql)
	switch code {
	case "DP001", "DP004": // nothing was charged
	case "DP003", "57P01", "57014":
		w.mu.Lock()
		defer w.mu.Unlock()
		w.astray[user]++
	default:
		w.broke("%s: %s", sql, code)
	}
}

// seen is an answer that reached an analyst: the same as before, if she has asked it before.
func (w *world) seen(user, sql, value string) {
	w.note("%s sees an answer: %s", user, sql) // not its noise: samplers keep tables, so that earlier runs have a part in it
	w.mu.Lock()
	old, again := w.answers[user+" "+sql]
	w.answers[user+" "+sql] = value
	w.count++
	w.mu.Unlock()
	if again && old != value {
		w.broke("%s saw %s and sees %s: %s", user, old, value, sql)
	}
}

// run lets analysts work while the director breaks things, then heals and compares.
func (w *world) run() {
	w.start(0, false)
	var working sync.WaitGroup
	for i, name := range names {
		a := &analyst{w: w, name: name, rng: rand.New(rand.NewPCG(w.seed, uint64(10+i)))}
		working.Go(func() { a.work(8) })
	}
	done := make(chan struct{})
	go func() {
		working.Wait()
		close(done)
	}()
	calm := w.seed%4 == 0 // only the network is bad
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-time.After(time.Duration(1 + w.rng.Int64N(3e8))):
			if !calm {
				w.step()
			}
			w.reap()
			if w.process(0) == nil && w.process(1) == nil {
				w.start(w.rng.IntN(nodes), w.rng.IntN(6) == 0)
			}
			w.check()
		}
	}
	w.last(calm)
}

func (w *world) step() {
	node := w.rng.IntN(nodes)
	p := w.process(node)
	switch n := w.rng.IntN(100); {
	case n < 55:
	case n < 60 && p != nil:
		w.note("node %d killed", node)
		p.m.Kill(w.rng.IntN(2) == 0)
	case n < 75 && p != nil:
		p.m.KillAt(1+w.rng.IntN(20), w.rng.IntN(2) == 0)
	case n < 82:
		w.disk.Fail(simulation.Fault{Kind: 1 + simulation.FaultKind(w.rng.IntN(int(simulation.FaultKinds)-1)), After: w.rng.IntN(6), Once: w.rng.IntN(2) == 0, Room: w.rng.Int64N(20000)})
		w.note("the disk fails")
	case n < 92:
		w.disk.Fail(simulation.Fault{})
	case n < 95:
		w.mu.Lock()
		w.skew[node] = time.Duration(w.rng.Int64N(int64(time.Hour))) - 30*time.Minute
		w.mu.Unlock()
	case n < 97 && p != nil:
		w.note("node %d ends", node)
		w.set(node, nil)
		p.end(true)
	default:
		w.start(node, w.rng.IntN(6) == 0)
	}
}

func (w *world) reap() {
	for node := range nodes {
		if p := w.process(node); p != nil && p.m.Dead() {
			w.bury(p)
		}
	}
}

func runSeed(t *testing.T, h *house, seed uint64) (out seeds.Outcome) {
	var w *world
	defer func() {
		if r := recover(); r != nil { // a bubble that does not end
			out = seeds.Outcome{Broken: fmt.Sprint(r), Schedule: strings.Join(w.trace, "\n")}
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w = &world{house: h, t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), policy: h.policies[seed%2], started: time.Now(),
			disk: simulation.NewDisk(rand.New(rand.NewPCG(seed, 2))), answers: map[string]string{}, asked: map[string]int{}, astray: map[string]int{}}
		w.run()
		slices.Sort(w.trace) // by time; what happens at one moment has no order
		out = seeds.Outcome{Broken: w.broken, Schedule: strings.Join(w.trace, "\n"), Answers: w.count, Boots: w.boots}
	})
	return out
}

// TestWhole runs whole proxies under seeds.
func TestWhole(t *testing.T) {
	h := newHouse(t)
	n, sum := seeds.Run(t, "internal/simulation/whole", threats.Length(120, 20_000), func(s uint64) seeds.Outcome { return runSeed(t, h, s) })
	if n == 0 {
		return
	}
	threats.Reached(t, "T25", "simulated proxies: %d seeds with %d starts of a process; of %d answers over the wire none without its charge or its release", n, sum.Boots, sum.Answers)
}

// TestReplays: a seed runs the same way twice.
func TestReplays(t *testing.T) {
	h := newHouse(t)
	seeds.Replays(t, threats.Length(6, 200), func(s uint64) seeds.Outcome { return runSeed(t, h, s) })
}
