package planner

import (
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Pick reads a column of a leaf from a choice, or from counts that tell it.
type Pick struct {
	Measure int
	Type    policy.Type
	Kind    mechanisms.ChoiceKind
	At      []int                 // by row: which observation names the candidate; −1: there is none, and the value is NULL
	Values  [][]policy.Value      // by row: of the candidates
	Spans   [][][]mechanisms.Span // by row and candidate, in order: whose counts tell it; nil: it was chosen
	Counter int                   // of Spans
	Share   mechanisms.Share      // of Quantiles read from counts
	Between bool                  // of these: a value between two rows' is meant
	Rank    float64               // how many rows it is off at most, at the plan's confidence
	Rows    int64                 // the public guess of the rows of a group, 0: none
}

// addChoices puts the columns of choices into the leaves that show them.
func (p *Plan) addChoices(questions []*solved, list []*solved, ways []*way) {
	for i, s := range list {
		measure := -1
		if ways[i] != nil {
			measure = p.measure(ways[i].measure)
		}
		leaf, of := p.Leaves[s.chosen.of], questions[s.chosen.of]
		for n, c := range of.counters {
			if c.choice != nil && c.choice.set == s.chosen.set {
				leaf.Counts[n].Pick = s.column(of, c.choice, ways[i], measure, p.Confidence)
			}
		}
	}
}

// column is one column of a choice, for the rows of the question that shows it.
func (s *solved) column(of *solved, c *choice, w *way, measure int, confidence mechanisms.Confidence) *Pick {
	order := of.rowOrder()
	out := &Pick{Measure: measure, Type: c.typ, Kind: s.chosen.kind, Between: c.between, At: make([]int, len(order)), Values: make([][]policy.Value, len(order))}
	each, share := 1, 0
	if out.Kind == mechanisms.Quantiles {
		out.Share = of.picks[c.set].shares[c.at]
		each, share = len(s.chosen.shares), slices.Index(s.chosen.shares, out.Share)
	}
	if w != nil && w.reading != nil {
		out.Spans, out.Counter = make([][][]mechanisms.Span, len(order)), w.reading.counters[0]
	}
	for r, cell := range order {
		g, known := s.chosen.byKeys[of.keysText(cell, len(of.keys))]
		if out.At[r] = -1; w == nil || !known {
			continue
		}
		out.At[r] = g*each + share
		for _, own := range s.chosen.groups[g] {
			out.Values[r] = append(out.Values[r], shownAs(c.typ, s.chosen.values[own], s.keys[len(s.keys)-1].Type()))
			if out.Spans != nil {
				out.Spans[r] = append(out.Spans[r], w.reading.spans[0][own])
			}
		}
	}
	if w != nil {
		out.Rows, out.Rank = s.groupRows(), s.rank(w, confidence)
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

// rank is how many rows a way is expected to be off at most: of counts, in the sum of half of the first group's cells.
func (s *solved) rank(w *way, confidence mechanisms.Confidence) float64 {
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
