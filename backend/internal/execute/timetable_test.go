package execute

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpproxy/dpproxy/backend"
)

// TestTurnsComeSoon: of statements of which each has one query to run at a time, and of which as many are admitted as
// may be, each query has its turn within three steps, whatever comes when.
func TestTurnsComeSoon(t *testing.T) {
	const step = time.Second
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := newTimetable(1 + rng.IntN(4))
		ready := make([]time.Time, cap(p.admitted)) // when each statement's next query comes
		for range 2000 {
			s := 0
			for i := range ready {
				if ready[i].Before(ready[s]) {
					s = i
				}
			}
			at := p.turn(ready[s], step)
			if wait := at.Sub(ready[s]); wait < 0 || wait >= backend.AdmittedPerSlot*step {
				t.Fatalf("seed %d, %d slots: a turn comes after %s", seed, len(p.until), wait)
			}
			ready[s] = at.Add(step + time.Duration(rng.IntN(3))*step/3)
		}
	}
}

// TestAdmitted: three statements a slot are admitted; who comes next waits until one of them has left, or until her
// client no longer waits. That one has left which read no rows shows at once, of another one at a step since its last
// query returned.
func TestAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = time.Second
		p := newTimetable(2)
		leave := make([]func(time.Time), 2*backend.AdmittedPerSlot)
		for i := range leave {
			var err error
			if leave[i], err = p.admit(t.Context(), step); err != nil {
				t.Fatal(err)
			}
		}
		gone, cancel := context.WithTimeout(t.Context(), 20*step)
		defer cancel()
		if _, err := p.admit(gone, step); err != context.DeadlineExceeded {
			t.Errorf("a client that no longer waits: %v", err)
		}
		begun := time.Now()
		for i, after := range []time.Duration{step / 3, 2*step + step/4} {
			last := begun.Add(after).Add(-time.Duration(i) * step / 5) // 0 at first: no query
			if i == 0 {
				last = time.Time{}
			}
			time.AfterFunc(time.Until(begun.Add(after)), func() { leave[i](last) })
			shown := begun.Add(after)
			if i > 0 {
				shown = last.Add(step)
			}
			again, err := p.admit(t.Context(), step)
			if err != nil || !time.Now().Equal(shown) {
				t.Fatalf("one has left: %v after %s", err, time.Since(begun))
			}
			leave = append(leave, again)
		}
		if _, err := p.admit(gone, step); err == nil {
			t.Error("a client that has gone is admitted")
		}
		for _, l := range leave[2:] {
			l(time.Now())
		}
		time.Sleep(step)
		synctest.Wait()
		if len(p.admitted) > 0 {
			t.Errorf("%d statements have not left", len(p.admitted))
		}
	})
}
