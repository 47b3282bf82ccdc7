package mechanisms

import (
	"errors"
	"fmt"
	"io"

	"github.com/dpproxy/dpproxy/mechanisms/internal/memo"
	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/online"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// OnlineRule names how the public hypothesis of an online measurement learns. The numbers are in ledgers: never change
// one.
type OnlineRule uint8

// The rules. The zero value is invalid.
const (
	MultiplicativeWeights OnlineRule = 1 + iota // one distribution, the nearest that gives the answers
	Median                                      // the median of points among all distributions that give them, about
	MedianBasic                                 // the median of all databases of few rows that give them, as first published
)

func (r OnlineRule) String() string {
	return [...]string{"invalid", "multiplicative weights", "median mechanism", "median mechanism over small databases"}[min(r, MedianBasic+1)%4]
}

// Online is a measurement that answers counting queries over its cells one after the other, of which only those cost
// that its public hypothesis gets wrong: package online's Session. All of it is public.
type Online struct {
	Rule         OnlineRule
	Contribution Contribution
	Rows         int64 // a public guess of the number of rows
	Spare        int64 // how many more there may be
	Updates      int   // answers from the rows, until it stops
	Queries      int64 // of rules that answer so many
	Cost         privacy.Cost
}

// onlineMiss is the probability for which a session's error is planned.
const onlineMiss = noise.Probability(.05)

// NewOnline returns the Spec of a session over so many cells.
//
// Claim: all that a session says, and those restored from it, cost o.Cost for o.Contribution: online.Session's claim,
// whose queries are sums of whole cells, of which a unit's rows move each by at most Contribution.Rows.
func NewOnline(o Online, cells int) (Spec, error) {
	s := Spec{Counters: 1, Cells: cells, Kind: &o}
	return s, s.check()
}

// release: cells that are asked about one after the other are not drawn.
func (o *Online) release(Spec, Placement, privacy.Sensitive[[]privacy.Group], io.Reader) (none privacy.Released[Noisy], _ error) {
	return none, errors.New("spec is of a session, must be opened by Open")
}

func (o *Online) hasNoise() bool { return !o.Cost.IsZero() }

// check refuses every session that NewOnline would not make.
func (o *Online) check(s Spec) error {
	switch {
	case s.Counters != 1:
		return fmt.Errorf("number of counters is %d, must be 1", s.Counters)
	case s.Cells < 1 || s.Cells > MaxCells:
		return fmt.Errorf("number of cells is %d, must be from 1 to %d", s.Cells, MaxCells)
	case o.Rule < MultiplicativeWeights || o.Rule > MedianBasic:
		return fmt.Errorf("rule is %d, must be from %d to %d", o.Rule, MultiplicativeWeights, MedianBasic)
	case o.Queries != 0 && o.Rule != MedianBasic:
		return fmt.Errorf("queries is %d, must be 0: %s answers any number", o.Queries, o.Rule)
	}
	if err := checkContribution(o.Contribution); err != nil {
		return err
	}
	_, err := o.mechanism(s.Cells)
	return err
}

// sessionKey is all that a session's plan and error depend on.
type sessionKey struct {
	online     Online
	cells      int
	confidence float64
}

// plans and sessionErrors remember what takes a search.
var (
	plans         = memo.Map[sessionKey, online.Mechanism]{Most: memo.Small}
	sessionErrors = memo.Map[sessionKey, Error]{Most: memo.Small}
)

// mechanism plans a session.
func (o *Online) mechanism(cells int) (online.Mechanism, error) {
	return plans.Try(sessionKey{*o, cells, 0}, 1, func() (online.Mechanism, error) { return o.plan(cells) })
}

func (o *Online) plan(cells int) (online.Mechanism, error) {
	if o.Rule == MedianBasic {
		return online.LeastBasic(online.BasicSpec{Cells: cells, Rows: o.Rows, Queries: o.Queries, Hard: o.Updates, Contribution: o.Contribution, Cost: o.Cost})
	}
	accountant := privacy.Pure
	if o.Cost.Rho.Pico() != 0 {
		accountant = privacy.ZCDP
	}
	return online.NewPlan(online.Spec{
		Cells: cells, Contribution: o.Contribution, Rows: o.Rows, Spare: o.Spare, Updates: o.Updates, Restarts: o.Updates - 1,
		Median: o.Rule == Median, Accountant: accountant,
	}, o.Cost, onlineMiss)
}

// error is that of any answer, while the session lasts.
func (o *Online) error(cells int, c Confidence) Error {
	return sessionErrors.Of(sessionKey{*o, cells, c.p}, 1, func() Error {
		m, err := o.mechanism(cells)
		if err != nil {
			panic("mechanisms: error of a session that was not planned: " + err.Error())
		}
		typical := float64(m.Width(onlineMiss)) / 1.96
		return Error{HalfWidth: m.Width(noise.Probability(min(max(1-c.p, 1e-12), .25))), Variance: typical * typical}
	})
}

func (o *Online) errors(s Spec, confidence Confidence) *Errors {
	own := o.error(s.Cells, confidence)
	return &Errors{cells: s.Cells, kind: Identity, asked: &own}
}

// ofSession is the error of one answer: none where no cell is asked about.
func (e *Errors) ofSession(spans []Span) Error {
	if len(spans) == 0 {
		return Error{}
	}
	return *e.asked
}

// Rival compares a session with a plain histogram of its cells at the same cost: the half-widths of a session's answer,
// and of the histogram's to the question that it answers worst, that over all cells.
func (s Spec) Rival(c Confidence) (session, histogram int64, err error) {
	o := s.Kind.(*Online)
	plain, err := Plain(1, s.Cells, o.Contribution, privacy.Cost{Epsilon: o.Cost.Epsilon, Rho: o.Cost.Rho})
	if err != nil {
		return 0, 0, err
	}
	return o.error(s.Cells, c).HalfWidth, plain.Error([]Span{{0, s.Cells}}, c).HalfWidth, nil
}

// Session answers counting queries about cells; see Online. Questions wait for each other.
type Session struct {
	cells int
	asks  online.Answerer
	memo  *online.Memo
}

// SessionAnswer is what one question got.
type SessionAnswer struct {
	Value   int64
	Hard    bool // from the rows, at one update; else the hypothesis's own
	Left    int  // updates left
	Guessed bool // the session has stopped: the hypothesis's own, with no promise
}

// maxRemembered bounds the questions whose answers a session repeats.
const maxRemembered = 1 << 14

// open begins a session.
func (o *Online) open(s Spec, place Placement, truth privacy.Sensitive[[]privacy.Group], random io.Reader, save func([]byte) error) (Live, error) {
	return o.session(s, nil, place, truth, random, save)
}

// restore goes on with a lost session.
func (o *Online) restore(s Spec, steps [][]byte, place Placement, truth privacy.Sensitive[[]privacy.Group], random io.Reader, save func([]byte) error) (Live, error) {
	if len(steps) == 0 || string(steps[len(steps)-1]) != string(online.RestartStep()) {
		return nil, errors.New("the last step is no restart")
	}
	return o.session(s, steps, place, truth, random, save)
}

func (o *Online) session(spec Spec, steps [][]byte, place Placement, truth privacy.Sensitive[[]privacy.Group], random io.Reader, save func([]byte) error) (Live, error) {
	m, err := o.mechanism(spec.Cells)
	if err != nil {
		return nil, err
	}
	cells, err := Tally(1, spec.Cells, place, truth)
	if err != nil {
		return nil, err
	}
	s := &Session{cells: spec.Cells}
	if s.asks, err = m.Open(steps, cells, random, save); err != nil {
		return nil, err
	}
	if s.memo, err = online.NewMemo(s.asks, maxRemembered); err != nil {
		return nil, err
	}
	return s, nil
}

// RestartStep is the step that a restart takes, saved before a session is restored.
func RestartStep() []byte { return online.RestartStep() }

// left returns the updates that steps leave to a session; see LeftAfter.
func (o *Online) left(s Spec, steps [][]byte, restored bool) (int, error) {
	m, err := o.mechanism(s.Cells)
	if err != nil {
		return 0, err
	}
	return m.Left(steps, restored)
}

// Answer answers how many rows are in some cells. A question that was asked before gets the same answer; after the end
// a new one gets the hypothesis's own. An error means that nothing may be released: the session is to be restored from
// its steps.
func (s *Session) Answer(asked Question) (privacy.Released[SessionAnswer], error) {
	var none privacy.Released[SessionAnswer]
	if len(asked.Spans) == 0 {
		return ofHypothesis(SessionAnswer{}), nil // no cell is asked about: 0, whatever the data
	}
	q, err := queryOf(s.cells, asked.Spans)
	if err != nil {
		return none, err
	}
	a, err := s.memo.Answer(q)
	if stopped := (*online.Stopped)(nil); errors.As(err, &stopped) && stopped.Reason != online.Undurable && stopped.Reason != online.NoRandomness {
		guess, err := s.asks.Guess(q)
		if err != nil {
			return none, err
		}
		return ofHypothesis(SessionAnswer{Value: guess, Guessed: true}), nil
	}
	if err != nil {
		return none, err
	}
	return privacy.PostProcess(a, func(a online.Answer) SessionAnswer { return SessionAnswer{Value: a.Value, Hard: a.Hard, Left: a.Left} }), nil
}

// ofHypothesis releases an answer that is computed without the data, from the hypothesis and the question alone.
func ofHypothesis(a SessionAnswer) privacy.Released[SessionAnswer] { return sealed.Release(a) }

// Left returns the updates left.
func (s *Session) Left() int { return s.asks.Left() }

func queryOf(cells int, spans []Span) (online.Query, error) {
	own := make([]online.Span, 0, len(spans))
	for _, span := range normal(spans, cells) {
		own = append(own, online.Span(span))
	}
	return online.Spans(cells, own...)
}

// Belief is the public hypothesis that a session's steps have led to, read without the session.
type Belief struct{ shares []float64 }

// Believe makes the hypothesis of a session's steps.
func (s Spec) Believe(steps [][]byte) (*Belief, error) {
	o, ok := s.Kind.(*Online)
	if !ok {
		return nil, errors.New("spec is not of a session")
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	m, err := o.mechanism(s.Cells)
	if err != nil {
		return nil, err
	}
	shares, err := m.Shares(steps)
	return &Belief{shares}, err
}
