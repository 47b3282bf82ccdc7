package planner

import (
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
)

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

// varianceWithin is the variance that a value may have to be within dp.max_error: of the noises that there are, at the confidence, the one whose
// sums reach furthest for their deviation is the discrete Laplace's alone.
func (ch *chooser) varianceWithin(bound int64) float64 {
	reach := max(-math.Log(1-ch.c.Settings.Confidence.Float())/math.Sqrt2, math.Sqrt2*math.Erfinv(ch.c.Settings.Confidence.Float()))
	return math.Pow((float64(bound)+.5)/reach, 2)
}
