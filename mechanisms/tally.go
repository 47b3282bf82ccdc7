package mechanisms

import (
	"errors"
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Tally adds the groups up into the cells of each counter, counter by counter, still sealed: the vector that mechanisms
// other than Release look at. Negative counts are taken as 0, sums cut at MostCount, as in Release, so that two
// neighbours' vectors are no further apart than their groups.
func Tally(counters, cells int, place Placement, truth privacy.Sensitive[[]privacy.Group]) (privacy.Sensitive[[]int64], error) {
	var none privacy.Sensitive[[]int64]
	switch {
	case counters < 1 || counters > MostCounters:
		return none, fmt.Errorf("number of counters is %d, must be from 1 to %d", counters, MostCounters)
	case cells < 1 || cells > MostCells || counters*cells > MostObservations:
		return none, fmt.Errorf("number of cells is %d, must be from 1 to %d", cells, MostCells)
	case place == nil:
		return none, errors.New("placement is nil, must be a function")
	case !truth.Valid():
		return none, errors.New("truth was never sealed")
	}
	return sealed.Map(truth, func(groups []privacy.Group) []int64 {
		sums := make([]int64, counters*cells)
		for counter := range counters {
			tally(groups, place, counter, sums[counter*cells:(counter+1)*cells])
		}
		return sums
	}), nil
}

// tally adds one counter's counts into cells.
func tally(groups []privacy.Group, place Placement, counter int, cells []int64) {
	for _, g := range groups {
		if counter >= len(g.Counts) {
			continue
		}
		if cell := cellOf(place, g.Cells, counter, len(cells)); cell >= 0 {
			cells[cell] = addCount(cells[cell], g.Counts[counter])
		}
	}
}
