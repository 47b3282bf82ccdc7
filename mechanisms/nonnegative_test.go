package mechanisms

import (
	"math"
	weak "math/rand/v2"
	"testing"
)

// TestNonNegativeIsNearest: against the conditions that single out the nearest point of the cone: no cell below 0, no
// slope below 0, and none where a cell is above 0.
func TestNonNegativeIsNearest(t *testing.T) {
	random := weak.New(weak.NewPCG(7, 7))
	for _, s := range []Spec{
		{Cells: 40, Kind: &Counts{Strategy: Strategy{Kind: Tree, Radices: []int{7, 6}}}},
		{Cells: 60, Kind: &Counts{Strategy: Strategy{Kind: Tree, Radices: []int{4, 4, 4}, Weights: []int64{1, 5, 3}}}},
	} {
		for range 20 {
			y := make([]float64, s.Cells)
			for i := range y {
				y[i] = 10*random.NormFloat64() + 3
			}
			g := s.gram()
			x := nonNegative(y, g, 1e-12)
			off := make([]float64, len(x))
			for i := range x {
				off[i] = x[i] - y[i]
			}
			for i, slope := range g(off) {
				if x[i] < 0 || slope < -1e-3 || x[i] > 0 && math.Abs(slope) > 1e-3 {
					t.Fatalf("%v: cell %d is read as %g, the slope there is %g", s.Counts().Strategy, i, x[i], slope)
				}
			}
		}
	}
}

// TestReadings: each keeps its promise, for cells most of which are empty.
func TestReadings(t *testing.T) {
	s, err := OfStrategy(1, 100, Strategy{Kind: Tree, Radices: []int{10, 10}}, oneRow, epsilon(100_000))
	if err != nil {
		t.Fatal(err)
	}
	r := mustRelease(t, s, groupsOf(5, 900, 0, 40), seeded(3))
	cells := func(as Reading) []int64 {
		e, err := NewEstimateAs(as, s, r)
		if err != nil {
			t.Fatal(err)
		}
		all := []int64{}
		for i := range s.Cells {
			all = append(all, e.Sum(0, []Span{{i, i + 1}}).Value())
			e.Redraw(seeded(4))
		}
		return all
	}
	below := func(all []int64) (n int) {
		for _, c := range all {
			if c < 0 {
				n++
			}
		}
		return n
	}
	if n := below(cells(Unchanged)); n < 20 {
		t.Errorf("seed %q: unchanged, %d cells are below 0", seed, n)
	}
	if n, m := below(cells(Isotonic)), below(cells(NonNegative)); n+m > 0 {
		t.Errorf("seed %q: %d and %d cells are below 0", seed, n, m)
	}
	if _, err := NewEstimateAs(3, s, r); err == nil || err.Error() != "reading is 3, must be isotonic, unchanged or non-negative" {
		t.Error(err)
	}
}

// TestLinearVariance: of sums it is what Errors says, and anything else is refused.
func TestLinearVariance(t *testing.T) {
	sure, _ := NewConfidence(.95)
	for _, y := range []Strategy{{Kind: Identity}, {Kind: Tree, Radices: []int{4, 5}}, {Kind: Sine, Bits: 20, Version: 1}} {
		s, err := OfStrategy(1, 17, y, oneRow, epsilon(1_000_000))
		if err != nil {
			t.Fatal(err)
		}
		query := make([]float64, 17)
		for i := 3; i < 9; i++ {
			query[i] = 2
		}
		got, err := s.LinearVariance(query)
		if want := 4 * s.Error([]Span{{3, 9}}, sure).Variance; err != nil || math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%v: %g (%v), want %g", y, got, err, want)
		}
		if _, err := s.LinearVariance(query[1:]); err == nil || err.Error() != "number of coefficients is 16, must be the number of cells, 17" {
			t.Error(err)
		}
		query[5] = math.NaN()
		if _, err := s.LinearVariance(query); err == nil || err.Error() != "coefficient 6 is NaN, must be finite" {
			t.Error(err)
		}
	}
}
