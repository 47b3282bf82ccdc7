package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// ask is one question of an analyst: to a node over a network that loses, delays and repeats messages, three times at
// most.
func (w *world) ask() {
	w.asks++
	id := firstAsk + 2*w.asks
	rng := rand.New(rand.NewPCG(w.seed, uint64(1<<32+w.asks)))
	user := w.users[rng.IntN(len(w.users))].name
	wanted := rng.Perm(len(w.measures))[:1+rng.IntN(3)*rng.IntN(2)]
	w.mu.Lock()
	w.waiting++
	w.mu.Unlock()
	go func() {
		defer func() {
			w.mu.Lock()
			w.waiting--
			w.mu.Unlock()
		}()
		for try := range 3 {
			pause(rng, 5*time.Millisecond)
			if w.try(id, try, rng, user, wanted) {
				return
			}
			pause(rng, time.Second)
		}
		w.note(id, "%s gives up", user)
	}()
}

// pause lets a moment pass that nobody else shares.
func pause(rng *rand.Rand, most time.Duration) {
	time.Sleep(time.Duration(1 + rng.Int64N(int64(most))))
}

// paced is a context whose owner has moments of her own also within a call: a charge that has waited looks at its
// context before it tries again, and pauses here. Else those who waited for one thing would race for it.
type paced struct {
	context.Context
	rng *rand.Rand
}

func (o paced) Err() error {
	pause(o.rng, time.Millisecond)
	return nil
}

// try sends the question to some node. It reports whether an outcome arrived.
func (w *world) try(id, try int, rng *rand.Rand, user string, wanted []int) bool {
	b := w.nodes[rng.IntN(len(w.nodes))].boot()
	if b == nil {
		return false
	}
	copies := 1
	switch rng.IntN(12) {
	case 0:
		return false // lost on its way
	case 1:
		copies = 2 // the network, or a retry of the driver
	}
	answered := make(chan bool, copies)
	for c := range copies {
		own := rand.New(rand.NewPCG(rng.Uint64(), uint64(c)))
		lost := rng.IntN(12) == 0 // the answer is lost on its way
		go func() {
			pause(own, time.Millisecond)
			releases, err := b.serve(id+c, own, user, wanted)
			pause(own, time.Millisecond)
			if b.m.Dead() || lost {
				answered <- false
				return
			}
			w.receive(id+c, user, wanted, releases, err)
			answered <- true
		}()
	}
	got := false
	for range copies {
		got = <-answered || got
	}
	return got
}

// serve is a proxy's way of a question: charge, execute, release, save, read. It is that of the pipeline (package
// proxy), for measures that need no planning.
func (b *boot) serve(id int, rng *rand.Rand, user string, wanted []int) ([]ledger.Release, error) {
	w := b.n.w
	r := ledger.Request{User: user, Dataset: theDataset, Statement: ledger.Digest{9}, PolicyDigest: policyDigest}
	for _, n := range wanted {
		r.Items = append(r.Items, w.measures[n].item)
	}
	w.begin(user, wanted)
	began := time.Now()
	out, err := b.l.Charge(paced{background, rng}, r)
	w.ended(began, chargesWithin, "charge")
	w.charged(b, user, wanted, out, err)
	w.note(id, "%s on %d charge %v: %v", user, b.n.id, wanted, class(err))
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, o := range out {
			b.l.Abandon(o.Receipt)
		}
	}()
	pause(rng, time.Millisecond)
	for k, o := range out {
		if o.Receipt == nil {
			continue
		}
		value, err := w.execute(rng, r.Items[k].Digest, o.Receipt)
		if err != nil {
			return nil, err
		}
		if out[k].ID, err = b.save(rng, o.Receipt, value); err != nil {
			return nil, err
		}
		w.saved(out[k].ID, value)
	}
	var releases []ledger.Release
	for k, o := range out {
		pause(rng, time.Millisecond)
		began := time.Now()
		got, err := b.l.Load(background, user, o.ID)
		w.ended(began, answersWithin, "load")
		if err != nil {
			return nil, fmt.Errorf("release %d of measure %d: %w", o.ID, wanted[k], err)
		}
		releases = append(releases, got)
	}
	return releases, nil
}

// execute is the private database over its network: the call may come twice, and of two only one may be run on a
// receipt. Each run's noise is another number.
func (w *world) execute(rng *rand.Rand, digest ledger.Digest, r *ledger.Receipt) (int64, error) {
	calls, runs := 1, 0
	if rng.IntN(6) == 0 {
		calls = 2
	}
	var err error
	for range calls {
		pause(rng, 20*time.Millisecond)
		if err = r.Spend(digest); err == nil {
			runs++
		}
	}
	if runs != 1 {
		w.broke("%d runs on one receipt: %v", runs, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.book.draws++
	return w.book.draws, nil
}

// save tries three times, as the pipeline does.
func (b *boot) save(rng *rand.Rand, r *ledger.Receipt, value int64) (id int64, err error) {
	for range 3 {
		began := time.Now()
		id, err = b.l.Save(background, r, mechanisms.Drawn{Noisy: privacy.Published(mechanisms.Noisy{Observations: []int64{value}})})
		if b.n.w.ended(began, answersWithin, "save"); err == nil {
			return id, nil
		}
		pause(rng, 500*time.Millisecond)
	}
	return 0, err
}
