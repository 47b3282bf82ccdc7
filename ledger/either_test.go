package ledger

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// both is a limit of the accountant either.
func both(micro, pico int64) privacy.Cost {
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(micro), Rho: privacy.PicoRho(pico)}
}

// eitherTerms are census under either, as (1, 1e-6) gives it.
func eitherTerms(user privacy.Cost) DatasetTerms {
	d := census()
	d.Accountant, d.Cap = privacy.Either, both(4e6, 99e9)
	d.Budgets = map[string]BudgetTerms{"*": {Limit: user}}
	return d
}

// TestEither: whoever asks few dear questions goes as far as under pure, whoever asks many cheap ones as far as under
// zcdp; a first charge of ρ leaves what is left of ρ, with what the ε before it have come to taken off. All of it
// survives a reopening.
func TestEither(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, eitherTerms(both(1e6, 24e9)))
	for i := range byte(10) {
		charge(t, f, request("dear", item(i, eps(100_000)))) // after the fourth they come to more than ρ 0.024
	}
	wantErr(t, chargeErr(f, request("dear", item(10, eps(1)))), ErrExhausted)
	wantErr(t, chargeErr(f, request("dear", item(10, rho(1)))), ErrExhausted)
	for i := range byte(24) {
		charge(t, f, request("cheap", item(20+i, rho(1e9))))
	}
	wantErr(t, chargeErr(f, request("cheap", item(50, rho(1)))), ErrExhausted)
	wantErr(t, chargeErr(f, request("cheap", item(50, eps(1)))), ErrExhausted)
	charge(t, f, request("mixed", item(60, eps(100_000)))) // ρ 0.005
	charge(t, f, request("mixed", item(61, rho(1e9))))
	wantErr(t, chargeErr(f, request("mixed", item(62, eps(200_000)))), ErrExhausted) // as ρ it is 0.02
	charge(t, f, request("mixed", item(62, rho(18e9))))
	wantErr(t, chargeErr(f, request("mixed", item(63, rho(1)))), ErrExhausted)
	f.Close()
	f = open(t, path, Options{})
	want := map[string]privacy.Cost{"dear": both(1e6, 50e9), "cheap": both(1e6, 24e9), "mixed": both(1e6, 24e9)}
	for user, spent := range want {
		if b, err := f.Balance(ctx, user, "census"); err != nil || b.Spent != spent || b.Limit != both(1e6, 24e9) {
			t.Errorf("%s has spent %v of %v, must be %v: %v", user, b.Spent, b.Limit, spent, err)
		}
	}
	// The cap is held to the same condition: what is ε with one is ρ beside the other's.
	if spent, limit, err := f.Cap(ctx, "census"); err != nil || spent != both(4e6, 98e9) || limit != both(4e6, 99e9) {
		t.Errorf("cap %v of %v: %v", spent, limit, err)
	}
	wantErr(t, chargeErr(f, request("late", item(70, eps(100_000)))), ErrCap)
	verify(t, f)
}

// chargeErr is the error of a charge that must not be.
func chargeErr(f Ledger, r Request) error {
	_, err := f.Charge(ctx, r)
	return err
}

// TestEitherChanges: pure and zcdp become either with nothing re-priced, either becomes zcdp, and no way leads back.
func TestEitherChanges(t *testing.T) {
	d := census()
	f := fresh(t, Options{}, d)
	charge(t, f, request("alice", item(1, eps(300_000))))
	adopt(t, f, eitherTerms(both(1e6, 24e9)))
	if b, err := f.Balance(ctx, "alice", "census"); err != nil || b.Spent != both(300_000, 45e9) {
		t.Fatalf("%+v, %v", b, err)
	}
	wantErr(t, chargeErr(f, request("alice", item(2, rho(1)))), ErrExhausted)
	charge(t, f, request("alice", item(2, eps(700_000))))
	wantErr(t, f.Adopt(ctx, terms(d)), ErrBound)
	z := census()
	z.Accountant, z.Cap, z.Budgets = privacy.ZCDP, rho(1e12), map[string]BudgetTerms{"*": {Limit: rho(5e11)}}
	adopt(t, f, z)
	if b, err := f.Balance(ctx, "alice", "census"); err != nil || b.Spent != rho(290e9) {
		t.Fatalf("%+v, %v", b, err)
	}
	charge(t, f, request("bob", item(3, rho(1e9))))
	adopt(t, f, eitherTerms(both(1e6, 24e9)))
	if b, err := f.Balance(ctx, "bob", "census"); err != nil || b.Spent != both(1e6, 1e9) {
		t.Fatalf("%+v, %v", b, err)
	}
	wantErr(t, chargeErr(f, request("bob", item(4, eps(300_000)))), ErrExhausted)
	verify(t, f)
}

