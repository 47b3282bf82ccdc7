package online

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Doubling is Basic for an unknown number of queries: phases for k, 2k, 4k, … of them, each a Basic of its own with an
// equal part of the cost, which keep the candidates of the one before.
//
// Claim: (ε, δ)-DP for the spec's cost: basic composition of the phases, each (ε/phases, δ/phases)-DP. The candidates that
// a phase begins with are a function of earlier answers, which is all that the proof at Basic asks of them.
type Doubling struct {
	lock   sync.Mutex
	plans  []BasicPlan
	truth  privacy.Sensitive[[]int64]
	random io.Reader
	now    *Basic
}

// DoublingPlan is a checked sequence of phases.
type DoublingPlan struct {
	plans []BasicPlan
	cost  privacy.Cost
}

const mostPhases = 32

// NewDoubling checks every phase: the spec's Queries are those of the first.
func NewDoubling(s BasicSpec, phases int) (DoublingPlan, error) {
	if phases < 1 || phases > mostPhases {
		return DoublingPlan{}, fmt.Errorf("phases is %d, must be from 1 to %d", phases, mostPhases)
	}
	p := DoublingPlan{cost: s.Cost}
	s.Cost.Epsilon = privacy.MicroEpsilon(s.Cost.Epsilon.Micro() / int64(phases))
	s.Cost.Delta = privacy.AttoDelta(s.Cost.Delta.Atto() / int64(phases))
	for i := range phases {
		plan, err := NewBasic(s)
		if err != nil {
			return DoublingPlan{}, fmt.Errorf("phase %d: %w", i+1, err)
		}
		p.plans = append(p.plans, plan)
		s.Queries *= 2
	}
	return p, nil
}

// Cost is what all phases take.
func (p DoublingPlan) Cost() (privacy.Cost, error) {
	if len(p.plans) == 0 {
		return privacy.Cost{}, errUnplanned
	}
	return p.cost, nil
}

// OpenDoubling begins the first phase.
func OpenDoubling(p DoublingPlan, truth privacy.Sensitive[[]int64], random io.Reader) (*Doubling, error) {
	if len(p.plans) == 0 {
		return nil, errUnplanned
	}
	first, err := OpenBasic(p.plans[0], truth, random)
	if err != nil {
		return nil, err
	}
	return &Doubling{plans: p.plans[1:], truth: first.truth, random: random, now: first}, nil
}

// Answer asks the current phase, and begins the next where its queries are used up.
func (d *Doubling) Answer(q Query) (privacy.Released[Answer], error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	a, err := d.now.Answer(q)
	stopped := (*Stopped)(nil)
	if !errors.As(err, &stopped) || stopped.Reason != NoQueries || len(d.plans) == 0 {
		return a, err
	}
	next, err := OpenBasic(d.plans[0], d.truth, d.random)
	if err != nil {
		return a, err
	}
	next.candidates = d.now.candidates
	d.plans, d.now = d.plans[1:], next
	return next.Answer(q)
}
