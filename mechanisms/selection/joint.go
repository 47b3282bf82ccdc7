package selection

import (
	"fmt"
	"math/big"
	"slices"
	"sort"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// jointSpread returns the spread of the joint loss: the largest, over the k places, of how far the chosen candidate's
// score is below the true one of that place.
//
// Claim: 2·spread of the candidates' scores. Proof: the loss is max_i (c_(i) − c_s(i)), c_(i) the i-th largest score.
// Losses do not change when all scores move together, so let them move by d, 0 ≤ d ≤ spread. Then c_(i) moves by
// between 0 and spread (it is the largest number that i scores reach), and so does c_s(i): each difference moves by at
// most ±spread, the largest of them too, and two sequences' losses apart by at most twice that.
func jointSpread(s Scores, c privacy.Contribution, spread int64) (int64, error) {
	if 2*spread > MaxSpread {
		return 0, fmt.Errorf("spread of the scores is %d, must be at most %d", spread, int64(MaxSpread)/2)
	}
	return 2 * spread, nil
}

// jointly draws a sequence of k different candidates with probability exactly ∝ exp(−rate·loss), the loss of
// jointSpread (Gillenwater, Joseph, Muñoz, Ribero 2022; the sampling is ours and needs no matrix of k times all
// candidates).
//
// Ordered by loss, the sequences with loss ≤ v are N(v) = Π_i (n_i(v) − i + 1) many, n_i(v) the candidates within v of
// the i-th best: n_i grows with i, so whatever is chosen for the places before i is among n_i. blocks draws a rank
// among all; its loss is the least v with N(v) > rank. Of the sequences with exactly that loss, all alike, one is then
// drawn.
func jointly(losses []uint64, k int, rate Rate, random *noise.Reader) []int {
	order := byLoss(losses)
	s := sequences{k: k, order: order, sorted: make([]uint64, len(order))}
	for i, c := range order {
		s.sorted[i] = losses[c]
	}
	b := newBlocks(s.within(s.sorted[len(order)-1]), rate, s.lossOf)
	rank := b.draw(random, s.lossOf)
	return s.draw(s.lossOf(rank), random)
}

// sequences are those of k different ones of the sorted losses.
type sequences struct {
	k      int
	order  []int32
	sorted []uint64
}

// reach returns n_i(v), the candidates no more than v below place i.
func (s sequences) reach(i int, v uint64) int {
	most := s.sorted[i] + v
	return sort.Search(len(s.sorted), func(j int) bool { return s.sorted[j] > most })
}

// within returns N(v).
func (s sequences) within(v uint64) *big.Int {
	n := big.NewInt(1)
	for i := range s.k {
		n.Mul(n, big.NewInt(int64(s.reach(i, v)-i)))
	}
	return n
}

// lossOf returns the loss of a rank.
func (s sequences) lossOf(rank *big.Int) uint64 {
	high := uint64(0)
	for s.within(high).Cmp(rank) <= 0 {
		high = 2*high + 1
	}
	return uint64(sort.Search(int(high), func(v int) bool { return s.within(uint64(v)).Cmp(rank) > 0 }))
}

// draw returns one of the sequences with loss v, uniformly. Let i be the first place whose loss is v: the places before
// it have less, itself is one of n_i(v) − n_i(v−1), those after it have at most v; that many sequences there are for
// each i.
func (s sequences) draw(v uint64, random *noise.Reader) []int {
	reached := make([]int, s.k) // by each place
	first := 0
	if v > 0 {
		first = s.firstAt(v, random)
	}
	chosen := make([]int, 0, s.k)
	for i := range s.k {
		reached[i] = s.reach(i, v)
		from := 0
		if v > 0 && i < first {
			reached[i] = s.reach(i, v-1)
		}
		if v > 0 && i == first {
			from = s.reach(i, v-1)
		}
		chosen = append(chosen, s.another(chosen, from, reached[i], random))
	}
	if random.Err() != nil {
		return nil // after a failure the positions may be any
	}
	for i, at := range chosen {
		chosen[i] = int(s.order[at])
	}
	return chosen
}

// another returns a uniform position in [from, to) that is not chosen yet.
func (s sequences) another(chosen []int, from, to int, random *noise.Reader) int {
	taken := []int{}
	for _, c := range chosen {
		if c >= from && c < to {
			taken = append(taken, c-from)
		}
	}
	slices.Sort(taken)
	if to-from <= len(taken) {
		return from // only after a failure of the source
	}
	return from + position(taken, int(random.Below(uint64(to-from-len(taken)))))
}

// firstAt draws the first place with loss v, by the number of sequences.
func (s sequences) firstAt(v uint64, random *noise.Reader) int {
	before, after := make([]*big.Int, s.k+1), make([]*big.Int, s.k+1) // products of the places below i, and of those from i on
	before[0], after[s.k] = big.NewInt(1), big.NewInt(1)
	for i := range s.k {
		before[i+1] = new(big.Int).Mul(before[i], big.NewInt(int64(s.reach(i, v-1)-i)))
	}
	for i := s.k - 1; i >= 0; i-- {
		after[i] = new(big.Int).Mul(after[i+1], big.NewInt(int64(s.reach(i, v)-i)))
	}
	pick := random.BelowBig(new(big.Int).Sub(after[0], before[s.k]))
	for i := range s.k {
		n := big.NewInt(int64(s.reach(i, v) - s.reach(i, v-1)))
		n.Mul(n, before[i]).Mul(n, after[i+1])
		if pick.Cmp(n) < 0 {
			return i
		}
		pick.Sub(pick, n)
	}
	return 0
}
