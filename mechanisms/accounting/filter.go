package accounting

import (
	"errors"
	"fmt"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// ErrSpent is returned, wrapped, by a filter that has not enough left. Nothing has been charged then.
var ErrSpent = errors.New("budget is spent")

// A filter is a budget that whoever chooses the next release, its cost and its kind, after seeing all answers so far
// cannot exceed. Its limit is fixed before the first release.
//
// Claim (PureFilter, limit ε and δ): all answers together are (ε, δ)-DP, whatever the choices. (ConcentratedFilter, limit
// ρ and δ): δ-approximately ρ-zCDP, hence (ε', δ' + δ)-DP for every pair (ε', δ') that ρ-zCDP implies. Both also where
// some of what was charged are interactive mechanisms (Open) that are alive at the same time, their queries interleaved
// and chosen after each other's answers.
// Neighbours: those of all costs charged, which must be of one relation.
//
// Theorem: without δ, that fixed sums are valid filters for pure DP (Rogers, Roth, Ullman, Vadhan 2016) and for zCDP
// (Feldman and Zrnic 2021; Lécuyer 2021; order by order, zCDP is Rényi DP), and that valid filters stay valid under
// concurrent composition (Vadhan and Zhang 2023; Haney, Shoaib, Vadhan, … 2023, "Concurrent composition for interactive
// differential privacy with adaptive privacy-loss parameters").
//
// Proof for releases with a δ_i, one message each, beside interactive mechanisms with none. Fix neighbours D and D'. A
// release i, once chosen, answers on D by P'_i with probability 1−δ_i, else by P”_i: let a hidden coin decide. On every
// path of the interaction the chance that no coin has chosen P” so far is Π(1−δ_i) ≥ 1−Σδ_i ≥ 1−δ, as the filter refuses
// what goes beyond; a last coin, of a bias that the path determines, brings it down to 1−δ exactly. Given that all coins
// were good, then, the transcript has exactly the law of the interaction in which every release answers by P'_i: its
// probability is that law's times the constant 1−δ, over 1−δ. The same coins do it on D' with Q'_i. So the transcripts are
// (1−δ)P' + δP” and (1−δ)Q' + δQ”, and P', Q' are the transcripts of a concurrent composition of mechanisms of which each
// is ε_i-DP, or ρ_i-zCDP, on this pair, to which the theorem applies. From ρ and (ε', δ'):
// (1−δ)P'(O)+δ ≤ (1−δ)(e^ε' Q'(O)+δ')+δ ≤ e^ε' M(D')(O) + δ'+δ.
//
// Limits: an interactive mechanism is charged in full when it is opened and must stop by itself. One with a δ of its own
// cannot be opened here. The filter's balance may be shown to those who chose, if costs are functions of public things
// and of answers.

// PureFilter adds up ε.
type PureFilter struct {
	mutex sync.Mutex
	limit privacy.Cost
	spent privacy.Cost
}

// ConcentratedFilter adds up ρ.
type ConcentratedFilter struct {
	mutex sync.Mutex
	limit privacy.Cost
	spent privacy.Cost
}

// PureSession is an interactive ε-DP mechanism's cost, ConcentratedSession that of a ρ-zCDP one. They have no δ.
type PureSession struct{ epsilon privacy.Epsilon }

// ConcentratedSession is an interactive ρ-zCDP mechanism's cost.
type ConcentratedSession struct{ rho privacy.Rho }

// NewPureFilter returns the filter of a limit that names ε; its δ, for thresholded keys, may be 0.
func NewPureFilter(limit privacy.Cost) (*PureFilter, error) {
	if _, err := Pure(limit); err != nil {
		return nil, err
	}
	return &PureFilter{limit: limit}, nil
}

// NewConcentratedFilter returns the filter of a limit that names ρ; its δ, for thresholded keys, may be 0.
func NewConcentratedFilter(limit privacy.Cost) (*ConcentratedFilter, error) {
	if _, err := Concentrated(limit); err != nil {
		return nil, err
	}
	return &ConcentratedFilter{limit: limit}, nil
}

// NewPureSession makes the cost of an interactive mechanism.
func NewPureSession(e privacy.Epsilon) (PureSession, error) {
	if e.Micro() <= 0 {
		return PureSession{}, fmt.Errorf("epsilon is %s, must be greater than 0", e)
	}
	return PureSession{e}, nil
}

// NewConcentratedSession makes the cost of an interactive mechanism.
func NewConcentratedSession(r privacy.Rho) (ConcentratedSession, error) {
	if r.Pico() <= 0 {
		return ConcentratedSession{}, fmt.Errorf("rho is %s, must be greater than 0", r)
	}
	return ConcentratedSession{r}, nil
}

// Concentrated returns what the session costs under zCDP.
func (s PureSession) Concentrated() ConcentratedSession { return ConcentratedSession{s.epsilon.Rho()} }

// Charge charges a release of one message before it is drawn.
func (f *PureFilter) Charge(c PureCost) error {
	if c.epsilon.Micro() <= 0 {
		return errors.New("cost was not made by Pure")
	}
	return charge(&f.mutex, &f.spent, f.limit, c.Cost())
}

// Open charges an interactive mechanism in full before its first query.
func (f *PureFilter) Open(s PureSession) error {
	if s.epsilon.Micro() <= 0 {
		return errors.New("session was not made by NewPureSession")
	}
	return charge(&f.mutex, &f.spent, f.limit, privacy.Cost{Epsilon: s.epsilon})
}

// Left returns what is left.
func (f *PureFilter) Left() privacy.Cost { return left(&f.mutex, &f.spent, f.limit) }

// Guarantee returns the (ε, δ) that all answers together keep.
func (f *PureFilter) Guarantee() (privacy.Epsilon, privacy.Delta) {
	return f.limit.Epsilon, f.limit.Delta
}

// Charge charges a release of one message before it is drawn.
func (f *ConcentratedFilter) Charge(c ConcentratedCost) error {
	if c.rho.Pico() <= 0 {
		return errors.New("cost was not made by Concentrated")
	}
	return charge(&f.mutex, &f.spent, f.limit, c.Cost())
}

// Open charges an interactive mechanism in full before its first query.
func (f *ConcentratedFilter) Open(s ConcentratedSession) error {
	if s.rho.Pico() <= 0 {
		return errors.New("session was not made by NewConcentratedSession")
	}
	return charge(&f.mutex, &f.spent, f.limit, privacy.Cost{Rho: s.rho})
}

// Left returns what is left.
func (f *ConcentratedFilter) Left() privacy.Cost { return left(&f.mutex, &f.spent, f.limit) }

// Guarantee returns an (ε, δ) that all answers together keep: conversion is the part of δ that buys ε, the thresholds'
// is added.
func (f *ConcentratedFilter) Guarantee(conversion privacy.Delta) (privacy.Epsilon, privacy.Delta, error) {
	e, err := LeastEpsilon(f.limit.Rho, conversion)
	if err != nil {
		return privacy.Epsilon{}, privacy.Delta{}, err
	}
	total := privacy.AttoDelta(min(conversion.Atto()+f.limit.Delta.Atto(), 1e18))
	return e, total, checkDelta(total)
}

// charge adds c to what is spent if both fit into the limit. The comparison cannot overflow.
func charge(mutex *sync.Mutex, spent *privacy.Cost, limit, c privacy.Cost) error {
	mutex.Lock()
	defer mutex.Unlock()
	rest := minus(limit, *spent)
	if !c.Fits(rest) {
		return fmt.Errorf("%w: %s is left, the release costs %s", ErrSpent, rest, c)
	}
	*spent = spent.Plus(c)
	return nil
}

func left(mutex *sync.Mutex, spent *privacy.Cost, limit privacy.Cost) privacy.Cost {
	mutex.Lock()
	defer mutex.Unlock()
	return minus(limit, *spent)
}

// minus is limit − spent, spent being at most limit.
func minus(limit, spent privacy.Cost) privacy.Cost {
	return privacy.Cost{
		Epsilon: privacy.MicroEpsilon(limit.Epsilon.Micro() - spent.Epsilon.Micro()),
		Rho:     privacy.PicoRho(limit.Rho.Pico() - spent.Rho.Pico()),
		Delta:   privacy.AttoDelta(limit.Delta.Atto() - spent.Delta.Atto()),
	}
}
