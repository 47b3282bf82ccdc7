package selection

import (
	"fmt"
	"math/big"
	"math/bits"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Strength is the ε of one draw in whole nano-units (1e-9): fine enough that a ρ turned into an ε loses nothing that
// shows.
type Strength int64

// The tight conversions of an ε to ρ = ε²/divisor. The exponential mechanism has a bounded range: the logarithms of the
// ratios of its probabilities on neighbours lie in an interval of length ε, which Hoeffding's lemma turns into
// ε²/8-zCDP (Cesar and Rogers 2021). Of permute-and-flip only ε-DP is known: ε²/2 (Bun and Steinke 2016).
const (
	boundedRange = 8
	pureOnly     = 2
)

// Calibrate returns the largest ε such that draws by the rule, one after the other, cost at most cost, which names ε or
// ρ.
func Calibrate(rule Rule, draws int, cost privacy.Cost) (Strength, error) {
	if rule < Exponential || rule > PermuteAndFlip {
		return 0, fmt.Errorf("rule is %d, must be exponential or permute-and-flip", rule)
	}
	if draws < 1 || draws > MaxCandidates {
		return 0, fmt.Errorf("draws is %d, must be from 1 to %d", draws, MaxCandidates)
	}
	return strengthOf(cost, int64(draws), rule.divisor())
}

// Rate returns ε/spread.
func (s Strength) Rate(spread int64) (Rate, error) {
	if s <= 0 || spread < 1 || spread > MaxSpread {
		return Rate{}, fmt.Errorf("strength is %d for a spread of %d, must be greater than 0 for one from 1 to %d", s, spread, int64(MaxSpread))
	}
	return s.rate(spread), nil
}

// strengthOf returns the largest ε such that draws of it, one after the other, cost at most cost.
func strengthOf(cost privacy.Cost, draws, divisor int64) (Strength, error) {
	epsilon, rho := cost.Epsilon.Micro(), cost.Rho.Pico()
	s := Strength(0)
	switch {
	case cost.Delta.Atto() != 0:
		return 0, fmt.Errorf("delta of the cost is %v, must be 0: a selection has none", cost.Delta)
	case epsilon < 0 || rho < 0 || (epsilon == 0) == (rho == 0):
		return 0, fmt.Errorf("cost is ε %v and ρ %v, must be greater than 0 in one of the two and 0 in the other", cost.Epsilon, cost.Rho)
	case epsilon > 1e12 || rho > 1e18:
		return 0, fmt.Errorf("cost is %v, must be at most 1000000", cost)
	case epsilon > 0:
		s = Strength(epsilon * 1000 / draws)
	default:
		square := new(big.Int).Mul(big.NewInt(rho), big.NewInt(divisor*1e6))
		s = Strength(square.Div(square, big.NewInt(draws)).Sqrt(square).Int64())
	}
	if s == 0 {
		return 0, fmt.Errorf("cost is %v for %d draws, must leave each of them an ε of at least 1e-9", cost, draws)
	}
	return s, nil
}

// Rate is the rational by which the logarithm of a candidate's weight falls with each unit of its loss, ε/spread. The
// zero value is invalid.
type Rate struct{ num, den uint64 }

// Float returns the rate for expected errors only.
func (r Rate) Float() float64 { return float64(r.num) / float64(r.den) }

// rate returns ε/spread.
func (s Strength) rate(spread int64) Rate { return reduced(uint64(s), 1e9*uint64(spread)) }

func reduced(num, den uint64) Rate {
	a, b := num, den
	for b != 0 {
		a, b = b, a%b
	}
	return Rate{num / a, den / a}
}

// keep is true with probability exp(−loss·rate) exactly.
func (r Rate) keep(random *noise.Reader, loss uint64) bool {
	high, low := bits.Mul64(loss, r.num)
	if high == 0 {
		return random.ExpMinusRatio(low, r.den)
	}
	return random.ExpMinus(r.times(loss))
}

// times returns loss·rate.
func (r Rate) times(loss uint64) *big.Rat {
	n := new(big.Int).SetUint64(loss)
	return new(big.Rat).SetFrac(n.Mul(n, new(big.Int).SetUint64(r.num)), new(big.Int).SetUint64(r.den))
}
