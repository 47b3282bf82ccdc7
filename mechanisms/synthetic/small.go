package synthetic

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/selection"
)

// Small is the small database mechanism: of a public set of candidate databases of m rows each, one whose answers,
// scaled to the size of the true database, are near the true ones. The zero value is invalid.
type Small struct {
	queries Queries
	rows    int64 // m
	total   int64 // N, what a candidate's answers are scaled to
	count   int64 // of candidates
	rate    selection.Rate
	rule    selection.Rule
}

// Total is the number of rows N of the true database as far as it is public: known exactly under replace-one, else a
// guess made without looking at the rows, or a released count. A wrong one costs accuracy, not privacy.
type Total int64

// NewSmall returns the mechanism over all multisets of m rows from the queries' cells.
func NewSmall(q Queries, m int64, n Total, c privacy.Contribution, cost privacy.Cost) (Small, error) {
	if m < 1 || m > 64 {
		return Small{}, fmt.Errorf("rows of the small database is %d, must be from 1 to 64", m)
	}
	if q.Len() == 0 {
		return Small{}, errNoQueries
	}
	count := multisets(int64(q.cells), m)
	if count > selection.MaxCandidates {
		return Small{}, fmt.Errorf("candidates are more than %d: %d rows of %d cells", selection.MaxCandidates, m, q.cells)
	}
	s := Small{queries: q, rows: m, count: count}
	return s.calibrated(n, c, cost)
}

var errNoQueries = errors.New("queries were not made by NewQueries")

// calibrated chooses rule and rate: permute-and-flip at ε, which is never worse than the exponential mechanism there;
// the exponential mechanism at ε = √(8ρ).
func (s Small) calibrated(n Total, c privacy.Contribution, cost privacy.Cost) (Small, error) {
	if n < 1 || n > maxRows {
		return Small{}, fmt.Errorf("total is %d, must be from 1 to %d", n, int64(maxRows))
	}
	s.total = int64(n)
	var err error
	s.rule, s.rate, err = chooser(c, cost, s.rows)
	return s, err
}

// chooser returns the rule of a cost, and the rate at which scores that a unit moves by c.Rows·unit cost so much: ε over
// twice that.
func chooser(c privacy.Contribution, cost privacy.Cost, unit int64) (rule selection.Rule, rate selection.Rate, err error) {
	if c.Rows < 1 || c.Rows > 1<<22 {
		return 0, rate, fmt.Errorf("rows of a unit is %d, must be from 1 to %d", c.Rows, 1<<22)
	}
	if c.Neighbors != privacy.AddRemove && c.Neighbors != privacy.ReplaceOne {
		return 0, rate, fmt.Errorf("neighbor relation is %d, must be add-remove or replace-one", c.Neighbors)
	}
	rule = selection.RuleFor(cost)
	strength, err := selection.Calibrate(rule, 1, cost)
	if err == nil {
		rate, err = strength.Rate(2 * c.Rows * unit)
	}
	return rule, rate, err
}

var errNotMade = errors.New("mechanism was not made by its constructor")

// Database is a synthetic database: weights of cells that add up to the total.
type Database struct {
	Cells []float64
	Total float64
}

// Release chooses a candidate and returns it scaled to the total.
//
// Claim: ε-DP, or ρ-zCDP by the exponential mechanism at ε = √(8ρ). Neighbours: add-remove and replace-one of a unit
// with at most R rows. Sensitivity: with candidate y of m rows, a score −max_q |m·q(D) − N·q(y)| in whole numbers.
// Either neighbour relation moves q(D) by at most R, so a score by at most mR, and two scores apart by at most 2mR. N
// and the candidates are public. Theorem: Blum, Ligett, Roth 2008, by McSherry and Talwar's exponential mechanism;
// Cesar and Rogers 2021 for ε²/8; McKenna and Sheldon 2020 for permute-and-flip. The notes' Δu = 2/n for fractions is
// loose: 1/n, as here, suffices. Proof: package selection's, with rate = ε/(2mR); its draw is exact, over losses that
// are exact. Accuracy: the best candidate is off by up to √(ln(2|Q|)/(2m)) of N whatever ε is, which is why the
// histogram wins: m is small wherever all multisets can be listed. Limits: all candidates are scored one by one:
// C(|X|+m−1, m) times |Q| steps. Its time depends on the rows only through the number of trials of the draw. Sampling
// by a Markov chain, for more candidates, would have no exact claim.
func (s Small) Release(truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[Database], error) {
	var none privacy.Released[Database]
	if s.count == 0 {
		return none, errNotMade
	}
	if !truth.Valid() {
		return none, errors.New("truth was never sealed")
	}
	losses := s.losses(s.queries.truth(sealed.Open(truth)))
	chosen, err := selection.Draw(s.rule, losses, s.rate, noise.NewReader(random))
	if err != nil {
		return none, err
	}
	database := Database{make([]float64, s.queries.cells), float64(s.total)}
	for i, n := range s.candidate(int64(chosen)) {
		database.Cells[i] = float64(n) * float64(s.total) / float64(s.rows)
	}
	return sealed.Release(database), nil
}

// losses returns how much worse than the best each candidate is.
func (s Small) losses(answers []int64) []uint64 {
	losses := make([]uint64, s.count)
	best := uint64(math.MaxUint64)
	s.each(answers, func(i, worst int64) {
		losses[i] = uint64(worst)
		best = min(best, uint64(worst))
	})
	for i := range losses {
		losses[i] -= best
	}
	return losses
}
