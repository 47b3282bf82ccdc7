package planner

import (
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
)

// mixedRow are the terms of a row that is made up of some cells of a question.
func (p assembly) mixedRow(w *way, counter int, cells []int) []Term {
	var row []Term
	for _, cell := range cells {
		for _, t := range w.reading.mix.terms[counter][cell] {
			t.Measure = p.measure(w.others[t.Measure])
			row = append(row, t)
		}
	}
	return row
}

// weighted are the parts of a row for package mechanisms.
func (p *Plan) weighted(row []Term) []mechanisms.Weighted {
	parts := make([]mechanisms.Weighted, len(row))
	for i, t := range row {
		parts[i] = mechanisms.Weighted{Spec: p.Measures[t.Measure].Spec, Counter: t.Counter, Spans: t.Spans, Weight: t.weight()}
	}
	return parts
}

func (t Term) weight() float64 { return float64(t.Num) / float64(t.Den) }

// WidestError is the largest expected error over the rows of a run that is read from several measures.
func (p *Plan) WidestError(run *Run, confidence mechanisms.Confidence) mechanisms.Error {
	rows := make([][]mechanisms.Weighted, len(run.Mix))
	for i, row := range run.Mix {
		rows[i] = p.weighted(row)
	}
	return mechanisms.WidestMixed(rows, confidence)
}

// off is the largest error over the rows of a question.
func (m *mixed) off(c mechanisms.Confidence) mechanisms.Error {
	var rows [][]mechanisms.Weighted
	for _, cells := range m.terms {
		for _, row := range cells {
			rows = append(rows, m.weighted(row))
		}
	}
	return mechanisms.WidestMixed(rows, c)
}

// widestMixed is the largest half-width over the values of a counter that are read from several releases.
func (ch *chooser) widestMixed(n *need, m *mixed, c int) int64 {
	lists := slices.Clone(n.lists[c])
	if n.each[c] {
		for cell := range n.cells {
			lists = append(lists, []int{cell})
		}
	}
	rows := make([][]mechanisms.Weighted, len(lists))
	for i, cells := range lists {
		var row []Term
		for _, cell := range cells {
			row = append(row, m.terms[c][cell]...)
		}
		rows[i] = m.weighted(row)
	}
	return mechanisms.WidestMixed(rows, ch.c.Settings.Confidence).HalfWidth
}

// weighted are the parts of a row for package mechanisms.
func (m *mixed) weighted(row []Term) []mechanisms.Weighted {
	parts := make([]mechanisms.Weighted, len(row))
	for i, t := range row {
		parts[i] = mechanisms.Weighted{Spec: m.from[t.Measure].holding.Spec, Counter: t.Counter, Spans: t.Spans, Weight: t.weight()}
	}
	return parts
}

// varianceWithin is the variance that a value may have to be within dp.max_error: of the noises that there are, at the confidence, the one whose
// sums reach furthest for their deviation is the discrete Laplace's alone.
func (ch *chooser) varianceWithin(bound int64) float64 {
	reach := max(-math.Log(1-ch.c.Settings.Confidence.Float())/math.Sqrt2, math.Sqrt2*math.Erfinv(ch.c.Settings.Confidence.Float()))
	return math.Pow((float64(bound)+.5)/reach, 2)
}

// MixText writes how a row is read from several measures.
func (p *Plan) MixText(row []Term) string {
	var parts []string
	for i, t := range row {
		sign, num := " + ", t.Num
		if num < 0 {
			sign, num = " − ", -num
		}
		if i == 0 {
			sign = strings.Trim(sign, " +")
		}
		text := sign
		if w := big.NewRat(num, t.Den); !(w.IsInt() && w.Num().Int64() == 1) {
			text += w.RatString() + " × "
		}
		m := p.Measures[t.Measure]
		if cells := cellsIn(t.Spans); cells == m.Spec.Cells {
			text += "all of "
		} else {
			text += predicate.Text(int64(cells)) + " of " + predicate.Text(int64(m.Spec.Cells)) + " cells of "
		}
		parts = append(parts, text+m.Kind+" "+m.Name)
	}
	return strings.Join(parts, "")
}
