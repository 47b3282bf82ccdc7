package choose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// A declared release may be shown to analysts at several levels of trust, from one draw (docs/adr/0028). The policy
// that a plan is made of is that of her level (policy.Policy.For): here only the noise of each level is found.

// whyOffered says why a release is offered to her.
func whyOffered(r *policy.Release) string {
	why := "release " + r.Name + " is within dp.epsilon, and every such question is free after it"
	if level := r.Table.Dataset.Level; level != nil && r.Levels != nil {
		why += "; you have it at level " + level.Name + ": with more noise on top, for " + level.Share.String() + " of its ε"
	}
	return why + stale(r.Table, r.Columns)
}

// stale says that a release over the column by which rows are added does not grow, where it is so (privacy rule 19).
func stale(t *policy.Table, columns []*policy.Column) string {
	if t.Appends == nil || len(columns) != 1 || columns[0] != t.Appends.Column || t.Grows(columns[0]) {
		return ""
	}
	return "; it does not grow, since rows_per_unit_total is not given: days after today are in none but another one, which costs as much again"
}

// LevelNotes says which releases of a policy are not there for analysts at a level of trust.
func LevelNotes(p *policy.Policy) (notes []string) {
	for _, d := range p.Datasets {
		if len(d.Levels) == 0 {
			continue
		}
		for _, t := range d.Tables {
			for _, r := range t.All() {
				if names := unshown(d, r); len(names) > 0 {
					notes = append(notes, fmt.Sprintf("dataset %s: release %s is not there at level %s", d.ID, r.Name, strings.Join(names, ", ")))
				}
			}
		}
	}
	return notes
}

// unshown are the levels at which a release cannot be shown.
func unshown(d *policy.Dataset, r *policy.Release) (names []string) {
	var shown []mechanisms.Level
	if r.Levels != nil {
		shown, _ = reuse.ReleaseLevels(r, linear.Identity(r.Table, r.Columns).Cells)
	}
	for i, l := range d.Levels {
		if !slices.ContainsFunc(shown, func(s mechanisms.Level) bool { return s.Cost == r.Levels[i+1] }) {
			names = append(names, l.Name)
		}
	}
	return names
}

// DeclaredMeasure is the measure of a release that the policy declares, as a session that buys it first would draw it.
// One that grows is drawn when it is read, by the clock.
func DeclaredMeasure(r *policy.Release) (*plans.Measure, error) {
	if r.Kind == policy.OnlineRelease || r.Kind == policy.SyntheticRelease {
		return reuse.InstanceOf(r)
	}
	s := linear.Identity(r.Table, r.Columns)
	if r.Grows() {
		s = growing(r.Table, r.Columns[0], time.Time{})
	}
	spec, err := reuse.ReleaseSpec(r, s.Cells)
	if err != nil {
		return nil, err
	}
	m := s.Measure(r.Kind.String(), r.Name)
	m.Shared, m.Declared, m.Cost = true, r, r.Cost
	s.Sold(m, spec)
	return m, nil
}
