package online

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Offline iterative construction, with two distinguishers, is what MWEM of package synthetic is measured by: with the
// exponential one it is the same mechanism, and with the sparse one a worse (ADR 68).

// OfflineSpec is what is public about the release of a known list of queries.
type OfflineSpec struct {
	Queries      []Query
	Contribution privacy.Contribution
	Rows         int64 // about how many rows there are, as in Spec
	Spare        int64
	Rounds       int // queries chosen and measured
	Finds        Finding
	Accountant   privacy.Accountant
	Cost         privacy.Cost
}

// Finding names how a round finds its query.
type Finding uint8

// The ways. Exponential is never worse in what is proved (Reach, SparseReach); Sparse is the loop of an analyst who
// asks in order.
const (
	Exponential Finding = iota // Distinguisher.Farthest: about the farthest query
	Sparse                     // Distinguisher.First: the first one that is far off; a round that finds none learns nothing
)

// sparseMiss is the probability by which SparseReach may be missed in a round.
const sparseMiss = .05

// OfflinePlan is a checked OfflineSpec. It is made by NewOffline; the zero value is refused.
type OfflinePlan struct {
	spec   OfflineSpec
	find   Distinguisher
	answer noise.Distribution
	cost   privacy.Cost
}

// NewOffline checks a spec and splits its cost evenly: Rounds times half for the choice and half for the answer.
func NewOffline(s OfflineSpec) (OfflinePlan, error) {
	if s.Rounds < 1 || s.Rounds > maxUpdates {
		return OfflinePlan{}, fmt.Errorf("rounds is %d, must be from 1 to %d", s.Rounds, maxUpdates)
	}
	if s.Finds > Sparse {
		return OfflinePlan{}, fmt.Errorf("finding is %d, must be exponential or sparse", s.Finds)
	}
	if s.Rounds > len(s.Queries) {
		return OfflinePlan{}, fmt.Errorf("rounds is %d, must be at most the %d queries", s.Rounds, len(s.Queries))
	}
	if s.Rows < 1 || s.Rows > maxRows || s.Spare < 0 || s.Spare > maxRows {
		return OfflinePlan{}, fmt.Errorf("rows is %d and spare rows %d, must be from 1 and from 0 to %d", s.Rows, s.Spare, int64(maxRows))
	}
	var choice privacy.Epsilon
	var answer privacy.Cost
	rounds := int64(s.Rounds)
	switch {
	case s.Accountant == privacy.Pure && s.Cost == privacy.Cost{Epsilon: s.Cost.Epsilon}:
		choice = privacy.MicroEpsilon(s.Cost.Epsilon.Micro() / (2 * rounds))
		answer.Epsilon = choice
	case s.Accountant == privacy.ZCDP && s.Cost == privacy.Cost{Rho: s.Cost.Rho}:
		half := s.Cost.Rho.Pico() / (2 * rounds)
		// The largest whole ε with ε²/8 ≤ half, or ε²/2 ≤ half: one micro-ε squared is one pico-ρ.
		times := int64(8)
		if s.Finds == Sparse {
			times = 2
		}
		choice = privacy.MicroEpsilon(new(big.Int).Sqrt(new(big.Int).Mul(big.NewInt(half), big.NewInt(times))).Int64())
		answer.Rho = privacy.PicoRho(half)
	default:
		return OfflinePlan{}, fmt.Errorf("cost is %s, must name the unit of the accountant %s and no other", s.Cost, s.Accountant)
	}
	p := OfflinePlan{spec: s}
	var err error
	if p.find, err = NewDistinguisher(s.Queries, s.Contribution, s.Accountant, choice); err != nil {
		return OfflinePlan{}, fmt.Errorf("one of %d rounds: %w", s.Rounds, err)
	}
	measured := Plan{spec: Spec{Accountant: s.Accountant}, moves: p.find.moves}
	measured.split = split{privacy.MicroEpsilon(1), privacy.MicroEpsilon(1), answer.Epsilon, answer.Rho}
	noises, err := measured.sources()
	if err != nil {
		return OfflinePlan{}, err
	}
	p.answer = noises.answer
	chosen, err := p.find.Cost()
	if err != nil {
		return OfflinePlan{}, err
	}
	if s.Finds == Sparse {
		if _, err := p.find.instance(sparseMiss); err != nil {
			return OfflinePlan{}, fmt.Errorf("one of %d rounds: %w", s.Rounds, err)
		}
		chosen = p.find.sparseCost()
	}
	for range s.Rounds {
		p.cost = p.cost.Plus(chosen).Plus(answer)
	}
	return p, nil
}

// Cost is what Release takes, at most the spec's.
func (p OfflinePlan) Cost() (privacy.Cost, error) {
	if p.spec.Rounds == 0 {
		return privacy.Cost{}, errors.New("plan was not made by NewOffline")
	}
	return p.cost, nil
}

