package mechanisms

import (
	"fmt"
	"math/bits"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Between which cells a column's values lie, of a noisy histogram in which each unit is counted once (docs/adr/0130):
// how `dpproxy bounds` finds the ends of a column whose owner does not know them. For salaries that cells part at 1,
// 1.5, 2, 3, … times powers of ten there may be
//
//	… (20000, 30000] 812   (30000, 40000] 655   (40000, 50000] 231   (50000, 60000] 9   (60000, 80000] −31 …
//
// at ε 0.1: a single cell shows that a unit is in it from 111 on, so that the upper end is 50000.
//
// Claim. ReadEnds is ε-DP, or ρ-zCDP, at the cost of its Spec, whatever rows there are: an outlier, or a unit with a
// million rows.
//
// Neighbours. As everywhere: one unit's rows are absent (add-remove) or different (replace-one).
//
// Sensitivity. The histogram counts one row of each unit (its Contribution has one row): 1 and 1, or 2 and √2 under
// replace-one. Cells depend on the column's type alone (policy.Ladder), never on the rows.
//
// Theorem. Let V be the cells of values, F the windows of 1, 2, 4, … neighbouring cells of V, and w(L) the half-width
// of a sum of L cells at the confidence 1 − β/|F|. A window shows when its noisy sum is above w(L), and above what is
// to be ignored. Of what is released, with probability at least 1 − β all of this holds together:
//
//	(1) where From < To as found, the largest occupied cell is To−1 or above it, and the smallest From or below it: no end lies further out than
//	    the first one beyond all values;
//	(2) at most MostAbove units have their row in a cell from To on, and at most MostBelow in one before From;
//	(3) no window that starts at To or later, or ends at From or before, has more than w(L) + max(w(L), ignored) units.
//
// Proof. What is released is post-processing of the histogram, which is the Laplace or Gaussian mechanism: the claim.
// Let E be that no window's noisy sum S is off from its true sum A by more than w(L). P(E) ≥ 1 − β, since w(L) is the
// exact tail of the sum of L noises, each window fails with at most β/|F|, and probabilities of a union are at most
// added up. On E a window that shows has A ≥ S − w > 0, so a unit is in it. The last start of a window that shows is
// To−1, the first end of one is From+1: (1). No window that starts at To or later shows, so each has A ≤ S + w and S ≤
// max(w, ignored): (3), and (2) by adding up windows that cover what lies beyond, each at most S + w: those of its
// length's binary digits one after the other, or the two longest that begin and end with it, whichever is less. What is
// ignored is public. ∎
//
// Why windows, and not the cumulative counts of a range release, or the exponential mechanism. A tail that falls off
// fills a few cells, and the noise of these alone is seen: 111 units at ε 0.1 and 386 cells, where the sums of the best
// range strategy show from 530 on, and the exponential mechanism for two ends at ε/2 each is off by up to 360 units,
// and with few units takes an end anywhere above them. One cell a window is the rule of Google's approximate bounds and
// of smartnoise; longer ones see tails that are thin in every cell (TestEndsOfLongTails has the figures, docs/adr/0130
// the table).
//
// Limits. Nothing shows of a table of few units, and then nothing is found. Units beyond the ends are in no proportion
// to their values: a single row of 10^12 is not seen, and is not meant to be. Where windows show but no part of one
// shows by itself, To comes out at or before From: then all of the cells between the two are taken, which (1) does not
// cover. Values are those of one row of each unit, picked by a hash of its contents: of a unit with many rows the
// largest is mostly not that one.

// Ends is what a noisy histogram tells of where values lie: cells [From, To), none where nothing shows.
type Ends struct {
	From, To             int
	Below, Above         int64 // noisy numbers of units before From and from To on
	BelowOff, AboveOff   int64 // their half-widths at the confidence 1 − failure, each by itself
	MostBelow, MostAbove int64 // what they are at most, all together with the probability 1 − failure
	Units, UnitsOff      int64 // the noisy number of all units with a value, and its half-width
	Shows                int64 // from how many units on one cell shows
}

// Found reports whether anything shows.
func (e Ends) Found() bool { return e.From < e.To }

// ReadEnds finds the ends of the first values cells of a histogram. Ignored units beyond an end are no reason to move
// it; failure is β.
func (s Spec) ReadEnds(released privacy.Released[Noisy], values int, ignored int64, failure Confidence) (privacy.Released[Ends], error) {
	var none privacy.Released[Ends]
	if err := s.check(); err != nil {
		return none, err
	}
	if !Is[*Counts](s) || s.Counts().Strategy.Kind != Identity || s.Counters != 1 || values < 1 || values > s.Cells {
		return none, fmt.Errorf("ends are read from a histogram of one counter, each cell by itself")
	}
	scan, err := s.scan(values, ignored, failure)
	if err != nil {
		return none, err
	}
	e, err := NewEstimate(s, released)
	if err != nil {
		return none, err
	}
	sum := func(from, to int) int64 { return e.Sum(0, []Span{{from, to}}).Value() }
	alone := s.Errors(failure)
	return privacy.PostProcess(released, func(Noisy) Ends { return scan.read(sum, alone) }), nil
}

// scan are the windows of a histogram.
type scan struct {
	values    int
	widths    []int64 // by the binary logarithm of a window's length: w
	threshold []int64 // the same: from above which on it shows
}

func (s Spec) scan(values int, ignored int64, failure Confidence) (scan, error) {
	c := scan{values: values}
	windows := 0
	for length := 1; length <= values; length *= 2 {
		windows += values - length + 1
	}
	each, err := NewConfidence(1 - (1-failure.p)/float64(windows))
	if err != nil {
		return c, err
	}
	errors := s.Errors(each)
	for length := 1; length <= values; length *= 2 {
		w := errors.Of([]Span{{0, length}}).HalfWidth
		c.widths, c.threshold = append(c.widths, w), append(c.threshold, max(w, ignored))
	}
	return c, nil
}

func (c scan) read(sum func(from, to int) int64, alone *Errors) Ends {
	last, first := -1, c.values+1 // the last start of a window that shows, the first end of one
	for j, threshold := range c.threshold {
		for from, to := 0, 1<<j; to <= c.values; from, to = from+1, to+1 {
			if sum(from, to) > threshold {
				last, first = max(last, from), min(first, to)
			}
		}
	}
	out := Ends{Units: sum(0, c.values), UnitsOff: alone.Of([]Span{{0, c.values}}).HalfWidth, Shows: c.threshold[0] + 1}
	if last < 0 {
		return out
	}
	out.From, out.To = first-1, last+1
	if out.From >= out.To { // no part of a window shows by itself
		out.From, out.To = last, first
	}
	out.Below, out.Above = sum(0, out.From), sum(out.To, c.values)
	if out.From > 0 {
		out.BelowOff = alone.Of([]Span{{0, out.From}}).HalfWidth
	}
	if out.To < c.values {
		out.AboveOff = alone.Of([]Span{{out.To, c.values}}).HalfWidth
	}
	out.MostBelow, out.MostAbove = c.most(sum, 0, out.From), c.most(sum, out.To, c.values)
	return out
}

// most bounds the units in cells from one on to below another, by what the windows say that cover them.
func (c scan) most(sum func(from, to int) int64, from, to int) int64 {
	if from == to {
		return 0
	}
	of := func(from, j int) int64 { return max(0, sum(from, from+1<<j)+c.widths[j]) }
	longest := bits.Len(uint(to-from)) - 1
	two := of(from, longest)
	if 1<<longest < to-from {
		two += of(to-1<<longest, longest)
	}
	each, at := int64(0), from
	for j := longest; j >= 0; j-- {
		if (to-from)&(1<<j) != 0 {
			each += of(at, j)
			at += 1 << j
		}
	}
	return min(two, each)
}
