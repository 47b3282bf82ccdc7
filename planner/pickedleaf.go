package planner

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

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
