package ladders

import (
	"errors"
	"fmt"
	"io"
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Observer adds discrete Gaussian noise of σ² = L2²/(2ρ) to cells. The zero value is invalid.
type Observer struct {
	rho   privacy.Rho
	noise noise.Distribution
}

// NewObserver returns the observer that costs ρ for cells that one unit can move by s.L2Squared together.
func NewObserver(s privacy.Sensitivity, rho privacy.Rho) (Observer, error) {
	if rho.Pico() <= 0 {
		return Observer{}, fmt.Errorf("rho is %s, must be greater than 0", rho)
	}
	if s.L2Squared < 1 {
		return Observer{}, fmt.Errorf("squared L2 sensitivity is %d, must be greater than 0", s.L2Squared)
	}
	v := big.NewRat(s.L2Squared, rho.Pico())
	v.Mul(v, big.NewRat(1e12/2, 1))
	if !v.Num().IsInt64() || !v.Denom().IsInt64() {
		return Observer{}, fmt.Errorf("variance is %s, out of range: rho is too small for the sensitivity", v.RatString())
	}
	d, err := noise.New(noise.Gaussian, v.Num().Int64(), v.Denom().Int64())
	if err != nil {
		return Observer{}, err
	}
	return Observer{rho, d}, nil
}

// Finer returns the observer that brings what was seen at o's ρ to the ρ wanted, for the difference.
func (o Observer) Finer(s privacy.Sensitivity, wanted privacy.Rho) (Observer, error) {
	if !o.noise.Valid() {
		return Observer{}, errors.New("observer was not made by NewObserver")
	}
	if wanted.Pico() <= o.rho.Pico() {
		return Observer{}, fmt.Errorf("wanted rho is %s, must be greater than %s, which is paid", wanted, o.rho)
	}
	return NewObserver(s, privacy.PicoRho(wanted.Pico()-o.rho.Pico()))
}

// Cost returns what an observation costs.
func (o Observer) Cost() privacy.Cost { return privacy.Cost{Rho: o.rho} }

// Observation is noisy cells and the variance of each.
type Observation struct {
	Values   []float64
	Variance float64
}

// Observe draws an observation.
//
// Claim: ρ-zCDP (Canonne, Kamath, Steinke 2020, Theorem 4), and several observations, of any ρ, cost their sum.
// Neighbours and sensitivity: those of L2Squared that NewObserver was given.
// Proof: independent discrete Gaussian noise of σ² = L2²/(2ρ) on integers at a squared distance of at most L2²; each
// observation draws its own.
func (o Observer) Observe(truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[Observation], error) {
	var none privacy.Released[Observation]
	if !o.noise.Valid() {
		return none, errors.New("observer was not made by NewObserver")
	}
	if !truth.Valid() {
		return none, errors.New("truth was never sealed")
	}
	cells := sealed.Open(truth)
	reader := noise.NewReader(random)
	values := make([]float64, len(cells))
	for i, c := range cells {
		values[i] = float64(add(min(max(c, 0), mostCount), o.noise.Sample(reader))) // rounded after the noise
	}
	if err := reader.Err(); err != nil {
		return none, err
	}
	return sealed.Release(Observation{values, o.noise.Variance()}), nil
}

// Combine weighs observations of the same data by the inverse of their variances: the best unbiased estimate. Two at ρ1
// and ρ2 − ρ1 have together the variance of one at ρ2, as 1/σ² = 2ρ/L2² adds up. It is post-processing.
func Combine(observations ...privacy.Released[Observation]) (privacy.Released[Observation], error) {
	var none privacy.Released[Observation]
	if len(observations) == 0 {
		return none, errors.New("number of observations is 0, must be at least 1")
	}
	precision := 0.0
	var sum []float64
	for i, o := range observations {
		if !o.Valid() {
			return none, fmt.Errorf("observation %d was never released", i)
		}
		v := o.Value()
		if sum == nil {
			sum = make([]float64, len(v.Values))
		}
		if len(v.Values) != len(sum) {
			return none, fmt.Errorf("observation %d has %d cells, must have %d like the first", i, len(v.Values), len(sum))
		}
		if !(v.Variance > 0) {
			return none, fmt.Errorf("observation %d has variance %g, must be greater than 0", i, v.Variance)
		}
		precision += 1 / v.Variance
		for j, x := range v.Values {
			sum[j] += x / v.Variance
		}
	}
	for j := range sum {
		sum[j] /= precision
	}
	return sealed.Release(Observation{sum, 1 / precision}), nil
}
