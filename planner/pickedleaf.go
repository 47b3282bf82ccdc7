package planner

import (
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Pick reads rows of a leaf's column from a choice, or from counts that tell it.
type Pick struct {
	Kind    mechanisms.ChoiceKind
	At      []int                 // by row: which observation names the candidate; −1: there is none, and the value is NULL
	Values  [][]policy.Value      // by row: of the candidates
	Spans   [][][]mechanisms.Span // by row and candidate, in order: whose counts tell it; nil: it was chosen
	Share   mechanisms.Share      // of Quantiles read from counts
	Weighed bool                  // the rank is in units of a score: weights times rows or sums
	Top     int                   // above 0: the value is the rank of the row, Top for the first of the chosen, 0 for those that were not; At has each row's number
	Between bool                  // of these: a value between two rows' is meant
	Rank    float64               // how many rows it is off at most, at the plan's confidence
	Rows    int64                 // the public guess of the rows of a group, 0: none
}

// addChoices puts what is chosen into the leaves that show it: each column of a choice is one run a grouping set.
func (p assembly) addChoices(sheets, list []*sheet, ways [][]*way) {
	for i, own := range list {
		s, w := own.asks[0].solved, ways[i][0]
		if s.alarm != nil {
			p.addAlarm(s, w)
			continue
		}
		sh, leaf, measure := sheets[s.chosen.sheet], p.Leaves[s.chosen.sheet], -1
		if w != nil {
			measure = p.measure(w.measure)
		}
		for n, c := range sh.counters {
			if c.choice != nil && c.choice.set == s.chosen.of {
				pick := chosenColumn(s, sh, c.choice, w, p.Confidence)
				run := &leaf.Counts[n].Runs[s.chosen.set]
				if run.Measure, run.Pick = measure, pick; w != nil && w.reading != nil {
					run.Counter = w.reading.counters[0]
				}
				leaf.Counts[n].Type = c.choice.typ
			}
		}
	}
}

// chosenColumn is one column of a choice, for the rows of the set that shows it.
func chosenColumn(s *solved, sh *sheet, c *choice, w *way, confidence mechanisms.Confidence) *Pick {
	frame, keys := sh.frames[s.chosen.set], identityOf(len(sh.sets[s.chosen.set]))
	order := frame.rowOrder()
	out := &Pick{Kind: s.chosen.kind, Between: c.between, At: make([]int, len(order)), Values: make([][]policy.Value, len(order))}
	each, share := 1, 0
	if out.Kind == mechanisms.Quantiles {
		out.Share = sh.question.choices[c.set].shares[c.at]
		each, share = len(s.chosen.shares), slices.Index(s.chosen.shares, out.Share)
	}
	if w != nil && w.reading != nil {
		out.Spans = make([][][]mechanisms.Span, len(order))
	}
	var shown [][]policy.Value
	if w != nil {
		out.Rows, out.Rank = s.groupRows(), rankOf(s, w, confidence)
		shown = shownCandidates(s, c.typ)
	}
	for r, cell := range order {
		g, known := s.chosen.byKeys[frame.keysText(cell, keys)]
		if out.At[r] = -1; w == nil || !known {
			continue
		}
		out.At[r], out.Values[r] = g*each+share, shown[g]
		if out.Spans == nil {
			continue
		}
		for _, own := range s.chosen.groups[g] {
			out.Spans[r] = append(out.Spans[r], w.reading.spans[0][own])
		}
	}
	return out
}

// shownCandidates are the values of each group's cells, in the type of their column.
func shownCandidates(s *solved, typ policy.Type) [][]policy.Value {
	out, from := make([][]policy.Value, len(s.chosen.groups)), s.keys[len(s.keys)-1].Type()
	for g, cells := range s.chosen.groups {
		for _, cell := range cells {
			out[g] = append(out[g], shownAs(typ, s.chosen.values[cell], from))
		}
	}
	return out
}

// shownAs is a value in the type of its column.
func shownAs(to policy.Type, v policy.Value, from policy.Type) policy.Value {
	if to == from || v == nil {
		return v
	}
	e, err := (scalar.Env{}).Cast(scalar.Constant(v, from), to, -1)
	if err != nil {
		return nil
	}
	if v, err = e.Eval(nil); err != nil {
		return nil
	}
	return v
}

// rankOf is how many rows a way is expected to be off at most: of counts, in the sum of half of the first group's cells.
func rankOf(s *solved, w *way, confidence mechanisms.Confidence) float64 {
	if w.reading == nil {
		return w.measure.Spec.RankError(confidence)
	}
	cells := s.chosen.groups[0]
	if s.chosen.kind == mechanisms.Quantiles {
		cells = cells[:(len(cells)+1)/2]
	} else {
		cells = cells[:1]
	}
	var spans []mechanisms.Span
	for _, cell := range cells {
		spans = append(spans, w.reading.spans[0][cell]...)
	}
	return float64(w.measure.Spec.Only(w.reading.counters[0]).Error(spans, confidence).HalfWidth)
}

// Steps is by how many of its candidates a column is off at most, were the guessed rows spread evenly over them; false
// where there is no guess.
func (p *Pick) Steps() (steps, candidates int, ok bool) {
	for _, values := range p.Values {
		candidates = max(candidates, len(values))
	}
	if p.Rows == 0 || candidates == 0 || p.Kind != mechanisms.Quantiles {
		return 0, candidates, false
	}
	steps = int(math.Min(math.Ceil(p.Rank*float64(candidates)/float64(p.Rows)), float64(candidates)))
	return steps, candidates, true
}
