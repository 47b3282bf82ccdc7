package choose

import (
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// widestMixed is the largest half-width over the values of a counter that are read from several releases.
func (ch *Weigher) widestMixed(n *need, m *reuse.Combination, c int) int64 {
	lists := slices.Clone(n.lists[c])
	if n.each[c] {
		for cell := range n.Cells {
			lists = append(lists, []int{cell})
		}
	}
	rows := make([][]mechanisms.Weighted, len(lists))
	for i, cells := range lists {
		var row []plans.Term
		for _, cell := range cells {
			row = append(row, m.Terms[c][cell]...)
		}
		rows[i] = m.Weighted(row)
	}
	return mechanisms.WidestMixed(rows, ch.Context.Settings.Confidence).HalfWidth
}

// varianceWithin is the variance that a value may have to be within dp.max_error: of the noises that there are, at the
// confidence, the one whose sums reach furthest for their deviation is the discrete Laplace's alone.
func (ch *Weigher) varianceWithin(bound int64) float64 {
	reach := max(-math.Log(1-ch.Context.Settings.Confidence.Float())/math.Sqrt2, math.Sqrt2*math.Erfinv(ch.Context.Settings.Confidence.Float()))
	return math.Pow((float64(bound)+.5)/reach, 2)
}
