package engines

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// slow is what runs queries when it is asked to.
type slow struct {
	execute.Counting
	begun chan struct{} // one for each query
	held  chan struct{} // closed: they run
}

func (e slow) groups(ctx context.Context, query rewrite.Query) ([][]privacy.Group, error) {
	e.begun <- struct{}{}
	<-e.held // whatever ctx says: a database that does not let go
	return e.Counting(context.WithoutCancel(ctx), query)
}

// broken fails at once.
func broken(context.Context, rewrite.Query) ([][]privacy.Group, error) {
	return nil, errors.New("broken")
}

// TestResultsAtAPublicMoment: with a step, a result is taken at its end: one that was there at once no sooner, and one
// that never comes no later, be it that its own database holds it or that others' queries hold its slot. Below the
// deadline it is waited for, and taken at a multiple of the step.
func TestResultsAtAPublicMoment(t *testing.T) {
	t.Parallel()
	const deadline, step = 500 * time.Millisecond, 600 * time.Millisecond
	h := backendtest.DuckHouse(t)
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "sex"), h)
	took := func(x execute.Executor, step time.Duration) (int, time.Duration) {
		begun := time.Now()
		groups := execute.Detached(t.Context(), &x, q, step)[0]
		return len(groups), time.Since(begun)
	}
	alone := func(count execute.Counting) execute.Executor {
		return execute.NewExecutor(h.Dialect, count, deadline, h.Logger(), 1)
	}
	count := execute.CountingOf(h.Executor())
	x := alone(count)
	if groups, after := took(x, step); groups == 0 || after < step {
		t.Errorf("a quick query: %d groups after %s, must be some after %s", groups, after, step)
	}
	if groups, after := took(alone(broken), step); groups != 0 || after < step {
		t.Errorf("a fault: %d groups after %s, must be none after %s", groups, after, step)
	}
	slow := slow{count, make(chan struct{}, 10), make(chan struct{})}
	held := alone(slow.groups)
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
	late := slow
	late.begun, late.held = make(chan struct{}, 1), make(chan struct{})
	x = alone(late.groups)
	execute.SetDeadline(&x, time.Minute)
	time.AfterFunc(step+step/2, func() { close(late.held) })
	if groups, after := took(x, step); groups == 0 || after < 2*step {
		t.Errorf("a deadline above the step: %d groups after %s, must be some after %s", groups, after, 2*step)
	}
}

// nearlyLate takes most of the deadline for each query.
func nearlyLate(count execute.Counting, takes time.Duration) execute.Counting {
	return func(ctx context.Context, query rewrite.Query) ([][]privacy.Group, error) {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return count(ctx, query)
	}
}

// TestTurnsArePublic: of two queries for one slot the second begins a whole step after the first, however soon that one
// ends, and has the whole of its own step: when it is answered and whether it is cut at its end tells nothing of the
// other's rows.
func TestTurnsArePublic(t *testing.T) {
	t.Parallel()
	const deadline, step = 2 * time.Second, 2100 * time.Millisecond
	h := backendtest.DuckHouse(t)
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "sex"), h)
	for _, takes := range []time.Duration{0, deadline * 3 / 5} {
		x := execute.NewExecutor(h.Dialect, nearlyLate(execute.CountingOf(h.Executor()), takes), deadline, h.Logger(), 1)
		type end struct {
			groups int
			after  time.Duration
		}
		ends := make(chan end, 2)
		begun := time.Now()
		for range 2 {
			go func() {
				groups := execute.Detached(t.Context(), &x, q, step)[0]
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
