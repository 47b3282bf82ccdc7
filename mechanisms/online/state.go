package online

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Entry is a hard answer: the public knows it. Value counts rows.
type Entry struct {
	Query Query
	Value int64
}

// State is what outlives a session's process: its hard answers and how often it was restored. It holds no secret, above
// all not the threshold's noise; the hypothesis is a function of it. It is immutable. Whoever keeps it must not hand
// out an older one than the last.
type State struct {
	restarts int
	entries  []Entry
}

// Entries returns the hard answers, in their order.
func (s State) Entries() []Entry { return slices.Clone(s.entries) }

// used counts the updates that are gone.
func (s State) used() int { return len(s.entries) + s.restarts }

func (s State) with(e Entry) State {
	s.entries = append(slices.Clip(s.entries), e)
	return s
}

// Resume begins a new instance from a state in which its own restart is counted already and durable.
func Resume(p Plan, s State, truth privacy.Sensitive[[]int64], random io.Reader, checkpoint Checkpoint) (*Session, error) {
	switch {
	case !p.valid:
		return nil, errUnplanned
	case s.restarts < 1 || s.restarts > p.spec.Restarts:
		return nil, fmt.Errorf("restarts is %d, must be from 1 to the declared %d", s.restarts, p.spec.Restarts)
	case s.used() >= p.spec.Updates:
		return nil, &Stopped{Spent}
	}
	return open(p, s, truth, random, checkpoint)
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
