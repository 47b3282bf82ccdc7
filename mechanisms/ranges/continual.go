package ranges

import (
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/internal/memo"
)

// Continual is a strategy over cells that come one after the other, such as days: each observation is of cells up to
// its own last one, and the observations are in the order of those last cells. So what is known once the first cells
// are complete is a beginning of what will be known later, and the strategy of fewer cells, all else being equal,
// observes exactly that beginning. A release of such a strategy grows: its observations are drawn when their last cell
// is complete.
//
// Claim: the observations of a release that grew cell by cell cost what all of them cost together. Neighbours,
// sensitivity: the strategy's, of all cells that will ever be. Theorem: noise on B·x, each observation with noise of
// its own, costs what the sensitivity of B says (Release of package mechanisms), in whatever order the observations are
// published, as long as each is drawn once. That what is asked later depends on what was published earlier changes
// nothing: B does not depend on it (Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011 for the binary tree;
// Denisov et al. 2022 for matrices with adaptive inputs, and Gaussian noise). Proof, without adaptivity: the published
// vector is B·x + noise. With it: density ratios of independent noise coordinates multiply, and the j-th factor depends
// on the change of (B·x)_j alone, which one unit's rows bound whatever the other rows have become in answer to earlier
// observations; for the Gaussian the exponents add up to the same ρ. Limits: rows may only be added. A row that is
// taken away or changed after an observation of it lets its unit bring others, beyond the sensitivity.
type Continual interface {
	Strategy
	// Known returns the number of observations of the first so many cells alone.
	Known(cells int) int
	// Reach returns the first cell that matters to an observation of [Known(from), Known(to)): no query needs to look
	// further back.
	Reach(from, to int) int
}

// continualGrid are the block lengths that ChooseContinual tries.
var continualGrid = []int{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 28, 32, 40, 48}

// ChooseContinual returns the strategy with the least expected error over so many cells, counted while they come: of
// all ranges of the cells that are complete and of all of these together, on the average over the time. Both have equal
// weight, as mean variances.
//
// L2: the square root of the prefix sums' matrix as a Toeplitz matrix (Fichtenberger, Henzinger, Upadhyay 2023: within
// .05 or so of the least maximal error that a factorisation can have), cut to a band. The band makes the noise of the
// sum so far grow like √(π·cells/(4·band)) beyond the band, and that of short ranges smaller; a sixth of the cells, to
// the next power of two, is within 3 % of the best of all powers of two from 365 to 10,000 cells.
//
// L1: the norm of a column of that matrix grows like the square root of its length, that of a tree with its levels. So
// the nodes of a tree, of two or three levels, no root, read by least squares over all that are complete. Which, is
// found by the exact error of each candidate.
func ChooseContinual(cells int, norm Norm) Description {
	if norm == L2 {
		band := 1
		for 6*band < cells {
			band *= 2
		}
		return Description{Kind: KindContinualRoot, Cells: cells, Radices: []int{min(max(band, 32), cells, MaxBand)}, Bits: continualBits}
	}
	return continualTrees.Of(cells, 1, func() Description { return continualTree(cells) })
}

// continualTrees remembers what was chosen, by cells.
var continualTrees = memo.Map[int, Description]{Most: memo.Small}

func continualTree(cells int) Description {
	best, least := Description{}, math.Inf(1)
	consider := func(radices ...int) {
		d := Description{Kind: KindContinualTree, Cells: cells, Radices: radices}
		if e := continualError(d); e < least {
			best, least = d, e
		}
	}
	consider()
	for _, b := range continualGrid {
		if b > cells {
			break
		}
		consider(b)
		for _, a := range continualGrid {
			if a*b <= cells {
				consider(a, b)
			}
		}
	}
	return best
}

// continualTimes is the number of moments at which the error of a candidate is looked at, fewer where there are many
// cells.
func continualTimes(cells int) int { return min(max(60_000/cells, 15), 61) }

// continualError returns the mean variance of a candidate over the time, with noise of its sensitivity's size.
func continualError(d Description) float64 {
	sum, all := 0.0, d.Cells
	one := 0.0
	times := continualTimes(all)
	for i := 1; i <= times; i++ {
		d.Cells = max(1, all*i/times)
		t, err := newClosedTree(d.Cells, d.Radices)
		if err != nil {
			return math.Inf(1)
		}
		sum += t.MeanVariance(AllRanges) + t.prefixVariance(d.Cells)
		one = float64(t.observedLevels())
	}
	return sum * one * one
}
