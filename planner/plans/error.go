package plans

import "github.com/dpproxy/dpproxy/mechanisms"

// RunError is the largest expected error over the rows of a run; none where nothing is counted, or a value is chosen.
func (p *Plan) RunError(run *Run) (e mechanisms.Error) {
	switch {
	case run.Measure < 0 || run.Selected != nil:
		return e
	case run.Mix != nil:
		e = p.WidestError(run, p.Confidence)
	default:
		e = LargestError(p.Measures[run.Measure].Spec.Only(run.Counter), run.Spans, p.Confidence)
	}
	if run.Most > 0 {
		e.HalfWidth = min(e.HalfWidth, run.Most)
	}
	return e
}
