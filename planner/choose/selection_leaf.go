package choose

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// ChosenColumn is one column of a choice, for the rows of the set that shows it.
func ChosenColumn(s *linear.Query, lp *LeafPlan, c *linear.Choice, w *Path, confidence mechanisms.Confidence) *plans.SelectedValue {
	frame, keys := lp.Frames[s.Chosen().Set], semantics.IdentityOf(len(lp.Sets[s.Chosen().Set]))
	order := frame.ShownRows()
	out := &plans.SelectedValue{Kind: s.Chosen().Kind, Between: c.Between, At: make([]int, len(order)), Values: make([][]policy.Value, len(order))}
	each, share := 1, 0
	if out.Kind == mechanisms.Quantiles {
		out.Share = lp.Question.Choices[c.Set].Shares[c.At]
		each, share = len(s.Chosen().Shares), slices.Index(s.Chosen().Shares, out.Share)
	}
	if w != nil && w.Reading != nil {
		out.Spans = make([][][]mechanisms.Span, len(order))
	}
	var shown [][]policy.Value
	if w != nil {
		out.Rows, out.Rank = s.GroupRows(), rankOf(s, w, confidence)
		shown = shownCandidates(s, c.Typ)
	}
	for r, cell := range order {
		g, known := s.Chosen().ByKeys[frame.KeysText(cell, keys)]
		if out.At[r] = -1; w == nil || !known {
			continue
		}
		out.At[r], out.Values[r] = g*each+share, shown[g]
		if out.Spans == nil {
			continue
		}
		for _, own := range s.Chosen().Groups[g] {
			out.Spans[r] = append(out.Spans[r], w.Reading.Spans[0][own])
		}
	}
	return out
}

// shownCandidates are the values of each group's cells, in the type of their column.
func shownCandidates(s *linear.Query, typ policy.Type) [][]policy.Value {
	out := make([][]policy.Value, len(s.Chosen().Groups))
	from := s.Keys[len(s.Keys)-1].Type()
	for g, cells := range s.Chosen().Groups {
		for _, cell := range cells {
			out[g] = append(out[g], shownAs(typ, s.Chosen().Values[cell], from))
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

// rankOf is how many rows a path is expected to be off at most: of counts, in the sum of half of the first group's
// cells.
func rankOf(s *linear.Query, w *Path, confidence mechanisms.Confidence) float64 {
	if w.Reading == nil {
		return w.Measure.Spec.RankError(confidence)
	}
	cells := s.Chosen().Groups[0]
	if s.Chosen().Kind == mechanisms.Quantiles {
		cells = cells[:(len(cells)+1)/2]
	} else {
		cells = cells[:1]
	}
	var spans []mechanisms.Span
	for _, cell := range cells {
		spans = append(spans, w.Reading.Spans[0][cell]...)
	}
	return float64(w.Measure.Spec.Only(w.Reading.Counters[0]).Error(spans, confidence).HalfWidth)
}
