package mechanisms

import "math"

// Reading names what an Estimate makes of the least-squares reading of counts, or of sums that cannot be below 0.
// Identity and sums of both signs are read as they are.
type Reading uint8

// The readings.
const (
	// Isotonic takes the nearest rising prefix sums: the error of all prefixes together never grows.
	Isotonic Reading = iota
	// Unchanged takes least squares as it is: unbiased.
	Unchanged
	// NonNegative takes, of all vectors of cells that are not negative, the one nearest to the observations: the error
	// as the observations see it never grows. That is another error than the one of ranges: where most cells are empty,
	// their noise that is above 0 is kept in part, and sums of many of them drift up, less than those of cells cut at 0
	// but further than Isotonic is off (docs/benchmarks.md). It takes some hundred times as long as the others.
	NonNegative
)

// nonNegative returns the x ≥ 0 with the least (x−y)'M(x−y), M = B'B, which is where |B·x − observations| is least, as
// the least-squares reading y is where it is least of all. tolerance is how much of that square does not matter.
//
// The nearest point of a convex set in the metric of M: since the true cells are in the set, none of its points is
// nearer to y than to them in the sense that |B(x−truth)| ≤ |B(y−truth)|. Found by accelerated projected gradients
// (Beck and Teboulle 2009), begun anew where the square rises (O'Donoghue and Candès 2015).
func nonNegative(y []float64, gram func(x []float64) []float64, tolerance float64) []float64 {
	step := 1 / largestOf(gram, len(y))
	x, ahead := make([]float64, len(y)), make([]float64, len(y))
	for i, v := range y {
		x[i] = max(v, 0)
	}
	copy(ahead, x)
	momentum, before, since := 1.0, math.Inf(1), math.Inf(1)
	off := make([]float64, len(y))
	for round := range maxRounds {
		for i := range off {
			off[i] = ahead[i] - y[i]
		}
		slope, square := gram(off), 0.0
		for i, g := range slope {
			square += off[i] * g
		}
		if square > before {
			momentum = 1
		}
		before = square
		if round%roundsApart == roundsApart-1 {
			if since-square < tolerance {
				break
			}
			since = square
		}
		next := (1 + math.Sqrt(1+4*momentum*momentum)) / 2
		push := (momentum - 1) / next
		momentum = next
		for i := range x {
			moved := max(0, ahead[i]-step*slope[i])
			ahead[i] = moved + push*(moved-x[i])
			x[i] = moved
		}
	}
	return x
}

// The rounds of nonNegative: at most so many, and so many between two looks at what they gained.
const (
	maxRounds   = 3000
	roundsApart = 25
)

// largestOf returns a bound of M's largest eigenvalue, all but certain to be one: M has no negative entries to speak
// of, so that from all ones the power method converges from below at once.
func largestOf(gram func(x []float64) []float64, cells int) float64 {
	x, size := make([]float64, cells), math.Sqrt(float64(cells))
	for i := range x {
		x[i] = 1
	}
	for range 20 {
		for i := range x {
			x[i] /= size
		}
		x = gram(x)
		sum := 0.0
		for _, v := range x {
			sum += v * v
		}
		size = math.Sqrt(sum)
	}
	return 1.1 * size
}
