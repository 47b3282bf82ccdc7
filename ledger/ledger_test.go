package ledger

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

func TestBuyLoadAndReopen(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	it := item(1, eps(100_000))
	it.Described = []byte("described")
	it.Spec.Kind.(*mechanisms.Counts).Strategy.Radices = []int{2, 3}
	id := buy(t, f, "alice", it, 5, -7, 1<<40)
	for range 2 {
		got, err := f.Load(ctx, "alice", id)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Noisy.Value().Observations, []int64{5, -7, 1 << 40}) || string(got.Item.Described) != "described" ||
			specKey(got.Item.Spec) != specKey(it.Spec) || got.Item.Cost != it.Cost {
			t.Fatalf("loaded %+v", got)
		}
		out := charge(t, f, request("alice", it))
		if out[0].Receipt != nil || out[0].ID != id || !out[0].Charged.IsZero() {
			t.Fatalf("asked again: %+v", out[0])
		}
		wantSpent(t, f, "alice", 100_000, 100_000)
		verify(t, f)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		f = open(t, path, Options{})
	}
	charges, err := f.Charges(ctx, "alice", "census", 10)
	if err != nil || len(charges) != 1 || charges[0].Cost != it.Cost || charges[0].User != "alice" {
		t.Fatalf("charges %+v, %v", charges, err)
	}
	if _, ok := f.Policy(); !ok {
		t.Fatal("no policy after a restart")
	}
}

// T23, T38: 16 goroutines and a cap of 10, each charge 0.1: exactly 100 are paid.
func TestExactlyTheCap(t *testing.T) {
	d := census()
	d.Budgets = map[string]BudgetTerms{"*": {Limit: eps(10e6)}}
	f := fresh(t, Options{}, d)
	var paid atomic.Int64
	var wg sync.WaitGroup
	for g := range 16 {
		user := string(rune('a' + g%4))
		wg.Go(func() {
			for n := 0; ; n++ {
				it := item(byte(g), eps(100_000))
				it.Digest[31] = byte(n)
				out, err := f.Charge(ctx, request(user, it))
				if errors.Is(err, ErrCap) || errors.Is(err, ErrExhausted) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				f.Abandon(out[0].Receipt)
				paid.Add(1)
			}
		})
	}
	wg.Wait()
	if paid.Load() != 100 {
		t.Fatalf("%d charges of 0.1 fit into 10", paid.Load())
	}
	verify(t, f)
}

func TestAllOrNone(t *testing.T) {
	d := census()
	d.Cap = eps(1e6)
	f := fresh(t, Options{}, d)
	_, err := f.Charge(ctx, request("alice", item(1, eps(600_000)), item(2, eps(600_000))))
	wantErr(t, err, ErrCap)
	_, err = f.Charge(ctx, request("alice", item(1, eps(2e6)), item(2, eps(2e6))))
	wantErr(t, err, ErrExhausted)
	wantSpent(t, f, "alice", 0, 0)
	out := charge(t, f, request("alice", item(1, eps(500_000)), item(2, eps(500_000))))
	if out[0].Receipt == nil || out[1].Receipt == nil {
		t.Fatal("no receipts")
	}
	wantSpent(t, f, "alice", 1e6, 1e6)
	_, err = f.Charge(ctx, request("bob", item(1, eps(1))))
	wantErr(t, err, ErrCap)
	verify(t, f)
}

// Costs that no honest caller sends (T40), and sums that do not fit.
func TestBadCosts(t *testing.T) {
	f := fresh(t, Options{}, census())
	const most = 1<<63 - 1
	for name, items := range map[string][]Item{
		"zero":          {item(1, eps(0))},
		"negative":      {item(1, eps(-1))},
		"delta alone":   {item(1, privacy.Cost{Delta: privacy.AttoDelta(1)})},
		"minus delta":   {item(1, privacy.Cost{Epsilon: privacy.MicroEpsilon(1), Delta: privacy.AttoDelta(-1)})},
		"foreign unit":  {item(1, rho(1))},
		"largest":       {item(1, eps(most))},
		"sum overflows": {item(1, eps(most)), item(2, eps(most)), item(3, eps(2))},
		"item twice":    {item(1, eps(1)), item(1, eps(1))},
		"no items":      {},
	} {
		if out, err := f.Charge(ctx, request("alice", items...)); err == nil {
			t.Errorf("%s: charged %+v", name, out)
		}
	}
	wantSpent(t, f, "alice", 0, 0)
	charge(t, f, request("alice", item(1, eps(1))))
	verify(t, f)
}

