package accounting

import "math"

// scaled is factor·exp(log).
type scaled struct{ factor, log float64 }

func (s scaled) value(more float64) float64 {
	if s.factor == 0 {
		return 0
	}
	return s.factor * math.Exp(s.log+more)
}

// widest is the deviation up to which tails are summed term by term.
const widest = 1 << 10

// tails bounds P(N ≥ m) from above and below, N a discrete Gaussian of variance v, up to floating-point error, which is
// below 2^-36 of it.
//
// Up to a deviation of widest both are the sum of the terms. Beyond, exp(−x²/(2v)) being convex from √v on, each term
// there is at most the integral over the unit around it, and the trapezes over the units are at least the integral:
// Σ_{j≥m} f(j) is between ∫_m + f(m)/2 and ∫_{m−½}. Below √v the midpoint rule's error, at most a 24th of the total
// variation of f', which is 4·exp(−½)/√v, is added or taken away.
func tails(v, m float64) (upper, lower scaled) {
	if v <= widest*widest {
		sum := summed(v, m)
		return sum, sum
	}
	deviation := math.Sqrt(v)
	total := deviation * math.Sqrt(2*math.Pi) // Σ over all integers, to within exp(−2π²v)
	from := func(x float64) scaled {          // ∫_x f
		if y := x / deviation; y > 6 {
			return scaled{deviation * mills(y) / total, -y * y / 2}
		}
		return scaled{math.Erfc(x/deviation/math.Sqrt2) / 2, 0}
	}
	if m-1 > deviation {
		lower = from(m)
		half := .5 / total
		if lower.log == 0 {
			half *= math.Exp(-m * m / (2 * v))
		}
		lower.factor += half
		return from(m - .5), lower
	}
	middle, off := from(m-.5), 4*math.Exp(-.5)/(24*deviation)/total
	return scaled{middle.factor + off*math.Exp(-middle.log), middle.log}, scaled{max(0, middle.factor-off*math.Exp(-middle.log)), middle.log}
}

// summed adds up the terms from m on, out to where they are exp(−45) of the first or of the mode, smallest first.
func summed(v, m float64) scaled {
	total := 1.0
	for k := math.Ceil(math.Sqrt(90*v)) + 1; k > 0; k-- {
		total += 2 * math.Exp(-k*k/(2*v))
	}
	if m <= 0 {
		rest := summed(v, 1-m) // P(N ≥ m) = 1 − P(N ≥ 1−m)
		return scaled{1 - rest.value(0), 0}
	}
	sum := 0.0
	for k := math.Ceil(math.Sqrt(m*m+90*v)) + 1 - m; k >= 0; k-- {
		sum += math.Exp(-k * (2*m + k) / (2 * v))
	}
	return scaled{sum / total, -m * m / (2 * v)}
}
