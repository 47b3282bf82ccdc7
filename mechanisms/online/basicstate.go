package online

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// stepAsked is the step that sets questions aside: they count as asked, whether they will be or not.
const stepAsked = 'q'

// setAside is how many questions one step sets aside: what a restart loses of them at most.
const setAside = 64

// BasicState is what outlives the process of a Basic: its hard answers, how many questions count as asked and how often
// it was restored. All of it is public. Thresholds are drawn anew for each question, so there is none to lose.
type BasicState struct {
	entries  []Entry
	asked    int64
	restarts int
}

// Entries returns the hard answers, in their order.
func (s BasicState) Entries() []Entry { return s.entries }

// ReplayBasic adds up the steps of a Basic.
func ReplayBasic(p BasicPlan, steps [][]byte) (BasicState, error) {
	if !p.checked {
		return BasicState{}, errUnplanned
	}
	var s BasicState
	err := eachStep(steps, func(kind byte, rest []byte) ([]byte, error) {
		switch kind {
		case stepRestart:
			s.restarts++
			return rest, nil
		case stepAsked:
			n, after, ok := cutUvarint(rest)
			if !ok || n > uint64(p.spec.Queries) || int64(n) < s.asked {
				return nil, errMalformedStep
			}
			s.asked = int64(n)
			return after, nil
		case stepHard:
			e, after, err := cutEntry(rest, p.spec.Cells)
			s.entries = append(s.entries, e)
			return after, err
		}
		return nil, errMalformedStep
	})
	if err != nil {
		return BasicState{}, err
	}
	return s, nil
}

// used counts the hard answers that are gone: a restart takes one, since the lost process may have had one that it did
// not save. The proof at Basic bounds the true ones by the cap all the same.
func (s BasicState) used() int { return len(s.entries) + s.restarts }

// Left returns the hard answers that a state leaves, 0 where none of the questions is left.
func (p BasicPlan) Left(s BasicState, restored bool) int {
	left := p.spec.Hard - s.used()
	if restored {
		left--
	}
	if s.asked >= p.spec.Queries {
		return 0
	}
	return max(left, 0)
}

// ResumeBasic begins a mechanism from a state, of which a restart is durable already; the zero state is that of one
// that has just been paid. save makes each step durable before what it tells is returned.
func ResumeBasic(p BasicPlan, s BasicState, truth privacy.Sensitive[[]int64], random io.Reader, save func(step []byte) error) (*Basic, error) {
	if save == nil {
		return nil, errors.New("nothing saves the steps")
	}
	b, err := OpenBasic(p, truth, random)
	if err != nil {
		return nil, err
	}
	if s.used() >= p.spec.Hard || s.asked >= p.spec.Queries {
		return nil, &Stopped{Spent}
	}
	b.save, b.hard, b.asked, b.aside = save, s.used(), s.asked, s.asked
	return b, b.believe(s.entries)
}

// believe drops the candidates that hard answers do not agree with.
func (b *Basic) believe(entries []Entry) error {
	for _, e := range entries {
		if err := e.Query.check(b.plan.spec.Cells); err != nil {
			return err
		}
		b.candidates.keep(e.Query, func(rows int) bool { return b.plan.agrees(rows, e.Value) })
	}
	if b.candidates.left() == 0 {
		b.stopped = &Stopped{NoCandidate}
	}
	return nil
}

// ask counts a question, setting further ones aside where need be.
func (b *Basic) ask() error {
	if b.save != nil && b.asked == b.aside {
		next := min(b.aside+setAside, b.plan.spec.Queries)
		if err := b.save(binary.AppendUvarint([]byte{stepAsked}, uint64(next))); err != nil {
			return err
		}
		b.aside = next
	}
	b.asked++
	return nil
}

// keepStep makes a hard answer durable.
func (b *Basic) keepStep(e Entry) error {
	if b.save == nil {
		return nil
	}
	return b.save(binary.AppendVarint(e.Query.append([]byte{stepHard}), e.Value))
}

