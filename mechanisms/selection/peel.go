package selection

import (
	"cmp"
	"math/big"
	"slices"
	"sort"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// peelExponential draws k times by the exponential mechanism, each time from what is left: the same distribution as the
// k largest after one Gumbel noise of scale 1/rate on each (Durfee and Rogers 2019), in order.
//
// Up to few candidates are drawn by plain rejection, which there is as fast; more by blocks.
func peelExponential(losses []uint64, k int, rate Rate, few int, random *noise.Reader) []int {
	order := byLoss(losses)
	taken := make([]int, 0, k) // positions in order, ascending
	chosen := make([]int, 0, k)
	for len(chosen) < k {
		left := len(order) - len(taken)
		lossOf := func(rank *big.Int) uint64 { return losses[order[position(taken, int(rank.Int64()))]] }
		rank := new(big.Int)
		if left > few {
			rank = newBlocks(big.NewInt(int64(left)), rate, lossOf).draw(random, lossOf)
		} else {
			rank = plainly(left, rate, lossOf, random)
		}
		if random.Err() != nil {
			return nil
		}
		at := position(taken, int(rank.Int64()))
		chosen = append(chosen, int(order[at]))
		taken = slices.Insert(taken, sort.SearchInts(taken, at), at)
	}
	return chosen
}

// fewCandidates is where blocks become faster than plain rejection.
const fewCandidates = 512

// plainly is blocks.draw by uniform proposals.
func plainly(size int, rate Rate, lossOf func(rank *big.Int) uint64, random *noise.Reader) *big.Int {
	rank := new(big.Int)
	least := lossOf(rank)
	for random.Err() == nil {
		rank.SetUint64(random.Below(uint64(size)))
		if rate.keep(random, lossOf(rank)-least) {
			break
		}
	}
	return rank
}

// byLoss returns the candidates in order of loss, equal ones by number.
func byLoss(losses []uint64) []int32 {
	order := make([]int32, len(losses))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(losses[a], losses[b]), cmp.Compare(a, b))
	})
	return order
}

// position returns the place of the rank-th that is not taken: as many places further as there are taken ones that have
// no more than rank free places before them.
func position(taken []int, rank int) int {
	return rank + sort.Search(len(taken), func(t int) bool { return taken[t]-t > rank })
}

// peelFlip draws k times by permute-and-flip, each time from what is left.
func peelFlip(losses []uint64, k int, rate Rate, random *noise.Reader) []int {
	left := make([]int, len(losses))
	for i := range left {
		left[i] = i
	}
	chosen := make([]int, 0, k)
	remaining := slices.Clone(losses)
	for len(chosen) < k && random.Err() == nil {
		least := slices.Min(remaining)
		for i := range remaining {
			remaining[i] -= least
		}
		at, last := permuteAndFlip(remaining, rate, random), len(left)-1
		chosen = append(chosen, left[at])
		left[at], remaining[at] = left[last], remaining[last]
		left, remaining = left[:last], remaining[:last]
	}
	return chosen
}
