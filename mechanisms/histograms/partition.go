package histograms

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// The partition is chosen among those whose buckets are aligned blocks of 2^l cells. With x the cells, the cost of a
// bucket b is, in sixteenths of a row,
//
//	16·Σ |x_i − median of b| − g_b,
//
// g_b geometric with P(k) ∝ exp(−k/t), t = 32·steps/ε; each cut of a block in two is charged too, by the block's level.
// The partition with the least sum of costs and charges is released.
//
// Claim: ε-DP. Neighbours: the cells differ by at most steps single rows, each added or removed. Sensitivity: Σ|x_i −
// median| = min over m of Σ|x_i − m|, which one row more or less in one cell changes by at most 1. Theorem: report
// noisy min, with a partition's shared noise (Li, Hay, Miklau, Wang 2014, DAWA, theorem 2), here with one-sided noise
// as in permute-and-flip. Proof: it is enough to look at one row, in cell j, and at ε/steps, for databases steps rows
// apart are joined by that many steps. Fix a partition B; exactly one bucket b of B contains j. Fix also the noise of
// all buckets but b. B is chosen if its cost is below that of every other partition, or equal to it and B comes first
// in a fixed order: that is, if g_b ≥ T, T being the largest, over all partitions without b, of 16·dev(b) + what is
// fixed of B − their cost, plus 1 if they come first; partitions with b do not matter, for g_b is in both sums. The
// charges are public and the same for both data. One row moves dev(b) by at most 1, and by at most 1 the one bucket of
// another partition that contains j, so T by at most 32. And P(g ≥ T) ≤ exp(32/t)·P(g ≥ T+32) for every T, positive or
// not. Ties: the smaller tree is cut only if that is cheaper than leaving it whole, which at the same cost prefers,
// from the root down, the whole: a fixed order. Buckets of one cell deviate by 0 and get noise like all others: without
// it the argument fails for partitions that have j alone, whose rivals all move. Limits: noise is cut at 2^41, so that
// sums of costs cannot overflow; New keeps t below 2^28, and what is cut has a probability below exp(−8192). Time
// depends on the number of cells and on the noise.
type partitioner struct {
	noise noise.Distribution // of scale t; its non-negative half is the geometric
	scale int64              // ⌈t⌉
}

// charge returns what cutting a block of level l in two costs besides its halves, of levels in all. It is a matter of
// error alone. Of many noisy costs the least is low by luck: where cells are even, a block is left whole only if luck's
// gain, about the scale for each cut, is taken back. On the smallest blocks, which are many, the charge is three times
// the scale, so that few of them are cut for nothing; on the largest one nothing, for a few buckets too many are
// harmless.
func (p partitioner) charge(l, levels int) int64 {
	return 3*p.scale - 3*p.scale*int64(l-1)/int64(max(1, levels-1))
}

const (
	maxCell  = 1 << 35 // of a cell: 16·2^35·2^20 cells is 2^59
	maxNoise = 1 << 41 // 2^20 buckets of it is 2^61
)

// choose returns the ends of the buckets. The cells must not be negative.
func (p partitioner) choose(cells []int64, r *noise.Reader) []int {
	return p.least(len(cells), p.costs(cells, r))
}

// least returns the ends of the partition with the least sum of costs and charges.
func (p partitioner) least(cells int, costs [][]int64) []int {
	// best[l][i] is the least cost of a partition of block i of level l; whole reports whether it is the block itself.
	best, whole := slices.Clone(costs[0]), [][]bool{make([]bool, cells)}
	for i := range whole[0] {
		whole[0][i] = true
	}
	for l, own := range costs[1:] {
		charge := p.charge(l+1, len(costs)-1)
		next, uncut := make([]int64, len(own)), make([]bool, len(own))
		for i, cost := range own {
			if 2*i+1 == len(best) { // one child, the same block
				next[i] = best[2*i]
				continue
			}
			next[i], uncut[i] = cost, true
			if cut := best[2*i] + best[2*i+1] + charge; cut < cost {
				next[i], uncut[i] = cut, false
			}
		}
		best, whole = next, append(whole, uncut)
	}
	ends := []int{}
	var walk func(l, i int)
	walk = func(l, i int) {
		if i >= len(whole[l]) {
			return
		}
		if whole[l][i] {
			ends = append(ends, min((i+1)<<l, cells))
			return
		}
		walk(l-1, 2*i)
		walk(l-1, 2*i+1)
	}
	walk(len(whole)-1, 0)
	return ends
}

// costs returns the noisy cost of every block, level by level from the single cells up. A block with one child only is
// the same as the child and costs nothing of its own; it draws no noise.
func (p partitioner) costs(cells []int64, r *noise.Reader) [][]int64 {
	sorted := make([]int64, len(cells))
	for i, c := range cells {
		sorted[i] = min(c, maxCell)
	}
	spare := make([]int64, len(cells))
	costs := [][]int64{}
	for block := 1; ; block *= 2 {
		level := make([]int64, (len(cells)+block-1)/block)
		for i := range level {
			from, to := i*block, min((i+1)*block, len(cells))
			middle := from + block/2
			if block > 1 && middle >= to {
				continue
			}
			if block > 1 {
				merge(spare[from:to], sorted[from:middle], sorted[middle:to])
				copy(sorted[from:to], spare[from:to])
			}
			level[i] = 16*deviation(sorted[from:to]) - min(p.noise.OneSided(r), maxNoise)
		}
		costs = append(costs, level)
		if block >= len(cells) {
			return costs
		}
	}
}

func merge(to, a, b []int64) {
	for i := range to {
		if len(b) == 0 || len(a) > 0 && a[0] <= b[0] {
			to[i], a = a[0], a[1:]
		} else {
			to[i], b = b[0], b[1:]
		}
	}
}

// deviation returns Σ |x − median| of sorted numbers: the upper half's sum less the lower half's.
func deviation(sorted []int64) int64 {
	sum, n := int64(0), len(sorted)
	for i := range n / 2 {
		sum += sorted[n-1-i] - sorted[i]
	}
	return sum
}
