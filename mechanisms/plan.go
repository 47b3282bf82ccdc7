package mechanisms

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/internal/memo"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// The largest measurements. A release of MaxObservations takes 128 MB.
const (
	MaxCells        = 1 << 20
	MaxCounters     = 1 << 10
	MaxObservations = 1 << 24
)

// NewConfidence checks p.
func NewConfidence(p float64) (Confidence, error) {
	if !(p > 0 && p < 1) {
		return Confidence{}, fmt.Errorf("confidence is %g, must be greater than 0 and less than 1", p)
	}
	return Confidence{p}, nil
}

// Float returns the probability.
func (c Confidence) Float() float64 { return c.p }

// Counter is a counter to plan: what one row adds to it, and how much its squared error matters. Weight 0 means
// 1/max(|Low|, |High|)², by which all counters are equally exact for their size. Values is Sum's.
type Counter struct {
	Bound
	Weight float64
	Values int
}

// SumsBy returns the Spec that adds up each counter by a strategy, with the least weighted sum of squared errors at the
// given cost: the counters share it, each with noise of its own.
func SumsBy(y Strategy, counters []Counter, cells int, c Contribution, cost privacy.Cost) (Spec, error) {
	return summed(y, counters, cells, c, func(s Spec) ([]*big.Rat, error) { return s.shares(counters, c, cost) }, func(int) privacy.Cost { return cost })
}

// SumsEach is Sums with a cost for each counter; what they cost together is the sum.
func SumsEach(counters []Counter, cells int, c Contribution, costs []privacy.Cost) (Spec, error) {
	if len(costs) != len(counters) {
		return Spec{}, fmt.Errorf("number of costs is %d, must be the number of counters, %d", len(costs), len(counters))
	}
	all := func(Spec) ([]*big.Rat, error) { return slices.Repeat([]*big.Rat{whole}, len(costs)), nil }
	return summed(Strategy{Kind: Identity}, counters, cells, c, all, func(i int) privacy.Cost { return costs[i] })
}

// summed returns the Spec that adds up each counter with the noise of its share of its cost.
func summed(y Strategy, counters []Counter, cells int, c Contribution, shares func(Spec) ([]*big.Rat, error), cost func(counter int) privacy.Cost) (Spec, error) {
	own := &Counts{Strategy: y, Sums: make([]Sum, len(counters))}
	for i, counter := range counters {
		own.Sums[i].Bound, own.Sums[i].Values = counter.Bound, counter.Values
	}
	s := Spec{Counters: len(counters), Cells: cells, Kind: own}
	if err := s.checkPublic(c); err != nil {
		return Spec{}, err
	}
	parts, err := shares(s)
	if err != nil {
		return Spec{}, err
	}
	for i, sum := range own.Sums {
		if own.Sums[i].Noise, err = s.calibrateSum(c, sum, cost(i), parts[i]); err != nil {
			return Spec{}, fmt.Errorf("counter %d: %w", i+1, err)
		}
	}
	return s, s.check()
}

// shares returns what each counter takes of the cost; together 1.
//
// With Δ the L1 moves of a counter, pure noise of scale t costs Δ/t and has the variance 2t²: Σ w·t² at a fixed Σ Δ/t
// is least at t³ ∝ Δ/w, that is for shares ∝ (Δ²·w)^⅓. Gaussian noise costs Δ²/(2σ²), Δ² the L2² moves, and Σ w·σ² at a
// fixed Σ Δ²/σ² is least at σ⁴ ∝ Δ²/w, shares ∝ Δ·√w. They are whole parts of about 2^20; which, is a matter of error
// alone, since they add up to 1 as they are.
func (s Spec) shares(counters []Counter, c Contribution, cost privacy.Cost) ([]*big.Rat, error) {
	wanted, total := make([]float64, len(counters)), 0.0
	for i, counter := range counters {
		large, _ := counter.extremes()
		w := counter.Weight
		if w == 0 {
			w = 1 / (float64(large) * float64(large))
		}
		if !(w >= 1/maxWeight && w <= maxWeight) {
			return nil, fmt.Errorf("weight of counter %d is %g, must be from 1e-40 to 1e40", i+1, counter.Weight)
		}
		m := s.movesOf(c, Sum{Bound: counter.Bound, Values: counter.Values})
		l1, _ := m.l1.Float64()
		squared, _ := m.squared.Float64()
		if wanted[i] = math.Cbrt(l1 * l1 * w); cost.Epsilon.Micro() == 0 {
			wanted[i] = math.Sqrt(squared) * math.Sqrt(w)
		}
		total += wanted[i]
	}
	if !(total > 0) || math.IsInf(total, 1) {
		return nil, fmt.Errorf("weights of the counters add up to %g, must be greater than 0 and finite", total)
	}
	parts, all := make([]int64, len(counters)), int64(0)
	for i := range parts {
		parts[i] = 1 + int64(min(max(wanted[i]/total, 0), 1)*(1<<20))
		all += parts[i]
	}
	shares := make([]*big.Rat, len(counters))
	for i := range shares {
		shares[i] = big.NewRat(parts[i], all)
	}
	return shares, nil
}

// maxWeight keeps the products of weights and moves, which are below 2^250, finite.
const maxWeight = 1e40

// checkPublic checks all that is public about a measurement but its noise.
func (s Spec) checkPublic(c Contribution) error {
	if err := checkContribution(c); err != nil {
		return err
	}
	return s.checkShape()
}

