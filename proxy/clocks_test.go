package proxy

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
)

// clocks is a server on a grid where "select rows" reads private rows and "select clock" notes when it runs.
func clocks(t *testing.T, grid time.Duration, limits policy.Limits) (b *bench, ran *atomic.Pointer[time.Time]) {
	ran = &atomic.Pointer[time.Time]{}
	b = start(t, func(c *Config) {
		p := c.Policy()
		p.Server.Timing, p.Server.Limits = policy.Timing{Grid: grid, Fresh: grid}, limits
		c.Policy = func() *policy.Policy { return p }
		columns := []sandbox.Column{column("count", policy.Int8)}
		fixtures := c.Pipeline.(*fakePipeline).fixtures
		fixtures["select rows"] = fixture{columns: columns, answer: func(ctx context.Context, _ *pipeline.Session, _ []policy.Value) ([][]policy.Value, error) {
			pipeline.ReadsRows(ctx)
			return numbers(1), nil
		}}
		fixtures["select clock"] = fixture{columns: columns, answer: func(context.Context, *pipeline.Session, []policy.Value) ([][]policy.Value, error) {
			now := time.Now()
			ran.Store(&now)
			return numbers(1), nil
		}}
	})
	return b, ran
}

// TestClocksAreAskedOnTheGrid: what follows a read of rows begins at a point of its grid, since a clock that it asks
// shows to a microsecond when that was: the next statement of the message, of the pipeline, and another session's that
// has waited for this one's place.
func TestClocksAreAskedOnTheGrid(t *testing.T) {
	const grid = 200 * time.Millisecond
	for name, send := range map[string]func(b *bench, r, other *raw){
		"a message": func(_ *bench, r, _ *raw) {
			r.Send(query("select rows; select clock"))
			r.upTo("Z")
		},
		"a pipeline": func(_ *bench, r, _ *raw) {
			for _, sql := range []string{"select rows", "select clock"} {
				r.Send(parseMessage("", sql))
				r.Send(bind("", ""))
				r.Send(execute("", 0))
			}
			r.Send(syncs)
			r.upTo("Z")
		},
		"a cursor": func(_ *bench, r, _ *raw) {
			r.Send(query("begin; declare c cursor for select rows; select clock; commit"))
			r.upTo("Z")
		},
		"a place": func(b *bench, r, other *raw) {
			r.Send(query("select rows"))
			r.flush()
			b.answering() // the other one comes second, be that within its work or its wait
			other.Send(query("select clock"))
			other.upTo("Z")
			r.upTo("Z")
		},
	} {
		limits := policy.Limits{Connections: 10, UserConnections: 10, UserStatements: 10}
		if name == "a place" {
			limits.UserStatements = 1
		}
		b, ran := clocks(t, grid, limits)
		r, other := b.raw(t), b.raw(t)
		begun := time.Now()
		send(b, r, other)
		if at := ran.Load(); at == nil || at.Sub(begun) < grid {
			t.Errorf("%s: a clock was asked at %v, less than %s after the message of %v", name, at, grid, begun)
		}
	}
}

// TestActiveUntilTheAnswerLeaves: what the user's other sessions see of one changes on its grid too.
func TestActiveUntilTheAnswerLeaves(t *testing.T) {
	const grid = 300 * time.Millisecond
	b, _ := clocks(t, grid, policy.Limits{Connections: 10, UserConnections: 10, UserStatements: 10})
	r := b.raw(t)
	active := func() (n int) {
		for _, c := range b.keys.of("alice") {
			if c.Active {
				n++
			}
		}
		return n
	}
	if active() != 0 {
		t.Error("an idle session is active")
	}
	begun := time.Now()
	r.Send(query("select rows"))
	r.flush()
	b.answering()
	for active() > 0 {
		time.Sleep(time.Millisecond)
	}
	if after := time.Since(begun); after < grid {
		t.Errorf("it was idle %s after the message, on a grid of %s", after, grid)
	}
	r.upTo("Z")
}
