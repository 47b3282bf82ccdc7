package planner

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestSharesOfLargeCosts: at any cost the parts of a statement share it alike; noise that a large cost all but rounds
// away does not leave one part with next to nothing.
func TestSharesOfLargeCosts(t *testing.T) {
	c := openContext(t, "")
	shares := func(epsilon int64) []float64 {
		t.Helper()
		own := c
		own.Settings.Epsilon = privacy.MicroEpsilon(epsilon * 1_000_000)
		p, refusal := planned(t, own, `SELECT sex, count(*), sum(age), count(DISTINCT age) FROM people GROUP BY sex`)
		if refusal != nil {
			t.Fatal(refusal)
		}
		var out []float64
		for _, m := range p.Measures {
			out = append(out, float64(m.Cost.Epsilon.Micro())/float64(p.Cost.Epsilon.Micro()))
		}
		return out
	}
	want := shares(1)
	if len(want) < 2 {
		t.Fatalf("%v: one measure shares with nobody", want)
	}
	for _, epsilon := range []int64{10, 100, 1000} {
		for i, got := range shares(epsilon) {
			if math.Abs(got-want[i]) > 0.001 {
				t.Errorf("ε %d: part %d takes %.3f, at ε 1 %.3f", epsilon, i, got, want[i])
			}
		}
	}
}
