// Package selection draws a candidate, or the best few, from a public list by private scores: exponential mechanism,
// permute-and-flip, and their kin for the top k. Scores are integers, linear in bounded counts, and every draw is exact:
// uniform integers and coins of probability exp(−rational), no floating point.
package selection

import (
	"fmt"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// The largest selections. No |score| exceeds MaxScore, so that no difference of two overflows.
const (
	MaxCandidates = 1 << 20
	MaxWeight     = 1 << 31 // of one count in a score
	MaxRows       = 1 << 28 // of a unit
	MaxSpread     = 1 << 33
	MaxScore      = 1 << 61
)

type scoring uint8

const (
	counts  scoring = 1 + iota // score = the cell; a row is in at most one cell
	columns                    // score = the cell; a row may be in every cell
	scaled                     // score = weight · the cell; a row may be in every cell
	tails                      // score = weight · sum of the cells from some cell on; a row is in at most one cell
)

// Scores says how the candidates' scores come from the cells, which are counts of rows. It is public and immutable; the
// zero value is invalid.
type Scores struct {
	kind       scoring
	cells      int
	candidates int
	weights    []int64
	from       []int
}

// Counts makes every cell a candidate and its count the score: the largest group.
func Counts(candidates int) (Scores, error) { return plain(counts, candidates) }

// Columns is Counts where one row may count in many cells: the most popular of several yes-or-no columns.
func Columns(candidates int) (Scores, error) { return plain(columns, candidates) }

func plain(kind scoring, n int) (Scores, error) {
	if n < 1 || n > MaxCandidates {
		return Scores{}, fmt.Errorf("candidates is %d, must be from 1 to %d", n, MaxCandidates)
	}
	return Scores{kind: kind, cells: n, candidates: n}, nil
}

// Weighted is Columns with the score weights[i] · cell i.
func Weighted(weights []int64) (Scores, error) {
	s, err := plain(scaled, len(weights))
	for i, w := range weights {
		if w < 0 || w > MaxWeight {
			return Scores{}, fmt.Errorf("weight of score %d is %d, must be from 0 to %d", i, w, int64(MaxWeight))
		}
	}
	s.weights = slices.Clone(weights)
	return s, err
}

// Tails gives candidate i the score weights[i] · (rows in the cells from[i] and above): a price times the number of
// bids of at least that price, the cells being the bids in order.
func Tails(cells int, weights []int64, from []int) (Scores, error) {
	if len(weights) < 1 || len(weights) > MaxCandidates || len(from) != len(weights) {
		return Scores{}, fmt.Errorf("candidates is %d with %d starts, must be from 1 to %d and as many starts", len(weights), len(from), MaxCandidates)
	}
	if cells < 1 || cells > MaxCandidates {
		return Scores{}, fmt.Errorf("cells is %d, must be from 1 to %d", cells, MaxCandidates)
	}
	for i, w := range weights {
		if w < 0 || w > MaxWeight {
			return Scores{}, fmt.Errorf("weight of score %d is %d, must be from 0 to %d", i, w, int64(MaxWeight))
		}
		if from[i] < 0 || from[i] >= cells {
			return Scores{}, fmt.Errorf("first cell of score %d is %d, must be from 0 to %d", i, from[i], cells-1)
		}
	}
	return Scores{kind: tails, cells: cells, candidates: len(weights), weights: slices.Clone(weights), from: slices.Clone(from)}, nil
}

// Cells returns how many cells the scores are made of.
func (s Scores) Cells() int { return s.cells }

// of returns the scores of cells; missing cells count 0.
//
// Each cell is cut to [0, cap], or each tail, so that no score exceeds MaxScore. Cutting a count takes rows away from a
// unit and adds none, so what Spread proves for every choice of rows up to the bounds still holds.
func (s Scores) of(cells []int64) []int64 {
	at := func(j int, most int64) int64 {
		if j >= len(cells) {
			return 0
		}
		return min(max(cells[j], 0), most)
	}
	scores := make([]int64, s.candidates)
	switch s.kind {
	case counts, columns:
		for i := range scores {
			scores[i] = at(i, MaxScore)
		}
	case scaled:
		most := MaxScore / max(1, slices.Max(s.weights))
		for i := range scores {
			scores[i] = s.weights[i] * at(i, most)
		}
	case tails:
		most := MaxScore / max(1, slices.Max(s.weights))
		sums := make([]int64, s.cells)
		sum := int64(0)
		for j := s.cells - 1; j >= 0; j-- {
			sum = min(sum+at(j, most), most)
			sums[j] = sum
		}
		for i := range scores {
			scores[i] = s.weights[i] * sums[s.from[i]]
		}
	}
	return scores
}

// bounded checks a contribution and fills in its defaults.
func bounded(c privacy.Contribution) (privacy.Contribution, error) {
	if c.Rows < 1 || c.Rows > MaxRows {
		return c, fmt.Errorf("rows a unit is %d, must be from 1 to %d", c.Rows, int64(MaxRows))
	}
	if c.Groups < 0 || c.PerGroup < 0 {
		return c, fmt.Errorf("groups a unit is %d with %d rows each, must not be below 0", c.Groups, c.PerGroup)
	}
	if c.Neighbors != privacy.AddRemove && c.Neighbors != privacy.ReplaceOne {
		return c, fmt.Errorf("neighbors is %d, must be add-remove or replace-one", c.Neighbors)
	}
	if c.Groups == 0 || c.Groups > c.Rows {
		c.Groups = c.Rows
	}
	if c.PerGroup == 0 || c.PerGroup > c.Rows {
		c.PerGroup = c.Rows
	}
	if c.PerGroup <= c.Rows/c.Groups {
		c.Rows = min(c.Rows, c.Groups*c.PerGroup)
	}
	return c, nil
}
