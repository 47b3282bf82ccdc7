package online

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/bits"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Distinguisher finds, privately, a query on which a public hypothesis is far off. It is made by NewDistinguisher; the
// zero value is refused.
type Distinguisher struct {
	queries    []Query
	moves      int64
	epsilon    privacy.Epsilon
	accountant privacy.Accountant
}

const maxQueries = 1 << 24

// NewDistinguisher checks a list of queries, given by the policy or the analyst and not by the rows.
func NewDistinguisher(queries []Query, c privacy.Contribution, accountant privacy.Accountant,
	epsilon privacy.Epsilon) (Distinguisher, error) {
	if len(queries) < 1 || len(queries) > maxQueries {
		return Distinguisher{}, fmt.Errorf("queries is %d, must be from 1 to %d", len(queries), maxQueries)
	}
	s := Spec{Cells: queries[0].cells, Contribution: c, Rows: 1, Updates: 1, Accountant: accountant}
	moves, err := s.check()
	if err != nil {
		return Distinguisher{}, err
	}
	if epsilon.Micro() < 1 || epsilon.Micro() > 1e9 {
		return Distinguisher{}, fmt.Errorf("epsilon is %s, must be greater than 0 and at most 1000", epsilon)
	}
	for _, q := range queries {
		if err := q.check(s.Cells); err != nil {
			return Distinguisher{}, err
		}
	}
	return Distinguisher{queries, moves, epsilon, accountant}, nil
}

// Cost is what one Farthest takes: ε, or ε²/8 under zCDP.
func (d Distinguisher) Cost() (privacy.Cost, error) {
	if len(d.queries) == 0 {
		return privacy.Cost{}, errUndistinguished
	}
	if d.accountant == privacy.Pure {
		return privacy.Cost{Epsilon: d.epsilon}, nil
	}
	return privacy.Cost{Rho: privacy.PicoRho((d.epsilon.Micro()*d.epsilon.Micro() + 7) / 8)}, nil
}

var errUndistinguished = errors.New("distinguisher was not made by NewDistinguisher")

// Farthest returns the number of a query whose guess is about as far off as any. Guesses are public whole numbers on
// whole rows, one a query.
//
// Claim: ε-DP under the pure accountant, ε²/8-zCDP under zCDP.
// Neighbours: as at instance. Sensitivity: the score |q(D) − guess| moves by at most s = moves.
// Theorem: permute-and-flip with acceptance exp(−ε(best − score)/2s) is ε-DP and never worse than the exponential
// mechanism (McKenna, Sheldon 2020). The exponential mechanism, ∝ exp(ε·score/2s), has a privacy loss of range ε and is
// ε²/8-zCDP (Dong, Durfee, Rogers 2020; Cesar, Rogers 2021).
// Proof: scores are integers. Pure: queries are taken in a uniform order, each accepted with its exact probability; the
// best one is accepted for certain. zCDP: uniform proposals, accepted likewise, until one is: the accepted query has
// probability ∝ exp(−ε(best − score)/2s) exactly.
// Limits: the time depends on the scores.
func (d Distinguisher) Farthest(guesses []int64, truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[int], error) {
	var none privacy.Released[int]
	if err := d.ready(guesses, truth); err != nil {
		return none, err
	}
	reader := noise.NewReader(random)
	scores, best := d.scores(guesses, truth)
	accepts := func(i int) bool { return d.accepts(reader, best-scores[i]) }
	chosen := 0
	if d.accountant == privacy.Pure {
		chosen = permuteAndFlip(reader, len(scores), accepts)
	} else {
		for chosen = int(reader.Below(uint64(len(scores)))); !accepts(chosen) && reader.Err() == nil; {
			chosen = int(reader.Below(uint64(len(scores))))
		}
	}
	if err := reader.Err(); err != nil {
		return none, err
	}
	return sealed.Release(chosen), nil
}

func (d Distinguisher) ready(guesses []int64, truth privacy.Sensitive[[]int64]) error {
	switch {
	case len(d.queries) == 0:
		return errUndistinguished
	case len(guesses) != len(d.queries):
		return fmt.Errorf("guesses is %d, must be %d, one a query", len(guesses), len(d.queries))
	case !truth.Valid():
		return errors.New("truth was never sealed")
	}
	for _, g := range guesses {
		if g < 0 || g > maxCount {
			return fmt.Errorf("guess is %d, must be from 0 to %d", g, int64(maxCount))
		}
	}
	return nil
}

