package ledger

import (
	"errors"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Rule 8: what may not change once anything is spent, and may before.
func TestRule8ForbiddenChanges(t *testing.T) {
	zcdp := func(d DatasetTerms) DatasetTerms {
		d.Accountant, d.Cap, d.Budgets = privacy.ZCDP, rho(1e12), map[string]BudgetTerms{"*": {Limit: rho(1e12)}}
		return d
	}
	replace := func(d DatasetTerms) DatasetTerms { d.Neighbors = privacy.ReplaceOne; return d }
	unit := func(d DatasetTerms) DatasetTerms { d.Unit = "household people.household"; return d }
	for name, c := range map[string]struct {
		from, to DatasetTerms
		cost     privacy.Cost
		refused  bool
	}{
		"unit":                      {census(), unit(census()), eps(1), true},
		"zcdp to pure":              {zcdp(census()), census(), rho(1), true},
		"replace-one to add-remove": {replace(census()), census(), eps(1), true},
		"add-remove to replace-one": {census(), replace(census()), eps(1), false},
		"pure to zcdp":              {census(), zcdp(census()), eps(1), false},
		"the same":                  {census(), census(), eps(1), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := fresh(t, Options{}, c.from)
			adopt(t, f, c.to) // nothing is spent: everything may change
			adopt(t, f, c.from)
			charge(t, f, request("alice", item(1, c.cost)))
			err := f.Adopt(ctx, terms(c.to))
			if c.refused != errors.Is(err, ErrBound) || !c.refused && err != nil {
				t.Fatalf("adopting: %v", err)
			}
			verify(t, f)
		})
	}
}

// Rule 8: pure → zcdp prices each charge at ε²/2, add-remove → replace-one takes ε twice and ρ four times; the accounts
// of all scopes move, and survive a restart.
func TestRule8Repricing(t *testing.T) {
	c := newClock()
	d := census()
	d.Budgets["alice"] = BudgetTerms{Limit: eps(2e6), Refresh: time.Hour, Lifetime: eps(3e6)}
	path := place(t)
	f := open(t, path, Options{Clock: c.read})
	adopt(t, f, d)
	charge(t, f, request("alice", item(1, eps(300_000))))
	c.forward(time.Hour)
	charge(t, f, request("alice", item(2, eps(400_000))))
	d.Neighbors = privacy.ReplaceOne
	adopt(t, f, d)
	wantSpent(t, f, "alice", 1_400_000, 1_400_000)
	charge(t, f, request("alice", item(3, eps(100_000))))
	d.Accountant, d.Cap = privacy.ZCDP, rho(2e12)
	d.Budgets = map[string]BudgetTerms{"alice": {Limit: rho(1e12), Refresh: time.Hour, Lifetime: rho(2e12)}, "*": {Limit: rho(1)}}
	adopt(t, f, d)
	// (0.6² + 0.8² + 0.1²)/2 for life, (0.8² + 0.1²)/2 in the window
	for range 2 {
		b, err := f.Balance(ctx, "alice", "census")
		if err != nil || b.LifeSpent != rho(505_000_000_000) || b.Spent != rho(325_000_000_000) {
			t.Fatalf("balance %+v, %v", b, err)
		}
		pool, _, err := f.Cap(ctx, "census")
		if err != nil || pool != rho(505_000_000_000) {
			t.Fatalf("cap %v, %v", pool, err)
		}
		verify(t, f)
		f.Close()
		f = open(t, path, Options{Clock: c.read})
	}
	charge(t, f, request("alice", item(4, rho(1000))))
}

