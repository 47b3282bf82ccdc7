// Package sparse tells, for a stream of counting queries that may depend on the answers so far, which of them are above
// a threshold, and pays only for those that are: the sparse vector technique, AboveThreshold repeated. Noise and
// comparisons are integers. Where all queries are known beforehand, selection's exponential mechanism finds the large
// ones with less noise (Lyu, Su, Li 2017); this package is for questions that come one by one.
package sparse

import (
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Shape names the noise of the comparisons.
type Shape uint8

// The shapes. Geometric has one side, from 0 up, less a public constant; it is √2 narrower at the same cost. The zero
// value is invalid.
const (
	Geometric Shape = 1 + iota
	Laplace
)

// The largest specs.
const (
	MaxPositives   = 1 << 20
	MaxSensitivity = 1 << 32
	maxProduct     = 1 << 32 // positives times sensitivity
)

// Spec is what is declared of a sparse vector, all of it public.
type Spec struct {
	Positives   int          // answers "above" until the end, c
	Restarts    int          // how often it may be restored; only under an ε for Bits, where each takes a share of it
	Sensitivity int64        // how far a unit moves a query's count, Δ
	Monotone    bool         // a unit moves all queries the same way: counts under add-remove
	Shape       Shape        // Geometric is the better
	Bits        privacy.Cost // of above or below: ε, or ρ
	Values      privacy.Cost // of a number with each "above": ε (Laplace), ρ (Gaussian) or nothing
}

// Mechanism is a checked Spec with its noise. It is public and immutable; the zero value is invalid.
type Mechanism struct {
	spec       Spec
	refreshed  bool     // a threshold for each positive, else one (and one for each restart)
	epsilons   [2]int64 // of the thresholds, and of the comparisons, of one run or of the whole, in 1e-9
	threshold  noise.Distribution
	comparison noise.Distribution
	value      noise.Distribution // valid where values are released
	offset     int64              // of the comparison's mean noise above the threshold's
}

// New checks a spec and finds its noise.
//
// An ε for the bits is split once: kept thresholds, ε1 of them and ε2 for the positives. A ρ is split evenly among the
// positives, each an AboveThreshold of its own with ε0 = √(2ρ/c): the noise then grows with √c rather than c.
func New(s Spec) (Mechanism, error) {
	if err := s.check(); err != nil {
		return Mechanism{}, err
	}
	m := Mechanism{spec: s, refreshed: s.Bits.Rho.Pico() > 0}
	nano := s.Bits.Epsilon.Micro() * 1000
	runs, positives := int64(1+s.Restarts), int64(s.Positives)
	if m.refreshed {
		square := new(big.Int).Mul(big.NewInt(s.Bits.Rho.Pico()), big.NewInt(2e6))
		nano = square.Div(square, big.NewInt(positives)).Sqrt(square).Int64()
		runs, positives = 1, 1
	}
	if !s.Monotone {
		positives *= 2
	}
	// The comparison's variance, ∝ (runs/ε1)² + (positives/ε2)², is least at ε1 : ε2 = runs^⅔ : positives^⅔ (Lyu, Su,
	// Li 2017).
	share := 1 / (1 + math.Pow(float64(positives)/float64(runs), 2./3))
	first := int64(math.Round(float64(nano) * share))
	if first < 1 || first >= nano {
		return Mechanism{}, fmt.Errorf("cost of bits is %v for %d positives, too small to be split", s.Bits, s.Positives)
	}
	m.epsilons = [2]int64{first, nano - first}
	var err error
	if m.threshold, err = laplace(runs*s.Sensitivity, m.epsilons[0]); err != nil {
		return Mechanism{}, err
	}
	if m.comparison, err = laplace(positives*s.Sensitivity, m.epsilons[1]); err != nil {
		return Mechanism{}, err
	}
	if s.Shape == Geometric {
		m.offset = int64(math.Round(geometricMean(m.comparison) - geometricMean(m.threshold)))
	}
	if s.Values != (privacy.Cost{}) {
		m.value, err = s.valueNoise()
	}
	return m, err
}

func (s Spec) check() error {
	switch {
	case s.Positives < 1 || s.Positives > MaxPositives:
		return fmt.Errorf("positives is %d, must be from 1 to %d", s.Positives, MaxPositives)
	case s.Restarts < 0 || s.Restarts >= s.Positives:
		return fmt.Errorf("restarts is %d, must be from 0 to %d: each takes a positive", s.Restarts, s.Positives-1)
	case s.Restarts > 0 && s.Bits.Rho.Pico() > 0:
		return errors.New("restarts is set, must be 0 for a ρ: every positive has a threshold of its own there")
	case s.Sensitivity < 1 || s.Sensitivity > MaxSensitivity:
		return fmt.Errorf("sensitivity is %d, must be from 1 to %d", s.Sensitivity, int64(MaxSensitivity))
	case int64(s.Positives) > maxProduct/s.Sensitivity:
		return fmt.Errorf("positives is %d with sensitivity %d, must be together at most %d", s.Positives, s.Sensitivity, int64(maxProduct))
	case s.Shape != Geometric && s.Shape != Laplace:
		return fmt.Errorf("shape is %d, must be geometric or Laplace", s.Shape)
	}
	if err := checkCost("bits", s.Bits); err != nil {
		return err
	}
	if s.Values == (privacy.Cost{}) {
		return nil
	}
	return checkCost("values", s.Values)
}

func checkCost(of string, c privacy.Cost) error {
	epsilon, rho := c.Epsilon.Micro(), c.Rho.Pico()
	switch {
	case c.Delta.Atto() != 0:
		return fmt.Errorf("delta of the cost of %s is %v, must be 0", of, c.Delta)
	case epsilon < 0 || rho < 0 || (epsilon == 0) == (rho == 0):
		return fmt.Errorf("cost of %s is ε %v and ρ %v, must be greater than 0 in one of the two and 0 in the other", of, c.Epsilon, c.Rho)
	case epsilon > 1e12 || rho > 1e18:
		return fmt.Errorf("cost of %s is %v, must be at most 1000000", of, c)
	}
	return nil
}

// laplace returns discrete Laplace noise of scale moved·1e9/nano.
func laplace(moved, nano int64) (noise.Distribution, error) {
	scale := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(moved), big.NewInt(1e9)), big.NewInt(nano))
	if !scale.Num().IsInt64() {
		return noise.Distribution{}, fmt.Errorf("noise scale is %s, too large", scale.FloatString(0))
	}
	return noise.New(noise.Laplace, scale.Num().Int64(), scale.Denom().Int64())
}

