package ranges

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// template is the search space of p-identity strategies A = [I; Θ]·diag(1/u), u = 1 + column sums of Θ, so that every
// column has L1 norm 1, and the objective is tr((A'A)⁻¹G) with G the Gram matrix of the workload.
//
// In the letters of evaluate, for one part: (A'A)⁻¹ = U(I+Θ'Θ)⁻¹U = U(I − Θ'MΘ)U with M = (I+ΘΘ')⁻¹ (Woodbury), hence
// with H = ΘU, L = HG, K = LH' the objective is Σ u²·G_jj − tr(MK). Its derivative by Θ at fixed u is
// −2·ΘX·UGU·X with X = I − Θ'MΘ and ΘX = MΘ, that is −2(MLU − MKMΘ), and by u_j it is 2(XUG)_jj = 2(u_j·G_jj −
// Σ_k Θ_kj (ML)_kj); u_j grows with every entry of column j alike. G is applied by cumulative sums. So one evaluation
// takes O(pD + p²D + p³).
//
// Where G is unchanged by reversing the cells (all ranges), Θ = [a, b; b̄, ā] is taken symmetric: with every row also
// its reverse. Then G and Θ'Θ are the same in the even vectors and in the odd ones, of half the length each, in which Θ
// is a+b and a−b: two parts of half the rows and half the columns, which share u.
type template struct {
	cells, rows int // rows of the free parameters: all of Θ, or those whose reverses make up the rest
	symmetric   bool
	parts       []subspace
	width       int // columns of a part
	u, gu       []float64
}

// subspace is the objective on one invariant subspace.
type subspace struct {
	apply    func(dst, v []float64) // G·v
	diagonal []float64              // of G
	theta, h, l, q, g,
	m, k, r, work blas64.General
}

func general(rows, cols int) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: make([]float64, rows*cols)}
}

func newSubspace(rows int, diagonal []float64, apply func(dst, v []float64)) subspace {
	width := len(diagonal)
	p := subspace{apply: apply, diagonal: diagonal}
	for _, m := range []*blas64.General{&p.theta, &p.h, &p.l, &p.q, &p.g} {
		*m = general(rows, width)
	}
	for _, m := range []*blas64.General{&p.m, &p.k, &p.r, &p.work} {
		*m = general(rows, rows)
	}
	return p
}

// The Gram matrices as inverses of second differences y[i−1] − 2y[i] + y[i+1] with their values at the ends.

// gramRanges sets dst to G·v for all ranges over len(v) cells: (D+1)·tridiag(−1, 2, −1)⁻¹.
func gramRanges(dst, v []float64) { gramEnds(dst, v, float64(len(v)+1), 1) }

// gramEnds solves −y[i−1] + 2y[i] − y[i+1] = scale·v[i] with y[−1] = 0 and the last slope y[n] − y[n−1] = −end·y[n−1].
func gramEnds(dst, v []float64, scale, end float64) {
	n, slope, sum := len(v), 0.0, 0.0
	for i := n - 1; i >= 0; i-- {
		slope += scale * v[i]
		dst[i] = slope
		sum += slope
	}
	last := -end * sum / (1 + end*float64(n))
	y := 0.0
	for i := range dst {
		y += dst[i] + last
		dst[i] = y
	}
}

// gramPrefixes sets dst to G·v for all prefixes: G_ij = D − max(i, j).
func gramPrefixes(dst, v []float64) {
	sum := 0.0
	for i, x := range v {
		sum += x
		dst[i] = sum
	}
	sum = 0
	for i := len(v) - 1; i >= 0; i-- {
		sum += dst[i]
		dst[i] = sum
	}
}

func templateOf(cells, rows int, parts ...subspace) *template {
	t := &template{cells: cells, rows: rows, parts: parts, symmetric: len(parts) == 2, width: cells / len(parts)}
	t.u, t.gu = make([]float64, t.width), make([]float64, t.width)
	return t
}

// theta sets the parts' Θ and u from the parameters x.
func (t *template) theta(x []float64) {
	n := t.width
	for j := range t.u {
		t.u[j], t.gu[j] = 1, 0
	}
	for i := range t.rows {
		row := x[i*t.cells:][:t.cells]
		for s := range t.parts {
			theta := t.parts[s].theta.Data[i*n:][:n]
			copy(theta, row)
			if t.symmetric {
				for j := range n {
					theta[j] += sign(s) * row[t.cells-1-j]
				}
			}
		}
		for j, v := range t.parts[0].theta.Data[i*n:][:n] {
			t.u[j] += v
		}
	}
}

// sign is that with which the second half of a row enters the even part, 0, and the odd one, 1.
func sign(part int) float64 { return float64(1 - 2*part) }

// maxU bounds u, and so the digits lost between Σ u²·G_jj and the rest: every cell's own observation keeps a hundredth
// of the column.
const maxU = 100

