package ranges

import "math"

// MeanVariance returns the mean variance of the least-squares readings of a workload's queries, in units of the noise's
// variance. It takes time in proportion to the number of levels, and panics on an unknown workload.
func (t Tree) MeanVariance(workload Workload) float64 {
	squares, sum := t.prefixes()
	return workload.mean(t.cells, squares, sum)
}

// mean returns the mean variance over the workload's queries, given E Σ prefix² and E (Σ prefix)² of the prefix errors.
func (w Workload) mean(cells int, squares, sum float64) float64 {
	switch w {
	case AllRanges:
		return (float64(cells+1)*squares - sum) / w.queries(cells)
	case AllPrefixes:
		return squares / w.queries(cells)
	}
	panic("ranges: unknown workload")
}

// prefixes returns E Σ prefix² and E (Σ prefix)², over the errors of all prefixes.
//
// Derivation: a range is the difference of two prefixes, so Σ over ranges of the squared error is (D+1)ΣE² − (ΣE)² with
// E the prefix errors. By the pass down of Fit an error is a sum of uncorrelated parts, one per node: the errors e of
// its children's z, less shares of their sum in proportion to the variances (for the root, unobserved, less nothing). A
// part's prefix error is zero outside of its node, since it adds up to zero, so that equal nodes count equally wherever
// they lie; inside it climbs along each child in the way that the child passes an error of its sum down to its cells.
func (t Tree) prefixes() (squares, sum float64) {
	add := func(p part, times float64) {
		a, b := p.prefixes()
		squares, sum = squares+times*a, sum+times*b
	}
	levels := len(t.levels)
	full, last := leafClimb, leafClimb // of the level below
	for l := levels - 1; l >= 0; l-- {
		v := &t.levels[l]
		if l == levels-1 {
			continue
		}
		next := &t.levels[l+1]
		nodes := v.count
		lastClimb := climb{}
		if t.ragged(l) {
			nodes--
			p := part{v.last.children, full, last, next, v.last.sum}
			add(p, 1)
			lastClimb = p.climb()
		}
		p := part{v.full.children, full, last, next, v.full.sum}
		add(p, float64(nodes))
		full = p.climb()
		last = lastClimb
	}
	p := part{t.root, full, last, &t.levels[0], math.Inf(1)}
	add(p, 1)
	return squares, sum
}

// climb describes how the prefix sums of a node's cells climb from 0 to 1 when its sum is off by 1: over its cells,
// Σ prefix and Σ prefix².
type climb struct{ cells, sum, squares float64 }

var leafClimb = climb{1, 1, 1}

// part is the part of the error that arises at a node: from its children's z, whose own climbs are full and last. The
// total variance is infinite where nothing holds the children's sum, at the root.
type part struct {
	children
	fullClimb, lastClimb climb
	level                *level
	total                float64
}

// powers returns Σ1, Σi and Σi² for i from 0 to n−1.
func powers(n int) (p0, p1, p2 float64) {
	m := float64(n)
	return m, m * (m - 1) / 2, m * (m - 1) * (2*m - 1) / 6
}

// prefixes returns E Σ prefix² and E (Σ prefix)² of the part.
func (p part) prefixes() (squares, total float64) {
	s, f := p.level.full.variance, p.fullClimb
	n0, n1, n2 := powers(p.full)
	// Before the i-th child the prefix has the variance i·s − (i·s)²/total; its covariance with a child's error
	// follows.
	squares = f.cells*(s*n1-s*s*n2/p.total) - 2*f.sum*s*s*n1/p.total + f.squares*n0*(s-s*s/p.total)
	rest := 0.0 // cells after the full children
	if p.last {
		rest = p.lastClimb.cells
	}
	// Σ prefix = Σ error·c, and the i-th child from the right has c = sum + rest + i·cells.
	c0 := f.sum + rest
	weighed := s * (n0*c0 + n1*f.cells)
	sum := s * (n0*c0*c0 + 2*n1*c0*f.cells + n2*f.cells*f.cells)
	if p.last {
		v, g, n := p.level.last.variance, p.lastClimb, float64(p.full)
		squares += g.cells*(n*s-n*n*s*s/p.total) - 2*g.sum*n*s*v/p.total + g.squares*(v-v*v/p.total)
		weighed += v * g.sum
		sum += v * g.sum * g.sum
	}
	return squares, sum - weighed*weighed/p.total
}

// climb returns the climb of the node itself, which shares an error among its children by variance.
func (p part) climb() climb {
	f := p.fullClimb
	share := p.level.full.variance / p.children.sum
	n0, n1, n2 := powers(p.full)
	c := climb{
		cells:   n0 * f.cells,
		sum:     share * (n1*f.cells + n0*f.sum),
		squares: share * share * (n2*f.cells + 2*n1*f.sum + n0*f.squares),
	}
	if p.last {
		g, before, own := p.lastClimb, float64(p.full)*share, p.level.last.variance/p.children.sum
		c.cells += g.cells
		c.sum += before*g.cells + own*g.sum
		c.squares += before*before*g.cells + 2*before*own*g.sum + own*own*g.squares
	}
	return c
}
