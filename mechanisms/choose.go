package mechanisms

import (
	"fmt"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/internal/memo"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// Workload is what a range release is to be read for.
type Workload = ranges.Workload

// The workloads.
const (
	AllRanges   = ranges.AllRanges
	AllPrefixes = ranges.AllPrefixes
)

// Plain returns the Spec that counts each cell once at the given cost.
// Cost names ε (pure: discrete Laplace) or ρ (zCDP: discrete Gaussian), never both.
func Plain(counters, cells int, c Contribution, cost privacy.Cost) (Spec, error) {
	return OfStrategy(counters, cells, Strategy{Kind: Identity}, c, cost)
}

// Ranges returns the Spec with the least expected error over all ranges of the cells at the given cost.
func Ranges(cells int, c Contribution, cost privacy.Cost) (Spec, error) {
	return RangesFor(AllRanges, cells, c, cost)
}

// RangesFor returns the Spec with the least expected mean squared error over a workload at the given cost, of all
// strategies that package ranges holds for so many cells (ranges.Choose) and Identity.
func RangesFor(w Workload, cells int, c Contribution, cost privacy.Cost) (Spec, error) {
	asked := question{w, cells, c, cost}
	if s, ok := chosen.Load(asked); ok {
		return s.clone(), nil
	}
	if w != AllRanges && w != AllPrefixes {
		return Spec{}, fmt.Errorf("workload is %d, must be all ranges or all prefixes", w)
	}
	best, err := Plain(1, cells, c, cost)
	if err != nil {
		return Spec{}, err
	}
	goal := ranges.Goal{Cells: cells, Workload: w, Norm: ranges.L1, Neighbors: c.Neighbors}
	if cost.Epsilon.Micro() == 0 {
		goal.Norm = ranges.L2
	}
	rows := unitRows(c, cells)
	// Choose knows one row of a unit. With so many as there can be in one node all strategies' noises grow alike, or,
	// where groups bound a unit, Identity's less than others'.
	d, _ := ranges.Choose(goal, func(one privacy.Sensitivity) float64 {
		return varianceFor(moves{product(one.L1), product(one.L2Squared)}.scaled(rows), cost)
	})
	if d.Kind > Identity {
		s, err := OfStrategy(1, cells, strategyOf(d), c, cost)
		if err == nil && s.mean(w) < best.mean(w) {
			best = s
		}
	}
	chosen.Store(asked, 1, best.clone())
	return best, nil
}

// clone returns an equal Spec that shares no slice with s: what is remembered stays as it was calibrated.
func (s Spec) clone() Spec {
	own := s.Counts()
	y := &own.Strategy
	y.Radices, y.Weights, y.Matrix, own.Sums = slices.Clone(y.Radices), slices.Clone(y.Weights), slices.Clone(y.Matrix), slices.Clone(own.Sums)
	s.Kind = &own
	return s
}

// varianceFor returns the variance of the noise by which so much movement costs so much, 0 if there is none.
func varianceFor(m moves, cost privacy.Cost) float64 {
	n, err := calibrate(m, cost, whole)
	if err != nil {
		return 0
	}
	d, err := n.distribution()
	if err != nil {
		return 0
	}
	return d.Variance()
}

// RMSE returns the root of the expected mean squared error, in rows, of a workload read from a release of the first
// counter. It needs no data.
func (s Spec) RMSE(w Workload) float64 {
	if !Is[*Counts](s) {
		return 0 // it counts no cells: releases of one measure are of equal worth
	}
	return math.Sqrt(s.mean(w))
}

// mean returns the expected mean squared error over a workload.
func (s Spec) mean(w Workload) float64 {
	if _, err := s.noise(0).distribution(); err != nil {
		panic("mechanisms: error of a Spec that was not planned: " + err.Error())
	}
	variance := s.noise(0).variance()
	cells := float64(s.Cells)
	if r := s.reader(); r != nil {
		return variance * r.MeanVariance(w)
	}
	if w == AllPrefixes {
		return variance * (cells + 1) / 2
	}
	return variance * (cells + 2) / 3
}

// chosen remembers choices for the whole process: each is a function of its question alone, and the search takes
// milliseconds while a plan takes microseconds.
var chosen = memo.Map[question, Spec]{Most: 1 << 10}

type question struct {
	workload     Workload
	cells        int
	contribution Contribution
	cost         privacy.Cost
}
