package ladders

import (
	"fmt"
	"math"
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// GaussianStep leads from a level with discrete Gaussian noise to a coarser one. The zero value is invalid.
//
// Claim: with σ1² and σ2² the variance parameters of the coarse and the fine level, the coarse one has the law of
// discrete Gaussian noise of σ1², but for a factor in exp(±Near()) on the chance of every outcome. Source: Poisson
// summation, as for sums of discrete Gaussians in Kairouz, Liu, Steinke 2021 (whose bound is for equal parameters, and
// a little larger). Proof: a = σ2², b = τ² ≥ σ1² − σ2² drawn on top, v = ab/(a+b), μ = n·a/(a+b). Since k²/a + (n−k)²/b
// = n²/(a+b) + (k−μ)²/v, the sum is n with a chance in proportion to exp(−n²/(2(a+b)))·w(n), with w(n) = Σ_k
// exp(−(k−μ)²/(2v)), which is √(2πv)·(1 + 2 Σ_{j≥1} exp(−2π²v·j²)·cos(2πjμ)). So w(n) is in √(2πv)·[1−t, 1+t], t = 2
// Σ_j exp(−2π²v·j²), and the chance of n is that of the discrete Gaussian of a+b times w(n)/E[w], in [(1−t)/(1+t),
// (1+t)/(1−t)]. For v ≥ ½, t < 2.001·exp(−2π²v) < 1.1e-4, and ln((1+t)/(1−t)) ≤ 2.001·t < 5·exp(−2π²v). (1−t)/(1+t) and
// its inverse survive adding independent noise, so factors of steps one after the other multiply. Limits: τ² is rounded
// up where it does not fit into two int64, by at most 2^-29 of it: then the law is that of as much more noise. Noise is
// clipped as in package noise.
type GaussianStep struct {
	more noise.Distribution
	near float64
}

// NewGaussianStep returns the step from a level of the variance parameter fine to one of coarse.
func NewGaussianStep(coarse, fine Scale) (GaussianStep, error) {
	for _, s := range []Scale{coarse, fine} {
		if s.Num <= 0 || s.Den <= 0 {
			return GaussianStep{}, fmt.Errorf("variance of a level is %d/%d, must be above 0", s.Num, s.Den)
		}
	}
	a, sum := big.NewRat(fine.Num, fine.Den), big.NewRat(coarse.Num, coarse.Den)
	b := new(big.Rat).Sub(sum, a)
	if b.Sign() <= 0 {
		return GaussianStep{}, fmt.Errorf("variance of the coarser level is %d/%d, must be above %d/%d", coarse.Num, coarse.Den, fine.Num, fine.Den)
	}
	num, den, fits := noise.AtLeast(b)
	if !fits {
		return GaussianStep{}, fmt.Errorf("variance between two levels is %s, out of range", b.RatString())
	}
	more, err := noise.New(noise.Gaussian, num, den)
	if err != nil {
		return GaussianStep{}, err
	}
	v, _ := new(big.Rat).Quo(new(big.Rat).Mul(a, b), sum).Float64()
	if v < .5 {
		return GaussianStep{}, fmt.Errorf("variances of two levels are %d/%d and %d/%d, too near each other", coarse.Num, coarse.Den, fine.Num, fine.Den)
	}
	return GaussianStep{more, 5 * math.Exp(-2*math.Pi*math.Pi*v*(1-1e-9))}, nil
}

// Near bounds the logarithm of the factor by which chances differ from those of discrete Gaussian noise.
func (s GaussianStep) Near() float64 { return s.near }

// Draw returns the coarser level.
func (s GaussianStep) Draw(reader *noise.Reader, fine int64) int64 {
	return add(fine, s.more.Sample(reader))
}
