package online

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Answerer answers queries one by one: a Session, a Basic, or a Memo over one of them.
type Answerer interface {
	Answer(q Query) (privacy.Released[Answer], error)
}

// Answer is what a query gets. Value counts rows.
type Answer struct {
	Value int64
	Hard  bool // bought with one of the updates; otherwise the hypothesis's own
	Left  int  // hard answers left; after the last one the session is stopped
}

// Stopped is the error of every Answer after the end. Its reason is public.
type Stopped struct{ Reason Reason }

func (s *Stopped) Error() string { return "the session is stopped: " + s.Reason.String() }

// Reason says why a session ended.
type Reason uint8

// The reasons.
const (
	Spent        Reason = 1 + iota // the last hard answer was given
	Undurable                      // the checkpoint failed; restore from the last state that is durable
	NoRandomness                   // the source of randomness failed
	NoCandidate                    // Basic: no small database agrees with the answers
	NoQueries                      // Basic: all queries that were declared have been asked
)

func (r Reason) String() string {
	switch r {
	case Spent:
		return "its hard answers are used up"
	case Undurable:
		return "its state could not be saved"
	case NoRandomness:
		return "the source of randomness failed"
	case NoCandidate:
		return "no candidate is left"
	case NoQueries:
		return "its queries are used up"
	}
	return "unknown reason"
}

// Checkpoint makes a state durable before the hard answer in it is sent. If it fails, the answer is withheld and the
// session stopped.
type Checkpoint func(State) error

// Session is a sparse vector over a public hypothesis: Online Iterative Construction with multiplicative weights, or
// the median mechanism in the same form. It is safe for concurrent use.
//
// Claim: all that a session says, over all its lives between Open and the last Resume, is Plan.Cost-DP (-zCDP).
// Theorem: adaptive composition (pure ε; ρ by Bun and Steinke 2016), ε-DP implies ε²/2-zCDP (the same, Proposition
// 1.4); for the outline Hardt and Rothblum 2010, Roth and Roughgarden 2010, Gupta, Roth, Ullman 2012. Proof: the rows
// are opened in instance.observe alone. Everything else is a function of the answers: guesses come from the hypothesis,
// the hypothesis from the transcript, the end from the count of hard answers. Pure, no restart: one instance, c =
// Updates: ε₁ + c(ε₂+ε₃) by the claim at instance. Pure, a restart: the old instance has told some hard answers that
// are in the state, and at most one hard bit that is not (its checkpoint failed, so its answer was withheld, and the
// session stopped). It gives up one update, ε₂+ε₃, and max(0, ε₁−ε₃) that was paid for the restart at the beginning:
// together at least ε₂ for that bit and ε₁ for the new threshold's noise. zCDP: a new instance begins after every hard
// answer, each (ε₁+ε₂)-DP in its bits and so (ε₁+ε₂)²/2-zCDP, and ρ₃ for the answer; an abandoned instance, whatever of
// it was seen, is covered by the update that the restart takes. No instance begins when no update is left. Limits:
// every answer is within Plan.Width by its own noise, but nothing promises that the updates last: that depends on the
// rows and queries. Restoring twice from one state would make two instances of one: the state's keeper holds a lease.
type Session struct {
	lock       sync.Mutex
	plan       Plan
	truth      privacy.Sensitive[[]int64]
	random     *noise.Reader
	instance   instance
	hypothesis hypothesis
	state      State
	checkpoint Checkpoint
	stopped    *Stopped
}

// Open begins a session whose whole cost has been charged. The checkpoint may be nil where no restart is declared.
func Open(p Plan, truth privacy.Sensitive[[]int64], random io.Reader, checkpoint Checkpoint) (*Session, error) {
	return open(p, State{}, truth, random, checkpoint)
}

func open(p Plan, state State, truth privacy.Sensitive[[]int64], random io.Reader, checkpoint Checkpoint) (*Session, error) {
	switch {
	case !p.valid:
		return nil, errUnplanned
	case !truth.Valid():
		return nil, errors.New("truth was never sealed")
	case checkpoint == nil && p.spec.Restarts > 0:
		return nil, fmt.Errorf("restarts is %d, must be 0 without a checkpoint", p.spec.Restarts)
	}
	sources, err := p.sources()
	if err != nil {
		return nil, err
	}
	for _, e := range state.entries {
		if err := e.Query.check(p.spec.Cells); err != nil {
			return nil, err
		}
	}
	s := &Session{
		plan: p, truth: snapshot(truth), random: noise.NewReader(random), checkpoint: checkpoint, state: state,
		instance: instance{sources: sources, above: p.threshold},
	}
	s.hypothesis = newHypothesis(p)
	for i := range state.entries {
		s.hypothesis.learn(state.entries[:i+1])
	}
	return s, nil
}

// Answer answers q, or says why not: a query that does not fit the universe costs nothing; after the end every query is
// refused with *Stopped.
func (s *Session) Answer(q Query) (privacy.Released[Answer], error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	var none privacy.Released[Answer]
	if s.stopped != nil {
		return none, s.stopped
	}
	if err := q.check(s.plan.spec.Cells); err != nil {
		return none, err
	}
	comparison, err := s.instance.draw(s.random)
	if err != nil {
		return none, errors.Join(s.stop(NoRandomness), err)
	}
	guess := s.guess(q)
	hard, value := s.instance.observe(q, guess, s.truth, comparison)
	if !hard {
		return sealed.Release(Answer{Value: guess, Left: s.left()}), nil
	}
	return s.buy(Entry{Query: q, Value: value})
}

// buy enters a hard answer, makes it durable and learns from it. A withheld answer does not enter the state, which is
// public: a restart pays for the bit that there was one, not for what it was.
func (s *Session) buy(e Entry) (privacy.Released[Answer], error) {
	state := s.state.with(e)
	if s.plan.spec.Accountant == privacy.ZCDP {
		s.instance.forget()
	}
	if s.checkpoint != nil {
		if err := s.checkpoint(state); err != nil {
			return privacy.Released[Answer]{}, errors.Join(s.stop(Undurable), err)
		}
	}
	s.state = state
	if s.left() == 0 {
		s.stop(Spent)
	}
	s.hypothesis.learn(s.state.entries)
	return sealed.Release(Answer{Value: e.Value, Hard: true, Left: s.left()}), nil
}

// Guess returns what the hypothesis says, without a look at the rows: it is free, also after the end, and promises
// nothing.
func (s *Session) Guess(q Query) (int64, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if err := q.check(s.plan.spec.Cells); err != nil {
		return 0, err
	}
	return s.guess(q), nil
}

// guess rounds the hypothesis's answer: from here on it is a public integer.
func (s *Session) guess(q Query) int64 {
	return rounded(s.hypothesis.mass(q), s.plan.whole())
}

func rounded(mass, whole float64) int64 { return int64(min(max(math.Round(mass*whole), 0), whole)) }

// Left returns the updates left.
func (s *Session) Left() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.left()
}

func (s *Session) left() int { return s.plan.spec.Updates - s.state.used() }

func (s *Session) stop(why Reason) *Stopped {
	s.instance.forget()
	s.truth = privacy.Sensitive[[]int64]{}
	s.stopped = &Stopped{why}
	return s.stopped
}

// hypothesis is what the public believes of the rows.
type hypothesis interface {
	mass(q Query) float64  // the weight of q, from 0 to 1
	learn(entries []Entry) // the last entry is new
	shares() []float64     // the share of all rows in each cell, without those that are absent
}

func newHypothesis(p Plan) hypothesis {
	if p.spec.Median {
		return newPolytope(p)
	}
	return newWeights(p)
}