// evaluate returns the objective at the parameters x and sets gradient. It is infinite out of bounds.
func (t *template) evaluate(gradient, x []float64) float64 {
	t.theta(x)
	sum, n := 0.0, t.width
	if floats.Max(t.u) > maxU {
		return math.Inf(1)
	}
	for s := range t.parts {
		sum += t.parts[s].evaluate(t.u, t.gu)
	}
	if !(sum > 0) { // all digits are lost
		return math.Inf(1)
	}
	for i := range t.rows {
		row := gradient[i*t.cells:][:t.cells]
		clear(row[copy(row, t.gu):])
		for s := range t.parts {
			g := t.parts[s].g.Data[i*n:][:n]
			for j := range n {
				row[j] += g[j]
			}
			if t.symmetric {
				for j := range n {
					row[t.cells-1-j] += sign(s)*g[j] + t.gu[j]/2
				}
			}
		}
	}
	return sum
}

// evaluate returns the subspace's share of the objective, sets g to its derivative by Θ at fixed u, and adds to gu that
// by u. It is infinite where I + ΘΘ' cannot be inverted.
func (p *subspace) evaluate(u, gu []float64) float64 {
	n := len(u)
	for i := range p.theta.Rows {
		h, theta := p.h.Data[i*n:][:n], p.theta.Data[i*n:][:n]
		for j := range h {
			h[j] = theta[j] * u[j]
		}
		p.apply(p.l.Data[i*n:][:n], h)
	}
	if !p.invert() {
		return math.Inf(1)
	}
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, p.l, p.h, 0, p.k)
	sum := 0.0
	for j, d := range p.diagonal {
		sum += u[j] * u[j] * d
		gu[j] += 2 * u[j] * d
	}
	for i, m := range p.m.Data {
		sum -= m * p.k.Data[i]
	}
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, p.m, p.l, 0, p.q)
	for i := range p.theta.Rows {
		q, theta, g := p.q.Data[i*n:][:n], p.theta.Data[i*n:][:n], p.g.Data[i*n:][:n]
		for j := range q {
			gu[j] -= 2 * theta[j] * q[j]
			g[j] = q[j] * u[j]
		}
	}
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, p.m, p.k, 0, p.work)
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, p.work, p.m, 0, p.r)
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 2, p.r, p.theta, -2, p.g)
	return sum
}

// invert sets m to (I + ΘΘ')⁻¹.
func (p *subspace) invert() bool {
	n := p.m.Rows
	clear(p.m.Data)
	for i := range n {
		p.m.Data[i*n+i] = 1
	}
	blas64.Syrk(blas.NoTrans, 1, p.theta, 1, blas64.Symmetric{N: n, Stride: n, Data: p.m.Data, Uplo: blas.Upper})
	inverse := mat.NewSymDense(n, p.m.Data)
	var c mat.Cholesky
	if !c.Factorize(inverse) || c.InverseTo(inverse) != nil {
		return false
	}
	for i := range n {
		for j := range i {
			p.m.Data[i*n+j] = p.m.Data[j*n+i]
		}
	}
	return true
}

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

// The optima for ranges and prefixes look alike: levels of overlapping hats, nearly triangular, each level some six
// times as wide as the one below. From hats the descent ends lower, and a hundred times faster, than from random rows.

// layout is a number of hats for each level, the finest first.
type layout []int

// layouts returns layouts worth a try.
func layouts(workload Workload, cells int) []layout {
	widths := []float64{13, 16, 21, 26}
	if cells <= 64 {
		widths = []float64{8, 11, 13, 16, 22, 32}
	}
	found := []layout{{2}}
	for _, width := range widths {
		for _, ratio := range []float64{3, 4, 6, 8} {
			var l layout
			for n := float64(cells) / width; n >= 1.5; n /= ratio {
				hats := int(n + .5)
				if workload == AllRanges {
					hats = 2 * int(n/2+.5) // half of them are the others' mirror images
				}
				l = append(l, hats)
				if tops := len(l) == 1 && ratio == 3 || len(l) > 1 && hats < 24; tops {
					found = append(found, slices.Clone(l))
				}
			}
		}
	}
	return found
}

// start returns the parameters for a layout: of a symmetric template, the left half of the hats. Nothing is exactly 0,
// which the descent could not leave; the small excess, by the golden ratio's multiples, makes no two rows alike.
func (l layout) start(cells int, symmetric bool) (x []float64, rows int) {
	const golden = 0.6180339887498949
	for level, hats := range l {
		height := .9 - .1*float64(min(level, 3))
		apart := float64(cells) / float64(hats)
		kept := hats
		if symmetric {
			kept = (hats + 1) / 2
		}
		for k := range kept {
			middle := (float64(k) + .5) * apart
			for j := range cells {
				_, excess := math.Modf(golden * float64(len(x)+1))
				slant := 1 - math.Abs(float64(j)+.5-middle)/(1.4*apart)
				x = append(x, height*max(0, slant)+1e-3*excess)
			}
			rows++
		}
	}
	return x, rows
}
