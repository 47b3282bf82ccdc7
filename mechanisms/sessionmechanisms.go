package mechanisms

import (
	"io"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/online"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// sessionMechanism is what a session runs on: a planned mechanism whose state is the sum of its steps.
type sessionMechanism interface {
	width(miss noise.Probability) int64 // how far an answer may be off
	left(steps [][]byte, restored bool) (int, error)
	shares(steps [][]byte) ([]float64, error) // of the cells in the hypothesis
	// open begins from steps, nil for none, and returns what hard answers they hold.
	open(steps [][]byte, truth privacy.Sensitive[[]int64], random io.Reader, save func(step []byte) error) (asker, []online.Entry, error)
}

// asker answers one question after the other.
type asker interface {
	online.Answerer
	Guess(q online.Query) (int64, error)
	Left() int
}

// vectorMechanism is a sparse vector over a hypothesis.
type vectorMechanism struct{ plan online.Plan }

func (o *Online) vector(cells int) (sessionMechanism, error) {
	accountant := privacy.Pure
	if o.Cost.Rho.Pico() != 0 {
		accountant = privacy.ZCDP
	}
	p, err := online.NewPlan(online.Spec{
		Cells: cells, Contribution: o.Contribution, Rows: o.Rows, Spare: o.Spare, Updates: o.Updates, Restarts: o.Updates - 1,
		Median: o.Rule == Median, Accountant: accountant,
	}, o.Cost, onlineMiss)
	return vectorMechanism{p}, err
}

func (m vectorMechanism) width(miss noise.Probability) int64 { return m.plan.Width(miss) }

func (m vectorMechanism) left(steps [][]byte, restored bool) (int, error) {
	state, err := online.Replay(m.plan, steps)
	return m.plan.Left(state, restored), err
}

func (m vectorMechanism) shares(steps [][]byte) ([]float64, error) {
	state, err := online.Replay(m.plan, steps)
	if err != nil {
		return nil, err
	}
	return online.Shares(m.plan, state)
}

func (m vectorMechanism) open(steps [][]byte, truth privacy.Sensitive[[]int64], random io.Reader, save func(step []byte) error) (asker, []online.Entry, error) {
	state, err := online.Replay(m.plan, steps)
	if err != nil {
		return nil, nil, err
	}
	told := state.Entries()
	checkpoint := func(next online.State) error {
		step, err := next.Step(state)
		if err == nil {
			err = save(step)
		}
		if err == nil {
			state = next
		}
		return err
	}
	if steps == nil {
		s, err := online.Open(m.plan, truth, random, checkpoint)
		return s, told, err
	}
	s, err := online.Resume(m.plan, state, truth, random, checkpoint)
	return s, told, err
}

// basicMechanism is the median mechanism over small databases.
type basicMechanism struct{ plan online.BasicPlan }

func (o *Online) basic(cells int) (sessionMechanism, error) {
	p, err := online.LeastBasic(online.BasicSpec{Cells: cells, Rows: o.Rows, Queries: o.Queries, Hard: o.Updates, Contribution: o.Contribution, Cost: o.Cost})
	return basicMechanism{p}, err
}

func (m basicMechanism) width(miss noise.Probability) int64 { return m.plan.Reach(miss) }

func (m basicMechanism) left(steps [][]byte, restored bool) (int, error) {
	state, err := online.ReplayBasic(m.plan, steps)
	return m.plan.Left(state, restored), err
}

func (m basicMechanism) shares(steps [][]byte) ([]float64, error) {
	state, err := online.ReplayBasic(m.plan, steps)
	if err != nil {
		return nil, err
	}
	return online.BasicShares(m.plan, state)
}

func (m basicMechanism) open(steps [][]byte, truth privacy.Sensitive[[]int64], random io.Reader, save func(step []byte) error) (asker, []online.Entry, error) {
	state, err := online.ReplayBasic(m.plan, steps)
	if err != nil {
		return nil, nil, err
	}
	b, err := online.ResumeBasic(m.plan, state, truth, random, save)
	return b, state.Entries(), err
}
