package stattest

import (
	"math"
	"testing"
)

func TestSpearman(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{10, 40, 90}, 1},
		{[]float64{1, 2, 3}, []float64{3, 2, 1}, -1},
		{[]float64{1, 1, 2, 3}, []float64{1, 1, 2, 3}, 1},
		{[]float64{1, 2, 3, 4}, []float64{2, 1, 4, 3}, 0.6}, // 1 - 6·4/(4·15)
	} {
		if got := Spearman(c.a, c.b); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Spearman(%v, %v) is %g, must be %g", c.a, c.b, got, c.want)
		}
	}
}
