package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Rule 1: nothing that another analyst does shows in what alice sees, but that the dataset's budget is spent.
func TestRule1OthersLeaveNoTrace(t *testing.T) {
	view := func(others func(*keeper)) string {
		c := newClock()
		f := fresh(t, Options{Clock: c.read}, census())
		others(f)
		buy(t, f, "alice", item(1, eps(100)), 1)
		buy(t, f, "alice", shared(2, eps(200)), 2)
		b, err1 := f.Balance(ctx, "alice", "census")
		charges, err2 := f.Charges(ctx, "alice", "census", 100)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		for i := range charges {
			charges[i].Seq = 0 // a position in the common chain: callers do not show it
		}
		held := slices.Clone(f.Holdings("alice", "census"))
		for i := range held {
			held[i].ID = 0
		}
		return fmt.Sprint(b, charges, held)
	}
	quiet := view(func(*keeper) {})
	busy := view(func(f *keeper) {
		buy(t, f, "bob", item(1, eps(100)), 3)
		buy(t, f, "bob", item(7, eps(5000)), 4)
		charge(t, f, request("carol", item(1, eps(1e6))))
		_, err := f.Charge(ctx, request("bob", item(8, eps(1e9))))
		wantErr(t, err, ErrExhausted)
	})
	if quiet != busy {
		t.Fatalf("alice sees\n%s\nand after others were busy\n%s", quiet, busy)
	}
	f := fresh(t, Options{}, census())
	id := buy(t, f, "bob", item(1, eps(1)), 1)
	_, err := f.Load(ctx, "alice", id)
	wantErr(t, err, ErrNotHeld)
	if held := f.Holdings("alice", "census"); len(held) != 0 {
		t.Fatalf("alice holds %+v", held)
	}
}

// Rule 2: a shared release costs each user once, at her first use, and the cap once.
func TestRule2EachUserPaysOnceTheCapOnce(t *testing.T) {
	f := fresh(t, Options{}, census())
	it := shared(1, eps(500_000))
	id := buy(t, f, "alice", it, 42)
	wantSpent(t, f, "alice", 500_000, 500_000)
	if held := f.Holdings("bob", "census"); len(held) != 0 {
		t.Fatalf("bob holds what he has not paid for: %+v", held)
	}
	_, err := f.Load(ctx, "bob", id)
	wantErr(t, err, ErrNotHeld)
	out := charge(t, f, request("bob", it))
	if out[0].Receipt != nil || out[0].ID != id || out[0].Charged != it.Cost {
		t.Fatalf("bob's first use: %+v", out[0])
	}
	wantSpent(t, f, "bob", 500_000, 500_000)
	out = charge(t, f, request("bob", it))
	if out[0].ID != id || !out[0].Charged.IsZero() {
		t.Fatalf("bob's second use: %+v", out[0])
	}
	wantSpent(t, f, "bob", 500_000, 500_000)
	got, err := f.Load(ctx, "bob", id)
	if err != nil || got.Noisy.Value().Observations[0] != 42 {
		t.Fatalf("bob reads %+v, %v", got, err)
	}
	_, err = f.Charge(ctx, request("dora", shared(1, eps(4e6))))
	wantErr(t, err, ErrExhausted)
	verify(t, f)
}

