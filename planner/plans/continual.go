package plans

import (
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// Continual says that a measure is a release that grows, and how far it must have grown to be read.
type Continual struct {
	Spec    mechanisms.Spec  // of the whole release: what is paid for
	Through int              // the first so many cells are closed
	Step    *mechanisms.Step // the measure is this step of it; nil means all of it
}

// Window is the cells of a column outside of which no row matters.
type Window struct {
	Column   *policy.Column
	From, To int
}

// Step is the measure of what a step of a growing release must count: the rows of the cells that its new observations
// reach, by cell.
func (m *Measure) Step(p mechanisms.Step) (*Measure, error) {
	reach, err := m.Continual.Spec.Reach(p)
	if err != nil {
		return nil, err
	}
	step := *m
	c := m.Grain[0]
	step.Digest = Digest(p.Digest(m.Digest))
	step.Where = predicate.InCells{Column: c, Spans: []mechanisms.Span{{From: reach, To: p.To}}}
	step.Window = &Window{Column: c, From: reach, To: p.To}
	step.Spec = m.Continual.Spec
	step.Continual = &Continual{Spec: m.Continual.Spec, Through: m.Continual.Through, Step: &p}
	return &step, nil
}

// LastStep is the step that closes the last cell that is read: what is run when nothing was missed before.
func (g *Continual) LastStep() mechanisms.Step {
	to := max(1, g.Through)
	return mechanisms.Step{From: to - 1, To: to}
}
