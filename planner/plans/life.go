package plans

import "github.com/dpproxy/dpproxy/mechanisms"

// When says when the rows of a measure are read.
type When uint8

// The times.
const (
	Once         When = iota // when it is bought
	OnceKept                 // when it is bought, and again by each process that goes on with it: an online release
	EachStep                 // when it grows
	EachQuestion             // when it is asked: a run of alarms
	Never                    // it refines what is held
)

// Reads returns when the rows of a measure are read.
func (m *Measure) Reads() When {
	switch {
	case m.Refines():
		return Never
	case m.Continual != nil && m.Continual.Step == nil:
		return EachStep
	case mechanisms.Is[*mechanisms.Alarm](m.Spec):
		return EachQuestion
	case mechanisms.Is[*mechanisms.Online](m.Spec):
		return OnceKept
	}
	return Once
}

// Paid is the Spec that is paid for: of a release that grows the whole one's.
func (m *Measure) Paid() mechanisms.Spec {
	if m.Continual != nil {
		return m.Continual.Spec
	}
	return m.Spec
}

// Through is the number of cells of a release that grows which the measure is read by; 0 if it does not grow.
func (m *Measure) Through() int {
	if m.Continual != nil {
		return m.Continual.Through
	}
	return 0
}

// Drawing is by what a measure is drawn, at one level or at several, once what it may refine is filled in.
func (m *Measure) Drawing(levels []mechanisms.Level) mechanisms.Drawing {
	d := mechanisms.Drawing{Spec: m.Paid(), Place: m.Place, Weigh: m.Weigh, Levels: levels}
	switch {
	case m.Open != nil:
		d.Keys = &m.Finding
	case m.Continual != nil:
		d.Step = m.Continual.Step
	case m.Refinement != nil && !m.Refines() && len(levels) == 0:
		d.First = &m.Refinement.Spec
	}
	return d
}
