package ladders

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// TestGaussianStepsAreNear convolves the exact laws: the coarse level's differs from discrete Gaussian noise by no more
// than the step says, and where the step refuses it differs a lot.
func TestGaussianStepsAreNear(t *testing.T) {
	law := func(s Scale) []float64 {
		d, err := noise.New(noise.Gaussian, s.Num, s.Den)
		if err != nil {
			t.Fatal(err)
		}
		p := make([]float64, 401)
		for i := range p {
			p[i] = float64(d.Mass(int64(i - 200)))
		}
		return p
	}
	for _, s := range []struct {
		coarse, fine Scale
		refused      bool
	}{
		{Scale{2, 1}, Scale{1, 1}, false},
		{Scale{9, 4}, Scale{1, 1}, false},
		{Scale{16, 1}, Scale{4, 1}, false},
		{Scale{100, 3}, Scale{31, 2}, false},
		{Scale{11, 10}, Scale{1, 1}, true},
		{Scale{1, 1}, Scale{1, 1}, true},
		{Scale{1, 1}, Scale{2, 1}, true},
		{Scale{1, 1}, Scale{0, 1}, true},
	} {
		step, err := NewGaussianStep(s.coarse, s.fine)
		if (err != nil) != s.refused {
			t.Errorf("%v: %v", s, err)
		}
		if err != nil {
			continue
		}
		a, b, want := law(s.fine), law(Scale{s.coarse.Num*s.fine.Den - s.fine.Num*s.coarse.Den, s.coarse.Den * s.fine.Den}), law(s.coarse)
		worst := 0.0
		for n := -20; n <= 20; n++ {
			sum := 0.0
			for k := -150; k <= 150; k++ {
				if at := n - k + 200; at >= 0 && at < len(b) {
					sum += a[k+200] * b[at]
				}
			}
			worst = max(worst, math.Abs(math.Log(sum/want[n+200])))
		}
		t.Logf("%v: off by %.2g, told %.2g", s, worst, step.Near())
		if worst > step.Near()+1e-13 || step.Near() > 1e3*worst+1e-12 {
			t.Errorf("%v: chances are off by exp(%g), told exp(%g)", s, worst, step.Near())
		}
	}
}
