package online

import (
	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// instance is a sparse vector with fresh answers: above threshold, and what is asked of it.
//
// Claim: with s = Plan.moves, threshold noise of scale s/ε₁, comparison noise of scale 2s/ε₂ and answers that are
// ε₃-DP (ρ₃-zCDP) for a change of s, an instance that stops after c hard answers is (ε₁ + c(ε₂+ε₃))-DP; with c = 1 its
// bits are (ε₁+ε₂)-DP. Without a hard answer it is ε₁-DP, however many queries were easy; where the last hard bit is
// seen but its answer is not, it is ε₃ less.
// Neighbours: one unit's rows absent, or different; Sensitivity: a query moves by at most s under both (Spec.check),
// and so does the gap |q(D) − h|, one query for both signs, since h is a function of what has been said before.
// Theorem: Dwork, Naor, Reingold, Rothblum, Vadhan 2009; Lyu, Su, Li 2017, their algorithm 7 with Δ = s.
// Proof: fix the answers so far, and with them the queries, the guesses h_i and the gaps g_i(D), g_i(D'), which differ by
// at most s. Let z be the threshold noise, y_i the comparison noise; i is hard iff g_i + y_i ≥ T + z. Map z to z + s and,
// where i is hard, y_i to y_i + 2s. If i is easy on D with z, it is so on D' with z + s for the same y_i:
// g_i' + y_i ≤ g_i + s + y_i < T + z + s. If hard, it stays hard: g_i' + y_i + 2s ≥ g_i + y_i + s ≥ T + z + s. The map
// shifts integers by integers, so it is one-to-one on the support, and it changes the probability of z by at most the
// factor exp(ε₁), of each of the c shifted y_i by exp(2s·ε₂/2s). A hard answer q(D) + fresh noise is independent of y_i
// and z, which are never told; given the past it costs ε₃ (ρ₃) by adaptive composition.
// Limits: what is compared is never what is answered: y_i known, an answer equal to the compared value would tell z's
// bound, and no ε at all would hold (the faults in the tests). The samplers' ends at ±2^63 are reached with probability
// below exp(−2^20). Sums take time in proportion to the query's cells; whether an answer is hard is public.
type instance struct {
	sources sources
	above   int64                    // the threshold, public
	z       privacy.Sensitive[int64] // its noise: leaves neither memory nor its closure
	answer  privacy.Sensitive[int64] // noise for the next hard answer, drawn before the truth is opened
}

// draw fetches what one comparison needs and whatever is missing of the rest, so that the source of randomness fails, if
// it does, before and regardless of the truth.
func (n *instance) draw(random *noise.Reader) (comparison int64, err error) {
	if !n.z.Valid() {
		n.z = sealed.Seal(n.sources.threshold.Sample(random))
	}
	if !n.answer.Valid() {
		n.answer = sealed.Seal(n.sources.answer.Sample(random))
	}
	comparison = n.sources.comparison.Sample(random)
	return comparison, random.Err()
}

// hard tells whether gap + y ≥ threshold + z, in integers that cannot overflow.
func (n *instance) hard(gap, y int64) bool {
	return addNoise(gap, y) >= addNoise(n.above, sealed.Open(n.z))
}

// take returns the noise of a hard answer, once.
func (n *instance) take() int64 {
	noise := sealed.Open(n.answer)
	n.answer = privacy.Sensitive[int64]{}
	return noise
}

// forget ends the instance.
func (n *instance) forget() { n.z, n.answer = privacy.Sensitive[int64]{}, privacy.Sensitive[int64]{} }

// snapshot copies the cells, so that what the caller does with them later changes nothing.
func snapshot(truth privacy.Sensitive[[]int64]) privacy.Sensitive[[]int64] {
	return sealed.Seal(append([]int64(nil), sealed.Open(truth)...))
}

// observe opens the cells and tells whether the guess passes; if not, the noisy sum.
func (n *instance) observe(q Query, grid, guess int64, truth privacy.Sensitive[[]int64], comparison int64) (hard bool, value int64) {
	sum := q.sum(sealed.Open(truth), grid)
	gap := sum - guess
	if gap < 0 {
		gap = -gap
	}
	if !n.hard(gap, comparison) {
		return false, 0
	}
	return true, addNoise(sum, n.take())
}

// addNoise returns a + noise, cut at ±mostNoisy; a is in [0, mostCount].
func addNoise(a, noise int64) int64 {
	if noise >= mostNoisy {
		return mostNoisy
	}
	return min(max(a+noise, -mostNoisy), mostNoisy)
}