// TestDeltaOfKeysStaysReserved: where δ was spent to find keys, ρ cannot take all of it afterwards. Before, it may, and
// may give half of it back: then what is above the lower ρ finds no keys.
func TestDeltaOfKeysStaysReserved(t *testing.T) {
	d := census()
	with := func(a privacy.Accountant, r, delta int64) DatasetTerms {
		limit := privacy.Cost{Rho: privacy.PicoRho(r), Delta: privacy.AttoDelta(delta)}
		if a == privacy.Either {
			limit.Epsilon = privacy.MicroEpsilon(100)
		}
		d.Accountant, d.Cap, d.Budgets = a, limit, map[string]BudgetTerms{"*": {Limit: limit}}
		return d
	}
	for _, a := range []privacy.Accountant{privacy.ZCDP, privacy.Either} {
		f := fresh(t, Options{}, with(a, 1000, 0))
		charge(t, f, request("ann", item(1, rho(950))))
		adopt(t, f, with(a, 900, 50))
		keys := privacy.Cost{Rho: privacy.PicoRho(1), Delta: privacy.AttoDelta(5)}
		wantErr(t, chargeErr(f, request("ann", item(2, keys))), ErrExhausted)
		adopt(t, f, with(a, 1000, 0))
		adopt(t, f, with(a, 960, 50))
		charge(t, f, request("ann", item(2, keys)))
		wantErr(t, f.Adopt(ctx, terms(with(a, 1000, 0))), ErrBound)
		verify(t, f)
	}
}

func TestRule8DeltaHasNoPriceUnderReplaceOne(t *testing.T) {
	d := census()
	d.Cap.Delta = privacy.AttoDelta(10)
	limit := d.Budgets["*"]
	limit.Limit.Delta = privacy.AttoDelta(10)
	d.Budgets["*"] = limit
	f := fresh(t, Options{}, d)
	charge(t, f, request("alice", item(1, privacy.Cost{Epsilon: privacy.MicroEpsilon(1), Delta: privacy.AttoDelta(1)})))
	d.Neighbors = privacy.ReplaceOne
	wantErr(t, f.Adopt(ctx, terms(d)), ErrBound)
}

// TestRule8PathsStay: once something is spent a relation's rows name their unit as they did, also where the relation
// was left out of the policy meanwhile, and after the ledger was opened anew. Before, and for a relation that is new, a
// path may be any; and a ledger of before there were paths takes the first that it is given.
func TestRule8PathsStay(t *testing.T) {
	by := func(paths ...string) DatasetTerms {
		d := census()
		d.Paths = map[string]string{}
		for i := 0; i < len(paths); i += 2 {
			if paths[i] != "public.people" {
				d.Relations = append(d.Relations, paths[i])
			}
			d.Paths[paths[i]] = paths[i+1]
		}
		return d
	}
	at := place(t)
	f := open(t, at, Options{})
	adopt(t, f, by("public.people", "id", "public.transfers", "receiver"))
	adopt(t, f, by("public.people", "id", "public.transfers", "sender")) // nothing is spent yet
	charge(t, f, request("alice", item(1, eps(100))))
	for range 2 {
		wantErr(t, f.Adopt(ctx, terms(by("public.people", "id", "public.transfers", "receiver"))), ErrBound)
		adopt(t, f, by("public.people", "id", "public.visits", "person"))
		wantErr(t, f.Adopt(ctx, terms(by("public.people", "id", "public.transfers", "receiver"))), ErrBound)
		wantErr(t, f.Adopt(ctx, terms(by("public.people", "id", "public.visits", "nurse"))), ErrBound)
		adopt(t, f, by("public.people", "id", "public.transfers", "sender", "public.visits", "person"))
		verify(t, f)
		f.Close()
		f = open(t, at, Options{})
	}

	f = fresh(t, Options{}, census())
	charge(t, f, request("alice", item(1, eps(100))))
	adopt(t, f, by("public.people", "id"))
	wantErr(t, f.Adopt(ctx, terms(by("public.people", "mother"))), ErrBound)
	adopt(t, f, census()) // nobody says
	wantErr(t, f.Adopt(ctx, terms(by("public.people", "mother"))), ErrBound)
	verify(t, f)
}

