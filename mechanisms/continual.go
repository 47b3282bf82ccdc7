package mechanisms

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// A continual release counts cells that come one after the other, such as days: it is paid for once, with all cells
// that will ever be, and grows as cells are completed. Through says what is known of it then.

// MaxContinual is the largest number of cells of a continual release.
const MaxContinual = ranges.MaxContinual

// Continual returns the Spec of a release over so many cells that grows, with the least expected error over the time
// (see ranges.ChooseContinual) at the given cost, which is that of all cells.
func Continual(cells int, c Contribution, cost privacy.Cost) (Spec, error) {
	if cells < 1 || cells > MaxContinual {
		return Spec{}, fmt.Errorf("cells of a continual release is %d, must be from 1 to %d", cells, MaxContinual)
	}
	norm := ranges.L1
	if cost.Epsilon.Micro() == 0 {
		norm = ranges.L2
	}
	d := ranges.ChooseContinual(cells, norm)
	return OfStrategy(1, cells, strategyOf(d), c, cost)
}

// Grows tells a Spec of a continual release.
func (s Spec) Grows() bool {
	kind := s.Counts().Strategy.Kind
	return kind == ContinualTree || kind == ContinualRoot
}

// Through returns the Spec of what is known of a continual release when its first so many cells are complete: the same
// strategy and noise over these cells, whose observations are a beginning of the release's.
func (s Spec) Through(cells int) Spec {
	s.Cells = min(max(cells, 1), s.Cells)
	return s
}

// continual returns the strategy of a checked continual Spec, nil of others.
func (s Spec) continual() ranges.Continual {
	if !s.Grows() {
		return nil
	}
	return s.reader().(*openStrategy).Strategy.(ranges.Continual)
}

// Step is the growth of a continual release from its first From cells to its first To.
type Step struct{ From, To int }

// Digest names the step of a release that is named of: what a receipt for it is bound to.
func (p Step) Digest(of [sha256.Size]byte) [sha256.Size]byte {
	b := append([]byte("step of "), of[:]...)
	return sha256.Sum256(binary.AppendVarint(binary.AppendVarint(b, int64(p.From)), int64(p.To)))
}

// checkStep returns the strategy of the cells up to the step's end.
func (s Spec) checkStep(p Step) (ranges.Continual, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if !s.Grows() || s.Counters != 1 || s.Counts().Sums != nil {
		return nil, fmt.Errorf("strategy is %s of %d counters, must be a continual one that counts rows", s.Counts().Strategy.Kind, s.Counters)
	}
	if p.From < 0 || p.To <= p.From || p.To > s.Cells {
		return nil, fmt.Errorf("step is from %d to %d cells, must go on within %d", p.From, p.To, s.Cells)
	}
	return s.Through(p.To).continual(), nil
}

// Reach returns the first cell that a step of the release needs the count of. The rest of the step's needs ends with
// To.
func (s Spec) Reach(p Step) (int, error) {
	c, err := s.checkStep(p)
	if err != nil {
		return 0, err
	}
	return c.Reach(p.From, p.To), nil
}

// Known returns the number of observations of a continual release when its first so many cells are complete.
func (s Spec) Known(cells int) int {
	c := s.continual()
	if c == nil || cells <= 0 {
		return 0
	}
	return c.Known(min(cells, s.Cells))
}

// Begin returns a continual release of which no cell is complete: no observation, and nothing that was looked at.
func Begin(spec Spec) (none privacy.Released[Noisy], _ error) {
	if _, err := spec.checkStep(Step{0, spec.Cells}); err != nil {
		return none, err
	}
	return sealed.Release(Noisy{}), nil
}

// Grow opens the sealed groups and releases the observations that a step adds: those whose last cell is among the
// step's. Groups must be of the cells from Reach to the step's end; others are left out.
//
// Claim: all steps of a release together, each drawn once, are ε-DP or ρ-zCDP as Release claims for the spec: it is one
// release, whose observations are published in the order of their last cells. Neighbours and sensitivity: those of the
// spec, for a unit of as many rows over the release's life as the contribution says: of each level, or of each row's
// column in the matrix, at most so many. Theorem: ranges.Continual. Proof: the noise of each observation is drawn here,
// once. Let slot i of a unit be its i-th row by cell, of the rows that there are when an observation is made; the SQL
// counts the slots up to Rows. Rows are only ever added, so that the cell of a slot never rises. Of a tree's level, a
// slot that was counted in a block lies in no later block: each slot is in at most one. In a band, a slot first counted
// in cell s weighs at most q(t−s) in each later observation t, since its cell has not risen and q falls: no more than
// column s does. So a unit moves the observations by at most Rows columns, late rows or not. Limits: rows that are
// deleted or whose cell is changed make room for others of their unit: the table must only be added to, which the
// policy's owner vouches for. Timing as for Release.
func Grow(spec Spec, p Step, place Placement, truth privacy.Sensitive[[]privacy.Group], random io.Reader) (none privacy.Released[Noisy], _ error) {
	strategy, err := spec.checkStep(p)
	if err != nil {
		return none, err
	}
	switch {
	case place == nil:
		return none, errors.New("placement is nil, must be a function")
	case !truth.Valid():
		return none, errors.New("truth was never sealed")
	}
	now := spec.Through(p.To)
	known := strategy.Known(p.From)
	noisy, err := now.drawSome(strategy.Known(p.To)-known, random)
	if err != nil {
		return none, err
	}
	cells := make([]int64, now.Cells)
	tally(sealed.Open(truth), place, 0, cells)
	clear(cells[:strategy.Reach(p.From, p.To)])
	for i, n := range strategy.Observe(cells)[known:] {
		noisy[i] = noise.Add(n, noisy[i])
	}
	return sealed.Release(Noisy{Observations: noisy}), nil
}
