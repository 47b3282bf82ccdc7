package console

import "testing"

// TestGridEnds: whatever an answer's numbers are, there are a few round values, and they are found at once. At 1.6e308
// the one above all is infinite.
func TestGridEnds(t *testing.T) {
	for _, ends := range [][2]float64{{0, 1.6e308}, {-1.7e308, 1.7e308}, {0, 5e-324}, {1e17, 1e17 + 16}, {0, 0}, {-3, -3}, {0, 100}, {1.79e308, 1.79e308}} {
		lines, _, _ := gridOf(ends[0], ends[1])
		if len(lines) > maxGrid {
			t.Errorf("%g to %g: %d lines", ends[0], ends[1], len(lines))
		}
		points := []point{{Label: "a", Y: ends[0], Low: ends[0], High: ends[0]}, {Label: "b", Y: ends[1], Low: ends[1], High: ends[1]}}
		if lineOf("n", []float64{0, 1}, points) == nil || barsOf("n", points) == nil {
			t.Errorf("%g to %g: no chart", ends[0], ends[1])
		}
	}
	if lines, _, _ := gridOf(0, 100); len(lines) < 3 {
		t.Errorf("0 to 100: %v", lines)
	}
}
