package synthetic

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/selection"
)

// Weights is MWEM: in each round it chooses a query that its distribution answers badly, measures that, and fits the
// distribution to all measurements so far. The zero value is invalid.
type Weights struct {
	queries   Queries
	total     int64 // N
	rounds    int
	rule      selection.Rule
	rate      selection.Rate
	measure   noise.Distribution
	measuring privacy.Cost // of one measurement
}

// MaxRounds bounds the rounds.
const MaxRounds = 1 << 12

// NewWeights returns the mechanism of a number of rounds at a cost, ε or ρ; n must be public, as in Total. Each round
// spends one half on choosing, one on measuring.
func NewWeights(q Queries, n Total, rounds int, c privacy.Contribution, cost privacy.Cost) (Weights, error) {
	if q.Len() == 0 {
		return Weights{}, errNoQueries
	}
	if n < 1 || n > maxRows {
		return Weights{}, fmt.Errorf("total is %d, must be from 1 to %d", n, int64(maxRows))
	}
	if rounds < 1 || rounds > MaxRounds {
		return Weights{}, fmt.Errorf("number of rounds is %d, must be from 1 to %d", rounds, MaxRounds)
	}
	if _, err := selection.Calibrate(selection.RuleFor(cost), 1, cost); err != nil {
		return Weights{}, err
	}
	w := Weights{queries: q, total: int64(n), rounds: rounds}
	choices := 2 * int64(rounds)
	w.measuring = privacy.Cost{Epsilon: privacy.MicroEpsilon(cost.Epsilon.Micro() / choices), Rho: privacy.PicoRho(cost.Rho.Pico() / choices)}
	if w.measuring.IsZero() {
		return Weights{}, fmt.Errorf("cost is %s, too little for %d rounds", cost, rounds)
	}
	var err error
	if w.rule, w.rate, err = chooser(c, w.measuring, 1); err != nil {
		return Weights{}, err
	}
	if w.measure, err = observation(c.Rows, w.measuring); err != nil {
		return Weights{}, err
	}
	return w, nil
}

// Rounds returns a number of rounds that is good for a public guess of the number of rows: (nε)^(1/3) times 0.65 for ε
// and, with ε = √(2ρ), 1.6 for ρ, where a round more costs less. Found on two columns of the Adult extract, at 4096
// cells, 1e3 to 1e5 rows; the error is flat around it, within 1.5 of the best on either.
func Rounds(n Total, cost privacy.Cost) int {
	factor, e := .65, cost.Epsilon.Float()
	if cost.Rho.Pico() > 0 {
		factor, e = 1.6, math.Sqrt(2*cost.Rho.Float())
	}
	return int(min(max(math.Round(factor*math.Cbrt(float64(n)*e)), 1), MaxRounds))
}

// observation returns the noise of one number that a unit moves by at most rows: scale rows/ε, or σ² = rows²/(2ρ).
func observation(rows int64, cost privacy.Cost) (noise.Distribution, error) {
	kind, parameter := noise.Laplace, big.NewRat(rows, 1)
	if e := cost.Epsilon.Micro(); e != 0 {
		parameter.Mul(parameter, big.NewRat(1e6, e))
	} else {
		kind = noise.Gaussian
		parameter.Mul(parameter, parameter).Mul(parameter, big.NewRat(1e12/2, cost.Rho.Pico()))
	}
	if !parameter.Num().IsInt64() || !parameter.Denom().IsInt64() {
		return noise.Distribution{}, fmt.Errorf("noise parameter is %s, out of range: the cost is too small for the rows of a unit", parameter.FloatString(0))
	}
	return noise.New(kind, parameter.Num().Int64(), parameter.Denom().Int64())
}

// Release runs the rounds and returns the fitted distribution, scaled to the total.
//
// Claim: ε-DP, or ρ-zCDP, as the cost says. Neighbours: add-remove and replace-one of a unit with at most R rows.
// Sensitivity: a query's answer q(D) moves by at most R under both. A score |q(D) − a|, a being the distribution's
// answer rounded to a whole number, moves by at most R, two scores apart by at most 2R.
// Theorem: Hardt, Ligett, McSherry 2012, with the choice by permute-and-flip (ε) or the exponential mechanism
// (ρ = ε²/8). Proof: the t-th choice is package selection's draw on exact whole scores;
// what they are compared with is a function of what was released before. The t-th measurement adds discrete Laplace
// noise of scale R/ε_t, or discrete Gaussian noise of σ² = R²/(2ρ_t), to one number. So the 2T releases compose
// adaptively and their costs, each rounded down from its share, add up to no more than the cost. The fit sees only what
// was released. Limits: the floats of the fit are post-processing. n is public, and a guess of it is safe. Time does not
// depend on the rows but through the draws' trials.
func (w Weights) Release(truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[Database], error) {
	var none privacy.Released[Database]
	if w.rounds == 0 {
		return none, errNotMade
	}
	if !truth.Valid() {
		return none, errors.New("truth was never sealed")
	}
	answers := w.queries.truth(sealed.Open(truth))
	reader := noise.NewReader(random)
	total := float64(w.total)
	fit := newFit(w.queries, total)
	for range w.rounds {
		chosen, err := selection.Draw(w.rule, badness(answers, fit.answers()), w.rate, reader)
		if err != nil {
			return none, err
		}
		fit.add(chosen, float64(answers[chosen]+min(max(w.measure.Sample(reader), -1<<61), 1<<61))) // answers are at most 2^50
	}
	if err := reader.Err(); err != nil {
		return none, err
	}
	return sealed.Release(Database{fit.result(), total}), nil
}

// badness returns how much less each query is off than the worst one.
func badness(answers []int64, fitted []float64) []uint64 {
	scores := make([]int64, len(answers))
	for i, a := range answers {
		public := int64(math.Round(min(max(fitted[i], 0), maxAnswer)))
		scores[i] = max(a-public, public-a)
	}
	return selection.Losses(scores)
}
