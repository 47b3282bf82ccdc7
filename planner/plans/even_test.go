package plans

import (
	"math/rand/v2"
	"testing"
)

// TestEvenRuns: the run that a piece is in, and a division, say which piece a cell is in, for 3,000 drawn lists of
// pieces of all lengths and of runs of one.
func TestEvenRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(202, 1))
	divided := 0
	for range 3000 {
		starts, end := []int{0}, 1+r.IntN(40)
		for range 1 + r.IntN(6) {
			length := 1 + r.IntN(30)
			for range 1 + r.IntN(60) {
				if starts = append(starts, end); r.IntN(200) == 0 {
					length = 1 + r.IntN(30)
				}
				end += length
			}
		}
		if r.IntN(2) == 0 {
			end -= r.IntN(end - starts[len(starts)-1])
		}
		runs := EvenRuns(starts, end)
		at := -1
		for cell := range end {
			piece := PieceIn(starts, cell)
			for at+1 < len(runs) && starts[runs[at+1].From] <= cell {
				at++
			}
			got := runs[at].From
			if length := runs[at].Length; length > 0 {
				got += (cell - starts[got]) / length
			}
			if got != piece {
				t.Fatalf("pieces %v below %d: cell %d is in the piece %d, by the run %v in %d", starts, end, cell, piece, runs[at], got)
			}
		}
		for _, run := range runs {
			if run.Length > 0 {
				divided++
			}
		}
		if len(runs) > len(starts) || len(starts) <= maxCompared && len(runs) != len(starts) {
			t.Fatalf("%d runs of %d pieces", len(runs), len(starts))
		}
	}
	if divided < 3000 {
		t.Errorf("%d runs are found by a division", divided)
	}
}
