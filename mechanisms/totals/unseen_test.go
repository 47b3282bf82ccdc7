package totals_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/totals"
)

// TestUnseenOfSeveralCells: of a row that is the sum of 18 cells, 400 units are at one step, and at the second step
// above it as many as one deviation of such a cell's noise. What is read, and what may be unseen, cover the sum in 94 %
// of draws at least. Seed 1.
func TestUnseenOfSeveralCells(t *testing.T) {
	const each, base, top, draws = 18, 4, 6, 2000
	r, l, covered := rand.New(rand.NewPCG(1, 2)), totals.To(1<<20), 0
	scale := float64(totals.Parts) // ρ 1/2
	deviation := scale * math.Sqrt(each)
	for range draws {
		cells, truth := make([]int64, len(l)), 0.
		for j := range l {
			parts := map[int]float64{base: 400 * scale, top: deviation}[j]
			truth += parts * float64(l[j]) / totals.Parts
			cells[j] = int64(parts + r.NormFloat64()*deviation)
		}
		c := totals.Released{Ladder: l, Cells: [][]int64{cells}, Each: each,
			Law: totals.Law{Kind: noise.Gaussian, Scale: scale}}
		k := totals.Keep([]totals.Released{c}, false)[0]
		value, variance := k.Add, 0.
		for j := range k.Steps {
			value += float64(cells[j]) * float64(l[j]) / totals.Parts
			variance += float64(l[j]) * float64(l[j])
		}
		unseen, _ := c.Unseen(0, k)
		off := 1.96*deviation*math.Sqrt(variance)/totals.Parts*9/8 + unseen/totals.Parts
		if math.Abs(value-truth) <= off {
			covered++
		}
	}
	if share := float64(covered) / draws; share < .94 {
		t.Errorf("covered in %.3f of draws", share)
	}
}
