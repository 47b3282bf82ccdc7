package selection

import (
	"errors"
	"io"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Rule names how one candidate is drawn.
type Rule uint8

// The rules. The zero value is invalid.
const (
	Exponential    Rule = 1 + iota // P(i) ∝ exp(−rate·loss): Gumbel noise and the largest
	PermuteAndFlip                 // in random order, the first kept with probability exp(−rate·loss): exponential noise
)

func (r Rule) String() string {
	return [...]string{"invalid", "exponential mechanism", "permute-and-flip"}[r]
}

func (r Rule) divisor() int64 {
	if r == Exponential {
		return boundedRange
	}
	return pureOnly
}

// Mechanism draws one candidate. It is public and immutable; the zero value is invalid.
type Mechanism struct {
	scores Scores
	rule   Rule
	rate   Rate
}

// New calibrates a rule to a cost, which names ε or ρ.
func New(rule Rule, scores Scores, c privacy.Contribution, cost privacy.Cost) (Mechanism, error) {
	spread, err := scores.Spread(c)
	if err != nil {
		return Mechanism{}, err
	}
	s, err := Calibrate(rule, 1, cost)
	if err != nil {
		return Mechanism{}, err
	}
	return Mechanism{scores, rule, s.rate(spread)}, nil
}

// RuleFor returns the rule with the least expected loss at a cost: permute-and-flip for an ε, which is never worse than
// the exponential mechanism at the same ε (McKenna and Sheldon 2020), the exponential mechanism for a ρ, which buys it
// twice the ε.
func RuleFor(cost privacy.Cost) Rule {
	if cost.Rho.Pico() != 0 {
		return Exponential
	}
	return PermuteAndFlip
}

var errNotMade = errors.New("selection was not made by a constructor")

// Select opens the sealed cells, scores the candidates and returns the number of the drawn one.
//
// Claim: ε-DP with ε = rate·spread; the exponential mechanism is ε²/8-zCDP too. The scores' values are not released,
// nor the noisy ones: they are the largest of many, and cost a release of their own. Neighbours and sensitivity: those
// of the contribution; see Scores.Spread. Theorem: McSherry and Talwar 2007 (exponential mechanism), McKenna and
// Sheldon 2020 (permute-and-flip); in terms of the spread, as proved here. Cesar and Rogers 2021 (ε²/8). Proof: let d
// be the score differences between neighbours. Both rules depend on differences of scores alone: adding one number to
// all scores changes nothing. So let 0 ≤ d ≤ spread. Exponential: ln P'(i)/P(i) = rate·d_i − one number, so it lies in
// an interval of length ε; both distributions sum to 1, so the interval contains 0. Permute-and-flip is exponential
// noise of scale 1/rate on each score and the largest (Ding, Kifer, Steinke, et al. 2021). Given the others' noise, i
// wins if its noise is at least a number t; in the neighbour that number is at most spread higher. P(noise ≥ t) ≤
// exp(rate·h)·P(noise ≥ t+h). Average over the others' noise. The other direction is the same with spread − d in place
// of d. Limits: the time taken depends on the scores; privacy of timing is the proxy's.
func (m Mechanism) Select(truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[int], error) {
	var none privacy.Released[int]
	switch {
	case m.rule == 0:
		return none, errNotMade
	case !truth.Valid():
		return none, errors.New("truth was never sealed")
	}
	reader := noise.NewReader(random)
	chosen, err := Draw(m.rule, Losses(m.scores.of(sealed.Open(truth))), m.rate, reader)
	if err != nil {
		return none, err
	}
	return sealed.Release(chosen), nil
}

// Losses returns how far each score is below the largest. Scores lie within ±MaxScore.
func Losses(scores []int64) []uint64 {
	best := scores[0]
	for _, s := range scores {
		best = max(best, s)
	}
	losses := make([]uint64, len(scores))
	for i, s := range scores {
		losses[i] = uint64(best - s)
	}
	return losses
}
