package selection

import (
	"fmt"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Spread bounds how much further one unit can raise one candidate's score than another's: with d the vector of the
// score differences between neighbours, max d − min d. All rules of the package depend on the differences of scores
// alone, and their ε is rate · spread. Scores that move by at most Δ have spread 2Δ, and Δ where all move the same way
// (monotone); some have less.
//
// Claim, with R rows a unit, at most G groups and P rows in a group, w the weights (counts: 0 and 1):
//
//	                     add-remove                            replace-one
//	counts               P                                     2P
//	columns              R                                     2R
//	columns, weighted    R·max w                               R·(the two largest w)
//	tails                R·max w                               R·max w
//
// One candidate has spread 0.
//
// Proof: z is the difference of the cells, d that of the scores. Add-remove: ±z is the unit's rows a ≥ 0: for counts at
// most P in a cell, for columns every a_j free in [0, R], so d_i = w_i·a_i, and the range from 0 to the largest; for
// tails all d_i have one sign. Replace-one: z = a − b; ranges of sums are at most sums of ranges, which gives twice the
// left column for counts. Columns: d_i = w_i·z_i with every z_i free in [−R, R], so the two largest w with opposite
// signs. Tails: pair the rows of a with those of b, the shorter list filled up with rows in no cell: d is a sum of at
// most R pair differences, of which each moves every score by between 0 and w_i in one direction, so its range is at
// most max w. Cutting (see of) leaves z, or tails their sums, between 0 and what they were; the bounds hold for every z
// down to 0, the tails' intervals contain 0.
func (s Scores) Spread(c privacy.Contribution) (int64, error) {
	if s.kind == 0 {
		return 0, fmt.Errorf("scores were not made by a constructor")
	}
	c, err := bounded(c)
	if err != nil {
		return 0, err
	}
	spread, twice := int64(0), int64(1)
	if c.Neighbors == privacy.ReplaceOne {
		twice = 2
	}
	switch {
	case s.candidates == 1:
	case s.kind == counts:
		spread = c.PerGroup * twice
	case s.kind == columns:
		spread = c.Rows * twice
	case s.kind == scaled:
		sorted := slices.Sorted(slices.Values(s.weights))
		spread = c.Rows * sorted[len(sorted)-1]
		if twice == 2 {
			spread += c.Rows * sorted[len(sorted)-2]
		}
	default: // tails
		spread = c.Rows * slices.Max(s.weights)
	}
	if spread > MaxSpread {
		return 0, fmt.Errorf("spread of the scores is %d, must be at most %d", spread, int64(MaxSpread))
	}
	return max(1, spread), nil // identical scores: any rate will do
}
