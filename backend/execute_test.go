package backend

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// slowEngine runs its queries when it is told to.
type slowEngine struct {
	engine
	begun chan struct{} // one for each query
	held  chan struct{} // closed: they run
}

func (e slowEngine) groups(ctx context.Context, query rewrite.Query) ([]privacy.Group, error) {
	e.begun <- struct{}{}
	<-e.held // whatever ctx says: a database that does not let go
	return e.engine.groups(context.WithoutCancel(ctx), query)
}

// brokenEngine fails at once.
type brokenEngine struct{ engine }

func (brokenEngine) groups(context.Context, rewrite.Query) ([]privacy.Group, error) {
	return nil, errors.New("broken")
}

// TestResultsAtAPublicMoment: with a step, a result is taken at its end: one that was there at once no sooner, and one that
// never comes no later, be it that its own database holds it or that others' queries hold its turn. Below the deadline it is
// waited for, and taken at a multiple of the step.
func TestResultsAtAPublicMoment(t *testing.T) {
	const deadline, step = 500 * time.Millisecond, 600 * time.Millisecond
	h := duckHouse(t)
	q := render(t, measure(t, h.policy, "people", "sex"), h)
	x := newExecutor(h.executor().engine, deadline, h.executor().log, 1)
	took := func(x executor, step time.Duration) (int, time.Duration) {
		begun := time.Now()
		groups := x.settle(q, step)
		return len(groups), time.Since(begun)
	}
	if groups, after := took(x, step); groups == 0 || after < step {
		t.Errorf("a quick query: %d groups after %s, must be some after %s", groups, after, step)
	}
	broken := x
	broken.engine = brokenEngine{x.engine}
	if groups, after := took(broken, step); groups != 0 || after < step {
		t.Errorf("a fault: %d groups after %s, must be none after %s", groups, after, step)
	}
	slow := slowEngine{x.engine, make(chan struct{}, 10), make(chan struct{})}
	held := x
	held.engine = slow
	if groups, after := took(held, step); groups != 0 || after < step {
		t.Errorf("a query that its database holds: %d groups after %s, must be none after %s", groups, after, step)
	}
	<-slow.begun
	time.AfterFunc(3*step, func() { close(slow.held) })
	if groups, after := took(held, step); groups != 0 || after < step {
		t.Errorf("a query without a turn: %d groups after %s, must be none after %s", groups, after, step)
	}
	if len(slow.begun) > 0 {
		t.Error("a second query ran in the only slot")
	}
	<-slow.held
	if groups, after := took(held, step); groups == 0 || after < step {
		t.Errorf("the slot is free again, but there were %d groups after %s", groups, after)
	}
	late := slowEngine{x.engine, make(chan struct{}, 1), make(chan struct{})}
	x.engine, x.deadline = late, time.Minute
	time.AfterFunc(step+step/2, func() { close(late.held) })
	if groups, after := took(x, step); groups == 0 || after < 2*step {
		t.Errorf("a deadline above the step: %d groups after %s, must be some after %s", groups, after, 2*step)
	}
}
