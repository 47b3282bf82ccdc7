package backend

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// account is a real ledger with one user who has enough.
type account struct{ ledger.Ledger }

func newAccount(t *testing.T) account {
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
	return account{l}
}

// nearlyExact is a spec whose noise is zero but with probability below e^−1000.
func nearlyExact(cells int) mechanisms.Spec {
	return mechanisms.Spec{Counters: 1, Cells: cells, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Identity},
		Noise: mechanisms.Noise{Kind: mechanisms.DiscreteLaplace, Num: 1, Den: 1000}}}
}

// pay charges for a measure and returns its receipt.
func (a account) pay(t *testing.T, m *plans.Measure, spec mechanisms.Spec) *ledger.Receipt {
	t.Helper()
	out, err := a.Charge(context.Background(), ledger.Request{User: "ann", Dataset: "clinic", Statement: ledger.Digest{9}, Items: []ledger.Item{
		{Digest: m.Digest, Kind: "count", Name: "test", Table: m.Table.Name, Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(1000)}, Spec: spec}}})
	if err != nil || len(out) != 1 || out[0].Receipt == nil {
		t.Fatalf("charge: %v, %v", out, err)
	}
	return out[0].Receipt
}

// reveal draws a nearly exact release of what Execute sealed.
func reveal(t *testing.T, truth privacy.Sensitive[[]privacy.Group], spec mechanisms.Spec) []int64 {
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

// TestPaidQueriesRunOnce: a receipt is spent by one execution of its own measure and by no other (rule 4).
func TestPaidQueriesRunOnce(t *testing.T) {
	eachBackend(t, func(t *testing.T, h *house) {
		a := newAccount(t)
		bySex, byAge := measure(t, h.policy, "people", "sex"), measure(t, h.policy, "people", "age")
		spec := nearlyExact(4)
		receipt := a.pay(t, bySex, spec)
		if truth, err := execute(t, h, render(t, byAge, h), receipt); err == nil || truth.Valid() {
			t.Error("a receipt paid for another measure")
		}
		var wait sync.WaitGroup
		var mu sync.Mutex
		var answers [][]int64
		for range 8 {
			wait.Go(func() {
				truth, err := execute(t, h, render(t, bySex, h), receipt)
				if err != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				answers = append(answers, reveal(t, truth, spec))
			})
		}
		wait.Wait()
		if len(answers) != 1 || !slices.Equal(answers[0], []int64{16, 14, 2, 8}) {
			t.Errorf("got the answers %v, want [16 14 2 8] once", answers)
		}
	})
}

// TestAfterTheChargeThereIsAnAnswer (rule 5): a dead database, a vanished table and a missed deadline give a sealed answer
// of no groups and no error, which is released, saved and held like any other.
func TestAfterTheChargeThereIsAnAnswer(t *testing.T) {
	faults := map[string]func(h *house){
		"deadline":       func(h *house) { h.setDeadline(time.Nanosecond) },
		"vanished table": func(h *house) { h.policy.Datasets[0].Tables[0].Source.Name = "gone" },
		"dead":           func(h *house) { h.crash() },
	}
	eachBackend(t, func(t *testing.T, h *house) {
		a := newAccount(t)
		for _, name := range []string{"vanished table", "deadline", "dead"} {
			m := measure(t, h.policy, "people", "sex")
			m.Digest[31] = byte(len(name))
			spec := nearlyExact(4)
			receipt := a.pay(t, m, spec)
			faults[name](h)
			truth, err := execute(t, h, render(t, m, h), receipt)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := reveal(t, truth, spec); !slices.Equal(got, make([]int64, 4)) {
				t.Errorf("%s: got %v, want zeros", name, got)
			}
			if _, err := a.Save(context.Background(), receipt, mechanisms.Drawn{Noisy: privacy.Published(mechanisms.Noisy{Observations: make([]int64, 4)})}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			h.setDeadline(20 * time.Second)
		}
		if n := strings.Count(h.log.String(), "privacy rule 5"); n != 3 {
			t.Errorf("%d alerts, want 3", n)
		}
		if held := len(a.Holdings("ann", "clinic")); held != 3 {
			t.Errorf("she holds %d releases, want 3", held)
		}
	})
}

// TestNeighboursLookAlike (rules 5 and 23): with and without one person, the SQL, the log and the errors are equal.
func TestNeighboursLookAlike(t *testing.T) {
	h := postgresHouse(t)
	trace := func() string {
		var text bytes.Buffer
		for _, grain := range [][]string{nil, {"sex"}, {"income", "age"}} {
			m := measure(t, h.policy, "people", grain...)
			a := newAccount(t)
			q := render(t, m, h)
			truth, err := execute(t, h, q, a.pay(t, m, nearlyExact(1)))
			fmt.Fprintln(&text, q.SQL(), q.Args(), err, truth.Valid(), h.Ready(context.Background()))
		}
		return text.String() + inspect(t, h) + h.log.String()
	}
	with := trace()
	h.change("DELETE FROM people WHERE person_id = 17")
	if without := trace(); with != without {
		t.Errorf("one person more shows:\n%s\n----\n%s", with, without)
	}
}
