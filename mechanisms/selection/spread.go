package selection

import (
	"fmt"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// comparisons is how many steps Spread spends on a sharper bound than the plain one.
const comparisons = 1 << 27

// Spread bounds how much further one unit can raise one candidate's score than another's: with d the vector of the score
// differences between neighbours, max d − min d. All rules of the package depend on the differences of scores alone, and
// their ε is rate · spread. Scores that move by at most Δ have spread 2Δ, and Δ where all move the same way (monotone);
// some have less.
//
// Claim, with R rows a unit, at most G groups and P rows in a group, w the weights (counts: 0 and 1):
//
//	                     add-remove                            replace-one
//	counts               P                                     2P
//	columns              R                                     2R
//	columns, weighted    R·max w                               R·(the two largest w)
//	tails                R·max w                               R·max w
//	linear, disjoint     max Σ_j a_j·(max_i w_ij − min_i w_ij)  R·max over pairs of cells, or twice the left
//	linear, overlapping  R·max_ik Σ_j max(0, w_ij − w_kj)      R·max_ik Σ_j |w_ij − w_kj|
//
// where a runs over the units' possible rows: at most P in a cell, G cells, R in all. One candidate has spread 0.
//
// Proof: d = W·z, z the difference of the cells. Add-remove: ±z is the unit's rows a ≥ 0, and (W_i − W_k)·a ≤
// Σ_j a_j·(max w_j − min w_j), largest for a greedy a; overlapping, every a_j is free in [0, R]. Replace-one: z = a − b.
// Pair the rows of a with those of b, the shorter list filled up with rows in no cell (weight 0): d is a sum of at most R
// pair differences W_j − W_k, and ranges of sums are at most sums of ranges; for tails a pair moves every score by
// between 0 and w_i in one direction, so its range is at most max w. That ranges add up also gives twice the left column.
// Weighted columns: d_i = w_i·z_i with every z_i free in [0, R], or in [−R, R] under replace-one.
// Overlapping: each z_j is free in [−R, R]. Cutting (see of) leaves z, or tails their sums, between 0 and what they were;
// the bounds hold for every z down to 0, the tails' intervals contain 0.
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
	case s.kind == tails:
		spread = c.Rows * slices.Max(s.weights)
	case s.kind == linear:
		spread = s.disjoint(c)
		if twice == 2 {
			spread = min(2*spread, s.replaced(c))
		}
	default:
		spread = s.overlapping(c.Rows, twice == 2)
	}
	if spread > MostSpread {
		return 0, fmt.Errorf("spread of the scores is %d, must be at most %d", spread, int64(MostSpread))
	}
	return max(1, spread), nil // identical scores: any rate will do
}

// ranges returns max − min of each cell's weights.
func (s Scores) ranges() []int64 {
	ranges := make([]int64, s.cells)
	for j := range ranges {
		low, high := s.matrix[0][j], s.matrix[0][j]
		for _, row := range s.matrix {
			low, high = min(low, row[j]), max(high, row[j])
		}
		ranges[j] = high - low
	}
	return ranges
}

func (s Scores) disjoint(c privacy.Contribution) int64 {
	each := s.ranges()
	slices.Sort(each)
	slices.Reverse(each)
	spread, rows := int64(0), c.Rows
	for _, r := range each[:min(int64(len(each)), c.Groups)] {
		taken := min(rows, c.PerGroup)
		spread, rows = min(spread+taken*r, MostSpread+1), rows-taken
	}
	return spread
}

// replaced bounds the spread by rows that move from one cell, or none, to another.
func (s Scores) replaced(c privacy.Contribution) int64 {
	if s.cells > comparisons/s.cells/s.candidates {
		return MostSpread + 1
	}
	weight := func(i, j int) int64 {
		if j == s.cells {
			return 0
		}
		return s.matrix[i][j]
	}
	widest := int64(0)
	for j := range s.cells {
		for k := j + 1; k <= s.cells; k++ {
			low, high := weight(0, j)-weight(0, k), weight(0, j)-weight(0, k)
			for i := range s.matrix {
				d := weight(i, j) - weight(i, k)
				low, high = min(low, d), max(high, d)
			}
			widest = max(widest, high-low)
		}
	}
	return min(c.Rows*widest, MostSpread+1)
}

func (s Scores) overlapping(rows int64, replaced bool) int64 {
	spread := int64(0)
	if s.candidates > comparisons/s.candidates/s.cells {
		for _, r := range s.ranges() {
			spread = min(spread+r, MostSpread+1)
		}
		if replaced {
			spread *= 2
		}
		return rows * spread
	}
	for i, one := range s.matrix {
		for _, other := range s.matrix[:i] {
			up, down := int64(0), int64(0)
			for j := range one {
				up, down = up+max(0, one[j]-other[j]), down+max(0, other[j]-one[j])
			}
			if replaced {
				up += down
			}
			spread = max(spread, up, down)
		}
	}
	return rows * min(spread, MostSpread+1)
}
