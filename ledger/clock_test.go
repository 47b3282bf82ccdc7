package ledger

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
)

// T36: two proxies, whose clocks are a window apart and step by up to two windows either way, take turns with one
// ledger. Each buys until it is refused. No window of the ledger's time holds more than its limit, none opens again,
// and a charge in the last and in the first nanosecond of two windows is in one each. Leap days and the hours of clock
// changes are times like others.
func TestT36ClockGames(t *testing.T) {
	const limit, price, length = 100, 30, time.Hour
	berlin := time.FixedZone("far away", 2*3600)
	starts := []time.Time{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2028, 2, 29, 23, 59, 59, 999_999_999, time.UTC), time.Date(2026, 3, 29, 1, 59, 59, 0, berlin)}
	steps := threats.Length(100, 1000)
	charges, refused, windows := 0, 0, 0
	for _, start := range starts {
		d := census()
		d.Cap = eps(1e12)
		d.Budgets["alice"] = BudgetTerms{Limit: eps(limit), Refresh: length, Lifetime: eps(1e12)}
		clocks := []*clock{{start}, {start.Add(length)}}
		path, random := place(t), rand.New(rand.NewPCG(36, 36))
		f := open(t, path, Options{Clock: clocks[0].read})
		adopt(t, f, d)
		n := 0
		for step := range steps {
			c := clocks[step%2]
			jump := time.Duration(random.Int64N(int64(4*length))) - 2*length
			c.forward(jump)
			if step%3 == 0 { // to the very edge of a window
				c.now = c.now.Truncate(length).Add(-time.Duration(random.IntN(2)))
			}
			if step%5 == 0 {
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
				f = open(t, path, Options{Clock: c.read})
			} else {
				f.opts.Clock = c.read
			}
			for {
				n++
				it := item(byte(step), eps(price))
				it.Digest[30], it.Digest[31] = byte(n>>8), byte(n)
				_, err := f.Charge(ctx, request("alice", it))
				if errors.Is(err, ErrExhausted) {
					refused++
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		list, err := f.Charges(ctx, "alice", "census", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		sums := map[int64]int64{}
		for i, c := range list { // the newest first
			if i > 0 && c.At.After(list[i-1].At) {
				t.Errorf("charge %d: the ledger's time went back", list[i-1].Seq)
			}
			w := c.At.UnixNano() / int64(length)
			if sums[w] += c.Cost.Epsilon.Micro(); sums[w] > limit {
				t.Errorf("the window that began at %v holds %d of %d", time.Unix(0, w*int64(length)).UTC(), sums[w], limit)
			}
		}
		for w, sum := range sums {
			if sum != limit/price*price {
				t.Errorf("the window that began at %v holds %d: a charge that it had room for was refused", time.Unix(0, w*int64(length)).UTC(), sum)
			}
		}
		verify(t, f)
		charges, windows = charges+len(list), windows+len(sums)
	}
	threats.Reached(t, "T36", "%d steps of up to 2 windows either way on 2 clocks: %d charges in %d windows, none above its limit, none open again", steps*len(starts), charges, windows)
	if refused != steps*len(starts) {
		t.Errorf("%d refusals in %d steps", refused, steps*len(starts))
	}
}
