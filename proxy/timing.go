package proxy

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dpproxy/dpproxy/internal/moment"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
)

// What a message brings (rows, refusals, errors, the ends of waits) leaves on a public grid: a multiple of the policy's
// step since the message came. Two answers whose work ends in the same step cannot be told apart by their time; what
// still shows is in which step it ended. So each query's result is taken at a public moment too, before anything is
// drawn from it (backend.Backend.Execute): with a step above the owner's deadline, all that follows, however long it
// takes, begins at a time in which the rows have no part (ADRs 36 and 45).
//
// The client's own limits fall on the grid as well. A cancel request or a statement_timeout would else ask at any
// moment whether the work has ended, and so read the time that the grid hides.

// pace is the grid of one message and what came with it, up to the next ReadyForQuery.
type pace struct {
	begun time.Time
	stop  <-chan struct{} // the server's end, which waits for nothing
	grid  time.Duration   // 0: none
	reads atomic.Bool     // private rows were read since the last wait
	cut   bool            // the client's own limit has just ended a wait, on the grid
	owed  bool            // work was done since the last bytes left
}

func newPace(t policy.Timing, stop <-chan struct{}) *pace {
	p := &pace{stop: stop, grid: t.Grid}
	if p.grid > 0 {
		p.begun = time.Now()
	}
	return p
}

// wait returns at the next point of the grid.
func (p *pace) wait() {
	if p.grid > 0 {
		moment.Until(moment.Next(p.begun, p.grid), p.stop)
	}
}

// hold keeps what is about to leave to the grid. Later bytes of the same answer go at once: they are functions of what
// is released.
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

// rest waits as hold does, before the next message of a pipeline is read, if rows were read for the last one. That a
// server goes on reading is seen too: by the room in the client's send buffer, or by the end of a connection after
// Terminate.
func (p *pace) rest() {
	if p != nil && p.reads.Load() {
		p.hold()
	}
}

// awaitGrid waits, if rows were read, before anything begins that may ask a clock: whatever moment an answer leaves at,
// what that clock says is in it, to a microsecond.
func (p *pace) awaitGrid() {
	if p != nil && p.reads.Load() {
		p.wait()
		p.reads.Store(false)
	}
}

// over waits as awaitGrid does before a slot is given to another statement, which may ask a clock too.
func (p *pace) over() {
	if p.reads.Load() {
		p.wait()
	}
}

// told is what a statement tells the grid.
func (p *pace) told() pipeline.Pace {
	return pipeline.Pace{ReadsRows: func() { p.reads.Store(true) }, AwaitGrid: p.awaitGrid}
}

// onGrid is a context that ends as its parent does, on the next point of the grid. On one it tells no deadline: how much
// time is left when rows have been read is for nobody to decide by.
func (p *pace) onGrid(parent context.Context) (context.Context, func()) {
	ctx := pipeline.WithPace(parent, p.told())
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
