package console

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// books are a ledger's in a test: alice has paid ten times in ten days, and bob for nobody's eyes but the owners'.
type books struct {
	revoked atomic.Int64
	now     time.Time
	mu      sync.Mutex
	held    []ledger.Release
}

func epsilon(micro int64) privacy.Cost { return privacy.Cost{Epsilon: privacy.MicroEpsilon(micro)} }

func newBooks() *books {
	b := &books{now: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)}
	b.held = []ledger.Release{{ID: 7, At: b.now.Add(-time.Hour), Item: ledger.Item{Kind: "range", Name: "people_age" + script, Table: "public.people", Cost: epsilon(500_000)}}}
	return b
}

func (b *books) Balances(context.Context, string) ([]ledger.Balance, error) {
	return []ledger.Balance{{User: "alice", Dataset: "lab", Spent: epsilon(1_000_000), Limit: epsilon(10_000_000)}}, nil
}

func (b *books) Cap(context.Context, string) (spent, limit privacy.Cost, err error) {
	return epsilon(1_000_000), epsilon(100_000_000), nil
}

func (b *books) Charges(_ context.Context, _, _ string, limit int) (list []ledger.Charge, _ error) {
	for i := range min(10, limit) {
		list = append(list, ledger.Charge{Seq: int64(100 - i), At: b.now.Add(-time.Duration(i) * 24 * time.Hour), User: "alice", Account: "alice", Dataset: "lab", Kind: "count", Name: fmt.Sprint(script, i), Cost: epsilon(100_000), Pool: epsilon(100_000)})
	}
	return list, nil
}

func (b *books) Holdings(user, _ string) []ledger.Release {
	b.mu.Lock()
	defer b.mu.Unlock()
	if user != "alice" {
		return nil
	}
	return b.held
}

func (b *books) Revoke(_ context.Context, id int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.held) == 0 || b.held[0].ID != id {
		return ledger.ErrNotHeld
	}
	b.held = nil
	b.revoked.Add(1)
	return nil
}

func (b *books) Follow(context.Context) error { return nil }

func (b *books) Now() time.Time { return b.now }
