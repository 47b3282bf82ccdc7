package whole

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/internal/simulation"
	"github.com/dpproxy/dpproxy/ledger"
)

// check is invariant P4: the questions that a user has seen answered ≤ her charges ≤ the questions that she has sent,
// and their sum is her balance, within her budget and, over all users, the cap; charges without a release ≤ questions
// astray.
func (w *world) check() {
	for node := range nodes {
		p := w.process(node)
		if p == nil || p.m.Dead() {
			continue
		}
		w.mu.Lock()
		seen := map[string]int{}
		for key := range w.answers {
			seen[strings.Fields(key)[0]]++
		}
		w.mu.Unlock()
		list, err := p.ledger.Charges(background, "", thePlace, 1<<20)
		if err != nil {
			continue // a ledger that has met a fault
		}
		charged, total := map[string]int{}, int64(0)
		for _, c := range list {
			charged[c.User]++
			total += c.Cost.Epsilon.Micro()
		}
		w.mu.Lock()
		asked, limit := map[string]int{}, int64(2_500_000)
		for user, n := range w.asked {
			asked[user] = n
		}
		w.mu.Unlock()
		if p.m.Dead() {
			continue
		}
		if total != int64(len(list))*price || total > limit {
			w.broke("%d charges come to %d of %d", len(list), total, limit)
		}
		own := terms(w.policy).Datasets[0].Budgets["*"].Limit.Epsilon.Micro()
		for _, user := range names {
			if seen[user] > charged[user] || charged[user] > asked[user] || int64(charged[user])*price > own {
				w.broke("%s has sent %d questions, %d are charged within %d, and seen %d answers", user, asked[user], charged[user], own, seen[user])
			}
		}
	}
}

// last: all is healed, the power is cut once more, and each answer seen is there, free and the same.
func (w *world) last(calm bool) {
	w.disk.Fail(simulation.Fault{})
	time.Sleep(5 * time.Second)
	for node := range nodes {
		if p := w.process(node); p != nil {
			p.m.Kill(true)
		}
	}
	w.reap()
	w.start(0, false)
	p := w.process(0)
	if p == nil {
		return // start has said why
	}
	w.check()
	before, err := p.ledger.Charges(background, "", thePlace, 1<<20)
	if err != nil {
		w.broke("charges: %v", err)
	}
	astray, charged := w.held(p, before)
	if calm && charged > 0 {
		w.broke("%d charges have no release, and no process has died (%d questions astray)", charged, astray)
	}
	w.again(p)
	if after, err := p.ledger.Charges(background, "", thePlace, 1<<20); err != nil || len(after) != len(before) {
		w.broke("asking again was charged: %d, then %d, %v", len(before), len(after), err)
	}
	if _, err := p.ledger.Verify(background); err != nil {
		w.broke("%v", err)
	}
	w.set(0, nil)
	p.end(true)
	w.zombies.Wait()
}

// held counts the charges without a release, which are at most the questions astray.
func (w *world) held(p *process, list []ledger.Charge) (astray, without int) {
	for _, user := range names {
		n := 0
		for _, c := range list {
			if c.User == user {
				n++
			}
		}
		left := n - len(p.ledger.Holdings(user, thePlace))
		if left > w.astray[user] {
			w.broke("%s: %d charges have no release, and %d questions went astray", user, left, w.astray[user])
		}
		astray, without = astray+w.astray[user], without+left
	}
	return astray, without
}

// again asks each question that was answered once more.
func (w *world) again(p *process) {
	var keys []string
	for key := range w.answers {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, name := range names {
		a := &analyst{w: w, name: name, rng: rand.New(rand.NewPCG(w.seed, 99)), on: p}
		for _, key := range keys {
			user, sql, _ := strings.Cut(key, " ")
			for tries := 0; user == name && !(a.connect() && a.quietly(sql)); tries++ {
				if tries == 50 {
					w.broke("%s is not answered again: %s", name, sql)
					break
				}
				time.Sleep(time.Millisecond)
			}
		}
		a.hangUp()
	}
}

// quietly asks without the network's faults.
func (a *analyst) quietly(sql string) bool {
	value, code, err := a.simple(sql)
	if err != nil || code != "" {
		return false
	}
	a.w.seen(a.name, sql, value)
	return true
}
