package selection

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// MaxTop is the largest k.
const MaxTop = 1 << 10

const maxFlips = 1 << 23

// Method names how the best k are drawn.
type Method uint8

// The methods. The zero value is invalid.
const (
	Gumbel  Method = 1 + iota // k exponential mechanisms, each on what is left: one Gumbel noise each, the k largest
	Peeling                   // k times permute-and-flip, each on what is left
	Bins                      // noise on every count, the k largest: the cost does not know k
)

func (m Method) String() string {
	return [...]string{"invalid", "Gumbel", "peeling", "bins"}[m]
}

// Top draws the best k candidates in order. It is public and immutable; the zero value is invalid.
type Top struct {
	scores Scores
	method Method
	k      int
	rate   Rate               // but for Bins
	noise  noise.Distribution // Bins
}

// NewTop calibrates a method to a cost, which names ε or ρ. Bins needs Counts.
func NewTop(method Method, k int, scores Scores, c privacy.Contribution, cost privacy.Cost) (Top, error) {
	if method < Gumbel || method > Bins {
		return Top{}, fmt.Errorf("method is %d, must be Gumbel, peeling or bins", method)
	}
	spread, err := scores.Spread(c)
	if err != nil {
		return Top{}, err
	}
	if most := min(MaxTop, scores.candidates); k < 1 || k > most {
		return Top{}, fmt.Errorf("k is %d, must be from 1 to %d", k, most)
	}
	t := Top{scores: scores, method: method, k: k}
	if method == Bins {
		return t.binned(c, cost)
	}
	strength, err := strengthOf(cost, int64(k), t.divisor())
	if err != nil {
		return Top{}, err
	}
	t.rate = strength.rate(spread)
	return t, nil
}

// ChooseTop returns the method with the least bound of the loss at confidence 19 in 20 (see LossBound), of equal ones
// peeling: permute-and-flip is never worse than the exponential mechanism at the same ε. Above maxFlips coins, some
// tenths of a second, peeling is not looked at.
func ChooseTop(k int, scores Scores, c privacy.Contribution, cost privacy.Cost) (Top, error) {
	best, least, first := Top{}, 0.0, error(nil)
	for _, method := range []Method{Peeling, Gumbel, Bins} {
		if method == Peeling && k > maxFlips/max(1, scores.candidates) {
			continue
		}
		t, err := NewTop(method, k, scores, c, cost)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		loss := t.LossBound(.05)
		if best.method == 0 || loss < least {
			best, least = t, loss
		}
	}
	if best.method == 0 {
		return Top{}, first
	}
	return best, nil
}

// Method returns the method.
func (t Top) Method() Method { return t.method }

func (t Top) divisor() int64 {
	if t.method == Peeling {
		return pureOnly
	}
	return boundedRange
}

// binned calibrates noise for all counts together.
func (t Top) binned(c privacy.Contribution, cost privacy.Cost) (Top, error) {
	if t.scores.kind != counts {
		return Top{}, errors.New("scores of bins must be counts of disjoint cells")
	}
	c, err := bounded(c)
	if err != nil {
		return Top{}, err
	}
	if _, err := strengthOf(cost, 1, pureOnly); err != nil {
		return Top{}, err
	}
	twice := int64(1)
	if c.Neighbors == privacy.ReplaceOne && t.scores.cells > 1 {
		twice = 2
	}
	if epsilon := cost.Epsilon.Micro(); epsilon > 0 {
		t.noise, err = noise.New(noise.Laplace, c.Rows*twice*1e6, epsilon)
		return t, err
	}
	variance := new(big.Rat).SetFrac(big.NewInt(1e12), new(big.Int).Mul(big.NewInt(2), big.NewInt(cost.Rho.Pico())))
	squared := new(big.Int).Mul(big.NewInt(c.PerGroup), big.NewInt(c.Rows*twice))
	variance.Mul(variance, new(big.Rat).SetInt(squared))
	if !variance.Num().IsInt64() || !variance.Denom().IsInt64() {
		return Top{}, fmt.Errorf("rows a unit is %d in one cell, too many for the cost", c.PerGroup)
	}
	t.noise, err = noise.New(noise.Gaussian, variance.Num().Int64(), variance.Denom().Int64())
	return t, err
}

// Select opens the sealed cells and returns the numbers of the drawn candidates, best first.
//
// Claim: ε-DP, or ρ-zCDP, for the cost that NewTop was given. Neighbours and sensitivity: those of the contribution;
// see Scores.Spread. Theorem and proof: Gumbel and Peeling are k draws as in Mechanism.Select, each from a list that
// the ones before decide: adaptive composition, and a sublist's spread is no larger. Bins: a unit has at most R rows in
// disjoint cells, together and at most P in one, so neighbours' counts are at most R apart in L1 and √(P·R) in L2 (Σa²
// ≤ P·Σa); twice, and √2 times, under replace-one, where the two units' rows are vectors a, b ≥ 0 with |a−b|² ≤
// |a|²+|b|². Discrete Laplace noise of scale L1/ε, discrete Gaussian noise of σ² = L2²/2ρ on all counts is ε-DP,
// ρ-zCDP; the order of the noisy counts is post-processing. Nothing depends on k. Limits: as Mechanism.Select.
func (t Top) Select(truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[[]int], error) {
	var none privacy.Released[[]int]
	switch {
	case t.method == 0:
		return none, errNotMade
	case !truth.Valid():
		return none, errors.New("truth was never sealed")
	}
	reader := noise.NewReader(random)
	losses := Losses(t.scores.of(sealed.Open(truth)))
	chosen := []int(nil)
	switch t.method {
	case Gumbel:
		chosen = peelExponential(losses, t.k, t.rate, fewCandidates, reader)
	case Peeling:
		chosen = peelFlip(losses, t.k, t.rate, reader)
	default:
		chosen = t.largest(losses, reader)
	}
	if err := reader.Err(); err != nil {
		return none, err
	}
	return sealed.Release(chosen), nil
}

// largest adds noise to every candidate and returns the k largest, equal ones by number.
func (t Top) largest(losses []uint64, random *noise.Reader) []int {
	noisy := make([]uint64, len(losses))
	for i, loss := range losses {
		n := min(max(t.noise.Sample(random), -MaxScore), MaxScore)
		noisy[i] = uint64(int64(loss) - n + MaxScore)
	}
	order := byLoss(noisy)
	chosen := make([]int, t.k)
	for i := range chosen {
		chosen[i] = int(order[i])
	}
	return slices.Clip(chosen)
}
