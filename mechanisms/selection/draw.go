package selection

import (
	"errors"
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// Draw draws one index by a rule, exactly. At least one loss is 0. Mechanisms with scores of their own use it on losses
// that they compute within a release.
//
// Work, in trials of some ten random bits: exponential, len(losses)/Σexp(−rate·loss) expected, so at most one per
// candidate; permute-and-flip, at most one per candidate.
func Draw(rule Rule, losses []uint64, rate Rate, random *noise.Reader) (int, error) {
	if rate.den == 0 {
		return 0, errors.New("rate was not made by a Strength")
	}
	if len(losses) < 1 || len(losses) > MaxCandidates {
		return 0, fmt.Errorf("candidates is %d, must be from 1 to %d", len(losses), MaxCandidates)
	}
	chosen := 0
	switch rule {
	case Exponential:
		chosen = exponential(losses, rate, random)
	case PermuteAndFlip:
		chosen = permuteAndFlip(losses, rate, random)
	default:
		return 0, fmt.Errorf("rule is %d, must be exponential or permute-and-flip", rule)
	}
	if err := random.Err(); err != nil {
		return 0, err
	}
	return chosen, nil
}

// exponential proposes uniformly and keeps with probability exp(−rate·loss), so that the kept one has that weight.
func exponential(losses []uint64, rate Rate, random *noise.Reader) int {
	for random.Err() == nil {
		i := int(random.Below(uint64(len(losses))))
		if rate.keep(random, losses[i]) {
			return i
		}
	}
	return 0
}

// permuteAndFlip is exponential without putting back what was not kept. The candidates with loss 0 end it.
func permuteAndFlip(losses []uint64, rate Rate, random *noise.Reader) int {
	order := make([]int32, len(losses))
	for i := range order {
		order[i] = int32(i)
	}
	for n := len(order); n > 0 && random.Err() == nil; n-- {
		at := int(random.Below(uint64(n)))
		i := order[at]
		if rate.keep(random, losses[i]) {
			return int(i)
		}
		order[at] = order[n-1]
	}
	return 0
}
