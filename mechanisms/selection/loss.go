package selection

import (
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// LossBound returns a loss that a draw exceeds with probability at most beta, whatever the scores are.
//
// Exponential mechanism: at most candidates·exp(−rate·t) (McSherry and Talwar 2007; theorem 6 of lecture notes on it);
// permute-and-flip exceeds no loss more often.
func (m Mechanism) LossBound(beta noise.Probability) float64 {
	if m.rule == 0 || !(beta > 0 && beta < 1) {
		return math.NaN()
	}
	return math.Log(float64(m.scores.candidates)/float64(beta)) / m.rate.Float()
}

// LossBound returns a loss that no place exceeds but with probability at most beta: how far the score chosen for a
// place is below the best left (Gumbel, Peeling) or below the true one of the place (Bins).
func (t Top) LossBound(beta noise.Probability) float64 {
	if t.method == 0 || !(beta > 0 && beta < 1) {
		return math.NaN()
	}
	d, k, b := float64(t.scores.candidates), float64(t.k), float64(beta)
	if t.method == Bins {
		return 2 * float64(t.noise.HalfWidthOfSum(1, beta/noise.Probability(d)))
	}
	return math.Log(d*k/b) / t.rate.Float()
}