// Left returns the hard answers left, 0 after the end.
func (b *Basic) Left() int {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.stopped != nil {
		return 0
	}
	return b.plan.spec.Hard - b.hard
}

// Guess returns the median candidate's count, or 0 where no candidate is left: it promises nothing.
func (b *Basic) Guess(q Query) (int64, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if err := q.check(b.plan.spec.Cells); err != nil {
		return 0, err
	}
	if b.candidates.left() == 0 {
		return 0, nil
	}
	return b.plan.scaled(median(b.candidates.histogram(q))), nil
}

// BasicShares returns the share of all rows that the candidates of a state give each cell on average.
func BasicShares(p BasicPlan, s BasicState) ([]float64, error) {
	if !p.checked {
		return nil, errUnplanned
	}
	b := &Basic{plan: p, candidates: enumerate(p.spec.Cells, p.spec.Size)}
	if err := b.believe(s.entries); err != nil {
		return nil, err
	}
	shares := make([]float64, p.spec.Cells)
	for _, a := range b.candidates.alive {
		for c := range shares {
			shares[c] += float64(b.candidates.rows[int(a)*p.spec.Cells+c])
		}
	}
	total := float64(len(b.candidates.alive) * p.spec.Size)
	for c := range shares {
		if shares[c] /= total; total == 0 {
			shares[c] = 1 / float64(p.spec.Cells)
		}
	}
	return shares, nil
}

// LeastBasic returns the plan with the least width that the theorem allows, over as many small databases as can be
// listed, and at which one of these agrees with the answers: a hard answer keeps what is within Width/50 of it, and of
// a database of few rows each cell is off by up to half of a row's worth, Rows/Size/2, the sum of several by half as
// many as there are cells times that. That leaves universes of a few cells.
func LeastBasic(s BasicSpec) (BasicPlan, error) {
	candidates := 1.0
	for s.Size = 0; s.Size < 255; s.Size++ {
		next := candidates * float64(s.Cells+s.Size) / float64(s.Size+1)
		if next > maxListed || next*float64(s.Cells) > maxEnumerated {
			break
		}
		candidates = next
	}
	floor := int64(math.Ceil(12.5 * float64(s.Cells) * float64(s.Rows) / float64(max(s.Size, 1))))
	if floor > s.Rows {
		return BasicPlan{}, fmt.Errorf("cells is %d: too many to list small databases that are fine enough (at most 4 are not)", s.Cells)
	}
	s.Width = s.Rows
	best, err := NewBasic(s)
	if err != nil {
		return BasicPlan{}, err
	}
	for low, high := floor-1, s.Rows; high-low > max(1, high/1000); {
		s.Width = low + (high-low)/2
		if p, err := NewBasic(s); err == nil {
			best, high = p, s.Width
		} else {
			low = s.Width
		}
	}
	return best, nil
}

// maxListed bounds the candidates of LeastBasic, each of which every question goes through.
const maxListed = 1 << 17

// Reach returns how many rows an answer is off at most, but with probability miss.
//
// A hard answer is off by its noise. An easy one says that the candidates' mean of exp(−off/Width) was at least 3/4
// less the noise t; if the median candidate is off by x, at least half of them are, and the mean is at most 1/2 +
// exp(−x/Width)/2: so x ≤ Width·ln(1/(1/2 − 2t)), and the count of its few rows is rounded down to a row.
func (p BasicPlan) Reach(miss noise.Probability) int64 {
	if !p.checked || checkMiss(miss) != nil {
		return 0
	}
	t := float64(p.soft.HalfWidthOfSum(1, miss)) / basicUnit
	hard := p.answer.HalfWidthOfSum(1, miss)
	if t >= .25 {
		return p.spec.Rows
	}
	easy := int64(math.Ceil(float64(p.spec.Width)*-math.Log(.5-2*t))) + 1
	return min(max(easy, hard), p.spec.Rows)
}
