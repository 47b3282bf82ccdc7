package plans

import (
	"math"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/policy"
)

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
