package accounting

import (
	"math"
	"math/cmplx"
	"testing"

	"gonum.org/v1/gonum/dsp/fourier"
)

// lossOfLaplace is the privacy loss of one Laplace release on a grid of step ε/parts: mass i lies at (i−parts)·step.
// Mass between two points is split between them so that it weighs as much under the neighbour (Doroshenko et al. 2022),
// which never lowers a δ and is exact at the points.
func lossOfLaplace(epsilon float64, parts int) []float64 {
	step := epsilon / float64(parts)
	mass := make([]float64, 2*parts+1)
	mass[0], mass[2*parts] = math.Exp(-epsilon)/2, .5
	for i := range 2 * parts {
		low, high := float64(i-parts)*step, float64(i+1-parts)*step
		// Between the two centres, 0 and 1, the loss at x is ε(1−2x).
		from, to := (1-high/epsilon)/2, (1-low/epsilon)/2
		p := (math.Exp(-epsilon*from) - math.Exp(-epsilon*to)) / 2
		q := (math.Exp(-epsilon*(1-to)) - math.Exp(-epsilon*(1-from))) / 2
		upper := (p*math.Exp(-low) - q) / (math.Exp(-low) - math.Exp(-high))
		upper = min(max(upper, 0), p)
		mass[i] += p - upper
		mass[i+1] += upper
	}
	return mass
}

// composed is the δ at ε = 1 of n such releases: the n-th power of the transform on a circle that is wider than what of
// the sum's mass shows.
func composed(n int64, epsilon float64, parts int) float64 {
	step := epsilon / float64(parts)
	size := 1
	for float64(size)*step < 2*(1+12*epsilon*math.Sqrt(float64(n)))+4*epsilon {
		size *= 2
	}
	wrapped := make([]complex128, size)
	for i, m := range lossOfLaplace(epsilon, parts) {
		wrapped[((i-parts)%size+size)%size] += complex(m, 0)
	}
	fft := fourier.NewCmplxFFT(size)
	at := fft.Coefficients(nil, wrapped)
	for i, c := range at {
		at[i] = cmplx.Pow(c, complex(float64(n), 0))
	}
	sum := fft.Sequence(nil, at)
	delta := 0.0
	for i := size / 2; i > 0; i-- {
		if l := float64(i) * step; l > 1 {
			delta += real(sum[i]) / float64(size) * -math.Expm1(1-l)
		}
	}
	return delta
}

// TestLaplaceByItsLoss: how many Laplace releases, rather than any pure ones, fit into (1, 1e-6), from their privacy
// loss distribution; the known figures are of a coarser grid, rounded up, so ours may be a few higher, or come from the
// optimal batch where that is better.
func TestLaplaceByItsLoss(t *testing.T) {
	for _, c := range []struct {
		epsilon float64
		known   int64
	}{{.5, 2}, {.2, 5}, {.1, 10}, {.05, 26}, {.02, 143}, {.01, 564}, {.005, 2247}, {.002, 14018}, {.001, 56046}} {
		low, high := max(0, c.known-c.known/200-2), c.known+c.known/200+2
		for high-low > 1 {
			if middle := (low + high) / 2; composed(middle, c.epsilon, 40) <= 1e-6 {
				low = middle
			} else {
				high = middle
			}
		}
		t.Logf("epsilon_i %.3f: %d Laplace releases, known %d", c.epsilon, low, c.known)
		if low < c.known || float64(low) > float64(c.known)*1.002+1 {
			t.Errorf("epsilon_i %g: %d, known %d", c.epsilon, low, c.known)
		}
	}
}
