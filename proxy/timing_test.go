package proxy

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
)

// TestHoldWaitsForTheGrid: the replies to a message leave no earlier than the next point of its grid, later bytes of
// the same answer go at once, and without a grid there is no wait.
func TestHoldWaitsForTheGrid(t *testing.T) {
	const grid = 20 * time.Millisecond
	for _, worked := range []time.Duration{0, 7 * time.Millisecond, 19 * time.Millisecond, 61 * time.Millisecond} {
		p := newPace(policy.Timing{Grid: grid}, nil)
		p.begun = p.begun.Add(-worked)
		p.owed = true
		p.hold()
		if took := time.Since(p.begun); took < worked.Truncate(grid)+grid {
			t.Errorf("after %s of work the answer left at %s of a grid of %s", worked, took, grid)
		}
		if p.owed {
			t.Error("the next bytes of the same answer would wait as well")
		}
	}
	none := newPace(policy.Timing{}, nil)
	none.owed = true
	none.hold()
	if !none.begun.IsZero() {
		t.Error("without a grid the clock is read")
	}
}

// TestWaitsEndOnTheGrid: a client's own limit ends a wait on the grid alone, whatever moment she names, with its cause,
// and the context has no deadline before; the end of the server does not wait for the grid.
func TestWaitsEndOnTheGrid(t *testing.T) {
	stop := make(chan struct{})
	p := newPace(policy.Timing{Grid: 30 * time.Millisecond}, stop)
	limited, done := context.WithTimeout(t.Context(), time.Hour)
	defer done()
	parent, cancel := context.WithCancelCause(limited)
	ctx, release := p.onGrid(parent)
	defer release()
	if _, told := ctx.Deadline(); told {
		t.Error("a statement on the grid is told its deadline")
	}
	cancel(errCanceled)
	<-ctx.Done()
	if took := time.Since(p.begun); took < p.grid {
		t.Errorf("a wait that was cut at once ended after %s of a grid of %s", took, p.grid)
	}
	if !errors.Is(context.Cause(ctx), errCanceled) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
	long := newPace(policy.Timing{Grid: time.Hour}, stop)
	close(stop)
	long.owed = true
	long.hold()
}

// TestEveryOutcomeIsHeld: rows, refusals, errors, panics and cut waits leave on the grid, by either protocol, and a
// long answer waits once.
func TestEveryOutcomeIsHeld(t *testing.T) {
	const grid = 30 * time.Millisecond
	b := start(t, func(c *Config) {
		p := c.Policy()
		p.Server.Timing = policy.Timing{Grid: grid, Fresh: grid}
		c.Policy = func() *policy.Policy { return p }
	})
	r := b.raw(t, "statement_timeout", "1ms")
	for _, sql := range []string{"select 1", "select nope", "select error", "select too much", "select slow", "nonsense", "set dp.epsilon = 0.5", ""} {
		for _, send := range [][]pgproto3.FrontendMessage{{query(sql)}, {parseMessage("", sql), bind("", ""), execute("", 0), syncs}} {
			begun := time.Now()
			for _, m := range send {
				r.Send(m)
			}
			got := r.upTo("Z")
			if took := time.Since(begun); took < grid {
				t.Errorf("%s: %s after %s", sql, got, took)
			}
		}
	}
	r = b.raw(t)
	begun := time.Now()
	r.Send(query("select panic"))
	r.upTo("EOF")
	if took := time.Since(begun); took < grid {
		t.Errorf("a panic is told after %s", took)
	}
}

// TestLateCutIsNoLicence: a limit that comes as late as the answer ends nothing, so the next answer of the pipeline
// waits for the grid as any other.
func TestLateCutIsNoLicence(t *testing.T) {
	const grid = 40 * time.Millisecond
	p := newPace(policy.Timing{Grid: grid}, nil)
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, release := p.onGrid(parent)
	defer release()
	p.owed = true
	cancel(errCanceled) // the work has just ended all the same
	p.hold()
	<-ctx.Done()
	time.Sleep(grid / 4)
	p.owed = true
	p.hold()
	if took := time.Since(p.begun); took < 2*grid {
		t.Errorf("the second answer left after %s of a grid of %s", took, grid)
	}
}

// TestReadingOnWaits: after rows were read the server reads a pipeline's next message on the grid alone, since that
// shows in what the client can still send and, after Terminate, in the end of the connection. Its Sync then goes at
// once.
func TestReadingOnWaits(t *testing.T) {
	const grid = 200 * time.Millisecond
	b := start(t, func(c *Config) {
		p := c.Policy()
		p.Server.Timing = policy.Timing{Grid: grid, Fresh: grid}
		c.Policy = func() *policy.Policy { return p }
	}, func(c *Config) {
		c.Pipeline.(*fakePipeline).fixtures["select rows"] = fixture{columns: []sandbox.Column{column("count", policy.Int8)},
			answer: func(ctx context.Context, _ *pipeline.Session, _ []policy.Value) ([][]policy.Value, error) {
				pipeline.ReadsRows(ctx)
				return numbers(1), nil
			}}
	})
	for _, last := range []pgproto3.FrontendMessage{&pgproto3.Terminate{}, syncs} {
		r := b.raw(t)
		begun := time.Now()
		for _, m := range []pgproto3.FrontendMessage{parseMessage("", "select rows"), bind("", ""), execute("", 0), last} {
			r.Send(m)
		}
		if last == syncs {
			r.upTo("Z")
		} else {
			r.upTo("EOF")
		}
		if took := time.Since(begun); took < grid {
			t.Errorf("%T was read %s after rows were, on a grid of %s", last, took, grid)
		}
	}
	p := newPace(policy.Timing{Grid: grid}, nil)
	p.owed = true
	pipeline.ReadsRows(pipeline.WithPace(t.Context(), p.told()))
	if p.rest(); p.owed {
		t.Error("what has waited once waits again")
	}
}
