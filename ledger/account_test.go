package ledger

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestUpdateIsTheFilter: the stores' conditional update decides as the filter does, whose proof it rests on, and leaves
// the account as the filter does: on random amounts, on those at the ends of what can be written, and on those about
// what is left.
func TestUpdateIsTheFilter(t *testing.T) {
	f := fresh(t, Options{}, census())
	const now = 1000
	before, moves := movesAtTheEdge(now)
	held := 0
	undone := errors.New("undone")
	err := f.do(ctx, &job{alone: true, run: func(b *batch) error {
		for _, m := range moves {
			want, ok := before[m.Key].Rolled(now, m.Ends).Charged(m.Charge)
			refused, err := b.store.Charge(now, []store.Move{m})
			if err != nil {
				return err
			}
			if (refused < 0) != ok {
				t.Errorf("%+v of %+v: the update refused: %t, the filter holds it: %t", m.Charge, *m.Fresh, refused >= 0, ok)
			}
			if ok {
				before[m.Key], held = want, held+1
			}
		}
		kept, err := b.store.Accounts()
		if err != nil {
			return err
		}
		for key, want := range before {
			if kept[key] != want {
				t.Errorf("the store has %+v, the filter %+v", kept[key], want)
			}
		}
		return refusal{undone}
	}})
	if !errors.Is(err, undone) {
		t.Fatal(err)
	}
	if cases := len(moves); held < cases/10 || held > cases*9/10 {
		t.Errorf("%d of %d held: the test sees one side only", held, len(moves))
	}
}

// near adds one more or less to each unit of c, which stays what can be written.
func near(c, about privacy.Cost) privacy.Cost {
	by := func(n, d int64) int64 {
		if d > 0 && n == math.MaxInt64 {
			return n
		}
		return max(0, n+d)
	}
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(by(c.Epsilon.Micro(), about.Epsilon.Micro())),
		Rho: privacy.PicoRho(by(c.Rho.Pico(), about.Rho.Pico())), Delta: privacy.AttoDelta(by(c.Delta.Atto(), about.Delta.Atto()))}
}

// movesAtTheEdge are accounts, each with a charge that it just holds, or does not.
func movesAtTheEdge(now int64) (before map[store.AccountKey]store.Account, moves []store.Move) {
	const cases = 1500
	random := rand.New(rand.NewPCG(62, 1))
	amount := func() int64 {
		switch random.IntN(4) {
		case 0:
			return []int64{0, 1, 2, math.MaxInt64 - 1, math.MaxInt64}[random.IntN(5)]
		case 1:
			return random.Int64()
		default:
			return random.Int64N(20)
		}
	}
	cost := func(amount func() int64) privacy.Cost {
		return privacy.Cost{Epsilon: privacy.MicroEpsilon(amount()), Rho: privacy.PicoRho(amount()), Delta: privacy.AttoDelta(amount())}
	}
	before = map[store.AccountKey]store.Account{}
	for i := range int64(cases) {
		a := store.Account{Filter: accounting.Filter{Spent: accounting.Charge{Cost: cost(amount), Converted: privacy.PicoRho(amount())}}}
		if random.IntN(3) == 0 { // nothing of which no ε is known
			a.Spent.Cost.Rho = privacy.Rho{}
		}
		a.Ends = []int64{0, 1, now - 1, now, now + 1, math.MaxInt64}[random.IntN(6)]
		a = a.Limited(cost(amount))
		left := a.Rolled(now, now).Left()
		about := cost(func() int64 { return random.Int64N(3) - 1 }) // of what is left, one less to one more
		m := store.Move{Key: store.AccountKey{DS: 1 << 40, Scope: store.ScopeLife, Holder: "h"}, Fresh: &a, Ends: 2 * now}
		m.Key.DS += i
		m.Charge = accounting.Charge{Cost: cost(amount), Converted: privacy.PicoRho(amount())}
		if random.IntN(2) == 0 {
			m.Charge.Cost = near(left, about)
		}
		if random.IntN(3) == 0 {
			m.Charge.Converted = near(left, about).Rho
		}
		if random.IntN(2) == 0 { // as costs are: in one unit, and sometimes a δ
			m.Charge.Cost.Rho = privacy.Rho{}
		} else if random.IntN(2) == 0 {
			m.Charge.Cost.Epsilon, m.Charge.Converted = privacy.Epsilon{}, privacy.Rho{}
		}
		if random.IntN(2) == 0 {
			m.Charge.Cost.Delta = privacy.Delta{}
		}
		before[m.Key] = a
		moves = append(moves, m)
	}
	return before, moves
}

// TestUpdateOfManyIsTheFilter: the update of many accounts at once, of a batch that presumes, moves all of them as the
// filter does where each holds its charge, and none where one does not.
func TestUpdateOfManyIsTheFilter(t *testing.T) {
	_, one := several(t, 1, Options{}, census())
	s := one[0].store.(store.Shared)
	const now = 1000
	before, moves := movesAtTheEdge(now)
	tried := func(moves ...store.Move) error {
		t.Helper()
		if _, err := s.Begin(one[0].book.links.Heads(), store.Wanted{}); err != nil {
			t.Fatal(err)
		}
		s.Presume()
		if _, err := s.Charge(now, moves); err != nil {
			t.Fatal(err)
		}
		return s.Commit(nil, false)
	}
	var good, bad []store.Move
	for _, m := range moves {
		if want, ok := before[m.Key].Rolled(now, m.Ends).Charged(m.Charge); ok {
			before[m.Key], good = want, append(good, m)
		} else {
			delete(before, m.Key)
			bad = append(bad, m)
		}
	}
	if len(good) < len(moves)/10 || len(bad) < len(moves)/10 {
		t.Fatalf("%d moves hold and %d do not", len(good), len(bad))
	}
	for i, m := range bad {
		if err := tried(append(slices.Clone(good[:i%5]), m)...); !errors.Is(err, store.ErrPresumed) {
			t.Errorf("%+v of %+v: %v", m.Charge, *m.Fresh, err)
		}
	}
	if err := tried(good...); err != nil {
		t.Fatal(err)
	}
	stored, err := s.Accounts()
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range before {
		if stored[key] != want {
			t.Errorf("%+v, must be %+v", stored[key], want)
		}
	}
	for _, m := range bad {
		if _, there := stored[m.Key]; there {
			t.Errorf("%+v was opened", m.Key)
		}
	}
}
