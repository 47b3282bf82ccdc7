package mechanisms

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/internal/memo"
	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/sparse"
)

// Alarm is a measurement that says, of one count after the other, whether it is above a threshold, until so many of
// them were: a run of package sparse. Answers below cost nothing, however many. All of it is public.
type Alarm struct {
	Positives    int          // answers "above" until its end
	Restarts     int          // how often it may go on after its threshold was lost; each takes a positive
	Contribution Contribution // of every unit to every count that is asked about
	Cost         privacy.Cost // of the whole run
}

// AlarmFor is the Alarm of so many positives that survives what restarts it can afford: under an ε one, which makes the
// threshold's noise wider by less than the positives make the comparisons'; under a ρ any number, since every positive
// has a threshold of its own there.
func AlarmFor(positives int, c Contribution, cost privacy.Cost) Alarm {
	a := Alarm{Positives: positives, Contribution: c, Cost: cost}
	if cost.Rho.Pico() == 0 && positives > 1 {
		a.Restarts = 1
	}
	return a
}

// NewAlarm returns the Spec of a run.
//
// Claim: all that a run says, and those restored from it, cost a.Cost together, for units that contribute
// a.Contribution to each of the tables that are asked about: sparse.Instance's claim. A count moves by at most Rows:
// under add-remove that many are there or not, in all counts the same way (monotone); under replace-one at most that
// many go and at most that many come.
func NewAlarm(a Alarm) (Spec, error) {
	s := Spec{Counters: 1, Cells: 1, Kind: &a}
	return s, s.check()
}

// release: counts that are compared one after the other are not drawn.
func (a *Alarm) release(Spec, Placement, privacy.Sensitive[[]privacy.Group], io.Reader) (none privacy.Released[Noisy], _ error) {
	return none, errors.New("spec is of a run of alarms, must be opened by Open")
}

func (a *Alarm) errors(Spec, Confidence) *Errors { panic(countsNothing) }

func (a *Alarm) hasNoise() bool { return !a.Cost.IsZero() }

// check refuses every run that NewAlarm would not make.
func (a *Alarm) check(s Spec) error {
	if s.Counters != 1 || s.Cells != 1 {
		return fmt.Errorf("number of counters is %d with %d cells, must be one of each", s.Counters, s.Cells)
	}
	if err := checkContribution(a.Contribution); err != nil {
		return err
	}
	_, err := a.mechanism()
	return err
}

// alarms remembers mechanisms.
var alarms = memo.Map[Alarm, sparse.Mechanism]{Most: memo.Small}

func (a *Alarm) mechanism() (sparse.Mechanism, error) {
	return alarms.Try(*a, 1, func() (sparse.Mechanism, error) {
		return sparse.New(sparse.Spec{Positives: a.Positives, Restarts: a.Restarts, Sensitivity: unitRows(a.Contribution, 1),
			Monotone: a.Contribution.Neighbors == privacy.AddRemove, Cost: a.Cost})
	})
}

// Margin returns how far a count must be from its threshold for the answer to be right at the confidence.
func (s Spec) Margin(c Confidence) int64 {
	m, err := s.Kind.(*Alarm).mechanism()
	if err != nil {
		panic("mechanisms: margin of a run that was not planned: " + err.Error())
	}
	return int64(math.Ceil(m.Margin(noise.Probability(1 - c.p))))
}

// left returns the positives that steps leave to a run of the Spec; see LeftAfter.
func (a *Alarm) left(_ Spec, steps [][]byte, restored bool) (int, error) {
	state, err := a.state(steps)
	if err != nil {
		return 0, err
	}
	left := a.Positives - state.Positives
	if restored {
		left--
		if a.Cost.Rho.Pico() == 0 && state.Runs > a.Restarts {
			left = 0
		}
	}
	return max(left, 0), nil
}

// state is that which a run's last step holds.
func (a *Alarm) state(steps [][]byte) (sparse.State, error) {
	if len(steps) == 0 {
		return sparse.State{Runs: 1}, nil
	}
	last := steps[len(steps)-1]
	positives, n := binary.Uvarint(last)
	runs, more := binary.Uvarint(last[max(n, 0):])
	if n <= 0 || more <= 0 || n+more != len(last) || positives > math.MaxInt32 || runs > math.MaxInt32 {
		return sparse.State{}, errors.New("a run's last step cannot be read")
	}
	return sparse.State{Positives: int(positives), Runs: int(runs)}, nil
}

// ErrAlarmsSpent is what a question gets after the last positive of its run.
var ErrAlarmsSpent = sparse.ErrSpent

// Watch is a run in this process: its noisy threshold is here alone.
type Watch struct{ run *sparse.Instance }

// open begins a run, for which nothing has been counted yet.
func (a *Alarm) open(_ Spec, _ Placement, _ privacy.Sensitive[[]privacy.Group], random io.Reader, save func([]byte) error) (Live, error) {
	m, err := a.mechanism()
	if err != nil {
		return nil, err
	}
	opened := false
	run, err := m.Open(random, func(s sparse.State) error {
		if !opened { // as the saved release says
			opened = true
			return nil
		}
		return save(stepOf(s))
	})
	return watch(run, err)
}

// restore goes on with a lost run.
func (a *Alarm) restore(s Spec, steps [][]byte, _ Placement, _ privacy.Sensitive[[]privacy.Group], random io.Reader, save func([]byte) error) (Live, error) {
	m, err := a.mechanism()
	if err != nil {
		return nil, err
	}
	state, err := a.state(steps)
	if err != nil {
		return nil, err
	}
	return watch(m.Restore(state, random, func(s sparse.State) error { return save(stepOf(s)) }))
}

// watch returns nil if there is an error: a Live that is not nil goes on.
func watch(run *sparse.Instance, err error) (Live, error) {
	if err != nil {
		return nil, err
	}
	return &Watch{run}, nil
}

func stepOf(s sparse.State) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(s.Positives)), uint64(s.Runs))
}

// Answer says 1 where a count is at least a threshold, about, and else 0. Groups are what a query gave whose counts a
// unit moves by no more than the run's contribution.
func (w *Watch) Answer(q Question) (privacy.Released[SessionAnswer], error) {
	var none privacy.Released[SessionAnswer]
	cells, err := Tally(1, 1, q.Place, q.Groups)
	if err != nil {
		return none, err
	}
	a, err := w.run.Ask(sealed.Map(cells, func(c []int64) int64 { return c[0] }), q.Least)
	if err != nil {
		return none, err
	}
	return privacy.PostProcess(a, func(above bool) SessionAnswer {
		out := SessionAnswer{Left: w.Left()}
		if above {
			out.Value = 1
		}
		return out
	}), nil
}

// Left returns the positives left.
func (w *Watch) Left() int { return w.run.Remaining() }