func (d Distinguisher) scores(guesses []int64, truth privacy.Sensitive[[]int64]) (scores []int64, best int64) {
	cells := sealed.Open(truth)
	scores = make([]int64, len(guesses))
	for i, q := range d.queries {
		gap := q.sum(cells) - guesses[i]
		scores[i] = max(gap, -gap)
		best = max(best, scores[i])
	}
	return scores, best
}

// accepts is true with probability exp(−ε·behind/2s).
func (d Distinguisher) accepts(random *noise.Reader, behind int64) bool {
	high, low := bits.Mul64(uint64(behind), uint64(d.epsilon.Micro()))
	under := uint64(d.moves) * 2_000_000
	if high == 0 {
		return random.ExpMinusRatio(low, under)
	}
	x := new(big.Int).Mul(big.NewInt(behind), big.NewInt(d.epsilon.Micro()))
	return random.ExpMinus(new(big.Rat).SetFrac(x, new(big.Int).SetUint64(under)))
}

func permuteAndFlip(random *noise.Reader, n int, accepts func(int) bool) int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	for left := n; left > 1; left-- {
		at := random.Below(uint64(left))
		if accepts(order[at]) || random.Err() != nil {
			return order[at]
		}
		order[at] = order[left-1]
	}
	return order[0]
}

// Reach returns F such that Farthest's choice is within F rows of the farthest query, but for the probability miss.
func (d Distinguisher) Reach(miss noise.Probability) int64 {
	if len(d.queries) == 0 || checkMiss(miss) != nil {
		return 0
	}
	rows := float64(d.moves)
	return int64(math.Ceil(2 * rows / d.epsilon.Float() * (math.Log(float64(len(d.queries))) - math.Log(float64(miss)))))
}

// First goes through the queries in order and returns the first that is about 2F or further off, F = SparseReach, or
// −1.
//
// Claim: ε-DP, and so ε²/2-zCDP, whatever the order: SparseDistinguish of the lecture notes. Proof: an instance with c
// = 1, ε₁ = ε/3 and ε₂ = 2ε/3 (rounded down), of which no answer is given; see there. Limits: its cost under zCDP is
// four times that of Farthest, and its reach is longer. It is here because an analyst who asks in some order is such a
// loop: a Session.
func (d Distinguisher) First(guesses []int64, miss noise.Probability, truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[int], error) {
	var none privacy.Released[int]
	if err := d.ready(guesses, truth); err != nil {
		return none, err
	}
	if err := checkMiss(miss); err != nil {
		return none, err
	}
	n, err := d.instance(miss)
	if err != nil {
		return none, err
	}
	reader := noise.NewReader(random)
	truth = snapshot(truth)
	for i, q := range d.queries {
		comparison, err := n.draw(reader)
		if err != nil {
			return none, err
		}
		if hard, _ := n.observe(q, guesses[i], truth, comparison); hard {
			return sealed.Release(i), nil
		}
	}
	return sealed.Release(-1), nil
}

// sparseCost is what one First takes: ε, or ε²/2 under zCDP.
func (d Distinguisher) sparseCost() privacy.Cost {
	if d.accountant == privacy.Pure {
		return privacy.Cost{Epsilon: d.epsilon}
	}
	return privacy.Cost{Rho: privacy.PicoRho((d.epsilon.Micro()*d.epsilon.Micro() + 1) / 2)}
}

func (d Distinguisher) instance(miss noise.Probability) (*instance, error) {
	first := d.epsilon.Micro() / 3
	if first < 1 {
		return nil, fmt.Errorf("epsilon is %s, must be at least 0.000003", d.epsilon)
	}
	threshold, err := noise.New(noise.Laplace, d.moves*1_000_000, first)
	if err != nil {
		return nil, err
	}
	comparison, err := noise.New(noise.Laplace, d.moves*2_000_000, d.epsilon.Micro()-first)
	if err != nil {
		return nil, err
	}
	above := 2 * d.SparseReach(miss)
	if above > maxCount {
		return nil, fmt.Errorf("epsilon is %s, must be larger", d.epsilon)
	}
	return &instance{sources: sources{threshold, comparison, comparison}, above: above}, nil
}

// SparseReach returns F such that First, but for the probability miss, chooses no query less than F rows off, and some
// query if one is 3F or more off: |threshold noise| + |any comparison noise| ≤ F by a union bound.
func (d Distinguisher) SparseReach(miss noise.Probability) int64 {
	if len(d.queries) == 0 || checkMiss(miss) != nil {
		return 0
	}
	rows, third := float64(d.moves), float64(max(1, d.epsilon.Micro()/3))/1e6
	half := math.Log(2 / float64(miss))
	return int64(math.Ceil(rows / third * (math.Log(float64(len(d.queries))) + 2*half)))
}
