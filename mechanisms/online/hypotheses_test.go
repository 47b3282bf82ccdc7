package online

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestProjectionIsNearest: of all distributions with the target's mass, none that is tried is nearer in relative
// entropy.
func TestProjectionIsNearest(t *testing.T) {
	for _, q := range []Query{only(t, 4, 1), only(t, 4, 0, 2)} {
		start := []float64{.1, .2, .3, .35, .05}
		w := &weights{p: append([]float64(nil), start...), whole: 1e4}
		w.project(q, .55)
		if got := w.mass(q); math.Abs(got-.55) > 1e-9 {
			t.Fatalf("mass is %v, want .55", got)
		}
		entropy := func(p []float64) float64 {
			sum := 0.0
			for i := range p {
				sum += p[i] * math.Log(p[i]/start[i])
			}
			return sum
		}
		least := entropy(w.p)
		x := make([]float64, 5)
		q.each(func(i int) { x[i] = 1 })
		for a := range 5 {
			for b := range 5 {
				for c := range 5 {
					// A direction that keeps the total and q's mass: its components solve both.
					d := [5]float64{}
					d[a], d[b], d[c] = x[b]-x[c], x[c]-x[a], x[a]-x[b]
					if a == b || b == c || a == c {
						continue
					}
					for _, step := range []float64{1e-3, -1e-3} {
						p := append([]float64(nil), w.p...)
						for i := range p {
							p[i] += step * d[i]
						}
						if e := entropy(p); e < least-1e-12 {
							t.Errorf("%v is nearer: %v < %v", p, e, least)
						}
					}
				}
			}
		}
	}
}

// TestPointsStayInside: after hard answers that agree, every point is a distribution within all walls; answers that
// contradict each other move the walls, and end nothing.
func TestPointsStayInside(t *testing.T) {
	p := planned(t, small(true, privacy.Pure), 400)
	h := newPolytope(p)
	entries := []Entry{}
	for i, rows := range skewed[:5] {
		entries = append(entries, Entry{only(t, 8, i), rows})
		h.learn(entries)
		for _, point := range h.points {
			total := 0.0
			for _, x := range point {
				if total += x; x < 0 {
					t.Fatalf("a point has %v", x)
				}
			}
			if math.Abs(total-1) > 1e-9 {
				t.Fatalf("a point sums to %v", total)
			}
			for _, w := range h.walls {
				if off := math.Abs(dot(w.weights, point) - w.target); off > w.slab+1e-9 {
					t.Fatalf("after %d answers a point is off by %v of %v", i+1, off, w.slab)
				}
			}
		}
	}
	for _, value := range []int64{10_000, -50, 1 << 61} {
		entries = append(entries, Entry{only(t, 8, 0, 1, 2), value})
		h.learn(entries)
		if m := h.mass(only(t, 8, 0)); !(m >= 0 && m <= 1) {
			t.Errorf("after contradictions the mass is %v", m)
		}
	}
}
