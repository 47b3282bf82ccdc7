package online

import (
	"encoding/binary"
	"errors"
)

// The kinds of steps. They are in ledgers: never change one.
const (
	stepRestart = 'r'
	stepHard    = 'h'
)

// RestartStep is the step of a restart.
func RestartStep() []byte { return []byte{stepRestart} }

// Step returns what a state has more than the one before it: one restart, or one hard answer. A state is the sum of its
// steps, so that what is written for an update grows with its query and not with the session.
func (s State) Step(before State) ([]byte, error) {
	switch {
	case s.restarts == before.restarts+1 && len(s.entries) == len(before.entries):
		return RestartStep(), nil
	case s.restarts == before.restarts && len(s.entries) == len(before.entries)+1:
		e := s.entries[len(s.entries)-1]
		return binary.AppendVarint(e.Query.append([]byte{stepHard}), e.Value), nil
	}
	return nil, errors.New("the states are not one step apart")
}

// Replay adds up the steps of a session. The plan is made of the Spec that was saved with them: steps do not name one.
func Replay(p Plan, steps [][]byte) (State, error) {
	if !p.valid {
		return State{}, errUnplanned
	}
	var s State
	err := eachStep(steps, func(kind byte, rest []byte) ([]byte, error) {
		switch kind {
		case stepRestart:
			s.restarts++
			return rest, nil
		case stepHard:
			e, after, err := cutEntry(rest, p.spec.Cells)
			if err != nil {
				return nil, err
			}
			s = s.with(e)
			return after, nil
		}
		return nil, errMalformedStep
	})
	if err != nil {
		return State{}, err
	}
	return s, nil
}

var errMalformedStep = errors.New("a step of the state is malformed")

// eachStep hands the kind and the body of each step to apply, which returns what it did not read of it.
func eachStep(steps [][]byte, apply func(kind byte, body []byte) (rest []byte, err error)) error {
	for _, step := range steps {
		if len(step) == 0 {
			return errMalformedStep
		}
		rest, err := apply(step[0], step[1:])
		if err != nil {
			return err
		}
		if len(rest) != 0 {
			return errors.New("a step of the state is too long")
		}
	}
	return nil
}

// Left returns the updates that a state leaves to its plan: to a session that goes on, or to one that is restored
// first.
func (p Plan) Left(s State, restored bool) int {
	left := p.spec.Updates - s.used()
	if restored {
		left--
	}
	return max(left, 0)
}

// Shares returns the share of all rows that the hypothesis of a state gives each cell: read without a session, also
// when that has stopped, or its process is gone.
func Shares(p Plan, s State) ([]float64, error) {
	if !p.valid {
		return nil, errUnplanned
	}
	h := newHypothesis(p)
	for i := range s.entries {
		if err := s.entries[i].Query.check(p.spec.Cells); err != nil {
			return nil, err
		}
		h.learn(s.entries[:i+1])
	}
	return h.shares(), nil
}
