package online

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Entry is a hard answer: the public knows it. Value counts rows times the grid.
type Entry struct {
	Query Query
	Value int64
}

// State is what outlives a session's process: its hard answers and how often it was restored. It holds no secret, above
// all not the threshold's noise; the hypothesis is a function of it. It is immutable. Whoever keeps it must not hand out
// an older one than the last.
type State struct {
	plan     [32]byte
	restarts int
	earlier  int // the first entries, from other sessions
	entries  []Entry
}

// Entries returns the hard answers, in their order.
func (s State) Entries() []Entry { return slices.Clone(s.entries) }

// Restarts returns how often the session was restored.
func (s State) Restarts() int { return s.restarts }

// used counts the updates that are gone.
func (s State) used() int { return len(s.entries) - s.earlier + s.restarts }

func (s State) with(e Entry) State {
	s.entries = append(slices.Clip(s.entries), e)
	return s
}

// Restore begins a new instance from a state, which takes one update and one restart; the state that says so is
// checkpointed before anything else happens. A state without two updates left is spent.
func Restore(p Plan, s State, truth privacy.Sensitive[[]int64], random io.Reader, checkpoint Checkpoint) (*Session, error) {
	switch {
	case !p.valid:
		return nil, errUnplanned
	case s.plan != p.digest():
		return nil, errors.New("the state belongs to another plan")
	case s.used()+1 >= p.spec.Updates:
		return nil, &Stopped{Spent}
	case s.restarts >= p.spec.Restarts:
		return nil, fmt.Errorf("restarts is %d already, must be below the declared %d", s.restarts, p.spec.Restarts)
	case checkpoint == nil:
		return nil, errors.New("checkpoint is nil, must be a function to restore a session")
	}
	s.restarts++
	if err := checkpoint(s); err != nil {
		return nil, errors.Join(&Stopped{Undurable}, err)
	}
	return open(p, s, truth, random, checkpoint)
}

// Resume begins a new instance from a state in which its own restart is counted already and durable.
func Resume(p Plan, s State, truth privacy.Sensitive[[]int64], random io.Reader, checkpoint Checkpoint) (*Session, error) {
	switch {
	case !p.valid:
		return nil, errUnplanned
	case s.plan != p.digest():
		return nil, errors.New("the state belongs to another plan")
	case s.restarts < 1 || s.restarts > p.spec.Restarts:
		return nil, fmt.Errorf("restarts is %d, must be from 1 to the declared %d", s.restarts, p.spec.Restarts)
	case s.used() >= p.spec.Updates:
		return nil, &Stopped{Spent}
	}
	return open(p, s, truth, random, checkpoint)
}

const stateVersion = 1

// Encode writes the state, with a checksum against accidents. Sealing it against forgery is the keeper's.
func (s State) Encode() []byte {
	b := append([]byte{stateVersion}, s.plan[:]...)
	for _, n := range []int{s.restarts, s.earlier, len(s.entries)} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	if len(s.entries) > 0 {
		b = binary.AppendUvarint(b, uint64(s.entries[0].Query.cells))
	}
	for _, e := range s.entries {
		b = binary.AppendVarint(e.Query.append(b), e.Value)
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// DecodeState reads what Encode wrote.
func DecodeState(encoded []byte) (State, error) {
	bad := errors.New("the state is malformed")
	end := len(encoded) - sha256.Size
	if end < 33 || encoded[0] != stateVersion {
		return State{}, bad
	}
	if sum := sha256.Sum256(encoded[:end]); !bytes.Equal(sum[:], encoded[end:]) {
		return State{}, errors.New("the state's checksum is wrong")
	}
	s := State{plan: [32]byte(encoded[1:33])}
	rest := encoded[33:end]
	count := 0
	for _, to := range []*int{&s.restarts, &s.earlier, &count} {
		n, after, ok := cutUvarint(rest)
		if !ok || n > mostUpdates {
			return State{}, bad
		}
		*to, rest = int(n), after
	}
	if s.earlier > count {
		return State{}, bad
	}
	cells := uint64(0)
	if count > 0 {
		var ok bool
		if cells, rest, ok = cutUvarint(rest); !ok || cells < 1 || cells > mostCells {
			return State{}, bad
		}
	}
	for range count {
		e, after, err := cutEntry(rest, int(cells))
		if err != nil {
			return State{}, err
		}
		s.entries, rest = append(s.entries, e), after
	}
	if len(rest) != 0 {
		return State{}, bad
	}
	return s, nil
}

func cutEntry(from []byte, cells int) (Entry, []byte, error) {
	q, from, err := cutQuery(from, cells)
	if err != nil {
		return Entry{}, nil, err
	}
	value, n := binary.Varint(from)
	if n <= 0 || value < -mostNoisy || value > mostNoisy {
		return Entry{}, nil, errors.New("an answer in the state is malformed")
	}
	return Entry{q, value}, from[n:], nil
}
