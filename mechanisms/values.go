package mechanisms

import (
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// movesOf bounds the change of the observations of one counter between neighbours.
//
// Claim. A counter that adds up different values once each, of V, moves by no more than a sum over rows with the same
// bound, of which a unit has at most V in one cell: moves holds for it with min(m, V) in the place of m. (The number of
// different values adds up 1 for each.) Proof. Let X be the values that rows of others have in a cell, x their sum, and
// A those of the unit's own rows there that are not in X. With the unit the cell is x + Σ_A, without it x. |A| is at
// most the unit's rows there, hence at most m, and at most V, and each value of A adds a number in [Low, High]: so the
// cell is x + what a sum over |A| rows is, one for each value of A. Under replace-one, with A leaving and B coming, it
// is x + Σ_A before and x + Σ_B after. These are the moves of a sum over rows of which the unit has the numbers |A| and
// |B| in the cells, and Σ|A| is at most the unit's rows, wherever they are: a row shows one value, in one cell.
// tallyValues clamps what a value adds, so that this holds whatever it is given. The bound for a number of values is
// attained where others have no rows; for sums it is not where V values cannot all be the largest.
func (s Spec) movesOf(c Contribution, sum Sum) moves {
	if sum.Values > 0 {
		c.PerGroup = min(perGroup(c), int64(sum.Values))
	}
	return s.moves(c, sum.Bound)
}

// values returns how many different values a counter tells apart, 0 for counters of rows and sums.
func (s Spec) values(counter int) int {
	if s.Counts().Sums == nil {
		return 0
	}
	return s.Counts().Sums[counter].Values
}

func (s Spec) checkValues(sum Sum) error {
	switch {
	case sum.Values < 0:
		return fmt.Errorf("number of values is %d, must not be below 0", sum.Values)
	case sum.Values == 0:
		return nil
	case s.Counts().Strategy.Kind != Identity:
		return fmt.Errorf("strategy of a number of values is %s, must be identity", s.Counts().Strategy.Kind)
	case sum.Values > MaxObservations/s.Cells:
		return fmt.Errorf("number of values is %d in each of %d cells, must be at most %d together", sum.Values, s.Cells, MaxObservations)
	}
	return nil
}

// tallyValues adds up, in each cell, the values that some row has, each once: what a group says that one of its rows
// adds (see Weighed), clamped to the bound. That is the same in all groups of a value. 2^24 numbers within ±2^40 are at
// most 2^64 together, so sums are cut at ±MaxCount when they are known exactly.
func tallyValues(values int, bound Bound) func(groups []privacy.Group, place Placement, counter int, cells []int64) {
	return func(groups []privacy.Group, place Placement, counter int, cells []int64) {
		seen, exact := make([]bool, len(cells)*values), make([]wide, len(cells))
		for at, n := range placed(groups, place, counter, len(seen)) {
			if n != 0 && !seen[at] {
				seen[at] = true
				exact[at/values] = exact[at/values].plus(min(max(n, bound.Low), bound.High))
			}
		}
		for cell, sum := range exact {
			cells[cell] = sum.cutAt(MaxCount)
		}
	}
}
