package ledger

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestUpdateIsTheFilter: the stores' conditional update decides as the filter does, whose proof it rests on, and leaves the
// account as the filter does: on random amounts, on those at the ends of what can be written, and on those about what is left.
func TestUpdateIsTheFilter(t *testing.T) {
	f := fresh(t, Options{}, census())
	const now, cases = 1000, 1500
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
	before, moves := map[accountKey]account{}, []move{}
	for i := range int64(cases) {
		a := account{Filter: accounting.Filter{Spent: accounting.Charge{Cost: cost(amount), Converted: privacy.PicoRho(amount())}}}
		a.ends = []int64{0, 1, now - 1, now, now + 1, math.MaxInt64}[random.IntN(6)]
		a = a.limited(cost(amount))
		left := a.rolled(now, now).Left()
		about := cost(func() int64 { return random.Int64N(3) - 1 }) // of what is left, one less to one more
		m := move{key: accountKey{1 << 40, scopeLife, "h"}, fresh: &a, ends: 2 * now}
		m.key.ds += i
		m.charge = accounting.Charge{Cost: cost(amount), Converted: privacy.PicoRho(amount())}
		if random.IntN(2) == 0 {
			m.charge.Cost = near(left, about)
		}
		if random.IntN(2) == 0 { // as costs are: in one unit, and sometimes a δ
			m.charge.Cost.Rho = privacy.Rho{}
		}
		if random.IntN(2) == 0 {
			m.charge.Cost.Delta = privacy.Delta{}
		}
		before[m.key] = a
		moves = append(moves, m)
	}
	held := 0
	undone := errors.New("undone")
	err := f.do(ctx, &job{alone: true, run: func(b *batch) error {
		for _, m := range moves {
			want, ok := before[m.key].rolled(now, m.ends).charged(m.charge)
			refused, err := b.store.charge(now, []move{m})
			if err != nil {
				return err
			}
			if (refused < 0) != ok {
				t.Errorf("%+v of %+v: the update refused: %t, the filter holds it: %t", m.charge, *m.fresh, refused >= 0, ok)
			}
			if ok {
				before[m.key], held = want, held+1
			}
		}
		kept, err := b.store.accounts()
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
	if held < cases/10 || held > cases*9/10 {
		t.Errorf("%d of %d held: the test sees one side only", held, cases)
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
