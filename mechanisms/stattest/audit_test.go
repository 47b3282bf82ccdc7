package stattest

import (
	"math"
	"math/rand/v2"
	"testing"
)

// leaning is an exponential mechanism in its worst case for pure ε: of the candidates, half have exp(ε) times the
// weight of the others; on the other database it is the other half.
func leaning(r *rand.Rand, candidates, half int, epsilon float64) int {
	if r.Float64()*(1+math.Exp(epsilon)) > math.Exp(epsilon) {
		half = 1 - half
	}
	return 2*r.IntN(candidates/2) + half
}

// TestAuditOfChoices: at the claim ε = 1, and with a sensitivity taken 1.2 times too small.
func TestAuditOfChoices(t *testing.T) {
	for _, c := range []struct {
		candidates, answers int
		epsilon, least      float64
	}{{2, 100_000, 1, .95}, {2, 100_000, 1.2, 1.1}, {50, 100_000, 1, .93}, {50, 100_000, 1.2, 1.1}, {1000, 100_000, 1, .7}, {1000, 400_000, 1.2, 1.05}} {
		r := rand.New(rand.NewPCG(seed, 7))
		audit := Choices{}
		for range c.answers {
			audit.One = append(audit.One, leaning(r, c.candidates, 0, c.epsilon))
			audit.Other = append(audit.Other, leaning(r, c.candidates, 1, c.epsilon))
		}
		bound, err := audit.Epsilon(1e-6)
		t.Logf("%d candidates at epsilon %.1f: at least %.4f", c.candidates, c.epsilon, bound)
		if err != nil || bound > c.epsilon || bound < c.least {
			t.Errorf("seed %d: %d candidates at epsilon %.1f: epsilon at least %.4f, must be from %.2f (%v)", seed, c.candidates, c.epsilon, bound, c.least, err)
		}
	}
}

// TestAuditOfARareChoice: an outcome that one database alone can give is seen from about 1 % on, through many others.
func TestAuditOfARareChoice(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 8))
	audit := Choices{Delta: 1e-6}
	for range 20_000 {
		k := 1 + r.IntN(300)
		if r.Float64() < .01 {
			k = 0
		}
		audit.One, audit.Other = append(audit.One, k), append(audit.Other, 1+r.IntN(300))
	}
	if bound, err := audit.Epsilon(1e-6); err != nil || bound < 2 {
		t.Errorf("seed %d: epsilon at least %.4f (%v)", seed, bound, err)
	}
}
