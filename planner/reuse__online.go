package planner

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// cellsOf is the measure over the cells of a release, which may be wider than its columns'.
func cellsOf(r *policy.Release) *solved {
	s := identity(r.Table, r.Columns)
	for _, p := range s.parts {
		for i, c := range r.Columns {
			if c != r.Table.Columns[p.columns[0]] {
				continue
			}
			from := r.Cells(i)
			for at, first := range from {
				end := len(p.class)
				if at+1 < len(from) {
					end = from[at+1]
				}
				for cell := first; cell < end; cell++ {
					p.class[cell] = int32(at)
				}
			}
			p.classes = len(from)
		}
	}
	s.cells = 1
	for _, p := range s.parts {
		s.cells *= p.classes
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

// onlineRelease is a release as the planner looks at it. It is a function of the policy alone.
type onlineRelease struct {
	*policy.Release
	cells   *solved
	measure *Measure // not held, at the release's cost
	spec    mechanisms.Spec
	own     int64           // half-widths at the dataset's confidence: of an answer of the session,
	plain   int64           // and of a plain histogram's worst one
	rival   mechanisms.Spec // that histogram
	drawn   bool            // as a plain histogram
}

// beaten tells whether the histogram would answer a question at least as exactly as a session that is opened for it: of few
// cells it adds up little noise. The policy may insist all the same.
func (o *onlineRelease) beaten(r *reading) (here int64, beaten bool) {
	if o.drawn || o.Insist {
		return 0, false
	}
	for c := range r.spans {
		here = max(here, largestError(o.rival, r.looked(c), o.Table.Dataset.Defaults.Confidence).HalfWidth)
	}
	return here, here <= o.own
}

// onlineReleases remembers them: *policy.Release → *onlineRelease or error.
var onlineReleases sync.Map

func onlineOf(r *policy.Release) (*onlineRelease, error) {
	if known, ok := onlineReleases.Load(r); ok {
		if err, failed := known.(error); failed {
			return nil, err
		}
		return known.(*onlineRelease), nil
	}
	o, err := readOnline(r)
	if err != nil {
		onlineReleases.Store(r, err)
		return nil, err
	}
	onlineReleases.Store(r, o)
	return o, nil
}

func readOnline(r *policy.Release) (*onlineRelease, error) {
	o := &onlineRelease{Release: r, cells: cellsOf(r)}
	var err error
	if o.spec, err = sessionSpec(r, o.cells.cells); err != nil {
		return nil, err
	}
	if o.own, o.plain, err = o.spec.Rival(r.Table.Dataset.Defaults.Confidence); err != nil {
		return nil, err
	}
	if o.rival, err = mechanisms.Plain(1, o.cells.cells, r.Table.ContributionTo(o.cells.cells), privacy.Cost{Epsilon: r.Cost.Epsilon, Rho: r.Cost.Rho}); err != nil {
		return nil, err
	}
	kind := policy.OnlineRelease.String()
	if o.drawn = !r.Insist && o.plain <= o.own; o.drawn {
		kind, o.spec = policy.HistogramRelease.String(), o.rival
	}
	m := o.cells.measure(kind, r.Name)
	m.Declared, m.Shared, m.Spec, m.Cost = r, o.drawn, o.spec, r.Cost
	if !o.drawn {
		m.described = predicate.EncodeText(append(m.described, "online"...), r.Name)
		m.Digest = sha256.Sum256(m.described)
	}
	o.measure = m
	return o, nil
}

// figures names what a session and the plain histogram would be off.
func (o *onlineRelease) figures() string {
	return fmt.Sprintf("its answers are within ±%d at %g %%, a plain histogram of its %d cells would be within ±%d at the same cost", o.own, 100*o.Table.Dataset.Defaults.Confidence.Float(), o.cells.cells, o.plain)
}
