package mechanisms

import (
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// movesOf bounds the change of the observations of one counter between neighbours.
//
// Claim. A counter of different values, of V, moves by no more than a count of rows of which a unit has at most V in one
// cell: moves holds for it with min(m, V) in the place of m.
// Proof. Let x be the number of values that rows of others have in a cell, n the number of different values that the
// unit's own rows have there. With them the cell is at least x and at most x+n, and n is at most the unit's rows there,
// hence at most m, and at most V. Under add-remove the cell moves by at most n. Under replace-one, with n leaving and n̄
// coming, it is in [x, x+n] before and in [x, x+n̄] after, so moves by at most max(n, n̄). These are the moves of a count
// of rows with the numbers n, and Σn is at most the unit's rows, wherever they are: a row shows one value, in one cell.
// The bound is attained where others have no rows.
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
	case sum.Bound != counted:
		return fmt.Errorf("bound of a number of values is from %d to %d, must be from 0 to 1", sum.Low, sum.High)
	case s.Counts().Strategy.Kind != Identity:
		return fmt.Errorf("strategy of a number of values is %s, must be identity", s.Counts().Strategy.Kind)
	case sum.Values > MostObservations/s.Cells:
		return fmt.Errorf("number of values is %d in each of %d cells, must be at most %d together", sum.Values, s.Cells, MostObservations)
	}
	return nil
}

// tallyValues counts, in each cell, the values that some row has.
func tallyValues(values int) func(groups []privacy.Group, place Placement, counter int, cells []int64) {
	return func(groups []privacy.Group, place Placement, counter int, cells []int64) {
		seen := make([]bool, len(cells)*values)
		for at, n := range placed(groups, place, counter, len(seen)) {
			if n > 0 && !seen[at] {
				seen[at] = true
				cells[at/values]++
			}
		}
	}
}
