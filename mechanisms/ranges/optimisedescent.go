package ranges

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// descent is limited-memory BFGS (Nocedal 1980) in z, where Θ = z² keeps Θ ≥ 0. A step is halved, or cut to where the
// parabola through it has its minimum, until it falls by a share of what the slope promises (Armijo).
type descent struct {
	t                *template
	z, square, slope []float64 // slope: the derivative by z
	value            float64
	steps, changes   [][]float64 // of the last moves: of z, of slope
}

const (
	keptMoves = 20   // remembered
	patience  = 12   // moves without progress
	progress  = 1e-8 // of the value
)

// minimise improves Θ, given as x row by row, and returns the objective there.
func (t *template) minimise(x []float64, moves int) float64 {
	n := len(x)
	d := &descent{t: t, z: make([]float64, n), square: make([]float64, n), slope: make([]float64, n)}
	for i, v := range x {
		d.z[i] = math.Sqrt(v)
	}
	d.value = d.derive(d.z)
	next, direction, before := make([]float64, n), make([]float64, n), make([]float64, n)
	for stalled := 0; moves > 0 && stalled < patience; moves-- {
		d.direction(direction)
		if floats.Dot(direction, d.slope) >= 0 {
			d.forget()
			d.direction(direction)
		}
		copy(before, d.slope)
		value := d.search(next, direction)
		if value >= d.value { // no progress along this direction, nor along any other if it is the steepest
			if len(d.steps) == 0 {
				break
			}
			d.forget()
			d.value = d.derive(d.z)
			continue
		}
		if stalled++; d.value-value > progress*d.value {
			stalled = 0
		}
		d.z, next, d.value = next, d.z, value
		d.remember(next, before)
	}
	for i, z := range d.z {
		x[i] = z * z
	}
	return d.value
}

// derive returns the objective at z and sets the slope there.
func (d *descent) derive(z []float64) float64 {
	for i, v := range z {
		d.square[i] = v * v
	}
	value := d.t.evaluate(d.slope, d.square)
	for i, v := range z {
		d.slope[i] *= 2 * v
	}
	return value
}

// search sets next to a point along direction and returns the objective there, +Inf or more than now if none is lower.
func (d *descent) search(next, direction []float64) float64 {
	promise, length := floats.Dot(direction, d.slope), 1.0
	if len(d.steps) == 0 {
		length = .1 * floats.Norm(d.z, 2) / floats.Norm(direction, 2)
	}
	for length > 1e-12 {
		floats.AddScaledTo(next, d.z, length, direction)
		value := d.derive(next)
		if value <= d.value+1e-4*length*promise {
			return value
		}
		if shorter := -promise * length * length / (2 * (value - d.value - length*promise)); shorter > 0 {
			length = min(max(shorter, length/10), length/2)
		} else {
			length /= 10
		}
	}
	return math.Inf(1)
}

func (d *descent) forget() { d.steps, d.changes = nil, nil }

// remember keeps the move from before to the present z.
func (d *descent) remember(before, slope []float64) {
	step, change := make([]float64, len(d.z)), make([]float64, len(d.z))
	if len(d.steps) == keptMoves {
		step, change = d.steps[0], d.changes[0]
		d.steps, d.changes = d.steps[1:], d.changes[1:]
	}
	floats.SubTo(step, d.z, before)
	floats.SubTo(change, d.slope, slope)
	if floats.Dot(step, change) > 1e-12*floats.Dot(change, change) {
		d.steps, d.changes = append(d.steps, step), append(d.changes, change)
	}
}

// direction sets to to −H·slope, H being the approximate inverse of the second derivatives.
func (d *descent) direction(to []float64) {
	floats.ScaleTo(to, -1, d.slope)
	n := len(d.steps)
	along := make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		along[i] = floats.Dot(d.steps[i], to) / floats.Dot(d.steps[i], d.changes[i])
		floats.AddScaled(to, -along[i], d.changes[i])
	}
	if n > 0 {
		floats.Scale(floats.Dot(d.steps[n-1], d.changes[n-1])/floats.Dot(d.changes[n-1], d.changes[n-1]), to)
	}
	for i := range n {
		across := floats.Dot(d.changes[i], to) / floats.Dot(d.steps[i], d.changes[i])
		floats.AddScaled(to, along[i]-across, d.steps[i])
	}
}
