package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/ledger"
)

// How long a ledger may take to answer, whatever its disk does: who charges may wait for who draws what she asks for,
// and saves it.
const (
	answersWithin = 20 * time.Second
	chargesWithin = 90 * time.Second
)

// ended holds a call to the time that it may take.
func (w *world) ended(began time.Time, within time.Duration, what string) {
	if took := time.Since(began); took > within {
		w.broke("a %s took %v", what, took)
	}
}

// freezes has the disk freeze twice in every fifth run, for a while.
func (w *world) freezes() {
	if w.seed%5 != 3 {
		return
	}
	rng := rand.New(rand.NewPCG(w.seed, 3))
	at := time.Duration(0)
	for range 2 {
		at += time.Duration(rng.Int64N(int64(4 * time.Second)))
		how, lasts := FrozenWrites+Freeze(rng.IntN(2)), time.Duration(1+rng.Int64N(int64(40*time.Second)))
		w.freezing = append(w.freezing, time.AfterFunc(at, func() {
			w.note(director, "disk frozen (%d) for %v", how, lasts)
			w.disk.Freeze(how)
		}))
		at += lasts
		w.freezing = append(w.freezing, time.AfterFunc(at, func() { w.disk.Freeze(Thawed) }))
	}
}

// thaw has the disk answer from now on.
func (w *world) thaw() {
	for _, timer := range w.freezing {
		timer.Stop()
	}
	w.disk.Freeze(Thawed)
}

// TestFrozenDisk: whatever is done on a disk that does not answer ends, with ErrUnavailable; what comes after gets that
// at once, and is not charged; and once it answers again the ledger goes on, with what it has charged.
func TestFrozenDisk(t *testing.T) {
	shm := memory.Dir(t)
	for n := range 4 {
		how, idle := FrozenWrites+Freeze(n%2), n/2 == 0
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, shm)
			w.nodes[0].boots(false)
			b := w.serving()
			if b == nil {
				t.Fatal(w.broken)
			}
			charge := func(n int) ([]ledger.Outcome, error) {
				return b.l.Charge(background, ledger.Request{User: "cid", Dataset: theDataset, PolicyDigest: policyDigest, Items: []ledger.Item{w.measures[n].item}})
			}
			charges := func() int {
				list, err := b.l.Charges(background, "", theDataset, 100)
				if err != nil {
					t.Error(err)
				}
				return len(list)
			}
			if _, err := charge(2); err != nil || b.l.Sound(background) != nil {
				t.Fatalf("before: %v, %v", err, b.l.Sound(background))
			}
			most := 2 // a charge that was begun while the disk was believed to answer is spent
			if idle {
				time.Sleep(2 * time.Second)
				most = 1
			}
			w.disk.Freeze(how)
			if err := b.l.Sound(background); idle && !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("a ledger that nobody has asked yet: %v", err)
			}
			began := time.Now()
			for _, n := range []int{4, 5} {
				if _, err := charge(n); !errors.Is(err, ledger.ErrUnavailable) || time.Since(began) > answersWithin {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			}
			began = time.Now()
			if _, err := charge(7); !errors.Is(err, ledger.ErrUnavailable) || time.Since(began) > time.Second {
				t.Errorf("%v after %v of a ledger that is known to be frozen", err, time.Since(began))
			}
			w.disk.Freeze(Thawed)
			time.Sleep(2 * time.Second)
			if err := b.l.Sound(background); err != nil {
				t.Errorf("afterwards: %v", err)
			}
			if n := charges(); n < 1 || n > most {
				t.Errorf("%d charges, of questions too that were told that nothing is charged", n)
			}
			if _, err := charge(8); err != nil {
				t.Errorf("afterwards: %v", err)
			}
			if _, err := b.l.Verify(background); err != nil {
				t.Error(err)
			}
			w.nodes[0].close()
		})
	}
}

// TestFrozenRuns runs the ledger under seeds of which each freezes its disk.
func TestFrozenRuns(t *testing.T) {
	shm := memory.Dir(t)
	for n := range 40 {
		if out := runSeed(t, uint64(5*n+3), shm); out.Broken != "" {
			t.Errorf("%s\n%s", fmt.Sprint("seed ", 5*n+3, ": ", out.Broken), out.Schedule)
		}
	}
}
