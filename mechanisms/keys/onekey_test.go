package keys

import (
	"fmt"
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestT4KeysOfOneUnit: a key that one unit has is shown in at most δ of the runs, and so is any of the 500 that one
// unit alone has, by every rule. δ is large here, so that a fault would show. Three standard errors are allowed over δ,
// as in the table of threats: with four rows that is a false alarm of 0.5 % where a rule uses all of δ, and the seed is
// fixed.
func TestT4KeysOfOneUnit(t *testing.T) {
	runs := threats.Length(5000, 20_000)
	worst := ""
	for i, c := range []struct {
		kind Kind
		keys int64
		cost privacy.Cost
	}{
		{Truncated, 1, pure(1e6, 1e16)}, {Gaussian, 1, concentrated(5e11, 1e16)},
		{Truncated, 500, pure(10e6, 1e16)}, {Gaussian, 500, concentrated(5e12, 1e16)},
	} {
		r, random := made(t, c.kind, has(c.keys), c.cost), seeded(byte(100+i))
		groups := make([]Count, c.keys)
		for k := range groups {
			groups[k] = Count{fmt.Sprint("key ", k), 1}
		}
		hits := 0
		for range runs {
			out, err := r.Release(privacy.Seal(groups), random)
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Value()) > 0 {
				hits++
			}
		}
		delta := c.cost.Delta.Float()
		most := delta*float64(runs) + 3*math.Sqrt(delta*(1-delta)*float64(runs))
		if float64(hits) > most {
			t.Errorf("seed %q: %s, %d keys: one is shown in %d of %d runs, must be at most %.0f", seed, c.kind, c.keys, hits, runs, most)
		}
		worst += fmt.Sprintf(" %s of %d keys %d;", c.kind, c.keys, hits)
	}
	threats.Reached(t, "T4", "shown in so many of %d runs at δ 0.01:%s at most %.0f", runs, worst, 0.01*float64(runs)+3*math.Sqrt(0.0099*float64(runs)))
}