// TestEitherGroups: what a group and one of its members know together is held to either filter too.
func TestEitherGroups(t *testing.T) {
	d := eitherTerms(both(1e6, 24e9))
	d.Cap = both(4e6, 400e9)
	f := fresh(t, Options{}, d)
	charge(t, f, request("ann", item(1, eps(600_000))))
	charge(t, f, request("bob", item(2, eps(400_000))))
	charge(t, f, request("cid", item(3, rho(1e9))))
	d.Groups = map[string][]string{"team": {"ann", "bob"}}
	adopt(t, f, d) // ε 1 exactly, of ρ far more than there is
	d.Groups = map[string][]string{"team": {"ann", "bob", "cid"}}
	wantErr(t, f.Adopt(ctx, terms(d)), ErrBound)
	verify(t, f)
}

// TestEitherItem: an item's cost names ε or ρ.
func TestEitherItem(t *testing.T) {
	f := fresh(t, Options{}, eitherTerms(both(1e6, 24e9)))
	if err := chargeErr(f, request("ann", item(1, both(1, 1)))); err == nil || errors.Is(err, ErrExhausted) {
		t.Error(err)
	}
	ladder := item(1, eps(1000))
	ladder.Ladder = Ladder{Finest: privacy.MicroEpsilon(2000), Level: privacy.MicroEpsilon(1000)}
	if err := chargeErr(f, request("ann", ladder)); err == nil {
		t.Error("a ladder, whose levels are not apart under zCDP")
	}
}

// eitherTwin is the ledger of a dataset of either accountant on paper: each account's charges in a list, and the two
// conditions asked of all of the list.
type eitherTwin struct {
	f         *keeper
	path      string
	clock     *clock
	cap, life privacy.Cost
	window    privacy.Cost
	paid      []eitherPayment
	next      byte
}

type eitherPayment struct {
	user string
	cost privacy.Cost
	at   int64
}

func (w *eitherTwin) terms() DatasetTerms {
	d := eitherTerms(w.life)
	d.Cap = w.cap
	d.Budgets["ann"] = BudgetTerms{Limit: w.window, Refresh: time.Hour, Lifetime: w.life}
	return d
}

// sums are what the payments of a user (empty means all) since a time come to, and whether an ε is known of all of
// them.
func (w *eitherTwin) sums(user string, since int64) (epsilons, rhos int64, known bool) {
	known = true
	for _, p := range w.paid {
		if user != "" && p.user != user || p.at < since {
			continue
		}
		epsilons += p.cost.Epsilon.Micro()
		rhos += p.cost.Rho.Pico() + p.cost.Epsilon.Rho().Pico()
		known = known && p.cost.Rho.Pico() == 0
	}
	return epsilons, rhos, known
}

func (w *eitherTwin) holds(user string, since int64, c, limit privacy.Cost) bool {
	e, r, known := w.sums(user, since)
	return known && c.Rho.Pico() == 0 && e+c.Epsilon.Micro() <= limit.Epsilon.Micro() || r+c.Rho.Pico()+c.Epsilon.Rho().Pico() <= limit.Rho.Pico()
}

func (w *eitherTwin) hour() int64 {
	now := w.f.tick()
	return now - now%int64(time.Hour)
}

func (w *eitherTwin) buy(t *rapid.T) {
	user := rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "user")
	c := eps(rapid.Int64Range(1, 400).Draw(t, "ε"))
	if rapid.IntRange(0, 3).Draw(t, "unit") == 0 {
		c = rho(rapid.Int64Range(1, 40_000).Draw(t, "ρ"))
	}
	var want error
	switch {
	case user == "ann" && !w.holds(user, w.hour(), c, w.window), !w.holds(user, 0, c, w.life):
		want = ErrExhausted
	case !w.holds("", 0, c, w.cap):
		want = ErrCap
	}
	it := item(w.next, c)
	it.Name = fmt.Sprint(len(w.paid))
	it.Digest[1], it.Digest[2] = byte(len(w.paid)), byte(len(w.paid)>>8)
	out, err := w.f.Charge(ctx, request(user, it))
	if want != nil || err != nil {
		if want == nil || !errors.Is(err, want) {
			t.Fatalf("%s for %s: %v, must be %v", c, user, err, want)
		}
		return
	}
	w.f.Abandon(out[0].Receipt)
	w.paid = append(w.paid, eitherPayment{user, c, w.f.tick()})
}

