package ledger

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"pgregory.net/rapid"
)

// twin is the ledger as one would write it on paper: everything in maps, every sum made anew from the list of payments.
type twin struct {
	f     *keeper
	path  string
	clock *clock

	cap, life, window int64
	hour              time.Duration
	payments          []payment
	saved             []answer
	fly               map[string]*Receipt
	steps             int
}

type payment struct {
	user   string
	micro  int64
	capped bool
	at     int64
}

type answer struct {
	id      int64
	what    string // measure and holder
	payers  []string
	revoked bool
}

func (w *twin) spent(user string, since int64) (sum int64) {
	for _, p := range w.payments {
		if (user == "" && p.capped || user != "" && p.user == user) && p.at >= since {
			sum += p.micro
		}
	}
	return sum
}

func (w *twin) windowStart() int64 {
	now := w.f.tick()
	return now - now%int64(w.hour)
}

func (w *twin) terms() DatasetTerms {
	d := census()
	d.Cap = eps(w.cap)
	d.Budgets = map[string]BudgetTerms{"*": {Limit: eps(w.life)}, "ann": {Limit: eps(w.window), Refresh: w.hour, Lifetime: eps(w.life)}}
	return d
}

// affords says which error the next payment must meet. The cap is asked even where it does not pay.
func (w *twin) affords(user string, micro int64) error {
	switch {
	case user == "ann" && w.spent(user, w.windowStart())+micro > w.window, w.spent(user, 0)+micro > w.life:
		return ErrExhausted
	case w.spent("", 0)+micro > w.cap:
		return ErrCap
	}
	return nil
}

func (w *twin) buy(t *rapid.T) {
	user := rapid.SampledFrom([]string{"ann", "bob", "cid"}).Draw(t, "user")
	n := rapid.ByteRange(0, 5).Draw(t, "measure")
	micro := rapid.Int64Range(1, 400).Draw(t, "cost")
	it := item(n, eps(micro))
	it.Shared = rapid.Bool().Draw(t, "shared")
	what := fmt.Sprint(n, user)
	if it.Shared {
		what = fmt.Sprint(n, "shared")
	}
	if w.fly[what] != nil {
		return // it would wait
	}
	var held *answer
	for i := range w.saved {
		if w.saved[i].what == what && !w.saved[i].revoked {
			held = &w.saved[i]
		}
	}
	out, err := w.f.Charge(ctx, request(user, it))
	if held != nil && slices.Contains(held.payers, user) {
		if err != nil || out[0].ID != held.id || !out[0].Charged.IsZero() {
			t.Fatalf("held: %+v, %v", out, err)
		}
		return
	}
	if want := w.affords(user, micro); want != nil {
		if !errors.Is(err, want) {
			t.Fatalf("must be refused with %v: %+v, %v", want, out, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	w.payments = append(w.payments, payment{user, micro, held == nil, w.f.tick()})
	if held != nil {
		if out[0].ID != held.id || out[0].Charged != it.Cost {
			t.Fatalf("joined: %+v", out)
		}
		held.payers = append(held.payers, user)
		return
	}
	w.fly[what] = out[0].Receipt
}

func (w *twin) land(t *rapid.T) {
	if len(w.fly) == 0 {
		return
	}
	what := slices.Min(slices.Collect(maps.Keys(w.fly)))
	r := w.fly[what]
	delete(w.fly, what)
	r.Spend(r.digest)
	if rapid.Bool().Draw(t, "abandon") {
		w.f.Abandon(r)
		return
	}
	id, err := w.f.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(int64(len(w.saved)))})
	if err != nil {
		t.Fatal(err)
	}
	w.saved = append(w.saved, answer{id: id, what: what, payers: []string{r.user}})
}

func (w *twin) reopen(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "really") != 0 {
		return
	}
	clear(w.fly)
	if err := w.f.Close(); err != nil {
		t.Fatal(err)
	}
	w.open(t)
}

func (w *twin) open(t *rapid.T) {
	l, err := openAt(w.path, Options{Clock: w.clock.read})
	if err != nil {
		t.Fatal(err)
	}
	w.f = l.(*keeper)
}

// check compares everything that callers can see, and what Verify sees.
func (w *twin) check(t *rapid.T) {
	if w.steps++; w.steps%8 == 0 {
		if _, err := w.f.Verify(ctx); err != nil {
			t.Fatal(err)
		}
	}
	pool, limit, err := w.f.Cap(ctx, "census")
	if err != nil || pool != eps(w.spent("", 0)) || limit != eps(w.cap) {
		t.Fatalf("cap %v of %v, %v", pool, limit, err)
	}
	for _, user := range []string{"ann", "bob", "cid"} {
		b, err := w.f.Balance(ctx, user, "census")
		since := int64(0)
		if user == "ann" {
			since = w.windowStart()
		}
		if err != nil || b.LifeSpent != eps(w.spent(user, 0)) || b.Spent != eps(w.spent(user, since)) {
			t.Fatalf("%s: %+v, %v; must be %d, %d", user, b, err, w.spent(user, since), w.spent(user, 0))
		}
		var ids []int64
		for _, a := range w.saved {
			if slices.Contains(a.payers, user) && !a.revoked {
				ids = append(ids, a.id)
			}
		}
		var held []int64
		for _, r := range w.f.Holdings(user, "census") {
			held = append(held, r.ID)
			if _, err := w.f.Load(ctx, user, r.ID); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(held)
		if !slices.Equal(ids, held) {
			t.Fatalf("%s holds %v, must hold %v", user, held, ids)
		}
	}
}

// Random histories against the twin: purchases, joins, saves, revocations, changed grants, a clock that jumps both
// ways, closing and opening.
func TestTwin(t *testing.T) {
	path := place(t)
	rapid.Check(t, func(t *rapid.T) {
		blank(path)
		w := &twin{path: path, clock: newClock(), cap: 4000, life: 2000, window: 700, hour: time.Hour, fly: map[string]*Receipt{}}
		w.open(t)
		defer func() { w.f.Close() }()
		if err := w.f.Adopt(ctx, terms(w.terms())); err != nil {
			t.Fatal(err)
		}
		t.Repeat(map[string]func(*rapid.T){
			"buy":    w.buy,
			"buy 2":  w.buy,
			"land":   w.land,
			"reopen": w.reopen,
			"clock": func(t *rapid.T) {
				w.clock.forward(time.Duration(rapid.Int64Range(-40, 60).Draw(t, "minutes")) * time.Minute)
			},
			"grant": func(t *rapid.T) {
				w.cap, w.life = rapid.Int64Range(1, 6000).Draw(t, "cap"), rapid.Int64Range(1, 3000).Draw(t, "life")
				w.window = rapid.Int64Range(1, 1000).Draw(t, "window")
				if err := w.f.Adopt(ctx, terms(w.terms())); err != nil {
					t.Fatal(err)
				}
			},
			"revoke": func(t *rapid.T) {
				if len(w.saved) == 0 {
					return
				}
				a := &w.saved[rapid.IntRange(0, len(w.saved)-1).Draw(t, "release")]
				err := w.f.Revoke(ctx, a.id)
				if a.revoked != errors.Is(err, ErrNotHeld) || !a.revoked && err != nil {
					t.Fatal(err)
				}
				a.revoked = true
			},
			"": w.check,
		})
	})
}
