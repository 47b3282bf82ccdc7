package planner

import (
	"math"
	"math/big"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
)

// mixedRow are the terms of a row that is made up of some cells of a question.
func (p *Plan) mixedRow(w *way, counter int, cells []int) []Term {
	var row []Term
	for _, cell := range cells {
		for _, t := range w.reading.mix.terms[counter][cell] {
			t.Measure = p.measure(w.others[t.Measure])
			row = append(row, t)
		}
	}
	return row
}

// RowError is the expected error of a row that is read from several measures.
func (p *Plan) RowError(row []Term, confidence mechanisms.Confidence) mechanisms.Error {
	parts := make([]mechanisms.Weighted, len(row))
	for i, t := range row {
		parts[i] = mechanisms.Weighted{Spec: p.Measures[t.Measure].Spec, Counter: t.Counter, Spans: t.Spans, Weight: t.weight()}
	}
	return mechanisms.MixedError(parts, confidence)
}

func (t Term) weight() float64 { return float64(t.Num) / float64(t.Den) }

// mixedError is the largest error over the rows of a run.
func (p *Plan) mixedError(run *Run) (most mechanisms.Error) {
	for _, row := range run.Mix {
		if e := p.RowError(row, p.Confidence); e.HalfWidth >= most.HalfWidth {
			most = e
		}
	}
	return most
}

// off is the largest error over the rows of a question.
func (m *mixed) off(c mechanisms.Confidence) (most mechanisms.Error) {
	for _, cells := range m.terms {
		for _, row := range cells {
			if e := m.errorOf(row, c); e.HalfWidth >= most.HalfWidth {
				most = e
			}
		}
	}
	return most
}

// widestMixed is the largest half-width over the values of a counter that are read from several releases.
func (ch *chooser) widestMixed(n *need, m *mixed, c int) (width int64) {
	lists := n.lists[c]
	if n.each[c] {
		for cell := range n.cells {
			lists = append(lists[:len(lists):len(lists)], []int{cell})
		}
	}
	for _, cells := range lists {
		var row []Term
		for _, cell := range cells {
			row = append(row, m.terms[c][cell]...)
		}
		width = max(width, m.errorOf(row, ch.c.Settings.Confidence).HalfWidth)
	}
	return width
}

// errorOf is the expected error of a sum of terms.
func (m *mixed) errorOf(row []Term, c mechanisms.Confidence) mechanisms.Error {
	parts := make([]mechanisms.Weighted, len(row))
	for i, t := range row {
		parts[i] = mechanisms.Weighted{Spec: m.from[t.Measure].holding.Spec, Counter: t.Counter, Spans: t.Spans, Weight: t.weight()}
	}
	return mechanisms.MixedError(parts, c)
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
			text += textOf(int64(cells)) + " of " + textOf(int64(m.Spec.Cells)) + " cells of "
		}
		parts = append(parts, text+m.Kind+" "+m.Name)
	}
	return strings.Join(parts, "")
}
