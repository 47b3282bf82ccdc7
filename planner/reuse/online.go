package reuse

import (
	"crypto/sha256"
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
