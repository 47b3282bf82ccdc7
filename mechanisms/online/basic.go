package online

import (
	"errors"
	"math/big"
	"math/bits"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Basic is the median mechanism of Roth and Roughgarden 2010, figure 1, for universes whose small databases can be
// enumerated. It is the published proof made to run; Session with Spec.Median is the form to serve.
//
// Claim: (ε, δ)-DP for the spec's cost, for any queries chosen one after the other. Neighbours: replace-one, the number
// n of rows being public. Sensitivity: a count moves by at most R, the rows a unit. r = mean over the candidates S of
// exp(−|f(D)−f(S)|·n/Width), of which each term moves by at most 1 − exp(−R/Width) ≤ R/Width; kept in whole 2⁻⁴⁰, each
// term is off by at most one unit and the mean is rounded down, so that r moves by at most Plan.moves = ⌈2⁴⁰·R/Width⌉ +
// 3 units =: Δ. Theorem: their 4.8, proved anew for a free cap c on hard answers and with the constants counted. Proof:
// α' = ε/(2(2c+B)). Let t_i = 3/4 + j·γ with P(j ≥ s) = 2⁻ˢ up to the last one, J, with 2⁻ᴶ ≤ 1/k; query i is hard iff
// r_i + noise of scale Δ/α' < t_i. Thresholds do not depend on D: fix them, and an outcome. Call t_i good for it on D
// if i is easy and r_i(D) ≥ t_i + γ. On a neighbour D' the ratio of the probabilities of what is said to query i, given
// the same past and so the same candidates, is at most: exp(2α') if i is hard (bit and answer, of scale R/α'); exp(α')
// if it is easy; and if it is easy and t_i good, 1/(1−η) with η ≤ ½·exp(−(γ−Δ)α'/Δ) ≤ ε/(4k), since r_i(D') ≥ t_i + γ −
// Δ. With at most B easy answers whose threshold is not good the product is at most exp((2c+B)α')·(1−ε/(4k))^(−k) ≤
// exp(ε/2)·exp(ε/2). It remains that P(more than B) ≤ δ. Let Y_i = 1 if i is easy and r_i < t_i + γ, H_i = 1 if i is
// hard. Given the past, the j with t_j > r_i − γ are s, s+1, …, J, say. If s < J, half of their mass 2⁻ˢ is on j > s,
// where t_j > r_i, so that noise ≤ 0, more likely than not, makes i hard: P(Y_i) ≤ ¾·2⁻ˢ, P(H_i, bad) ≥ ¼·2⁻ˢ, and E
// exp(aY_i − bH_i) ≤ 1 − 2⁻ˢ + 2⁻ˢ(3eᵃ + e⁻ᵇ)/4 ≤ 1 for eᵃ = (4−e⁻ᵇ)/3. If s = J it is at most 1 + (eᵃ−1)/k. So E
// exp(aΣY − bΣH) ≤ exp(eᵃ−1), and, ΣH ≤ c, P(ΣY > B) ≤ exp(eᵃ − 1 − a(B+1) + bc) by Markov, for the best b. An outcome
// is thus within δ of one with at most B, which is (ε, δ)-DP. Stopping after the c-th hard answer is what makes ΣH ≤ c.
// Limits: candidates are a function of the answers. Where none is left the mechanism stops. Accuracy needs n as large
// as NewBasic demands and more; see docs/mechanisms/online.md.
type Basic struct {
	lock       sync.Mutex
	plan       BasicPlan
	truth      privacy.Sensitive[[]int64]
	random     *noise.Reader
	candidates *candidates
	state      state
	asked      int64
	save       func(step []byte) error
	stopped    *Stopped
}

// Answer answers a query.
func (b *Basic) Answer(q Query) (privacy.Released[Answer], error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	var none privacy.Released[Answer]
	if b.stopped != nil {
		return none, b.stopped
	}
	if err := q.check(b.plan.spec.Cells); err != nil {
		return none, err
	}
	if b.asked == b.plan.spec.Queries {
		b.stopped = &Stopped{NoQueries}
		return none, b.stopped
	}
	held := b.candidates.histogram(q)
	threshold := int64(basicUnit/4*3) + min(tosses(b.random, b.plan.last), b.plan.last)*b.plan.gamma
	soft, fresh := b.plan.soft.Sample(b.random), b.plan.answer.Sample(b.random)
	if err := b.random.Err(); err != nil {
		b.stopped = &Stopped{NoRandomness}
		return none, errors.Join(b.stopped, err)
	}
	if err := b.ask(); err != nil {
		b.stopped = &Stopped{Undurable}
		return none, errors.Join(b.stopped, err)
	}
	hard, value := b.observe(q, held, threshold, soft, fresh)
	left := b.plan.spec.Hard - b.state.used()
	if !hard {
		// The median candidate's count, scaled from its rows to all rows.
		return sealed.Release(Answer{Value: b.plan.scaled(median(held)), Left: left}), nil
	}
	e := Entry{q, value}
	if err := b.save(e.step()); err != nil {
		b.stopped = &Stopped{Undurable}
		return none, errors.Join(b.stopped, err)
	}
	b.state.entries = append(b.state.entries, e)
	b.candidates.keep(q, func(rows int) bool { return b.plan.agrees(rows, value) })
	if b.candidates.left() == 0 {
		b.stopped = &Stopped{NoCandidate}
	}
	if left == 1 {
		b.stopped = &Stopped{Spent}
	}
	return sealed.Release(Answer{Value: value, Hard: true, Left: left - 1}), nil
}

// observe opens the cells and compares how well the candidates do with the threshold.
func (b *Basic) observe(q Query, held []int64, threshold, soft, fresh int64) (hard bool, value int64) {
	sum := min(q.sum(sealed.Open(b.truth)), b.plan.spec.Rows)
	r := b.plan.easiness(sum, held)
	if noise.Add(r, soft) >= threshold {
		return false, 0
	}
	return true, noise.Add(sum, fresh)
}

// easiness returns the mean over candidates of exp(−|f(D)−f(S)|·n/Width) in units of 2⁻⁴⁰, f(S) = n·rows/size.
func (p BasicPlan) easiness(sum int64, held []int64) int64 {
	size, total, count := big.NewInt(int64(p.spec.Size)), new(big.Int), int64(0)
	scale := new(big.Int).Mul(size, big.NewInt(p.spec.Width))
	for rows, many := range held {
		if many == 0 {
			continue
		}
		distance := new(big.Int).Mul(big.NewInt(sum), size)
		distance.Sub(distance, new(big.Int).Mul(big.NewInt(p.spec.Rows), big.NewInt(int64(rows)))).Abs(distance)
		term := expUnits(distance, scale)
		total.Add(total, term.Mul(term, big.NewInt(many)))
		count += many
	}
	return total.Div(total, big.NewInt(count)).Int64()
}

// scaled returns n·rows/size, rounded down.
func (p BasicPlan) scaled(rows int) int64 {
	x := new(big.Int).Mul(big.NewInt(p.spec.Rows), big.NewInt(int64(rows)))
	return x.Div(x, big.NewInt(int64(p.spec.Size))).Int64()
}

// agrees reports whether a candidate's count is within Width/50 of a hard answer.
func (p BasicPlan) agrees(rows int, answer int64) bool {
	size := big.NewInt(int64(p.spec.Size))
	off := new(big.Int).Mul(big.NewInt(p.spec.Rows), big.NewInt(int64(rows)))
	off.Sub(off, new(big.Int).Mul(big.NewInt(answer), size)).Abs(off)
	return off.Mul(off, big.NewInt(50)).Cmp(size.Mul(size, big.NewInt(p.spec.Width))) <= 0
}

// tosses counts heads before the first tail, up to most, at most 62. From a source of fixed work it tosses all of so
// many coins and looks at no single one: how long it takes does not tell where the threshold lies.
func tosses(random *noise.Reader, most int64) int64 {
	if random.FixedWork() {
		return int64(bits.TrailingZeros64(^random.Below(1 << most)))
	}
	n := int64(0)
	for n < most && random.Coin() {
		n++
	}
	return n
}

// median returns the middle of the candidates' counts.
func median(held []int64) int {
	total, below := int64(0), int64(0)
	for _, many := range held {
		total += many
	}
	for rows, many := range held {
		if below += many; 2*below >= total {
			return rows
		}
	}
	return len(held) - 1
}

// expUnits returns 2⁴⁰·exp(−a/b), off by less than one unit.
func expUnits(a, b *big.Int) *big.Int {
	_, high := noise.ExpBounds(a, b, 128)
	return high.Rsh(high, 128-40)
}
