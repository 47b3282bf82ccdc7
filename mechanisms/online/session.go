package online

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Mechanism is a planned way to answer queries one by one, a Plan or a BasicPlan. Steps are all that were saved of it,
// in their order, none where it has just been paid.
type Mechanism interface {
	// Width returns how many rows an answer may be off: more with probability at most miss, each by itself.
	Width(miss noise.Probability) int64
	// Left returns the hard answers that steps leave to who goes on, or to who is restored first. At 0 it has stopped.
	Left(steps [][]byte, restored bool) (int, error)
	// Shares returns the share of all rows that the hypothesis of the steps gives each cell: read without a session,
	// also when that has stopped, or its process is gone.
	Shares(steps [][]byte) ([]float64, error)
	// Open begins or, after steps of which the last is that of this restart, goes on. save makes a step durable before
	// the answer that it tells is returned. If it fails, the answer is withheld and the session stopped.
	Open(steps [][]byte, truth privacy.Sensitive[[]int64], random io.Reader, save func(step []byte) error) (Answerer, error)
}

// Answerer answers queries one by one: a Session or a Basic.
type Answerer interface {
	Answer(q Query) (privacy.Released[Answer], error)
	// Guess returns what the hypothesis says, without a look at the rows: it is free, also after the end, and promises
	// nothing.
	Guess(q Query) (int64, error)
	// Left returns the hard answers left.
	Left() int
	// Told returns the hard answers that were given, in their order.
	Told() []Entry
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
	Undurable                      // a step could not be saved; restore from those that are durable
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

// Session is a sparse vector over a public hypothesis: Online Iterative Construction with multiplicative weights, or
// the median mechanism in the same form. It is safe for concurrent use.
//
// Claim: all that a session says, over all its lives between the first Open and the last, is Plan.Cost-DP (-zCDP).
// Theorem: adaptive composition (pure ε; ρ by Bun and Steinke 2016), ε-DP implies ε²/2-zCDP (the same, Proposition
// 1.4); for the outline Hardt and Rothblum 2010, Roth and Roughgarden 2010, Gupta, Roth, Ullman 2012. Proof: the rows
// are opened in instance.observe alone. Everything else is a function of the answers: guesses come from the hypothesis,
// the hypothesis from the transcript, the end from the count of hard answers. Pure, no restart: one instance, c =
// Updates: ε₁ + c(ε₂+ε₃) by the claim at instance. Pure, a restart: the old instance has released some hard answers
// that are in the state, and at most one hard bit that is not (its step was not saved, so its answer was withheld, and
// the session stopped). It gives up one update, ε₂+ε₃, and max(0, ε₁−ε₃) that was paid for the restart at the
// beginning: together at least ε₂ for that bit and ε₁ for the new threshold's noise. zCDP: a new instance begins after
// every hard answer, each (ε₁+ε₂)-DP in its bits and so (ε₁+ε₂)²/2-zCDP, and ρ₃ for the answer; an abandoned instance,
// whatever of it was seen, is covered by the update that the restart takes. No instance begins when no update is left.
// Limits: every answer is within Plan.Width by its own noise, but nothing promises that the updates last: that depends
// on the rows and queries. Restoring twice from one state would make two instances of one: the state's keeper holds a
// lease.
type Session struct {
	lock       sync.Mutex
	plan       Plan
	truth      privacy.Sensitive[[]int64]
	random     *noise.Reader
	instance   instance
	hypothesis hypothesis
	state      state
	save       func(step []byte) error
	stopped    *Stopped
}

func (p Plan) replay(steps [][]byte) (state, error) {
	if !p.valid {
		return state{}, errUnplanned
	}
	return replay(steps, p.spec.Cells, 0)
}

// Left is that of Mechanism.
func (p Plan) Left(steps [][]byte, restored bool) (int, error) {
	s, err := p.replay(steps)
	return s.left(p.spec.Updates, restored), err
}

// Shares is that of Mechanism.
func (p Plan) Shares(steps [][]byte) ([]float64, error) {
	s, err := p.replay(steps)
	if err != nil {
		return nil, err
	}
	return p.hypothesis(s).shares(), nil
}

// Open begins a session whose whole cost has been charged, or goes on with one.
func (p Plan) Open(steps [][]byte, truth privacy.Sensitive[[]int64], random io.Reader, save func(step []byte) error) (Answerer, error) {
	state, err := p.replay(steps)
	switch {
	case err != nil:
		return nil, err
	case !truth.Valid():
		return nil, errors.New("truth was never sealed")
	case save == nil:
		return nil, errUnsaved
	case len(steps) > 0 && state.restarts < 1 || state.restarts > p.spec.Restarts: // a new threshold is a restart's
		return nil, fmt.Errorf("restarts is %d, must be from 1 to the declared %d", state.restarts, p.spec.Restarts)
	case state.used() >= p.spec.Updates:
		return nil, &Stopped{Spent}
	}
	sources, err := p.sources()
	if err != nil {
		return nil, err
	}
	return &Session{
		plan: p, truth: snapshot(truth), random: noise.NewReader(random), save: save, state: state,
		instance: instance{sources: sources, above: p.threshold}, hypothesis: p.hypothesis(state),
	}, nil
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
	if s.plan.spec.Accountant == privacy.ZCDP {
		s.instance.forget()
	}
	if err := s.save(e.step()); err != nil {
		return privacy.Released[Answer]{}, errors.Join(s.stop(Undurable), err)
	}
	s.state.entries = append(s.state.entries, e)
	if s.left() == 0 {
		s.stop(Spent)
	}
	s.hypothesis.learn(s.state.entries)
	return sealed.Release(Answer{Value: e.Value, Hard: true, Left: s.left()}), nil
}

// Guess returns what the hypothesis says.
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

// Told returns the hard answers.
func (s *Session) Told() []Entry {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Clone(s.state.entries)
}

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

// hypothesis returns the one that a state has led to.
func (p Plan) hypothesis(s state) (h hypothesis) {
	h = newWeights(p)
	if p.spec.Median {
		h = newPolytope(p)
	}
	for i := range s.entries {
		h.learn(s.entries[:i+1])
	}
	return h
}
