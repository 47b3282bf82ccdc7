package mechanisms

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Tally adds the groups up into the cells of each counter, counter by counter, still sealed: the vector that mechanisms
// other than Release look at. Negative counts are taken as 0, sums cut at MaxCount, as in Release, so that two
// neighbours' vectors are no further apart than their groups.
func Tally(counters, cells int, place Placement, truth privacy.Sensitive[[]privacy.Group]) (privacy.Sensitive[[]int64], error) {
	var none privacy.Sensitive[[]int64]
	switch {
	case counters < 1 || counters > MaxCounters:
		return none, fmt.Errorf("number of counters is %d, must be from 1 to %d", counters, MaxCounters)
	case cells < 1 || cells > MaxCells || counters*cells > MaxObservations:
		return none, fmt.Errorf("number of cells is %d, must be from 1 to %d", cells, MaxCells)
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

// tally adds one counter's counts, or sums that cannot be below 0, into cells.
func tally(groups []privacy.Group, place Placement, counter int, cells []int64) {
	for cell, n := range placed(groups, place, counter, len(cells)) {
		cells[cell] = addCount(cells[cell], n)
	}
}

// tallySigned adds one counter's sums into cells: exactly, and cut at ±MaxCount only then, so that neither the order of
// the groups shows nor how a cell's sum came about.
func tallySigned(groups []privacy.Group, place Placement, counter int, cells []int64) {
	exact := make([]wide, len(cells))
	for cell, n := range placed(groups, place, counter, len(cells)) {
		exact[cell] = exact[cell].plus(n)
	}
	for cell, sum := range exact {
		cells[cell] = sum.cutAt(MaxCount)
	}
}

// placed yields the cell and the value of each group that one counter counts.
func placed(groups []privacy.Group, place Placement, counter, cells int) iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		for _, g := range groups {
			if counter >= len(g.Counts) {
				continue
			}
			if cell := cellOf(place, g.Cells, counter, cells); cell >= 0 && !yield(cell, g.Counts[counter]) {
				return
			}
		}
	}
}

// Weighed multiplies the counts of each group by what one of its rows adds to the counter, still sealed: so a database
// that only counts gives sums of anything that its cells determine. Weigh is a function of public things alone; a
// weight outside of the counter's Bound breaks the release's claim. Products are cut at ±MaxCount. Of a counter of
// different values a group with rows adds its weight once.
func Weighed(s Spec, truth privacy.Sensitive[[]privacy.Group], weigh func(cells []int32, counter int) int64) privacy.Sensitive[[]privacy.Group] {
	if weigh == nil || !truth.Valid() {
		return truth
	}
	once := make([]bool, s.Counters)
	for c := range once {
		once[c] = s.values(c) > 0
	}
	return sealed.Map(truth, func(groups []privacy.Group) []privacy.Group {
		out := make([]privacy.Group, len(groups), cap(groups)) // which takes what it would for any rows, as the groups do
		var products []int64
		if len(groups) > 0 {
			products = make([]int64, 0, cap(groups)*len(groups[0].Counts))
		}
		for i, g := range groups {
			from := len(products)
			for c, n := range g.Counts {
				if c < len(once) && once[c] {
					n = min(max(n, 0), 1)
				}
				products = append(products, weighedCount(n, weigh(g.Cells, c)))
			}
			out[i] = privacy.Group{Cells: g.Cells, Counts: products[from:len(products):len(products)]}
		}
		return out
	})
}

// weighedCount is n·w, cut at ±MaxCount.
func weighedCount(n, w int64) int64 {
	high, low := bits.Mul64(magnitude(n), magnitude(w))
	size := int64(MaxCount)
	if high == 0 && low < MaxCount {
		size = int64(low)
	}
	if (n < 0) != (w < 0) {
		return -size
	}
	return size
}

func magnitude(n int64) uint64 {
	sign := uint64(n >> 63) // without a branch on it: noise of fixed work passes here
	return (uint64(n) ^ sign) - sign
}