// Two sessions of one user use a declared release for the first time at once: she pays once.
func TestRule2FirstUseTwiceAtOnce(t *testing.T) {
	f := fresh(t, Options{}, census())
	it := shared(1, eps(100))
	buy(t, f, "alice", it, 1)
	errs := make(chan error)
	for range 8 {
		go func() {
			_, err := f.Charge(ctx, request("bob", it))
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	wantSpent(t, f, "bob", 100, 100)
}

// Rule 3: another exactness or another digest is another release; the same one is held however old it is, unless its
// refresh is over.
func TestRule3SameQuestionOnly(t *testing.T) {
	c := newClock()
	f := fresh(t, Options{Clock: c.read}, census())
	it := item(1, eps(100))
	first := buy(t, f, "alice", it, 1)
	exact := it
	exact.Spec, exact.Cost = spec(1, 20), eps(200)
	second := buy(t, f, "alice", exact, 1)
	if buy(t, f, "alice", item(2, eps(100)), 1) == first || second == first {
		t.Fatal("two questions share a release")
	}
	c.forward(1000 * time.Hour)
	if out := charge(t, f, request("alice", it)); out[0].ID != first {
		t.Fatalf("a stale answer stays free, got %+v", out[0])
	}
	daily := it
	daily.Refresh = 24 * time.Hour
	third := buy(t, f, "alice", daily, 1)
	if out := charge(t, f, request("alice", daily)); out[0].ID != third {
		t.Fatalf("in one epoch: %+v", out[0])
	}
	c.forward(24 * time.Hour)
	if buy(t, f, "alice", daily, 1) == third {
		t.Fatal("the epoch is over")
	}
	verify(t, f)
}

// Rule 4: a charge without a saved answer is spent, and the item is drawn again only on a new charge.
func TestRule4ChargeDrawSaveSend(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	it := item(1, eps(100))
	r := charge(t, f, request("alice", it))[0].Receipt
	f.Abandon(r)
	if r.Spend(r.digest) == nil {
		t.Fatal("an abandoned receipt was spent")
	}
	wantSpent(t, f, "alice", 100, 100)
	r = charge(t, f, request("alice", it))[0].Receipt
	wantSpent(t, f, "alice", 200, 200)
	f.Close() // as after a crash: charged, nothing saved
	f = open(t, path, Options{})
	wantSpent(t, f, "alice", 200, 200)
	if held := f.Holdings("alice", "census"); len(held) != 0 {
		t.Fatalf("held %+v", held)
	}
	buy(t, f, "alice", it, 1)
	wantSpent(t, f, "alice", 300, 300)
	r.Spend(r.digest)
	if _, err := f.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(9)}); err == nil {
		t.Fatal("a receipt outlived its ledger")
	}
	verify(t, f)
}

// Rule 4: of two sessions asking at once one draws, the other waits: for the saved answer, or for its own turn.
func TestRule4OneDrawsTheOtherWaits(t *testing.T) {
	for _, it := range []Item{item(1, eps(100)), shared(1, eps(100))} {
		for _, save := range []bool{true, false} {
			t.Run(fmt.Sprintf("shared=%v,save=%v", it.Shared, save), func(t *testing.T) {
				f := fresh(t, Options{}, census())
				r := charge(t, f, request("alice", it))[0].Receipt
				got := make(chan Outcome)
				go func() { got <- charge(t, f, request("alice", item(2, eps(1)), it))[1] }()
				select {
				case o := <-got:
					t.Fatalf("did not wait: %+v", o)
				case <-time.After(20 * time.Millisecond):
				}
				short, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				_, err := f.Charge(short, request("alice", it))
				wantErr(t, err, context.DeadlineExceeded)
				wantSpent(t, f, "alice", 100, 100)
				if save {
					id := keep(t, f, r, 1)
					if o := <-got; o.ID != id || !o.Charged.IsZero() {
						t.Fatalf("the one who waited got %+v", o)
					}
					wantSpent(t, f, "alice", 101, 101)
					return
				}
				f.Abandon(r)
				o := <-got
				if o.Receipt == nil || o.Charged != it.Cost {
					t.Fatalf("the one who waited got %+v", o)
				}
				wantSpent(t, f, "alice", 201, 201)
			})
		}
	}
}

// Rule 6: δ has a limit of its own in every account, and refuses by itself.
func TestRule6DeltaIsAnAccountOfItsOwn(t *testing.T) {
	with := func(micro, atto int64) privacy.Cost {
		return privacy.Cost{Epsilon: privacy.MicroEpsilon(micro), Delta: privacy.AttoDelta(atto)}
	}
	d := census()
	d.Cap = with(10e6, 25)
	d.Budgets = map[string]BudgetTerms{"alice": {Limit: with(1e6, 10), Refresh: time.Hour, Lifetime: with(3e6, 15)}, "*": {Limit: with(1e6, 100)}}
	c := newClock()
	f := fresh(t, Options{Clock: c.read}, d)
	charge(t, f, request("alice", item(1, with(1, 10))))
	_, err := f.Charge(ctx, request("alice", item(2, with(1, 1))))
	wantErr(t, err, ErrExhausted) // the window's δ
	charge(t, f, request("alice", item(3, with(1, 0))))
	c.forward(time.Hour)
	_, err = f.Charge(ctx, request("alice", item(4, with(1, 6))))
	wantErr(t, err, ErrExhausted) // the lifetime's δ
	charge(t, f, request("alice", item(5, with(1, 5))))
	_, err = f.Charge(ctx, request("bob", item(6, with(1, 11))))
	wantErr(t, err, ErrCap) // the cap's δ
	charge(t, f, request("bob", item(7, with(1, 10))))
	verify(t, f)
}

