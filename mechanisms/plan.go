package mechanisms

import (
	"fmt"
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// The largest measurements. A release of MostObservations takes 128 MB.
const (
	MostCells        = 1 << 20
	MostCounters     = 1 << 10
	MostObservations = 1 << 24
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

// Plain returns the Spec that counts each cell once at the given cost.
// Cost names ε (pure: discrete Laplace) or ρ (zCDP: discrete Gaussian), never both.
func Plain(counters, cells int, c Contribution, cost privacy.Cost) (Spec, error) {
	return calibrated(Spec{Counters: counters, Cells: cells, Strategy: Strategy{Kind: Identity}}, c, cost)
}

// Ranges returns the Spec with the least expected error over all ranges of the cells at the given cost: Identity, or
// the best of the mixed-radix trees that ranges.Best looks at.
func Ranges(cells int, c Contribution, cost privacy.Cost) (Spec, error) {
	identity, err := Plain(1, cells, c, cost)
	if err != nil {
		return Spec{}, err
	}
	variance := func(levels int) float64 {
		spec := identity
		spec.Strategy = Strategy{Kind: Tree, Radices: make([]int, levels)}
		n, err := calibrate(spec.sensitivity(c, levels), cost)
		if err != nil {
			return 0
		}
		d, err := n.distribution()
		if err != nil {
			return 0
		}
		return d.Variance()
	}
	radices := ranges.Best(cells, variance)
	if len(radices) <= 1 {
		return identity, nil
	}
	return calibrated(Spec{Counters: 1, Cells: cells, Strategy: Strategy{Kind: Tree, Radices: radices}}, c, cost)
}

// Sensitivity returns how far one unit can move the spec's observations, taken together.
//
// Claim, with R = c.Rows, C counters, h observed levels (Identity: 1): the observations of neighbours differ by at most
//
//	add-remove             L1 = R·C·h    L2² = R²·C·h
//	replace-one, one cell  L1 = R·C      L2² = R²·C
//	replace-one, more      L1 = 2R·C·h   L2² = 2R²·C·h
//
// Proof: a row is in at most one cell of a counter, hence in at most one node of each level. So within one counter and
// one level a unit's rows are a vector a ≥ 0 of integers with Σa ≤ R, and Σa² ≤ (Σa)² ≤ R² (all rows in one node). Under
// add-remove the difference is a. Under replace-one it is a−b for two such vectors: Σ|a−b| ≤ 2R and, a·b not being
// negative, |a−b|² ≤ |a|²+|b|² ≤ 2R²; with a single cell, |a−b| ≤ R. The C·h (counter, level) pairs add up. Each bound
// is attained: all of a unit's rows in one cell, seen by every counter (and all of the other's in another cell).
func (s Spec) Sensitivity(c Contribution) privacy.Sensitivity {
	return s.sensitivity(c, s.levels())
}

func (s Spec) levels() int {
	if s.Strategy.Kind == Tree {
		return len(s.Strategy.Radices)
	}
	return 1
}

func (s Spec) sensitivity(c Contribution, levels int) privacy.Sensitivity {
	times := int64(s.Counters) * int64(levels)
	if c.Neighbors == privacy.ReplaceOne && s.Cells > 1 {
		times *= 2
	}
	return privacy.Sensitivity{L1: c.Rows * times, L2Squared: c.Rows * c.Rows * times}
}

// mostRows keeps a sensitivity within int64: rows² · counters · levels · 2 is below 2^62.
const mostRows = 1 << 22

// calibrated checks everything that is public about a measurement and gives it the noise of its cost.
func calibrated(s Spec, c Contribution, cost privacy.Cost) (Spec, error) {
	if c.Rows < 1 || c.Rows > mostRows {
		return Spec{}, fmt.Errorf("rows of a unit is %d, must be from 1 to %d", c.Rows, mostRows)
	}
	if c.Neighbors != privacy.AddRemove && c.Neighbors != privacy.ReplaceOne {
		return Spec{}, fmt.Errorf("neighbor relation is %d, must be add-remove or replace-one", c.Neighbors)
	}
	if err := s.checkShape(); err != nil {
		return Spec{}, err
	}
	var err error
	s.Noise, err = calibrate(s.Sensitivity(c), cost)
	if err != nil {
		return Spec{}, err
	}
	return s, s.check()
}

// calibrate returns the noise that makes the sensitivity cost so much: scale t = L1/ε, or σ² = L2²/(2ρ). Where the exact
// rational does not fit, σ² is rounded up by at most 2^-29 of it, t refused.
func calibrate(s privacy.Sensitivity, cost privacy.Cost) (Noise, error) {
	e, r := cost.Epsilon.Micro(), cost.Rho.Pico()
	switch {
	case cost.Delta.Atto() != 0:
		return Noise{}, fmt.Errorf("delta of a count is %s, must be 0", cost.Delta)
	case e < 0 || r < 0 || (e == 0) == (r == 0):
		return Noise{}, fmt.Errorf("cost is epsilon %s and rho %s, must name one of them, greater than 0", cost.Epsilon, cost.Rho)
	case e > 0:
		return rational(DiscreteLaplace, big.NewRat(s.L1, e), 1e6)
	}
	return rational(DiscreteGaussian, big.NewRat(s.L2Squared, r), 1e12/2)
}

// rational returns the noise of parameter value·unit.
func rational(kind NoiseKind, value *big.Rat, unit int64) (Noise, error) {
	value.Mul(value, new(big.Rat).SetInt64(unit))
	num, den := new(big.Int).Set(value.Num()), new(big.Int).Set(value.Denom())
	if excess := max(num.BitLen(), den.BitLen()) - 62; excess > 0 && kind == DiscreteGaussian {
		divisor := new(big.Int).Lsh(big.NewInt(1), uint(excess))
		if num.BitLen()-den.BitLen() > 31 {
			divisor.Set(den) // a whole number, the next: 2^-31 more at most
		}
		num.Add(num, divisor).Sub(num, big.NewInt(1)).Quo(num, divisor)
		den.Quo(den, divisor)
	}
	if !num.IsInt64() || !den.IsInt64() || den.Sign() == 0 {
		return Noise{}, fmt.Errorf("noise parameter is %s, out of range: the cost is too small for the rows of a unit", value.RatString())
	}
	return Noise{Kind: kind, Num: num.Int64(), Den: den.Int64()}, nil
}

func (n Noise) distribution() (noise.Distribution, error) {
	switch n.Kind {
	case DiscreteLaplace:
		return noise.New(noise.Laplace, n.Num, n.Den)
	case DiscreteGaussian:
		return noise.New(noise.Gaussian, n.Num, n.Den)
	}
	return noise.Distribution{}, fmt.Errorf("noise kind is %d, must be discrete Laplace or discrete Gaussian", n.Kind)
}

// check refuses every Spec that this package would not make.
func (s Spec) check() error {
	if err := s.checkShape(); err != nil {
		return err
	}
	_, err := s.Noise.distribution()
	return err
}

func (s Spec) checkShape() error {
	if s.Counters < 1 || s.Counters > MostCounters {
		return fmt.Errorf("number of counters is %d, must be from 1 to %d", s.Counters, MostCounters)
	}
	if s.Cells < 1 || s.Cells > MostCells {
		return fmt.Errorf("number of cells is %d, must be from 1 to %d", s.Cells, MostCells)
	}
	switch s.Strategy.Kind {
	case Identity:
		if len(s.Strategy.Radices) != 0 {
			return fmt.Errorf("radices of the identity strategy are %v, must be none", s.Strategy.Radices)
		}
	case Tree:
		if _, err := ranges.NewTree(s.Cells, s.Strategy.Radices); err != nil {
			return err
		}
	default:
		return fmt.Errorf("strategy is %d, must be identity or tree", s.Strategy.Kind)
	}
	if n := s.Counters * s.observed(); n > MostObservations {
		return fmt.Errorf("number of observations is %d, must be at most %d", n, MostObservations)
	}
	return nil
}

// observed returns the number of observations of one counter. The shape must have been checked.
func (s Spec) observed() int {
	if s.Strategy.Kind == Tree {
		return s.tree().Nodes()
	}
	return s.Cells
}

// tree returns the tree of a checked Spec.
func (s Spec) tree() ranges.Tree {
	t, err := ranges.NewTree(s.Cells, s.Strategy.Radices)
	if err != nil {
		panic("mechanisms: a tree that was never checked: " + err.Error())
	}
	return t
}
