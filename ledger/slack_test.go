package ledger

import (
	"errors"
	"fmt"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
)

// TestT22NoSlack: ten charges of a tenth fill a budget, an eleventh does not fit; and so it is with a great many of the
// smallest.
func TestT22NoSlack(t *testing.T) {
	many := int64(threats.Length(3000, 1_000_000))
	for _, c := range []struct{ each, limit, want int64 }{{100_000, 1e6, 10}, {1, many, many}} {
		d := census()
		d.Cap, d.Budgets = eps(c.limit), map[string]BudgetTerms{"*": {Limit: eps(c.limit)}}
		f := fresh(t, Options{}, d)
		paid := int64(0)
		for n := int64(0); n < c.want+3; n++ {
			it := item(0, eps(c.each))
			copy(it.Digest[:], fmt.Sprintf("%016d", n))
			out, err := f.Charge(ctx, request("alice", it))
			if errors.Is(err, ErrExhausted) || errors.Is(err, ErrCap) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			f.Abandon(out[0].Receipt)
			paid++
		}
		if paid != c.want {
			t.Errorf("%d charges of %d micro-ε fit into %d, must be %d", paid, c.each, c.limit, c.want)
		}
		threats.Reached(t, "T22", "%d charges of %d micro-ε fit into %d", paid, c.each, c.limit)
	}
}
