package postgres

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/pgtest"
)

// TestReadyHasItsOwnConnections: the look at the database before a charge opens no connection and waits for none,
// whatever becomes of paid queries: they hold theirs, and lose them at their deadline.
func TestReadyHasItsOwnConnections(t *testing.T) {
	h := backendtest.PostgresHouse(t)
	b := h.Backend.(*DB)
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "sex"), h)
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
		x := execute.NewExecutor(b.Dialect, b.groups, 500*time.Millisecond, h.Logger(), int(b.pool.Config().MaxConns))
		taken := b.pool.Stat().AcquireCount() + int64(x.Slots())
		for range x.Slots() {
			all.Go(func() { execute.Detached(t.Context(), &x, q, 0) })
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
