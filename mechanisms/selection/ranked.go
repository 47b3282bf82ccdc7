package selection

import (
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// blocks covers the ranks 0, 1, … of items ordered by loss: block b holds the ranks from 2^b − 1, twice as many as the
// one before.
type blocks struct {
	rate    Rate
	least   []uint64 // the loss of each block's first rank; least[0] is the smallest of all
	weights []weight // a block's number of ranks times exp(−rate·(least − least[0]))
	first   []*big.Int
}

// newBlocks prepares size ranks whose losses lossOf gives, not decreasing.
func newBlocks(size *big.Int, rate Rate, lossOf func(rank *big.Int) uint64) blocks {
	b := blocks{rate: rate}
	one := big.NewInt(1)
	for first, count := new(big.Int), one; first.Cmp(size) < 0; count = new(big.Int).Lsh(count, 1) {
		held, rest := count, new(big.Int).Sub(size, first)
		if rest.Cmp(held) < 0 {
			held = rest
		}
		b.least = append(b.least, lossOf(first))
		b.first = append(b.first, first)
		exponent := rate.times(b.least[len(b.least)-1] - b.least[0])
		if !negligible(exponent, rest) {
			b.weights = append(b.weights, weight{held, exponent})
			first = new(big.Int).Add(first, held)
			continue
		}
		b.weights = append(b.weights, weight{rest, exponent}) // one block for all the rest: seldom proposed
		break
	}
	return b
}

// negligible reports whether count·exp(−exponent) is below 2^−24: a question of speed alone.
func negligible(exponent *big.Rat, count *big.Int) bool {
	return new(big.Int).Quo(exponent.Num(), exponent.Denom()).Cmp(big.NewInt(int64(count.BitLen()+24))) > 0
}

// draw returns a rank with probability exactly ∝ exp(−rate·loss).
//
// A block is proposed by its weight, a rank in it uniformly and kept with probability exp(−rate·(loss − the block's
// least)). With S the sum of all exp(−rate·loss), least[0] = 0: the blocks after the first weigh at most twice what the
// block before them holds, for its losses are no larger than their least; so the proposals weigh at most 1 + 2S ≤ 3S
// (and the rest, below 2^−24), and at least a third is kept.
func (b blocks) draw(random *noise.Reader, lossOf func(rank *big.Int) uint64) *big.Int {
	for random.Err() == nil {
		j := weighted(b.weights, random)
		rank := random.BelowBig(b.weights[j].count)
		if random.Err() != nil {
			break // after a failure the number may be any
		}
		rank.Add(rank, b.first[j])
		if b.rate.keep(random, lossOf(rank)-b.least[j]) {
			return rank
		}
	}
	return new(big.Int)
}
