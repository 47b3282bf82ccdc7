package reuse

import (
	"errors"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

var errNoLevel = errors.New("the release cannot be shown at this level of trust")

// ReleaseLevels are the levels of a release's draw, the finest first.
func ReleaseLevels(r *policy.Release, cells int) ([]mechanisms.Level, error) {
	finest, err := specFor(r, cells, r.Levels[0])
	if err != nil {
		return nil, err
	}
	return mechanisms.Levels(finest, r.Levels)
}

// LevelsOf are those of the draw that a measure's release is of, the finest first; nil means it is of one level, or
// held.
func LevelsOf(m *plans.Measure) ([]mechanisms.Level, error) {
	if m.Held || m.Declared == nil || m.Declared.Levels == nil {
		return nil, nil
	}
	return ReleaseLevels(m.Declared, m.Spec.Cells)
}

// ReleaseSpec is how a declared release is measured, at the level of trust that its cost is of.
func ReleaseSpec(r *policy.Release, cells int) (mechanisms.Spec, error) {
	if r.Levels == nil {
		return specFor(r, cells, r.Cost)
	}
	levels, err := ReleaseLevels(r, cells)
	for _, l := range levels {
		if l.Cost == r.Cost {
			return l.Spec, err
		}
	}
	return mechanisms.Spec{}, errNoLevel
}

// specFor is how a release is measured at a cost.
func specFor(r *policy.Release, cells int, cost privacy.Cost) (mechanisms.Spec, error) {
	if r.Grows() {
		return ContinualSpec(r.Table, cells, cost)
	}
	if r.Kind == policy.OnlineRelease {
		o, err := OnlineOf(r)
		if err != nil {
			return mechanisms.Spec{}, err
		}
		return o.Spec, nil
	}
	if r.Kind == policy.RangeRelease {
		return mechanisms.Ranges(cells, r.Table.ContributionTo(cells), cost)
	}
	return mechanisms.Plain(1, cells, r.Table.ContributionTo(cells), cost)
}

// ContinualSpec is the Spec of a release over all cells of a column that come one by one.
func ContinualSpec(t *policy.Table, cells int, cost privacy.Cost) (mechanisms.Spec, error) {
	return mechanisms.Continual(cells, t.Contribution(), cost)
}
