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

// The largest specs.
const (
	MaxPositives   = 1 << 20
	MaxSensitivity = 1 << 32
	maxProduct     = 1 << 32 // positives times sensitivity
)

// Spec is what is declared of a sparse vector, all of it public.
type Spec struct {
	Positives   int          // answers "above" until the end, c
	Restarts    int          // how often it may be restored; only under an ε, of which each takes a share
	Sensitivity int64        // how far a unit moves a query's count, Δ
	Monotone    bool         // a unit moves all queries the same way: counts under add-remove
	Cost        privacy.Cost // of all answers: ε, or ρ
}

// Mechanism is a checked Spec with its noise. It is public and immutable; the zero value is invalid.
type Mechanism struct {
	spec       Spec
	refreshed  bool // a threshold for each positive, else one (and one for each restart)
	threshold  noise.Distribution
	comparison noise.Distribution
	offset     int64 // of the comparison's mean noise above the threshold's
}

// New checks a spec and finds its noise.
//
// An ε is split once: kept thresholds, ε1 of them and ε2 for the positives. A ρ is split evenly among the positives,
// each an AboveThreshold of its own with ε0 = √(2ρ/c), which is ε0²/2-zCDP (Bun and Steinke 2016, proposition 1.4): the
// noise then grows with √c rather than c. Noise is of one side, from 0 up, less a public constant, which is √2 narrower
// than Laplace noise of the same cost.
func New(s Spec) (Mechanism, error) {
	if err := s.check(); err != nil {
		return Mechanism{}, err
	}
	m := Mechanism{spec: s, refreshed: s.Cost.Rho.Pico() > 0}
	nano := s.Cost.Epsilon.Micro() * 1000
	runs, positives := int64(1+s.Restarts), int64(s.Positives)
	if m.refreshed {
		square := new(big.Int).Mul(big.NewInt(s.Cost.Rho.Pico()), big.NewInt(2e6))
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
		return Mechanism{}, fmt.Errorf("cost is %v for %d positives, too small to be split", s.Cost, s.Positives)
	}
	var err error
	if m.threshold, err = laplace(runs*s.Sensitivity, first); err != nil {
		return Mechanism{}, err
	}
	if m.comparison, err = laplace(positives*s.Sensitivity, nano-first); err != nil {
		return Mechanism{}, err
	}
	m.offset = int64(math.Round(geometricMean(m.comparison) - geometricMean(m.threshold)))
	return m, nil
}

func (s Spec) check() error {
	epsilon, rho := s.Cost.Epsilon.Micro(), s.Cost.Rho.Pico()
	switch {
	case s.Positives < 1 || s.Positives > MaxPositives:
		return fmt.Errorf("positives is %d, must be from 1 to %d", s.Positives, MaxPositives)
	case s.Restarts < 0 || s.Restarts >= s.Positives:
		return fmt.Errorf("restarts is %d, must be from 0 to %d: each takes a positive", s.Restarts, s.Positives-1)
	case s.Restarts > 0 && rho > 0:
		return errors.New("restarts is set, must be 0 for a ρ: every positive has a threshold of its own there")
	case s.Sensitivity < 1 || s.Sensitivity > MaxSensitivity:
		return fmt.Errorf("sensitivity is %d, must be from 1 to %d", s.Sensitivity, int64(MaxSensitivity))
	case int64(s.Positives) > maxProduct/s.Sensitivity:
		return fmt.Errorf("positives is %d with sensitivity %d, must be together at most %d", s.Positives, s.Sensitivity, int64(maxProduct))
	case s.Cost.Delta != (privacy.Delta{}):
		return fmt.Errorf("delta is %v, must be 0", s.Cost.Delta)
	case epsilon < 0 || rho < 0 || (epsilon == 0) == (rho == 0):
		return fmt.Errorf("cost is ε %v and ρ %v, must be greater than 0 in one of the two and 0 in the other",
			s.Cost.Epsilon, s.Cost.Rho)
	case epsilon > 1e12 || rho > 1e18:
		return fmt.Errorf("cost is %v, must be at most 1000000", s.Cost)
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

var errNotMade = errors.New("sparse vector was not made by New")
