package plans

import (
	"math/big"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
)

// Term is a part of how a row is read from several releases: Num/Den times the sum of cells of a counter of a measure.
type Term struct {
	Measure, Counter int
	Spans            []mechanisms.Span
	Num, Den         int64
}

// weighted are the parts of a row for package mechanisms.
func (p *Plan) weighted(row []Term) []mechanisms.Weighted {
	parts := make([]mechanisms.Weighted, len(row))
	for i, t := range row {
		parts[i] = mechanisms.Weighted{Spec: p.Measures[t.Measure].Spec, Counter: t.Counter, Spans: t.Spans, Weight: t.Weight()}
	}
	return parts
}

func (t Term) Weight() float64 { return float64(t.Num) / float64(t.Den) }

// WidestError is the largest expected error over the rows of a run that is read from several measures.
func (p *Plan) WidestError(run *Run, confidence mechanisms.Confidence) mechanisms.Error {
	rows := make([][]mechanisms.Weighted, len(run.Mix))
	for i, row := range run.Mix {
		rows[i] = p.weighted(row)
	}
	return mechanisms.WidestMixed(rows, confidence)
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
		if cells := mechanisms.CellsIn(t.Spans); cells == m.Spec.Cells {
			text += "all of "
		} else {
			text += predicate.Text(int64(cells)) + " of " + predicate.Text(int64(m.Spec.Cells)) + " cells of "
		}
		parts = append(parts, text+m.Kind+" "+m.Name)
	}
	return strings.Join(parts, "")
}
