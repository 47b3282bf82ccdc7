package ranges

import "math"

// Fit returns the least-squares reading of the cells: of all vectors x, the one with the least Σ (y − weight·node sum
// of x)² over the observations y of all levels. It takes two passes over the nodes.
//
// Proof: the observations of a node's sub-tree say about the node's sum no more than their best linear combination z,
// which weighs the own observation and Σz of the children by inverse variance (pass up). Given the best reading x of a
// node from all observations, its children are read as z plus a share of x − Σz in proportion to their variances: what
// least squares under one linear constraint gives for independent readings (pass down). The root is not observed, so
// for it x = Σz and the first level stays as it is. Nothing is assumed of the number of children.
func (t Tree) Fit(observations []int64) []float64 {
	z := make([]float64, len(observations))
	for i, y := range observations {
		z[i] = float64(y)
	}
	bottom := t.levels[len(t.levels)-1]
	for i := bottom.offset; i < len(z); i++ {
		z[i] *= bottom.full.own
	}
	for l := len(t.levels) - 2; l >= 0; l-- {
		t.up(l, z)
	}
	for l := 0; l < len(t.levels)-1; l++ {
		t.down(l, z)
	}
	return z[bottom.offset:]
}

// below returns the observations of the children of a node.
func (t *Tree) below(l, index int, z []float64) []float64 {
	v, next := &t.levels[l], &t.levels[l+1]
	each := v.block / next.block
	return z[next.offset+index*each : next.offset+min((index+1)*each, next.count)]
}

func (t *Tree) up(l int, z []float64) {
	v := &t.levels[l]
	for i := range v.count {
		n, sum := t.node(l, i), 0.0
		for _, c := range t.below(l, i, z) {
			sum += c
		}
		y := &z[v.offset+i]
		*y = n.own**y + n.below*sum
	}
}

func (t *Tree) down(l int, z []float64) {
	v, next := &t.levels[l], &t.levels[l+1]
	for i := range v.count {
		n, rest := t.node(l, i), z[v.offset+i]
		below := t.below(l, i, z)
		for _, c := range below {
			rest -= c
		}
		share := rest / n.sum
		for j := range n.full {
			below[j] += share * next.full.variance
		}
		if n.last {
			below[len(below)-1] += share * next.last.variance
		}
	}
}

// Prefixes returns the sums of the first 0, 1, …, all cells.
func Prefixes(cells []float64) []float64 {
	sums := make([]float64, len(cells)+1)
	for i, c := range cells {
		sums[i+1] = sums[i] + c
	}
	return sums
}

// Isotonic replaces prefix sums by the nearest non-decreasing ones that begin with 0 (pool adjacent violators, then cut
// at 0). The true prefix sums of counts are such a vector and such vectors are a convex cone, so Σ (sum − truth)² over
// all prefixes never grows.
func Isotonic(prefixes []float64) {
	type pool struct {
		mean  float64
		count int
	}
	pools := make([]pool, 0, len(prefixes))
	for _, p := range prefixes[1:] {
		last := pool{p, 1}
		for len(pools) > 0 && pools[len(pools)-1].mean >= last.mean {
			before := pools[len(pools)-1]
			pools = pools[:len(pools)-1]
			n := before.count + last.count
			last = pool{last.mean + (before.mean-last.mean)*(float64(before.count)/float64(n)), n}
		}
		pools = append(pools, last)
	}
	prefixes[0] = 0
	at := 1
	for _, p := range pools {
		for range p.count {
			prefixes[at] = math.Max(0, p.mean)
			at++
		}
	}
}
