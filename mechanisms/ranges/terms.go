package ranges

import (
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// Span is the half-open range [From, To) of cells.
type Span struct{ From, To int }

// Terms returns the least-squares reading of the sum of the cells in spans (disjoint, sorted, within the cells) as a
// weighted sum of observations, equal weights together. Its variance is Σ Count·Weight² with observations of
// variance 1.
//
// Derivation, in the letters of Fit: let share(v) be the weight with which the wanted sum depends on x(v) alone, that
// is 1 or 0 for a node inside or outside of the spans and else Σ share(u)·var(u)/Σvar over the children u. Then Σ
// share(u)·x(u) = share(v)·x(v) + Σ (share(u) − share(v))·z(u), and z(v) = own·y(v) + below·Σz(u), which from the root
// down gives every observation its weight. Only nodes that the spans cut need a visit of their own, two a level and
// span.
func (t Tree) Terms(spans []Span) []noise.Term {
	w := weighing{tree: &t, spans: spans}
	w.children(w.cut(-1, 0), 0, 0)
	return w.terms
}

// Variance returns the variance of the least-squares reading of the sum of the cells in spans, in units of the noise's.
func (t Tree) Variance(spans []Span) float64 {
	w := weighings.Get().(*weighing)
	defer weighings.Put(w)
	*w = weighing{tree: &t, spans: spans, summed: true, nodes: w.nodes[:0]}
	w.children(w.cut(-1, 0), 0, 0)
	w.tree, w.spans = nil, nil
	return w.sum
}

// weighings lend their nodes to the next one: of hours of the day over years there are a thousand for each hour.
var weighings = sync.Pool{New: func() any { return &weighing{} }}

// cut is a node that the spans contain in part. Of its children, in and out count those of full shape that are inside
// or outside, last describes a last one of other shape (−1: there is none), and those that are cut themselves follow
// one another from first on by next.
type cut struct {
	level       int
	shape       *node // nil for the root
	share       float64
	in, out     int
	last        float64
	first, next int // places among the nodes that are cut; −1: none
}

// weighing visits the nodes that the spans cut, in the order of their cells.
type weighing struct {
	tree   *Tree
	spans  []Span
	at     int // the first span that may end behind the cells that are looked at
	nodes  []cut
	terms  []noise.Term
	summed bool // the terms are not kept
	sum    float64
}

// cut looks at the node index of level l, and returns its place among those that are cut; level −1 is the root.
func (w *weighing) cut(l, index int) int {
	t, place := w.tree, len(w.nodes)
	p := cut{level: l, last: -1, first: -1, next: -1}
	w.nodes = append(w.nodes, p)
	shape, each, from, to := t.root, 0, 0, t.levels[0].count
	if l >= 0 {
		p.shape = t.node(l, index)
		shape = p.shape.children
		each = t.levels[l].block / t.levels[l+1].block
		from, to = index*each, min((index+1)*each, t.levels[l+1].count)
	}
	next, before := &t.levels[l+1], -1
	weighed := 0.0
	for i := from; i < to; i++ {
		share, part := w.covered(i*next.block, min((i+1)*next.block, t.cells)), -1
		if share > 0 && share < 1 {
			part = w.cut(l+1, i)
			if share = w.nodes[part].share; before < 0 {
				p.first = part
			} else {
				w.nodes[before].next = part
			}
			before = part
		}
		variance := next.full.variance
		if shape.last && i == to-1 {
			variance = next.last.variance
			if part < 0 {
				p.last = share
			}
		} else if part < 0 && share == 1 {
			p.in++
		} else if part < 0 {
			p.out++
		}
		weighed += share * variance
	}
	p.share = weighed / shape.sum
	w.nodes[place] = p
	return place
}

// covered returns 0, 1, or ½ for a block outside, inside or partly inside of the spans. No block begins before one that
// was asked of earlier, but for its own parts.
func (w *weighing) covered(from, to int) float64 {
	for w.at < len(w.spans) && w.spans[w.at].To <= from {
		w.at++
	}
	switch {
	case w.at == len(w.spans) || w.spans[w.at].From >= to:
		return 0
	case w.spans[w.at].From <= from && w.spans[w.at].To >= to:
		return 1
	}
	return .5
}

// children adds the terms of the children of a node that is cut: each child's z counts down + its share − base.
func (w *weighing) children(place int, down, base float64) {
	p := w.nodes[place]
	l := p.level + 1
	w.full(l, down+1-base, p.in)
	w.full(l, down-base, p.out)
	if p.last >= 0 {
		w.last(l, down+p.last-base)
	}
	for part := p.first; part >= 0; part = w.nodes[part].next {
		a := down + w.nodes[part].share - base
		w.add(a*w.nodes[part].shape.own, 1)
		w.children(part, a*w.nodes[part].shape.below, w.nodes[part].share)
	}
}

// full adds the terms of count nodes of full shape whose z has the weight a.
func (w *weighing) full(l int, a float64, count int) {
	for ; count > 0 && a != 0 && l < len(w.tree.levels); l++ {
		shape := &w.tree.levels[l].full
		w.add(a*shape.own, count)
		a *= shape.below
		count *= shape.full
	}
}

// last adds the terms of a level's last node, being of other shape, whose z has the weight a.
func (w *weighing) last(l int, a float64) {
	shape := &w.tree.levels[l].last
	w.add(a*shape.own, 1)
	w.full(l+1, a*shape.below, shape.children.full)
	if shape.children.last {
		w.last(l+1, a*shape.below)
	}
}

func (w *weighing) add(weight float64, count int) {
	switch {
	case weight == 0:
	case w.summed:
		w.sum += weight * weight * float64(count)
	default:
		w.terms = append(w.terms, noise.Term{Weight: weight, Count: count})
	}
}
