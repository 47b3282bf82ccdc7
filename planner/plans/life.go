package plans

import (
	"math"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

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

// Refinement says that a measure is a level of a ladder: the first, with which the finest is drawn, or one that refines
// what is held.
type Refinement struct {
	Level privacy.Epsilon // what is paid for it in all
	Top   privacy.Epsilon // the finest level
	From  int64           // the ledger's id of the release that it refines; 0 means it is drawn of the data
	Paid  privacy.Epsilon // From: what was paid for that in all
	Spec  mechanisms.Spec // From: of that release; else of the finest level
}

// Refines tells a measure that is made of what is held, without the data.
func (m *Measure) Refines() bool { return m.Refinement != nil && m.Refinement.From != 0 }

// RefinableLevels are the levels of a holding that can be refined; zero where it cannot.
type RefinableLevels struct{ Level, Top privacy.Epsilon }

// Alternative is a way to answer a leaf that was weighed, for EXPLAIN (ALTERNATIVES).
type Alternative struct {
	Leaf  string
	Path  string // the access path: the source that it comes from
	Kind  string
	Name  string
	Held  bool
	Cost  privacy.Cost
	Error mechanisms.Error // the largest over the rows; of choices Rank instead
	Rank  float64          // how many rows a choice is off at most
	Steps int              // of a ladder: its error is known once a clamp is chosen among so many; 0 means it is Error
	Taken bool
	Why   string // why it is taken, or why not
}

// ThresholdQuestion is what a run of alarms is asked.
type ThresholdQuestion struct {
	Measure *Measure // counts the rows; nil means no row can be counted, whatever the data
	Least   int64    // whether there are so many
}

// SelectedValue reads rows of a leaf's column from a choice, or from counts that tell it.
type SelectedValue struct {
	Kind    mechanisms.ChoiceKind
	At      []int                 // by row: which observation names the candidate; −1: there is none, and the value is NULL
	Values  [][]policy.Value      // by row: of the candidates
	Spans   [][][]mechanisms.Span // by row and candidate, in order: whose counts tell it; nil means it was chosen
	Share   mechanisms.Share      // of Quantiles read from counts
	Weighed bool                  // the rank is in units of a score: weights times rows or sums
	Top     int                   // above 0: the value is the rank of the row, Top for the first of the chosen, 0 for those that were not; At has each row's number
	Between bool                  // of these: a value between two rows' is meant
	Rank    float64               // how many rows it is off at most, at the plan's confidence
	Among   *Run                  // counts the rows that it is chosen among, and perhaps others; nil means none does
	Least   int64                 // of so many rows by Among, or by Spans, it is NULL: the error of their count
	Rows    int64                 // the public guess of the rows of a group, 0 means none
}

// Steps is by how many of its candidates a column is off at most, were the guessed rows spread evenly over them; false
// where there is no guess.
func (p *SelectedValue) Steps() (steps, candidates int, ok bool) {
	for _, values := range p.Values {
		candidates = max(candidates, len(values))
	}
	if p.Rows == 0 || candidates == 0 || p.Kind != mechanisms.Quantiles {
		return 0, candidates, false
	}
	steps = int(math.Min(math.Ceil(p.Rank*float64(candidates)/float64(p.Rows)), float64(candidates)))
	return steps, candidates, true
}

// LargestError is the largest expected error over rows, over evenly chosen ones where there are very many.
func LargestError(spec mechanisms.Spec, rows [][]mechanisms.Span, confidence mechanisms.Confidence) mechanisms.Error {
	row, _ := WorstRow(spec, rows, confidence)
	if row < 0 {
		return mechanisms.Error{}
	}
	return spec.Error(rows[row], confidence)
}

// WorstRow finds the row with the largest variance, −1 if there is none. Half-widths take longer and are left alone.
func WorstRow(spec mechanisms.Spec, rows [][]mechanisms.Span, confidence mechanisms.Confidence) (row int, variance float64) {
	row = -1
	errors := spec.Errors(confidence)
	for i := 0; i < len(rows); i += errors.Every(len(rows)) {
		if v := errors.Variance(rows[i]); row < 0 || v > variance {
			row, variance = i, v
		}
	}
	return row, variance
}

// RunError is the largest expected error over the rows of a run; none where nothing is counted, or a value is chosen.
func (p *Plan) RunError(run *Run) mechanisms.Error { return p.RunErrorAt(run, p.Confidence) }

// RunErrorAt is RunError at another confidence than the session's.
func (p *Plan) RunErrorAt(run *Run, c mechanisms.Confidence) (e mechanisms.Error) {
	switch {
	case run.Measure < 0 || run.Selected != nil || run.Ladder != nil:
		return e
	case run.Mix != nil:
		e = p.WidestError(run, c)
	default:
		e = LargestError(p.Measures[run.Measure].Spec.Only(run.Counter), run.Spans, c)
	}
	if run.Most > 0 {
		e.HalfWidth = min(e.HalfWidth, run.Most)
	}
	return e
}
