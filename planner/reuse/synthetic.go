package reuse

import (
	"crypto/sha256"
	"errors"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

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
