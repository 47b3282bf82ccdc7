package online

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// planFor returns the cheapest plan that reaches the target; Cost tells what it takes.
func planFor(s Spec, t Target) (Plan, error) {
	moves, err := s.check()
	if err != nil {
		return Plan{}, err
	}
	if t.Width < 1 || t.Width > maxRows {
		return Plan{}, fmt.Errorf("width is %d, must be from 1 to %d", t.Width, int64(maxRows))
	}
	if err := checkMiss(t.Miss); err != nil {
		return Plan{}, err
	}
	width := float64(t.Width) / float64(moves)
	return s.plan(shapeOf(s, t.Miss), max(width-2/float64(moves), width/2), moves, math.Ceil)
}

// restore begins a new instance from a state, which takes one update and one restart; the state that says so is
// checkpointed before anything else happens. A state without two updates left is spent.
func restore(p Plan, s State, truth privacy.Sensitive[[]int64], random io.Reader, checkpoint Checkpoint) (*Session, error) {
	switch {
	case !p.valid:
		return nil, errUnplanned
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

// Target is the error that is asked for: an answer is off by more than Width rows with probability at most Miss, each
// by itself and while the session lasts.
type Target struct {
	Width int64
	Miss  noise.Probability
}
