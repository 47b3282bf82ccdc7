package mechanisms

import (
	"errors"
	"io"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Live is a release that is asked one question after the other, a *Session or a *Watch. Its secrets are in this process
// alone. It is safe for concurrent use.
type Live interface {
	// Answer answers a question. An error means that nothing may be sent, and that the release is to be restored from
	// its steps; ErrAlarmsSpent that it has ended.
	Answer(q Question) (privacy.Released[SessionAnswer], error)
	// Left returns the updates or the positives left.
	Left() int
}

// Question is what a release that goes on is asked: a session how many rows are in the cells of Spans, a run of alarms
// whether the one count of Groups is at least Least.
type Question struct {
	Spans  []Span
	Place  Placement
	Groups privacy.Sensitive[[]privacy.Group]
	Least  int64
}

// liveKind is a Kind of a release that goes on.
type liveKind interface {
	Kind
	open(s Spec, place Placement, truth privacy.Sensitive[[]privacy.Group], random io.Reader, save func([]byte) error) (Live, error)
	restore(s Spec, steps [][]byte, place Placement, truth privacy.Sensitive[[]privacy.Group], random io.Reader, save func([]byte) error) (Live, error)
	left(s Spec, steps [][]byte, restored bool) (int, error)
}

// GoesOn reports whether a release of the Spec is asked one question after the other, as long as its process lives, and
// has steps.
func (s Spec) GoesOn() bool {
	_, ok := s.Kind.(liveKind)
	return ok
}

// live returns the checked kind of a release that goes on.
func (s Spec) live() (liveKind, error) {
	k, ok := s.Kind.(liveKind)
	if !ok {
		return nil, errors.New("spec is of no release that goes on")
	}
	return k, s.check()
}

// Open begins a release that goes on, whose cost has been charged. Of a session the truth is the sealed groups of its
// cells. save makes a step durable before the answer that the step tells is returned; its error withholds the answer
// and ends the release here.
func Open(s Spec, place Placement, truth privacy.Sensitive[[]privacy.Group], random io.Reader, save func(step []byte) error) (Live, error) {
	k, err := s.live()
	if err != nil {
		return nil, err
	}
	if save == nil {
		return nil, errors.New("nothing saves the steps")
	}
	return k.open(s, place, truth, random, save)
}

// Restore goes on where a lost release stood, from its steps. A session's last step is that of this restart, which was
// made durable before the rows were read again; a run saves one of its own first, which takes a positive.
func Restore(s Spec, steps [][]byte, place Placement, truth privacy.Sensitive[[]privacy.Group], random io.Reader, save func(step []byte) error) (Live, error) {
	k, err := s.live()
	if err != nil {
		return nil, err
	}
	if save == nil {
		return nil, errors.New("nothing saves the steps")
	}
	return k.restore(s, steps, place, truth, random, save)
}

// LeftAfter returns the updates that steps leave to a session, or the positives that they leave to a run of alarms: to
// one that goes on, or to one that is restored first. At 0 it has stopped.
func (s Spec) LeftAfter(steps [][]byte, restored bool) (int, error) {
	k, err := s.live()
	if err != nil {
		return 0, err
	}
	return k.left(s, steps, restored)
}
