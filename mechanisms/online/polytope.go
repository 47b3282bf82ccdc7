package online

import (
	"math"
	"slices"
)

// polytope is the fractional median hypothesis: points spread about evenly over all distributions that give every hard
// answer up to a slab. A query's guess is the median of its masses at the points.
//
// Roth and Roughgarden 2010, section 5, sample with the grid walk; this is hit-and-run between two cells at a time.
// Like weights it sees the transcript alone, and its generator starts from a constant: a restored session has the same
// points. How evenly they are spread decides how many queries are hard, not privacy.
type polytope struct {
	cells   int // with the one for absent rows, if there are any
	regular int // without it
	whole   float64
	slab    float64
	points  [][]float64
	walls   []wall
	random  *walk
	masses  []float64
}

// wall keeps a query's mass within target ± slab. Its weights are 1 for the cells that are in it.
type wall struct {
	entry   Entry
	weights []float64
	target  float64
	slab    float64
}

const (
	maxMedian = 4096 // cells
	particles = 256
	sweeps    = 6 // moves of a point after a hard answer, per cell
)

func newPolytope(p Plan) *polytope {
	s := p.spec
	t := &polytope{cells: s.Cells, regular: s.Cells, whole: p.whole(), slab: p.slab(), random: &walk{}}
	if s.Spare > 0 {
		t.cells++
	}
	t.masses = make([]float64, particles)
	for range particles {
		t.points = append(t.points, t.anywhere())
	}
	return t
}

// anywhere draws uniformly from all distributions: exponential gaps, normalised.
func (t *polytope) anywhere() []float64 {
	p, total := make([]float64, t.cells), 0.0
	for i := range p {
		p[i] = -math.Log(t.random.unit())
		total += p[i]
	}
	for i := range p {
		p[i] /= total
	}
	return p
}

func (t *polytope) mass(q Query) float64 {
	for i, p := range t.points {
		t.masses[i] = q.mass(p)
	}
	slices.Sort(t.masses)
	return (t.masses[particles/2-1] + t.masses[particles/2]) / 2
}

// shares are the mean of the points.
func (t *polytope) shares() []float64 {
	mean := make([]float64, t.regular)
	for _, p := range t.points {
		for i := range mean {
			mean[i] += p[i] / particles
		}
	}
	return mean
}

// learn adds a wall. Points inside stay, the others start again from one that stayed, or from the projection where none
// did; then all of them walk.
func (t *polytope) learn(entries []Entry) {
	e := entries[len(entries)-1]
	w := wall{entry: e, weights: make([]float64, t.cells), target: float64(e.Value) / t.whole, slab: t.slab}
	w.target = min(max(w.target, 0), 1)
	e.Query.each(func(i int) { w.weights[i] = 1 })
	t.walls = append(t.walls, w)
	inside := make([]int, 0, particles)
	for i, p := range t.points {
		if t.holds(p) {
			inside = append(inside, i)
		}
	}
	if len(inside) == 0 {
		center := t.enter()
		for _, p := range t.points {
			copy(p, center)
		}
	} else {
		for i, p := range t.points {
			if _, kept := slices.BinarySearch(inside, i); !kept {
				copy(p, t.points[inside[t.random.below(len(inside))]])
			}
		}
	}
	for _, p := range t.points {
		t.wander(p)
	}
}

// holds reports whether p is within all walls.
func (t *polytope) holds(p []float64) bool {
	for _, w := range t.walls {
		if math.Abs(dot(w.weights, p)-w.target) > w.slab {
			return false
		}
	}
	return true
}

// enter finds a point within the walls by projecting a hypothesis onto narrower ones, the noisiest walls moved apart as
// long as no such point turns up: the answers may contradict each other.
func (t *polytope) enter() []float64 {
	entries := make([]Entry, len(t.walls))
	for i, w := range t.walls {
		entries[i] = w.entry
	}
	start := make([]float64, t.cells)
	for _, p := range t.points {
		for i := range p {
			start[i] += p[i] / particles
		}
	}
	h := &weights{p: start, whole: t.whole, slab: t.slab * .9}
	for round := 0; ; round++ {
		for range passes {
			if !h.reconcile(entries) {
				break
			}
		}
		if t.holds(h.p) || round == 60 {
			return h.p
		}
		for i := range t.walls {
			w := &t.walls[i]
			if off := math.Abs(dot(w.weights, h.p) - w.target); off > w.slab {
				w.slab = off * (1 + 1e-9)
			}
		}
	}
}

// wander moves p along differences of two cells, each time to a uniform place between the walls.
func (t *polytope) wander(p []float64) {
	at := make([]float64, len(t.walls))
	for j, w := range t.walls {
		at[j] = dot(w.weights, p)
	}
	if t.cells < 2 {
		return
	}
	for range sweeps * t.cells {
		a, b := t.random.below(t.cells), t.random.below(t.cells-1)
		if b >= a {
			b++
		}
		low, high := -p[a], p[b]
		for j := range t.walls {
			w := &t.walls[j]
			slope := w.weights[a] - w.weights[b]
			if slope == 0 {
				continue
			}
			x, y := (w.target-w.slab-at[j])/slope, (w.target+w.slab-at[j])/slope
			low, high = max(low, min(x, y)), min(high, max(x, y))
		}
		if low >= high {
			continue
		}
		move := low + (high-low)*t.random.unit()
		p[a], p[b] = max(0, p[a]+move), max(0, p[b]-move)
		for j := range t.walls {
			at[j] += move * (t.walls[j].weights[a] - t.walls[j].weights[b])
		}
	}
}

func dot(a, b []float64) float64 {
	total := 0.0
	for i, x := range a {
		total += x * b[i]
	}
	return total
}

// walk is the generator of the points' walk, splitmix64 (Steele, Lea, Flood 2014). It is public and draws no noise.
type walk struct{ state uint64 }

func (w *walk) next() uint64 {
	w.state += 0x9e3779b97f4a7c15
	x := w.state
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// unit returns a number in (0, 1).
func (w *walk) unit() float64 { return (float64(w.next()>>11) + .5) / (1 << 53) }

// below returns a number in [0, n); its bias of n/2⁶⁴ does not matter here.
func (w *walk) below(n int) int { return int(w.next() % uint64(n)) }
