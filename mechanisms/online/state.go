package online

import (
	"encoding/binary"
	"errors"
)

// Entry is a hard answer: the public knows it. Value counts rows.
type Entry struct {
	Query Query
	Value int64
}

// state is what outlives the process of a Session or a Basic: its hard answers, how often it was restored and, of a
// Basic, how many questions count as asked. It is the sum of its steps, so that what is written for an update grows
// with its query and not with the session. It holds no secret, above all not the threshold's noise; the hypothesis is a
// function of it. Whoever keeps the steps must not hand out fewer than there are.
type state struct {
	restarts int
	entries  []Entry
	asked    int64
}

// used counts the hard answers that are gone: a restart takes one, since the lost process may have had one that it did
// not save.
func (s state) used() int { return len(s.entries) + s.restarts }

// left returns the hard answers of so many that a state leaves: to who goes on, or to who is restored first.
func (s state) left(most int, restored bool) int {
	most -= s.used()
	if restored {
		most--
	}
	return max(most, 0)
}

// The kinds of steps. They are in ledgers: never change one.
const (
	stepRestart = 'r'
	stepHard    = 'h'
	stepAsked   = 'q' // of a Basic: so many questions count as asked, whether they will be or not
)

// RestartStep is the step of a restart, which is made durable before anything is restored.
func RestartStep() []byte { return []byte{stepRestart} }

// step is that of a hard answer.
func (e Entry) step() []byte { return binary.AppendVarint(e.Query.append([]byte{stepHard}), e.Value) }

var errMalformedStep = errors.New("a step of the state is malformed")

// replay adds up steps over so many cells, of which so many queries may count as asked. The plan is made of the Spec
// that was saved with them: steps do not name one.
func replay(steps [][]byte, cells int, queries int64) (s state, err error) {
	for _, step := range steps {
		rest, err := s.add(step, cells, queries)
		if err != nil {
			return state{}, err
		}
		if len(rest) != 0 {
			return state{}, errors.New("a step of the state is too long")
		}
	}
	return s, nil
}

// add adds a step, and returns what it did not read of it.
func (s *state) add(step []byte, cells int, queries int64) (rest []byte, err error) {
	if len(step) == 0 {
		return nil, errMalformedStep
	}
	switch kind, rest := step[0], step[1:]; kind {
	case stepRestart:
		s.restarts++
		return rest, nil
	case stepAsked:
		n, rest, ok := cutUvarint(rest)
		if !ok || n > uint64(queries) || int64(n) < s.asked {
			return nil, errMalformedStep
		}
		s.asked = int64(n)
		return rest, nil
	case stepHard:
		e, rest, err := cutEntry(rest, cells)
		s.entries = append(s.entries, e)
		return rest, err
	}
	return nil, errMalformedStep
}

func cutEntry(from []byte, cells int) (Entry, []byte, error) {
	q, from, err := cutQuery(from, cells)
	if err != nil {
		return Entry{}, nil, err
	}
	value, n := binary.Varint(from)
	if n <= 0 || value < -maxNoisy || value > maxNoisy {
		return Entry{}, nil, errors.New("an answer in the state is malformed")
	}
	return Entry{q, value}, from[n:], nil
}
