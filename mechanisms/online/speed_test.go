package online

import (
	"fmt"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// BenchmarkAnswer is the time of one answer over universes up to a million cells: easy (a sum of the rows and of the
// hypothesis over half of the cells), and hard (an update as well).
func BenchmarkAnswer(b *testing.B) {
	for _, cells := range []int{128, 1 << 16, 1 << 20} {
		for _, hard := range []bool{false, true} {
			b.Run(fmt.Sprintf("cells=%d/hard=%v", cells, hard), func(b *testing.B) {
				s := small(false, privacy.Pure)
				s.Cells, s.Rows, s.Restarts, s.Updates = cells, 1<<30, 0, maxUpdates
				p := planned(b, s, 1<<29)
				if hard {
					p.threshold = -1 << 61
				}
				rows := make([]int64, cells)
				for i := range rows {
					rows[i] = 1 << 30 / int64(cells)
				}
				session := opened(b, p, rows, seeded(1), keep)
				q, err := Spans(cells, Span{0, cells / 2})
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					session.state.entries = nil // each update is the first
					if _, err := session.Answer(q); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
