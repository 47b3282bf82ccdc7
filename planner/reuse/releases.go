package reuse

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// CellsOf is the measure over the cells of a release, which may be wider than its columns'.
func CellsOf(r *policy.Release) *linear.Query {
	s := linear.Identity(r.Table, r.Columns)
	for _, p := range s.Factors {
		for i, c := range r.Columns {
			if c != r.Table.Columns[p.Columns[0]] {
				continue
			}
			from := r.Cells(i)
			for at, first := range from {
				end := len(p.Class)
				if at+1 < len(from) {
					end = from[at+1]
				}
				for cell := first; cell < end; cell++ {
					p.Class[cell] = int32(at)
				}
			}
			p.Classes = len(from)
		}
	}
	s.Cells = 1
	for _, p := range s.Factors {
		s.Cells *= p.Classes
	}
	return s
}

// sessionSpec is how an online release is measured.
func sessionSpec(r *policy.Release, cells int) (mechanisms.Spec, error) {
	o := mechanisms.Online{Rule: mechanisms.MultiplicativeWeights, Contribution: r.Table.ContributionTo(cells), Rows: r.Table.ExpectedRows, Updates: r.Updates, Queries: r.Queries, Cost: r.Cost}
	d := r.Table.Dataset
	switch r.Mechanism {
	case "median":
		o.Rule = mechanisms.Median
	case "median-basic":
		o.Rule, o.Rows = mechanisms.MedianBasic, d.Units
		return mechanisms.NewOnline(o, cells)
	}
	if d.Neighbors != privacy.ReplaceOne || !d.Unit.Row {
		o.Spare = o.Rows // the guess may be half of what is there
	}
	return mechanisms.NewOnline(o, cells)
}

// OnlineRelease is a release as the planner looks at it. It is a function of the policy alone.
type OnlineRelease struct {
	*policy.Release
	Cells   *linear.Query
	Measure *plans.Measure // not held, at the release's cost
	Spec    mechanisms.Spec
	Own     int64 // half-widths at the dataset's confidence: of an answer of the session,
	Plain   int64 // and of a plain histogram's worst one
	Drawn   bool  // as a plain histogram
}

var onlineReleases sync.Map // *policy.Release → what reads it

// OnlineOf reads a declared online release, once.
func OnlineOf(r *policy.Release) (*OnlineRelease, error) { return once(&onlineReleases, r, readOnline) }

// once reads a release where known has no reading of it.
func once[T any](known *sync.Map, r *policy.Release, read func(*policy.Release) (*T, error)) (*T, error) {
	own, ok := known.Load(r)
	if !ok {
		own, _ = known.LoadOrStore(r, sync.OnceValues(func() (*T, error) { return read(r) }))
	}
	return own.(func() (*T, error))()
}

func readOnline(r *policy.Release) (*OnlineRelease, error) {
	o := &OnlineRelease{Release: r, Cells: CellsOf(r)}
	var err error
	if o.Spec, err = sessionSpec(r, o.Cells.Cells); err != nil {
		return nil, err
	}
	if o.Own, o.Plain, err = o.Spec.Rival(r.Table.Dataset.Defaults.Confidence); err != nil {
		return nil, err
	}
	rival, err := mechanisms.Plain(1, o.Cells.Cells, r.Table.ContributionTo(o.Cells.Cells), privacy.Cost{Epsilon: r.Cost.Epsilon, Rho: r.Cost.Rho})
	if err != nil {
		return nil, err
	}
	kind := policy.OnlineRelease.String()
	if o.Drawn = !r.Insist && o.Plain <= o.Own; o.Drawn {
		kind, o.Spec = policy.HistogramRelease.String(), rival
	}
	m := o.Cells.Measure(kind, r.Name)
	m.Declared, m.Shared, m.Spec, m.Cost = r, o.Drawn, o.Spec, r.Cost
	if !o.Drawn {
		m.Described = predicate.EncodeText(append(m.Described, "online"...), r.Name)
		m.Digest = sha256.Sum256(m.Described)
	}
	o.Measure = m
	return o, nil
}

// Figures names what a session and the plain histogram would be off.
func (o *OnlineRelease) Figures() string {
	return fmt.Sprintf("its answers are within ±%d at %g %%, a plain histogram of its %d cells would be within ±%d at the same cost", o.Own, 100*o.Table.Dataset.Defaults.Confidence.Float(), o.Cells.Cells, o.Plain)
}

// Synthetic releases as a policy declares them: the cells that their rows are made of, and the measure that draws them.

// SyntheticRelease is a synthetic release as the planner looks at it, a function of the policy alone.
type SyntheticRelease struct {
	Cells   *linear.Query
	Measure *plans.Measure
}

var syntheticReleases sync.Map // *policy.Release → what reads it

// SyntheticOf reads a declared release of made-up rows, once.
func SyntheticOf(r *policy.Release) (*SyntheticRelease, error) {
	return once(&syntheticReleases, r, readSynthetic)
}

func readSynthetic(r *policy.Release) (*SyntheticRelease, error) {
	s := &SyntheticRelease{Cells: CellsOf(r)}
	y := mechanisms.Synthetic{Rule: mechanisms.MWEM, Contribution: r.Table.ContributionTo(s.Cells.Cells), Total: r.Table.ExpectedRows, Drawn: r.Rows, Cost: r.Cost}
	switch r.Mechanism {
	case "small-database":
		y.Rule = mechanisms.SmallDatabase
	case "dawa":
		y.Rule = mechanisms.DAWA
	}
	for _, p := range s.Cells.Factors {
		y.Sizes = append(y.Sizes, p.Classes)
	}
	spec, err := mechanisms.NewSynthetic(y)
	if err == nil {
		err = y.CanRelease(spec.Cells)
	}
	if err != nil {
		return nil, err
	}
	m := s.Cells.Measure(r.Kind.String(), r.Name)
	m.Declared, m.Shared, m.Spec, m.Cost = r, true, spec, r.Cost
	m.Described = predicate.EncodeText(append(m.Described, "synthetic"...), r.Name)
	m.Digest = sha256.Sum256(m.Described)
	s.Measure = m
	return s, nil
}

// InstanceOf is the measure of a synthetic release, or of an online one that is drawn as a histogram.
func InstanceOf(r *policy.Release) (*plans.Measure, error) {
	if r.Kind == policy.SyntheticRelease {
		s, err := SyntheticOf(r)
		if err != nil {
			return nil, err
		}
		m := *s.Measure
		return &m, nil
	}
	o, err := OnlineOf(r)
	if err != nil {
		return nil, err
	}
	if !o.Drawn {
		return nil, errors.New("an online release is opened by its first question")
	}
	m := *o.Measure
	return &m, nil
}

// MadeBy names what made up rows: the hypothesis of an online release, or the rule of a synthetic one.
func MadeBy(s mechanisms.Spec) string {
	if o, ok := s.Kind.(*mechanisms.Online); ok {
		return "the hypothesis of its " + o.Rule.String()
	}
	return s.Kind.(*mechanisms.Synthetic).Rule.String()
}

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