// Rule 7 and T36: windows tumble by the ledger's own time, which never goes back; each moment is in one window.
func TestRule7WindowsAndTheLedgersTime(t *testing.T) {
	d := census()
	d.Budgets["alice"] = BudgetTerms{Limit: eps(100), Refresh: time.Hour, Lifetime: eps(250)}
	d.Budgets["bob"] = BudgetTerms{Limit: eps(100), Refresh: time.Hour}
	c := newClock()
	path := place(t)
	f := open(t, path, Options{Clock: c.read})
	if err := f.Adopt(ctx, terms(d)); err == nil {
		t.Fatal("refresh without lifetime was adopted")
	}
	delete(d.Budgets, "bob")
	adopt(t, f, d)
	n := byte(0)
	try := func(want error) {
		t.Helper()
		n++
		_, err := f.Charge(ctx, request("alice", item(n, eps(100))))
		if !errors.Is(err, want) {
			t.Fatalf("charge %d: %v, must be %v", n, err, want)
		}
	}
	try(nil)
	c.forward(time.Hour - time.Nanosecond)
	try(ErrExhausted) // the last nanosecond of the first window
	c.forward(time.Nanosecond)
	try(nil)
	for range 50 {
		c.forward(-2 * time.Hour)
		try(ErrExhausted)
		c.forward(2 * time.Hour)
		try(ErrExhausted)
	}
	c.forward(-24 * time.Hour)
	f.Close()
	f = open(t, path, Options{Clock: c.read})
	try(ErrExhausted) // the ledger remembers its time
	c.forward(25 * time.Hour)
	try(ErrExhausted) // of 250 for life, 200 are spent
	b, err := f.Balance(ctx, "alice", "census")
	if err != nil || !b.Spent.IsZero() || b.LifeSpent != eps(200) || !b.WindowEnds.After(c.now) {
		t.Fatalf("balance %+v, %v", b, err)
	}
	charge(t, f, request("alice", item(200, eps(50))))
	verify(t, f)
}

// Rule 8 (T37): a request planned under another policy is refused.
func TestRule8RequestOfAnotherPolicy(t *testing.T) {
	f := fresh(t, Options{}, census())
	r := request("alice", item(1, eps(1)))
	r.PolicyDigest = Digest{2}
	_, err := f.Charge(ctx, r)
	wantErr(t, err, ErrPolicy)
	if err := f.Adopt(ctx, Terms{PolicyDigest: Digest{2}, Datasets: []DatasetTerms{census()}}); err != nil {
		t.Fatal(err)
	}
	charge(t, f, r)
	_, err = f.Charge(ctx, request("alice", item(2, eps(1))))
	wantErr(t, err, ErrPolicy)
}

// T37: the policy changes between the look at what is held and the charge.
func TestRule8PolicyChangesUnderWay(t *testing.T) {
	f := fresh(t, Options{}, census())
	r := request("alice", item(1, eps(1)))
	pending, ds, _, err := f.lockItems(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Adopt(ctx, Terms{PolicyDigest: Digest{2}, Datasets: []DatasetTerms{census()}}); err != nil {
		t.Fatal(err)
	}
	_, err = f.pay(ctx, r, ds, pending, false)
	wantErr(t, err, ErrPolicy)
	wantSpent(t, f, "alice", 0, 0)
	r.PolicyDigest = Digest{2}
	charge(t, f, r) // the failed one is not waited for
}