// valueNoise is for c numbers that move by Δ each: Laplace of scale c·Δ/ε, or Gaussian of σ² = c·Δ²/(2ρ).
func (s Spec) valueNoise() (noise.Distribution, error) {
	c := int64(s.Positives)
	if epsilon := s.Values.Epsilon.Micro(); epsilon > 0 {
		return laplace(c*s.Sensitivity, epsilon*1000)
	}
	squared := new(big.Int).Mul(big.NewInt(c*s.Sensitivity), big.NewInt(s.Sensitivity))
	variance := new(big.Rat).SetFrac(squared.Mul(squared, big.NewInt(1e12)), new(big.Int).Mul(big.NewInt(2), big.NewInt(s.Values.Rho.Pico())))
	if !variance.Num().IsInt64() || !variance.Denom().IsInt64() {
		return noise.Distribution{}, fmt.Errorf("sensitivity is %d for %d values, too large for their cost %v", s.Sensitivity, s.Positives, s.Values)
	}
	return noise.New(noise.Gaussian, variance.Num().Int64(), variance.Denom().Int64())
}

// Cost returns what opening takes from a budget, whatever will be asked, rounded up.
//
// Bits: ε1 + ε2 once, or c times where thresholds are refreshed; as ρ, ε²/2 of each (Bun and Steinke 2016, proposition
// 1.4). Values: c Laplace numbers of ε/c each are ε, or c·(ε/c)²/2; Gaussian ones ρ alone.
func (m Mechanism) Cost(a privacy.Accountant) (privacy.Cost, error) {
	if m.spec.Positives == 0 {
		return privacy.Cost{}, errNotMade
	}
	whole, runs := big.NewInt(m.epsilons[0]+m.epsilons[1]), big.NewInt(1)
	if m.refreshed {
		runs.SetInt64(int64(m.spec.Positives))
	}
	switch a {
	case privacy.Pure:
		if m.spec.Values.Rho.Pico() > 0 {
			return privacy.Cost{}, errors.New("accountant is pure, must be zcdp for Gaussian values")
		}
		bits := ceil(new(big.Int).Mul(whole, runs), 1000)
		return privacy.Cost{Epsilon: privacy.MicroEpsilon(bits)}.Plus(m.spec.Values), nil
	case privacy.ZCDP:
		bits := privacy.PicoRho(ceil(whole.Mul(whole, whole).Mul(whole, runs), 2e6))
		values := m.spec.Values.Rho
		if epsilon := m.spec.Values.Epsilon.Micro(); epsilon > 0 {
			square := new(big.Int).Mul(big.NewInt(epsilon), big.NewInt(epsilon))
			values = privacy.PicoRho(ceil(square, 2*int64(m.spec.Positives)))
		}
		return privacy.Cost{Rho: bits}.Plus(privacy.Cost{Rho: values}), nil
	}
	return privacy.Cost{}, errors.New("accountant is invalid, must be pure or zcdp")
}

var errNotMade = errors.New("sparse vector was not made by New")

func ceil(a *big.Int, b int64) int64 {
	q := new(big.Int).Add(a, big.NewInt(b-1))
	if q.Div(q, big.NewInt(b)); q.IsInt64() && q.Int64() <= 1e18 {
		return q.Int64()
	}
	return 2e18 // more than any budget, of which the largest is 1e18
}

// String names the mechanism in full: what is saved of an instance can be restored under the same alone.
func (m Mechanism) String() string {
	s := m.spec
	return fmt.Sprintf("sparse positives %d restarts %d sensitivity %d monotone %v shape %d bits %v values %v", s.Positives, s.Restarts, s.Sensitivity, s.Monotone, s.Shape, s.Bits, s.Values)
}
