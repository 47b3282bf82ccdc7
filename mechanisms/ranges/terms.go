package ranges

import (
	"sort"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// Span is the half-open range [From, To) of cells.
type Span struct{ From, To int }

// Terms returns the least-squares reading of the sum of the cells in spans (disjoint, sorted, within the cells) as a
// weighted sum of observations, equal weights together. Its variance is Σ Count·Weight² with observations of variance 1.
//
// Derivation, in the letters of Fit: let share(v) be the weight with which the wanted sum depends on x(v) alone, that is 1
// or 0 for a node inside or outside of the spans and else Σ share(u)·var(u)/Σvar over the children u. Then
// Σ share(u)·x(u) = share(v)·x(v) + Σ (share(u) − share(v))·z(u), and z(v) = own·y(v) + below·Σz(u), which from the root
// down gives every observation its weight. Only nodes that the spans cut need a visit of their own, two a level and span.
func (t Tree) Terms(spans []Span) []noise.Term {
	w := weighing{tree: &t, spans: spans}
	p := w.cut(-1, 0)
	w.children(p, 0, 0)
	return w.terms
}

// Variance returns the variance of the least-squares reading of the sum of the cells in spans, in units of the noise's.
func (t Tree) Variance(spans []Span) float64 {
	sum := 0.0
	for _, term := range t.Terms(spans) {
		sum += term.Weight * term.Weight * float64(term.Count)
	}
	return sum
}

// cut is a node that the spans contain in part. Of its children, in and out count those of full shape that are inside
// or outside, last describes a last one of other shape (nil: none), and parts are those that are cut themselves.
type cut struct {
	level   int
	shape   *node // nil for the root
	share   float64
	in, out int
	last    *float64
	parts   []*cut
}

type weighing struct {
	tree  *Tree
	spans []Span
	terms []noise.Term
}

// cut returns the node index of level l; level −1 is the root.
func (w *weighing) cut(l, index int) *cut {
	t := w.tree
	p := &cut{level: l}
	shape, each, from, to := t.root, 0, 0, t.levels[0].count
	if l >= 0 {
		p.shape = t.node(l, index)
		shape = p.shape.children
		each = t.levels[l].block / t.levels[l+1].block
		from, to = index*each, min((index+1)*each, t.levels[l+1].count)
	}
	next := &t.levels[l+1]
	weighed := 0.0
	for i := from; i < to; i++ {
		share, part := w.covered(i*next.block, min((i+1)*next.block, t.cells)), (*cut)(nil)
		if share > 0 && share < 1 {
			part = w.cut(l+1, i)
			share = part.share
			p.parts = append(p.parts, part)
		}
		variance := next.full.variance
		if shape.last && i == to-1 {
			variance = next.last.variance
			if part == nil {
				p.last = &share
			}
		} else if part == nil && share == 1 {
			p.in++
		} else if part == nil {
			p.out++
		}
		weighed += share * variance
	}
	p.share = weighed / shape.sum
	return p
}

// covered returns 0, 1, or ½ for a block outside, inside or partly inside of the spans.
func (w *weighing) covered(from, to int) float64 {
	i := sort.Search(len(w.spans), func(i int) bool { return w.spans[i].To > from })
	switch {
	case i == len(w.spans) || w.spans[i].From >= to:
		return 0
	case w.spans[i].From <= from && w.spans[i].To >= to:
		return 1
	}
	return .5
}

// children adds the terms of the children of p: each child's z counts down + its share − base.
func (w *weighing) children(p *cut, down, base float64) {
	l := p.level + 1
	w.full(l, down+1-base, p.in)
	w.full(l, down-base, p.out)
	if p.last != nil {
		w.last(l, down+*p.last-base)
	}
	for _, part := range p.parts {
		a := down + part.share - base
		w.add(a*part.shape.own, 1)
		w.children(part, a*part.shape.below, part.share)
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
	if weight != 0 {
		w.terms = append(w.terms, noise.Term{Weight: weight, Count: count})
	}
}
