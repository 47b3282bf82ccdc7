package proxy

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

// What a message brings (rows, refusals, errors, the ends of waits) leaves on a public grid: a multiple of the policy's
// step since the message came. Two answers whose work ends in the same step cannot be told apart by their time; what still
// shows is in which step it ended. So statements for which rows are read, which is a function of public things, have a step
// of their own: with one above the owner's deadline, the wait for a turn before it and the saving after it, their time
// tells nothing (ADR 36).
//
// The client's own limits fall on the grid as well. A cancel request or a statement_timeout would else ask at any moment
// whether the work has ended, and so read the time that the grid hides.

// pace is the grid of one message and what came with it, up to the next ReadyForQuery.
type pace struct {
	begun       time.Time
	stop        <-chan struct{} // the server's end, which waits for nothing
	grid, fresh time.Duration   // steps; 0: no grid
	reads       atomic.Bool     // private rows were read since the last wait: the step is fresh
	cut         bool            // the client's own limit has just ended a wait, on the grid
	owed        bool            // work was done since the last bytes left
}

func newPace(t policy.Timing, stop <-chan struct{}) *pace {
	p := &pace{stop: stop, grid: t.Grid, fresh: max(t.Fresh, t.Grid)}
	if p.grid > 0 {
		p.begun = time.Now()
	}
	return p
}

type paceKey struct{}

// readsRows says that private rows are read for what this context belongs to. Whoever calls it decides by public things.
func readsRows(ctx context.Context) {
	if p, ok := ctx.Value(paceKey{}).(*pace); ok {
		p.reads.Store(true)
	}
}

// wait returns at the next point of the grid.
func (p *pace) wait() {
	step := p.grid
	if p.reads.Load() {
		step = p.fresh
	}
	if step > 0 {
		now := time.Since(p.begun)
		until(p.begun.Add(now-now%step+step), p.stop)
	}
}

// hold keeps what is about to leave to the grid. Later bytes of the same answer go at once: they are functions of what is
// released.
func (p *pace) hold() {
	if p == nil || !p.owed {
		return
	}
	cut := p.cut
	if p.owed, p.cut = false, false; cut {
		return
	}
	p.wait()
	p.reads.Store(false)
}

// rest waits as hold does, before the next message of a pipeline is read, if rows were read for the last one. That a server
// goes on reading is seen too: by the room in the client's send buffer, or by the end of a connection after Terminate.
func (p *pace) rest() {
	if p != nil && p.reads.Load() {
		p.hold()
	}
}

// onGrid is a context that ends as its parent does, on the next point of the grid.
func (p *pace) onGrid(parent context.Context) (context.Context, func()) {
	ctx := context.WithValue(parent, paceKey{}, p)
	if p.grid == 0 {
		return ctx, func() {}
	}
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(parent, func() {
		p.wait()
		cancel(context.Cause(parent))
	})
	return late, func() {
		stop()
		cancel(nil)
	}
}

// precise is how long before its end a wait stops sleeping: timers wake late by up to a millisecond, by how much depends
// on what else runs, and that is seen.
const precise = 2 * time.Millisecond

// until waits for a moment: it sleeps, and looks at the clock for the rest.
func until(moment time.Time, stop <-chan struct{}) {
	if long := time.Until(moment) - precise; long > 0 {
		timer := time.NewTimer(long)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-stop:
			return
		}
	}
	for time.Now().Before(moment) {
		runtime.Gosched()
	}
}
