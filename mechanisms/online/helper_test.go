package online

import (
	"fmt"
	"io"
	"math"
	"slices"

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

// open opens a session.
func open(p Plan, steps [][]byte, cells []int64, random io.Reader, save func([]byte) error) (*Session, error) {
	a, err := p.Open(steps, privacy.Seal(cells), random, save)
	if err != nil {
		return nil, err
	}
	return a.(*Session), nil
}

// restore goes on after steps with that of a restart.
func restore(p Plan, steps [][]byte, cells []int64, random io.Reader, save func([]byte) error) (*Session, error) {
	if err := save(RestartStep()); err != nil {
		return nil, err
	}
	return open(p, append(slices.Clip(steps), RestartStep()), cells, random, save)
}

// openBasic opens a mechanism that has just been paid.
func openBasic(p BasicPlan, cells []int64, random io.Reader) (*Basic, error) {
	a, err := p.Open(nil, privacy.Seal(cells), random, keep)
	if err != nil {
		return nil, err
	}
	return a.(*Basic), nil
}

// Target is the error that is asked for: an answer is off by more than Width rows with probability at most Miss, each
// by itself and while the session lasts.
type Target struct {
	Width int64
	Miss  noise.Probability
}