func (w *eitherTwin) check(t *rapid.T) {
	shown := func(user string, since int64, limit privacy.Cost) privacy.Cost {
		e, r, known := w.sums(user, since)
		if !known {
			e = max(e, limit.Epsilon.Micro())
		}
		return both(e, r)
	}
	for _, user := range []string{"ann", "bob"} {
		b, err := w.f.Balance(ctx, user, "census")
		if err != nil || b.LifeSpent != shown(user, 0, w.life) || user == "ann" && b.Spent != shown(user, w.hour(), w.window) {
			t.Fatalf("%s: %+v, %v", user, b, err)
		}
	}
	if spent, limit, err := w.f.Cap(ctx, "census"); err != nil || spent != shown("", 0, w.cap) || limit != w.cap {
		t.Fatalf("cap %v of %v, %v", spent, limit, err)
	}
}

// TestEitherTwin: random histories of ε and ρ against the twin, with windows, changed grants, reopening and verifying.
func TestEitherTwin(t *testing.T) {
	path := place(t)
	rapid.Check(t, func(t *rapid.T) {
		blank(path)
		w := &eitherTwin{path: path, clock: newClock(), cap: both(4000, 900_000), life: both(2000, 300_000), window: both(700, 60_000)}
		open := func() {
			l, err := openAt(w.path, Options{Clock: w.clock.read})
			if err != nil {
				t.Fatal(err)
			}
			w.f = l.(*keeper)
		}
		open()
		defer func() { w.f.Close() }()
		if err := w.f.Adopt(ctx, terms(w.terms())); err != nil {
			t.Fatal(err)
		}
		t.Repeat(map[string]func(*rapid.T){
			"buy":   w.buy,
			"buy 2": w.buy,
			"buy 3": w.buy,
			"clock": func(t *rapid.T) {
				w.clock.forward(time.Duration(rapid.Int64Range(0, 60).Draw(t, "minutes")) * time.Minute)
			},
			"grant": func(t *rapid.T) {
				limit := func(what string, e, r int64) privacy.Cost {
					return both(rapid.Int64Range(1, e).Draw(t, what), rapid.Int64Range(1, r).Draw(t, what))
				}
				w.cap, w.life, w.window = limit("cap", 6000, 1e6), limit("life", 3000, 400_000), limit("window", 1000, 100_000)
				if err := w.f.Adopt(ctx, terms(w.terms())); err != nil {
					t.Fatal(err)
				}
			},
			"reopen": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "really") != 0 {
					return
				}
				if _, err := w.f.Verify(ctx); err != nil {
					t.Fatal(err)
				}
				if err := w.f.Close(); err != nil {
					t.Fatal(err)
				}
				open()
			},
			"": w.check,
		})
	})
}

// TestEitherForfeit: what an accepted rollback may have lost is gone by both conditions, where a dataset of either may
// have paid it.
func TestEitherForfeit(t *testing.T) {
	d := eitherTerms(both(1e6, 24e9))
	opened := func(lost privacy.Cost) store.Account {
		b := &book{sets: map[int64]*dataset{1: {terms: d}}, lost: lost}
		return b.opening(store.AccountKey{DS: 1, Scope: store.ScopeLife, Holder: "ann"}, 0)
	}
	for _, lost := range []privacy.Cost{eps(200_000), rho(3e9), both(200_000, 3e9)} {
		a := opened(lost)
		want := accounting.Filter{Limit: both(1e6, 24e9), Spent: accounting.Price(lost)}.Shown()
		if got := a.Shown(); got != want {
			t.Errorf("after %s: %s, must be %s", lost, got, want)
		}
	}
	all := forfeited(opened(eps(200_000)), privacy.Cost{}, true, d)
	for _, c := range []privacy.Cost{eps(1), rho(1)} {
		if all.Holds(accounting.Price(c)) {
			t.Errorf("%s is held of an account of which all may be lost", c)
		}
	}
}
