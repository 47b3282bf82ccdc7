package backend

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// slowEngine runs its queries when it is told to.
type slowEngine struct {
	engine
	begun chan struct{} // one for each query
	held  chan struct{} // closed: they run
}

func (e slowEngine) groups(ctx context.Context, query rewrite.Query) ([][]privacy.Group, error) {
	e.begun <- struct{}{}
	<-e.held // whatever ctx says: a database that does not let go
	return e.engine.groups(context.WithoutCancel(ctx), query)
}

// brokenEngine fails at once.
type brokenEngine struct{ engine }

func (brokenEngine) groups(context.Context, rewrite.Query) ([][]privacy.Group, error) {
	return nil, errors.New("broken")
}

// TestResultsAtAPublicMoment: with a step, a result is taken at its end: one that was there at once no sooner, and one that
// never comes no later, be it that its own database holds it or that others' queries hold its slot. Below the deadline it is
// waited for, and taken at a multiple of the step.
func TestResultsAtAPublicMoment(t *testing.T) {
	t.Parallel()
	const deadline, step = 500 * time.Millisecond, 600 * time.Millisecond
	h := duckHouse(t)
	q := render(t, measure(t, h.policy, "people", "sex"), h)
	took := func(x executor, step time.Duration) (int, time.Duration) {
		begun := time.Now()
		groups := x.runDetached(t.Context(), q, step)[0]
		return len(groups), time.Since(begun)
	}
	alone := func(e engine) executor { return newExecutor(e, deadline, h.executor().log, 1) }
	x := alone(h.executor().engine)
	if groups, after := took(x, step); groups == 0 || after < step {
		t.Errorf("a quick query: %d groups after %s, must be some after %s", groups, after, step)
	}
	if groups, after := took(alone(brokenEngine{x.engine}), step); groups != 0 || after < step {
		t.Errorf("a fault: %d groups after %s, must be none after %s", groups, after, step)
	}
	slow := slowEngine{x.engine, make(chan struct{}, 10), make(chan struct{})}
	held := alone(slow)
	if groups, after := took(held, step); groups != 0 || after < step {
		t.Errorf("a query that its database holds: %d groups after %s, must be none after %s", groups, after, step)
	}
	<-slow.begun
	time.AfterFunc(3*step, func() { close(slow.held) })
	if groups, after := took(held, step); groups != 0 || after < step {
		t.Errorf("a query without a slot: %d groups after %s, must be none after %s", groups, after, step)
	}
	if len(slow.begun) > 0 {
		t.Error("a second query ran in the only slot")
	}
	<-slow.held
	if groups, after := took(held, step); groups == 0 || after < step {
		t.Errorf("the slot is free again, but there were %d groups after %s", groups, after)
	}
	late := slowEngine{x.engine, make(chan struct{}, 1), make(chan struct{})}
	x = alone(late)
	x.deadline = time.Minute
	time.AfterFunc(step+step/2, func() { close(late.held) })
	if groups, after := took(x, step); groups == 0 || after < 2*step {
		t.Errorf("a deadline above the step: %d groups after %s, must be some after %s", groups, after, 2*step)
	}
}

// nearlyLate takes most of the deadline for each query.
type nearlyLate struct {
	engine
	takes time.Duration
}

func (e nearlyLate) groups(ctx context.Context, query rewrite.Query) ([][]privacy.Group, error) {
	select {
	case <-time.After(e.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return e.engine.groups(ctx, query)
}

// TestTurnsArePublic: of two queries for one slot the second begins a whole step after the first, however soon that one ends,
// and has the whole of its own step: when it is answered and whether it is cut at its end tells nothing of the other's rows.
func TestTurnsArePublic(t *testing.T) {
	t.Parallel()
	const deadline, step = 2 * time.Second, 2100 * time.Millisecond
	h := duckHouse(t)
	q := render(t, measure(t, h.policy, "people", "sex"), h)
	for _, takes := range []time.Duration{0, deadline * 3 / 5} {
		x := newExecutor(nearlyLate{h.executor().engine, takes}, deadline, h.executor().log, 1)
		type end struct {
			groups int
			after  time.Duration
		}
		ends := make(chan end, 2)
		begun := time.Now()
		for range 2 {
			go func() {
				groups := x.runDetached(t.Context(), q, step)[0]
				ends <- end{len(groups), time.Since(begun)}
			}()
		}
		for i := range 2 {
			if e := <-ends; e.groups == 0 || e.after < time.Duration(i+1)*step {
				t.Errorf("queries of %s: number %d has %d groups after %s, must have some after %s", takes, i+1, e.groups, e.after, time.Duration(i+1)*step)
			}
		}
	}
}

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
			if wait := at.Sub(ready[s]); wait < 0 || wait >= AdmittedPerSlot*step {
				t.Fatalf("seed %d, %d slots: a turn comes after %s", seed, len(p.until), wait)
			}
			ready[s] = at.Add(step + time.Duration(rng.IntN(3))*step/3)
		}
	}
}

// TestAdmitted: three statements a slot are admitted; who comes next waits until one of them has left, or until her client no
// longer waits. That one has left which read no rows shows at once, of another one at a step since its last query returned.
func TestAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = time.Second
		p := newTimetable(2)
		leave := make([]func(time.Time), 2*AdmittedPerSlot)
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

// TestReadyHasItsOwnConnections: the look at the database before a charge opens no connection and waits for none, whatever
// becomes of paid queries: they hold theirs, and lose them at their deadline.
func TestReadyHasItsOwnConnections(t *testing.T) {
	h := postgresHouse(t)
	b := h.Backend.(*Postgres)
	q := render(t, measure(t, h.policy, "people", "sex"), h)
	locker, err := pgx.Connect(t.Context(), pgtest.Shared(t).URLFor("postgres", b.pool.Config().ConnConfig.Database))
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close(context.Background())
	lock := func(text string) {
		t.Helper()
		if _, err := locker.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	opened := func() int64 { return b.aside.Stat().NewConnsCount() }
	before := opened()
	for range 3 {
		lock(`BEGIN; LOCK TABLE public.people IN ACCESS EXCLUSIVE MODE`)
		var all sync.WaitGroup
		x := newExecutor(b, 500*time.Millisecond, h.executor().log, int(b.pool.Config().MaxConns))
		taken := b.pool.Stat().AcquireCount() + int64(cap(x.slots))
		for range cap(x.slots) {
			all.Go(func() { x.runDetached(t.Context(), q, 0) })
		}
		for range 300 { // none of them, where the machine is so busy that they end first
			if b.pool.Stat().AcquiredConns() == b.pool.Config().MaxConns {
				break
			}
			time.Sleep(time.Millisecond)
		}
		for range 5 {
			if err := h.Ready(t.Context()); err != nil {
				t.Errorf("while each connection of paid queries is taken: %v", err)
			}
		}
		if more := b.pool.Stat().AcquireCount() - taken; more > 0 {
			t.Errorf("Ready took %d connections of paid queries", more)
		}
		all.Wait()
		if err := h.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		lock(`ROLLBACK`)
	}
	if lost := b.pool.Stat().NewConnsCount(); lost <= int64(b.pool.Config().MaxConns) {
		t.Errorf("paid queries had %d connections: the test cut none", lost)
	}
	if opened() != before {
		t.Errorf("Ready opened %d connections", opened()-before)
	}
}
