package online

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// setAside is how many questions one step sets aside: what a restart loses of them at most.
const setAside = 64

func (p BasicPlan) replay(steps [][]byte) (state, error) {
	if !p.checked {
		return state{}, errUnplanned
	}
	return replay(steps, p.spec.Cells, p.spec.Queries)
}

// Left returns the hard answers that steps leave, 0 where none of the questions is left. The proof at Basic bounds the
// true ones by the cap, restarts or not.
func (p BasicPlan) Left(steps [][]byte, restored bool) (int, error) {
	s, err := p.replay(steps)
	if s.asked >= p.spec.Queries {
		return 0, err
	}
	return s.left(p.spec.Hard, restored), err
}

// Open begins a mechanism whose cost has been charged, or goes on with one. Thresholds are drawn anew for each
// question, so there is none to lose.
func (p BasicPlan) Open(steps [][]byte, truth privacy.Sensitive[[]int64], random io.Reader, save func(step []byte) error) (Answerer, error) {
	s, err := p.replay(steps)
	switch {
	case err != nil:
		return nil, err
	case !truth.Valid():
		return nil, errors.New("truth was never sealed")
	case save == nil:
		return nil, errUnsaved
	case s.used() >= p.spec.Hard || s.asked >= p.spec.Queries:
		return nil, &Stopped{Spent}
	}
	b := &Basic{plan: p, truth: snapshot(truth), random: noise.NewReader(random), candidates: p.candidates(s), state: s, asked: s.asked, save: save}
	if b.candidates.left() == 0 {
		b.stopped = &Stopped{NoCandidate}
	}
	return b, nil
}

// candidates are the small databases that agree with the hard answers of a state.
func (p BasicPlan) candidates(s state) *candidates {
	c := enumerate(p.spec.Cells, p.spec.Size)
	for _, e := range s.entries {
		c.keep(e.Query, func(rows int) bool { return p.agrees(rows, e.Value) })
	}
	return c
}

// ask counts a question, setting further ones aside where need be.
func (b *Basic) ask() error {
	if b.asked == b.state.asked {
		next := min(b.asked+setAside, b.plan.spec.Queries)
		if err := b.save(binary.AppendUvarint([]byte{stepAsked}, uint64(next))); err != nil {
			return err
		}
		b.state.asked = next
	}
	b.asked++
	return nil
}

// Left returns the hard answers left, 0 after the end.
func (b *Basic) Left() int {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.stopped != nil {
		return 0
	}
	return b.plan.spec.Hard - b.state.used()
}

// Told returns the hard answers.
func (b *Basic) Told() []Entry {
	b.lock.Lock()
	defer b.lock.Unlock()
	return slices.Clone(b.state.entries)
}

// Guess returns the median candidate's count, or 0 where no candidate is left.
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

// Shares returns the share of all rows that the candidates give each cell on average.
func (p BasicPlan) Shares(steps [][]byte) ([]float64, error) {
	s, err := p.replay(steps)
	if err != nil {
		return nil, err
	}
	candidates, shares := p.candidates(s), make([]float64, p.spec.Cells)
	for _, a := range candidates.alive {
		for c := range shares {
			shares[c] += float64(candidates.rows[int(a)*p.spec.Cells+c])
		}
	}
	total := float64(len(candidates.alive) * p.spec.Size)
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

// Width returns how many rows an answer is off at most, but with probability miss.
//
// A hard answer is off by its noise. An easy one says that the candidates' mean of exp(−off/Width) was at least 3/4
// less the noise t; if the median candidate is off by x, at least half of them are, and the mean is at most 1/2 +
// exp(−x/Width)/2: so x ≤ Width·ln(1/(1/2 − 2t)), and the count of its few rows is rounded down to a row.
func (p BasicPlan) Width(miss noise.Probability) int64 {
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
