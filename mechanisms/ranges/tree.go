// Package ranges knows the strategies by which ordered cells are observed: integer matrices with their exact
// sensitivity, the least-squares reading of their noisy observations, the exact error of any sum of cells read so, and
// which strategy has the least. It works with unit noise and sees no privacy parameter; true counts pass through
// Observe alone.
package ranges

import "fmt"

// Tree observes every node of a tree over the cells 0 to Cells−1 except for its root. A node of level l covers a block
// of as many cells as the radices after l multiply to; the last node of a level covers what is left, and nodes beyond
// the last cell do not exist. So on each level at most one node, called the last below, differs in shape from the
// others. What is observed of a node of level l is its sum times the level's integer weight: a larger weight is a
// smaller noise. A Tree is immutable; the zero value is invalid.
type Tree struct {
	cells  int
	levels []level
	root   children // not observed
}

// level describes the nodes of one level, top first.
type level struct {
	block, count, offset int
	weight               int64
	full, last           node
}

// node is what least squares needs to know of a node: its children, and how its own observation y and their sum are
// weighed into z = own·y + below·Σz(children), the best reading of the node from its sub-tree. The variance is z's,
// with observations of variance 1.
type node struct {
	children
	own, below, variance float64
}

// children counts the children that have the next level's full shape, says whether a last one of other shape follows,
// and sums the variances of their z.
type children struct {
	full int
	last bool
	sum  float64
}

// MaxWeight is the largest weight of a level.
const MaxWeight = 1 << 20

// NewTree returns the tree of the radices with all weights 1.
func NewTree(cells int, radices []int) (Tree, error) { return NewWeightedTree(cells, radices, nil) }

// NewWeightedTree checks the radices, from the root down: each at least 2, together at least the cells, none
// superfluous; and the weights, one for each radix, from 1 to MaxWeight. No weights at all stand for all 1.
func NewWeightedTree(cells int, radices []int, weights []int64) (Tree, error) {
	if cells < 2 || len(radices) == 0 {
		return Tree{}, fmt.Errorf("tree of %d cells with %d radices, must have at least 2 cells and 1 radix", cells, len(radices))
	}
	if weights != nil && len(weights) != len(radices) {
		return Tree{}, fmt.Errorf("number of weights is %d, must be that of the radices, %d", len(weights), len(radices))
	}
	t := Tree{cells: cells, levels: make([]level, len(radices))}
	block := 1
	for l := len(radices) - 1; l >= 0; l-- {
		if radices[l] < 2 {
			return Tree{}, fmt.Errorf("radix %d is %d, must be at least 2", l+1, radices[l])
		}
		if block >= cells {
			return Tree{}, fmt.Errorf("radices are %v, must not cover %d cells without the first", radices, cells)
		}
		w := int64(1)
		if weights != nil {
			w = weights[l]
		}
		if w < 1 || w > MaxWeight {
			return Tree{}, fmt.Errorf("weight %d is %d, must be from 1 to %d", l+1, w, MaxWeight)
		}
		t.levels[l] = level{block: block, count: (cells + block - 1) / block, weight: w}
		if radices[l] >= cells {
			block = cells
		} else {
			block *= radices[l]
		}
	}
	if block < cells {
		return Tree{}, fmt.Errorf("radices are %v, must multiply to at least %d cells", radices, cells)
	}
	t.weigh()
	return t, nil
}

// weigh fills in the nodes and the offsets, from the leaves up.
func (t *Tree) weigh() {
	for l := len(t.levels) - 1; l >= 0; l-- {
		v := &t.levels[l]
		if l == len(t.levels)-1 {
			leaf := node{own: 1 / float64(v.weight), variance: 1 / float64(v.weight*v.weight)}
			v.full, v.last = leaf, leaf
			continue
		}
		next := t.levels[l+1]
		each := v.block / next.block
		v.full = observed(v.weight, t.group(l+1, each, false))
		v.last = v.full
		if t.ragged(l) {
			v.last = observed(v.weight, t.group(l+1, next.count-(v.count-1)*each, true))
		}
	}
	t.root = t.group(0, t.levels[0].count, true)
	offset := 0
	for l := range t.levels {
		t.levels[l].offset = offset
		offset += t.levels[l].count
	}
}

// ragged reports whether the last node of a level is of other shape than the rest.
func (t *Tree) ragged(l int) bool { return t.cells%t.levels[l].block != 0 }

// group describes n neighbouring nodes of a level as somebody's children.
func (t *Tree) group(l, n int, atEnd bool) children {
	v := &t.levels[l]
	if atEnd && t.ragged(l) {
		return children{full: n - 1, last: true, sum: float64(n-1)*v.full.variance + v.last.variance}
	}
	return children{full: n, sum: float64(n) * v.full.variance}
}

// observed weighs a node's own observation y, which reads the node as y/weight with variance 1/weight², against the sum
// of its children's z, by inverse variance.
func observed(weight int64, c children) node {
	w := float64(weight)
	both := 1 + w*w*c.sum
	return node{children: c, own: w * c.sum / both, below: 1 / both, variance: c.sum / both}
}

// node returns the shape of the node index of level l.
func (t *Tree) node(l, index int) *node {
	if v := &t.levels[l]; index < v.count-1 {
		return &v.full
	}
	return &t.levels[l].last
}

// Cells returns the number of cells.
func (t Tree) Cells() int { return t.cells }

// Nodes returns the number of observations.
func (t Tree) Nodes() int {
	bottom := t.levels[len(t.levels)-1]
	return bottom.offset + bottom.count
}