// OfStrategy returns the Spec that observes each counter of counts by a strategy at the given cost: everything that is
// public about it is checked, and it has the noise of its cost.
func OfStrategy(counters, cells int, y Strategy, c Contribution, cost privacy.Cost) (Spec, error) {
	own := &Counts{Strategy: y}
	s := Spec{Counters: counters, Cells: cells, Kind: own}
	if err := s.checkPublic(c); err != nil {
		return Spec{}, err
	}
	var err error
	if own.Noise, err = calibrate(s.moves(c, counted).times(int64(s.Counters)), cost, whole); err != nil {
		return Spec{}, err
	}
	return s, s.check()
}

// whole is the share of a counter that nothing shares the cost with.
var whole = big.NewRat(1, 1)

// calibrate returns the noise by which so much movement costs a share of the cost: scale t = L1/ε, or σ² = L2²/(2ρ).
// Where the exact rational does not fit into two int64, it is rounded up by at most 2^-29 of it.
// A count takes no δ: the δ of a conversion from ρ is the ledger's, once for all releases. Whoever sells one Gaussian
// release by itself at (ε, δ) would calibrate here by the analytic Gaussian of package accounting instead.
func calibrate(m moves, cost privacy.Cost, share *big.Rat) (Noise, error) {
	e, r := cost.Epsilon.Micro(), cost.Rho.Pico()
	switch {
	case cost.Delta.Atto() != 0:
		return Noise{}, fmt.Errorf("delta of a count is %s, must be 0", cost.Delta)
	case e < 0 || r < 0 || (e == 0) == (r == 0):
		return Noise{}, fmt.Errorf("cost is epsilon %s and rho %s, must name one of them, greater than 0", cost.Epsilon, cost.Rho)
	case e > 0:
		paid := new(big.Rat).Mul(big.NewRat(e, 1e6), share)
		return rational(DiscreteLaplace, paid.Quo(new(big.Rat).SetInt(m.l1), paid))
	}
	paid := new(big.Rat).Mul(big.NewRat(r, 1e12/2), share)
	return rational(DiscreteGaussian, paid.Quo(new(big.Rat).SetInt(m.squared), paid))
}

// rational returns the noise of a parameter.
func rational(kind NoiseKind, value *big.Rat) (Noise, error) {
	num, den, fits := noise.AtLeast(value)
	if !fits {
		return Noise{}, fmt.Errorf("noise parameter is %s, out of range: the cost is too small for the rows of a unit", value.RatString())
	}
	return Noise{Kind: kind, Num: num, Den: den}, nil
}

// distribution is that of the noise, in steps where it has some.
func (n Noise) distribution() (noise.Distribution, error) {
	if err := n.checkStep(); err != nil {
		return noise.Distribution{}, err
	}
	return noise.New(n.Kind, n.Num, n.Den)
}

// bound returns what a row adds to a counter.
func (s Spec) bound(counter int) Bound {
	if sums := s.Counts().Sums; sums != nil {
		return sums[counter].Bound
	}
	return counted
}

// noise returns the noise of a counter's observations.
func (s Spec) noise(counter int) Noise {
	c := s.Counts()
	if c.Sums != nil {
		return c.Sums[counter].Noise
	}
	return c.Noise
}

// Only returns the Spec of one counter of s alone: its errors are that counter's.
func (s Spec) Only(counter int) Spec {
	if own := s.Counts(); own.Sums != nil {
		own.Sums = own.Sums[counter : counter+1]
		s.Kind = &own
	}
	s.Counters = 1
	return s
}

// Check refuses every Spec that this package would not make, such as one saved by a later version with a strategy that
// this one does not know.
func (s Spec) Check() error { return s.check() }

func (s Spec) check() error {
	if s.Kind == nil {
		return (&Counts{}).check(s) // which have a strategy
	}
	return s.Kind.check(s)
}

func (c *Counts) check(s Spec) error {
	if err := s.checkShape(); err != nil {
		return err
	}
	if c.Noise.Step != 0 {
		return fmt.Errorf("step of the noise is %d, must be absent: counts have none", c.Noise.Step)
	}
	if c.Sums != nil && c.Noise != (Noise{}) {
		return fmt.Errorf("noise is %v, must be absent: each sum has its own", c.Noise)
	}
	for counter := range max(1, len(c.Sums)) {
		if _, err := s.noise(counter).distribution(); err != nil {
			return err
		}
	}
	return nil
}

func (s Spec) checkShape() error {
	if s.Counters < 1 || s.Counters > MaxCounters {
		return fmt.Errorf("number of counters is %d, must be from 1 to %d", s.Counters, MaxCounters)
	}
	if s.Cells < 1 || s.Cells > MaxCells {
		return fmt.Errorf("number of cells is %d, must be from 1 to %d", s.Cells, MaxCells)
	}
	own := s.Counts()
	if own.Sums != nil && len(own.Sums) != s.Counters {
		return fmt.Errorf("number of sums is %d, must be the number of counters, %d", len(own.Sums), s.Counters)
	}
	if err := s.checkStrategy(); err != nil {
		return err
	}
	for i, sum := range own.Sums {
		if err := sum.check(); err != nil {
			return fmt.Errorf("counter %d: %w", i+1, err)
		}
		if sum.signed() && s.matrix() != nil && own.Strategy.Kind != Marginals {
			return fmt.Errorf("counter %d: bound of a sum is from %d to %d, must not be below 0 in strategy %s", i+1, sum.Low, sum.High, own.Strategy.Kind)
		}
		if err := s.checkValues(sum); err != nil {
			return fmt.Errorf("counter %d: %w", i+1, err)
		}
	}
	if n := s.Counters * s.observed(); n > MaxObservations {
		return fmt.Errorf("number of observations is %d, must be at most %d", n, MaxObservations)
	}
	return nil
}

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
