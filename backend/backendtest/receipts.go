package backendtest

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"testing"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// Account is a real ledger with one user who has enough.
type Account struct{ ledger.Ledger }

// NewAccount opens one.
func NewAccount(t *testing.T) Account {
	t.Helper()
	ctx := context.Background()
	l, err := ledger.Open(ctx, "sqlite:"+filepath.Join(t.TempDir(), "ledger"), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	plenty := privacy.Cost{Epsilon: privacy.MicroEpsilon(100e6)}
	err = l.Adopt(ctx, ledger.Terms{Datasets: []ledger.DatasetTerms{{ID: "clinic", Accountant: privacy.Pure, Neighbors: privacy.AddRemove,
		Unit: "person people.person_id", Relations: []string{"public.people"}, Cap: plenty, Budgets: map[string]ledger.BudgetTerms{"*": {Limit: plenty}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return Account{l}
}

// NearlyExact is a spec whose noise is zero but with probability below e^−1000.
func NearlyExact(cells int) mechanisms.Spec {
	return mechanisms.Spec{Counters: 1, Cells: cells, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Identity},
		Noise: mechanisms.Noise{Kind: mechanisms.DiscreteLaplace, Num: 1, Den: 1000}}}
}

// Pay charges for a measure and returns its receipt.
func (a Account) Pay(t *testing.T, m *plans.Measure, spec mechanisms.Spec) *ledger.Receipt {
	t.Helper()
	out, err := a.Charge(context.Background(), ledger.Request{User: "ann", Dataset: "clinic", Statement: ledger.Digest{9}, Items: []ledger.Item{
		{Digest: m.Digest, Kind: "count", Name: "test", Table: m.Table.Name, Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(1000)}, Spec: spec}}})
	if err != nil || len(out) != 1 || out[0].Receipt == nil {
		t.Fatalf("charge: %v, %v", out, err)
	}
	return out[0].Receipt
}

// Reveal draws a nearly exact release of what Execute sealed.
func Reveal(t *testing.T, truth privacy.Sensitive[[]privacy.Group], spec mechanisms.Spec) []int64 {
	t.Helper()
	place := func(cells []int32, _ int) int {
		if len(cells) == 0 {
			return 0
		}
		return int(cells[0])
	}
	released, err := mechanisms.Release(spec, place, truth, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return released.Value().Observations
}
