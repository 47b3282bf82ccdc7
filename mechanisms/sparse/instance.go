package sparse

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// ErrSpent is what a query gets after the last positive.
var ErrSpent = errors.New("sparse vector is at its end: all declared positives are used")

// most bounds counts, thresholds and noise, so that no comparison overflows.
const most = 1 << 60

// State is what is saved of an instance: what it has used, never its noise.
type State struct {
	Positives int // used, by answers and by restarts
	Runs      int // begun: 1 + restarts
}

// Checkpoint makes a state durable. It is called before the answer that led to the state is returned.
type Checkpoint func(State) error

// Instance answers queries about one dataset until its positives are used. It is safe for concurrent use, and must not
// be copied: a copy refuses to answer.
type Instance struct {
	mutex      sync.Mutex
	self       *Instance
	mechanism  Mechanism
	random     *noise.Reader
	checkpoint Checkpoint
	state      State
	threshold  int64 // the noise on it
	ended      bool
}

// Open begins an instance.
func (m Mechanism) Open(random io.Reader, checkpoint Checkpoint) (*Instance, error) {
	return m.open(State{0, 1}, random, checkpoint)
}

// Restore begins an instance that goes on where a lost one stood. The noisy threshold was lost with it, so the new one
// draws another, which was paid for in advance; and it takes one of the positives, since the lost one may have answered
// one that its last saved state does not hold.
func (m Mechanism) Restore(s State, random io.Reader, checkpoint Checkpoint) (*Instance, error) {
	switch {
	case m.spec.Positives == 0:
		return nil, errNotMade
	case s.Positives < 0 || s.Positives > m.spec.Positives || s.Runs < 1:
		return nil, fmt.Errorf("saved state has %d positives in %d runs, must be from 0 to %d in at least 1", s.Positives, s.Runs, m.spec.Positives)
	case s.Positives+1 >= m.spec.Positives:
		return nil, ErrSpent
	case !m.refreshed && s.Runs > m.spec.Restarts:
		return nil, fmt.Errorf("saved state has been restored %d times, must be below the %d declared", s.Runs-1, m.spec.Restarts)
	}
	return m.open(State{s.Positives + 1, s.Runs + 1}, random, checkpoint)
}

func (m Mechanism) open(s State, random io.Reader, checkpoint Checkpoint) (*Instance, error) {
	if m.spec.Positives == 0 {
		return nil, errNotMade
	}
	i := &Instance{mechanism: m, random: noise.NewReader(random), checkpoint: checkpoint, state: s}
	i.self = i
	i.threshold = draw(m.threshold, i.random)
	if err := i.random.Err(); err != nil {
		return nil, err
	}
	if err := i.save(s); err != nil {
		return nil, err
	}
	return i, nil
}

func (i *Instance) save(s State) error {
	if err := i.checkpoint(s); err != nil {
		return fmt.Errorf("state was not saved: %w", err)
	}
	return nil
}

// Remaining returns how many positives are left.
func (i *Instance) Remaining() int {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.self != i || i.ended {
		return 0
	}
	return i.mechanism.spec.Positives - i.state.Positives
}

// Ask opens a sealed count and reports whether it is above a public threshold, up to the noise. The one that asks may
// choose query and threshold by all answers so far; a unit must move the count by at most the sensitivity, and if the
// spec says monotone, all counts of this instance in one direction.
//
// Claim: all answers of an instance and of those restored from it are together (ε1+ε2)-DP (kept threshold), or ρ-zCDP
// (a threshold for each positive). Theorem: Lyu, Su, Li 2017, algorithm 7 and theorem 4; here for integers, noise of
// one side, and restarts. Proof: z is the threshold's noise, ν_j query j's; count_j + ν_j ≥ T_j + z + offset is
// "above". Take a run, an output of it with at most p positives, and neighbours whose counts a_j, b_j differ by at most
// Δ. Pair z on the first with z+Δ on the second. Where the answer is below: a_j + ν < T_j + z implies b_j + ν < T_j + z
// + Δ, so it is no less likely there. Where it is above: ν ≥ T_j + z − a_j becomes ν ≥ T_j + z + Δ − b_j, at most 2Δ
// further up; both noises have P(ν ≥ t) ≤ exp(h/scale)·P(ν ≥ t+h) for whole t and h ≥ 0, and P(z) ≤
// exp(Δ/scale)·P(z+Δ). So the run's output is at most exp(Δ/scale_z + 2Δ·p/scale_ν) times as likely on the first as on
// the second. With scales r·Δ/ε1 and 2Δ·c/ε2, r runs and c positives in all: ε1 + ε2. Nothing is lost on the answers
// below, however many. Later queries depend on earlier answers alone: the argument is for each of their sequences.
// Monotone: where b ≥ a, the same pairing leaves Δ for each positive. Where b ≤ a pair z with z: below is no less
// likely, above at most Δ further up. So scale Δ·c/ε2 is enough. A threshold that is kept after a positive is thus paid
// once. Refreshed, each positive ends an AboveThreshold with c = 1 that is ε0-DP, hence ε0²/2-zCDP, and the next
// begins: they compose one after another. A restart uses up one of the runs, or of the AboveThresholds, and a positive:
// that covers one that was answered and not saved. What else is released between the answers of a run is a mechanism
// that is alive at the same time: costs of concurrent mechanisms add up, for ε and for ρ (Vadhan and Wang 2021; Lyu
// 2022; Vadhan and Zhang 2023). Limits: the stop is what bounds p: after the last positive nothing is answered. The
// compared number is never released: it tells of the threshold's noise, and then all answers below would have to be
// paid for. The time depends on the noise alone.
func (i *Instance) Ask(query privacy.Sensitive[int64], threshold int64) (privacy.Released[bool], error) {
	var none privacy.Released[bool]
	i.mutex.Lock()
	defer i.mutex.Unlock()
	m := i.mechanism
	switch {
	case i.self != i:
		return none, errors.New("sparse vector's instance was copied or not opened")
	case i.ended:
		return none, ErrSpent
	case !query.Valid():
		return none, errors.New("query was never sealed")
	}
	compared, next := draw(m.comparison, i.random), i.threshold
	if m.refreshed {
		next = draw(m.threshold, i.random)
	}
	if err := i.random.Err(); err != nil {
		return none, err
	}
	if cut(sealed.Open(query))+compared < cut(threshold)+i.threshold+m.offset {
		return sealed.Release(false), nil
	}
	i.state.Positives++
	i.threshold = next
	i.ended = i.state.Positives >= m.spec.Positives
	if err := i.save(i.state); err != nil {
		i.ended = true
		return none, err
	}
	return sealed.Release(true), nil
}

// draw draws noise of one side.
func draw(d noise.Distribution, random *noise.Reader) int64 { return cut(d.OneSided(random)) }

// cut brings no two numbers further apart, and keeps their order.
func cut(n int64) int64 { return min(max(n, -most), most) }