func TestReceiptIsSpentOnce(t *testing.T) {
	f := fresh(t, Options{}, census())
	r := charge(t, f, request("alice", item(1, eps(1))))[0].Receipt
	if _, err := f.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(1)}); err == nil {
		t.Fatal("saved on a receipt that was not spent")
	}
	if r.Spend(Digest{}) == nil || (&Receipt{}).Spend(Digest{}) == nil || (*Receipt)(nil).Spend(Digest{}) == nil {
		t.Fatal("a foreign receipt was spent")
	}
	keep(t, f, r, 1)
	if r.Spend(r.digest) == nil {
		t.Fatal("spent twice")
	}
	if _, err := f.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(2)}); err == nil {
		t.Fatal("saved twice")
	}
	for _, bad := range []*Receipt{nil, {}} {
		if _, err := f.Save(ctx, bad, mechanisms.Drawn{Noisy: noisy(1)}); err == nil {
			t.Fatal("saved on no receipt")
		}
		f.Abandon(bad)
	}
}

func TestSecondOpenerIsRefused(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	_, err := openAt(path, Options{})
	wantErr(t, err, ErrLocked)
	reader := open(t, path, Options{ReadOnly: true})
	if _, err := reader.Charge(ctx, request("alice", item(1, eps(1)))); err == nil {
		t.Fatal("charged on a ledger opened for reading")
	}
	buy(t, f, "alice", item(1, eps(7)), 1)
	verify(t, reader)
	reader.Close()
	f.Close()
	open(t, path, Options{})
}

func TestRevokedReleaseIsGone(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	it := item(1, eps(100))
	first, other := buy(t, f, "alice", it, 1), buy(t, f, "alice", item(2, eps(1)), 1)
	before := f.Holdings("alice", "census")
	if err := f.Revoke(ctx, first); err != nil {
		t.Fatal(err)
	}
	wantErr(t, f.Revoke(ctx, first), ErrNotHeld)
	for range 2 {
		if held := f.Holdings("alice", "census"); len(held) != 1 || held[0].ID != other {
			t.Fatalf("held %+v", held)
		}
		_, err := f.Load(ctx, "alice", first)
		wantErr(t, err, ErrNotHeld)
		verify(t, f)
		f.Close()
		f = open(t, path, Options{})
	}
	if len(before) != 2 || before[0].ID != first {
		t.Fatal("a slice handed out earlier has changed")
	}
	if again := buy(t, f, "alice", it, 2); again == first {
		t.Fatal("same release")
	}
	wantSpent(t, f, "alice", 201, 201)
}

func TestHoldingsMakesNoGarbage(t *testing.T) {
	f := fresh(t, Options{}, census())
	buy(t, f, "alice", item(1, eps(1)), 1)
	if n := testing.AllocsPerRun(100, func() { f.Holdings("alice", "census") }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestClosedLedger(t *testing.T) {
	f := fresh(t, Options{}, census())
	r := charge(t, f, request("alice", item(1, eps(1))))[0].Receipt
	waiting := make(chan error)
	go func() {
		_, err := f.Charge(ctx, request("alice", item(1, eps(1))))
		waiting <- err
	}()
	time.Sleep(10 * time.Millisecond)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, <-waiting, ErrClosed)
	_, err := f.Charge(ctx, request("alice", item(2, eps(1))))
	wantErr(t, err, ErrClosed)
	r.Spend(r.digest)
	_, err = f.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(1)})
	wantErr(t, err, ErrClosed)
	_, err = f.Charges(ctx, "", "census", 1)
	wantErr(t, err, ErrClosed)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