// Rule 8: spending depends on identities: names, base relations.
func TestRule8Identities(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	other := census()
	other.ID = "other"
	wantErr(t, f.Adopt(ctx, terms(census(), other)), ErrBound) // one relation in two datasets
	adopt(t, f, other)                                         // nothing is spent on it yet
	adopt(t, f, census())
	charge(t, f, request("alice", item(1, eps(100))))
	wantErr(t, f.Adopt(ctx, terms(other)), ErrBound)
	unknown := census()
	unknown.ID, unknown.RenamedFrom = "fresh", "cencus"
	wantErr(t, f.Adopt(ctx, terms(unknown)), ErrBound)
	renamed := census()
	renamed.ID, renamed.RenamedFrom = "people", "census"
	wantErr(t, f.Adopt(ctx, terms(census(), renamed)), ErrBound)
	adopt(t, f, renamed)
	for range 2 {
		adopt(t, f, renamed) // renamed_from may stay in the file
		b, err := f.Balance(ctx, "alice", "people")
		if err != nil || b.Spent != eps(100) {
			t.Fatalf("the spending was not kept: %+v, %v", b, err)
		}
		wantErr(t, f.Adopt(ctx, terms(census())), ErrBound) // an id is never used twice
		verify(t, f)
		f.Close()
		f = open(t, path, Options{})
	}
}

// A dataset that left the policy and came back has spent what it had spent.
func TestRule8DatasetComesBack(t *testing.T) {
	f := fresh(t, Options{}, census())
	charge(t, f, request("alice", item(1, eps(100))))
	adopt(t, f)
	_, err := f.Charge(ctx, request("alice", item(2, eps(100))))
	wantErr(t, err, ErrPolicy)
	adopt(t, f, census())
	wantSpent(t, f, "alice", 100, 100)
}

// Lower limits refuse at once; what is spent stays; higher ones give room, and the chain shows each.
func TestRule8Grants(t *testing.T) {
	f := fresh(t, Options{}, census())
	charge(t, f, request("alice", item(1, eps(2e6))))
	d := census()
	d.Cap = eps(1e6)
	d.Budgets = map[string]BudgetTerms{"*": {Limit: eps(500_000)}}
	adopt(t, f, d)
	wantSpent(t, f, "alice", 2e6, 2e6)
	for _, user := range []string{"alice", "bob"} {
		if _, err := f.Charge(ctx, request(user, item(2, eps(1)))); !errors.Is(err, ErrExhausted) && !errors.Is(err, ErrCap) {
			t.Fatalf("%s: %v", user, err)
		}
	}
	verify(t, f)
	rows, _ := f.Verify(ctx)
	adopt(t, f, d)
	if again, _ := f.Verify(ctx); again != rows {
		t.Fatalf("adopting the same again made %d rows", again-rows)
	}
	d.Cap = eps(2e6 + 1)
	d.Budgets["alice"] = BudgetTerms{Limit: eps(2e6 + 5)}
	adopt(t, f, d)
	charge(t, f, request("alice", item(2, eps(1))))
	_, err := f.Charge(ctx, request("alice", item(3, eps(1))))
	wantErr(t, err, ErrCap)
	delete(d.Budgets, "*")
	adopt(t, f, d)
	_, err = f.Charge(ctx, request("bob", item(3, eps(1))))
	wantErr(t, err, ErrExhausted)
	verify(t, f)
}

func TestBadTerms(t *testing.T) {
	for name, spoil := range map[string]func(*DatasetTerms){
		"no id":         func(d *DatasetTerms) { d.ID = "" },
		"no unit":       func(d *DatasetTerms) { d.Unit = "" },
		"no relation":   func(d *DatasetTerms) { d.Relations = nil },
		"accountant":    func(d *DatasetTerms) { d.Accountant = 0 },
		"neighbors":     func(d *DatasetTerms) { d.Neighbors = 3 },
		"negative cap":  func(d *DatasetTerms) { d.Cap = eps(-1) },
		"cap in rho":    func(d *DatasetTerms) { d.Cap = rho(1) },
		"budget in rho": func(d *DatasetTerms) { d.Budgets["x"] = BudgetTerms{Limit: rho(1)} },
		"window":        func(d *DatasetTerms) { d.Budgets["x"] = BudgetTerms{Limit: eps(1), Refresh: -1, Lifetime: eps(1)} },
		"no user":       func(d *DatasetTerms) { d.Budgets[""] = BudgetTerms{Limit: eps(1)} },
	} {
		d := census()
		spoil(&d)
		f := open(t, place(t), Options{})
		if err := f.Adopt(ctx, terms(d)); err == nil {
			t.Errorf("%s: adopted", name)
		}
	}
}