// Hypothesis is what a release says: public, and able to guess any query over its cells.
type Hypothesis struct {
	Measured []Entry // the chosen queries and their noisy answers
	weights  *weights
}

// Value returns the hypothesis's answer.
func (h Hypothesis) Value(q Query) (int64, error) {
	if h.weights == nil {
		return 0, errors.New("hypothesis was never released")
	}
	if err := q.check(len(h.weights.p) - 1); err != nil {
		return 0, err
	}
	return h.weights.value(q), nil
}

// Cells returns the hypothesis's rows in each cell.
func (h Hypothesis) Cells() []float64 {
	rows := make([]float64, len(h.weights.p)-1)
	for i := range rows {
		rows[i] = h.weights.p[i] * h.weights.whole
	}
	return rows
}

// Release is offline Iterative Construction: round by round the query that the hypothesis gets most wrong is found,
// measured afresh and learned.
//
// Claim: Plan.Cost-DP (-zCDP). Theorem: adaptive composition of Rounds choices (Distinguisher.Farthest or First) and at
// most Rounds answers with discrete Laplace or Gaussian noise for a query that moves by at most moves. Proof: the rows
// are opened in Farthest, in First and in measure alone; whether there is an answer is what First said. Guesses are
// functions of what these have said, and so is the list of queries that are left: those measured are taken out. Limits:
// the number of rounds is fixed; stopping early would have to be paid for.
func (p OfflinePlan) Release(truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[Hypothesis], error) {
	var none privacy.Released[Hypothesis]
	if _, err := p.Cost(); err != nil {
		return none, err
	}
	if !truth.Valid() {
		return none, errors.New("truth was never sealed")
	}
	truth = snapshot(truth)
	h := Hypothesis{weights: p.start()}
	left := p.find
	left.queries = append([]Query(nil), p.spec.Queries...)
	guesses := make([]int64, len(left.queries))
	for range p.spec.Rounds {
		guesses = guesses[:len(left.queries)]
		for i, q := range left.queries {
			guesses[i] = h.weights.value(q)
		}
		chosen, err := p.choose(left, guesses, truth, random)
		if err != nil {
			return none, err
		}
		at, last := chosen.Value(), len(left.queries)-1
		if at < 0 {
			continue
		}
		e, err := p.measure(left.queries[at], truth, random)
		if err != nil {
			return none, err
		}
		h.Measured = append(h.Measured, e)
		h.weights.learn(h.Measured)
		left.queries[at] = left.queries[last]
		left.queries = left.queries[:last]
	}
	return sealed.Release(h), nil
}

// choose finds the query of a round, or −1.
func (p OfflinePlan) choose(left Distinguisher, guesses []int64, truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[int], error) {
	if p.spec.Finds == Sparse {
		return left.First(guesses, sparseMiss, truth, random)
	}
	return left.Farthest(guesses, truth, random)
}

// measure answers one query with fresh noise.
func (p OfflinePlan) measure(q Query, truth privacy.Sensitive[[]int64], random io.Reader) (Entry, error) {
	reader := noise.NewReader(random)
	drawn := p.answer.Sample(reader)
	if err := reader.Err(); err != nil {
		return Entry{}, err
	}
	return Entry{Query: q, Value: noise.Add(q.sum(sealed.Open(truth)), drawn)}, nil
}

func (p OfflinePlan) start() *weights {
	s := Spec{Cells: p.find.queries[0].cells, Rows: p.spec.Rows, Spare: p.spec.Spare}
	w := newWeights(Plan{spec: s})
	w.slab = math.Sqrt(p.answer.Variance()) / w.whole
	return w
}

// Bound returns the error that theory promises for all queries at once, in rows: 2n√(ln(cells)/rounds) for the rounds
// that are too few, and 10·rounds·ln(queries)/ε for the noise (Hardt, Ligett, McSherry 2012). Pure accountant and the
// exponential distinguisher only; what BenchmarkCovidLike measures is far below.
func (p OfflinePlan) Bound() (float64, error) {
	if _, err := p.Cost(); err != nil {
		return 0, err
	}
	if p.spec.Accountant != privacy.Pure || p.spec.Finds != Exponential {
		return 0, errors.New("the bound is for the accountant pure and the exponential distinguisher")
	}
	n, t := float64(p.spec.Rows+p.spec.Spare), float64(p.spec.Rounds)
	cells, queries := float64(p.find.queries[0].cells), float64(len(p.find.queries))
	unit := float64(p.find.moves)
	return 2*n*math.Sqrt(math.Log(cells)/t) + 10*t*unit*math.Log(queries)/p.cost.Epsilon.Float(), nil
}

// value rounds the mass to rows.
func (w *weights) value(q Query) int64 { return rounded(w.mass(q), w.whole) }
