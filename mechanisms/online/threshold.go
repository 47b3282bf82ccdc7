package online

import (
	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// instance is a sparse vector with fresh answers: above threshold, and what is asked of it.
//
// Claim: with s = Plan.moves, threshold noise of scale s/ε₁, comparison noise of scale 2s/ε₂, both of one side
// (geometric, from 0 up), and answers that are ε₃-DP (ρ₃-zCDP) for a change of s, an instance that stops after c hard
// answers is (ε₁ + c(ε₂+ε₃))-DP; with c = 1 its bits are (ε₁+ε₂)-DP. Without a hard answer it is ε₁-DP, however many
// queries were easy; where the last hard bit is seen but its answer is not, it is ε₃ less. Neighbours: one unit's rows
// absent, or different; Sensitivity: a query moves by at most s under both (Spec.check), and so does the gap |q(D) −
// h|, one query for both signs, since h is a function of what has been said before. Theorem: Dwork, Naor, Reingold,
// Rothblum, Vadhan 2009; Lyu, Su, Li 2017, their algorithm 7 with Δ = s; for noise of one side package sparse, whose
// proof is this one, and Liu, Wang, Liu, Li, Chen 2024. The claim is sharp: worst_test.go finds inputs that reach
// exp(ε₁ + c·ε₂) exactly. Proof: fix the answers so far, and with them the queries, the guesses h_i and the gaps
// g_i(D), g_i(D'), which differ by at most s. Let z be the threshold noise, y_i the comparison noise; i is hard iff
// g_i + y_i ≥ T + z. Pair z on D with z+s on D', which is in the support, too, and at least exp(−ε₁) times as likely:
// P(z+s) = exp(−ε₁)·P(z) for z ≥ 0. Given them: if i is easy, g_i + y_i < T + z implies g_i' + y_i ≤ g_i + s + y_i <
// T + z + s, so easy is no less likely on D'. If hard, y_i ≥ T + z − g_i becomes y_i ≥ T + z + s − g_i', which is at
// most 2s further up, and P(y ≥ t) ≤ exp(h·ε₂/2s)·P(y ≥ t+h) for whole t and h ≥ 0: both are powers of exp(−ε₂/2s)
// where t ≥ 0, and where t < 0 the left is 1 and the right at least exp(h·ε₂/2s)·exp(−(t+h)·ε₂/2s). So each of the c
// hard bits costs at most exp(ε₂), and z exp(ε₁), once. A hard answer q(D) + fresh noise is independent of y_i and z,
// which are never released; given the past it costs ε₃ (ρ₃) by adaptive composition. T, and whatever mean the noise
// has, is public and decides the error alone. Limits: what is compared is never what is answered: y_i known, an answer
// equal to the compared value would tell z's bound, and no ε at all would hold (the faults in the tests). The samplers'
// ends at ±2^63 are reached with probability below exp(−2^20). Sums take time in proportion to the query's cells;
// whether an answer is hard is public.
type instance struct {
	sources sources
	above   int64                    // the threshold, public
	z       privacy.Sensitive[int64] // its noise: leaves neither memory nor its closure
	answer  privacy.Sensitive[int64] // noise for the next hard answer, drawn before the truth is opened
}

// draw fetches what one comparison needs and whatever is missing of the rest, so that the source of randomness fails,
// if it does, before and regardless of the truth.
func (n *instance) draw(random *noise.Reader) (comparison int64, err error) {
	if !n.z.Valid() {
		n.z = sealed.Seal(n.sources.threshold.OneSided(random))
	}
	if !n.answer.Valid() {
		n.answer = sealed.Seal(n.sources.answer.Sample(random))
	}
	comparison = n.sources.comparison.OneSided(random)
	return comparison, random.Err()
}

// hard reports whether gap + y ≥ threshold + z, in integers that cannot overflow.
func (n *instance) hard(gap, y int64) bool {
	return noise.Add(gap, y) >= noise.Add(n.above, sealed.Open(n.z))
}

// take returns the noise of a hard answer, once.
func (n *instance) take() int64 {
	drawn := sealed.Open(n.answer)
	n.answer = privacy.Sensitive[int64]{}
	return drawn
}

// forget ends the instance.
func (n *instance) forget() { n.z, n.answer = privacy.Sensitive[int64]{}, privacy.Sensitive[int64]{} }

// snapshot copies the cells, so that what the caller does with them later changes nothing.
func snapshot(truth privacy.Sensitive[[]int64]) privacy.Sensitive[[]int64] {
	return sealed.Seal(append([]int64(nil), sealed.Open(truth)...))
}

// observe opens the cells and reports whether the guess passes; if not, the noisy sum.
func (n *instance) observe(q Query, guess int64, truth privacy.Sensitive[[]int64], comparison int64) (hard bool,
	value int64) {
	sum := q.sum(sealed.Open(truth))
	gap := sum - guess
	if gap < 0 {
		gap = -gap
	}
	if !n.hard(gap, comparison) {
		return false, 0
	}
	return true, noise.Add(sum, n.take())
}
