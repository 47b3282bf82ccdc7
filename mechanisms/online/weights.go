package online

import (
	"math"
	"slices"
)

// weights is a hypothesis that is one distribution over the cells and a cell for absent rows.
//
// It is a function of the transcript: no rows and no noise that was not released enter it, so that everything here is
// post-processing and may be as approximate as it likes.
type weights struct {
	p     []float64
	whole float64 // rows that mass 1 is
	slab  float64 // half of the slab around an answer that a hypothesis is to be in, as mass
}

func newWeights(p Plan) *weights {
	s := p.spec
	w := &weights{p: make([]float64, s.Cells+1), whole: p.whole(), slab: p.slab()}
	start := float64(s.Rows) / float64(s.Rows+s.Spare)
	for i := range s.Cells {
		w.p[i] = start / float64(s.Cells)
	}
	w.p[s.Cells] = 1 - start
	return w
}

func (w *weights) mass(q Query) float64 { return q.mass(w.p) }

func (w *weights) shares() []float64 { return slices.Clone(w.p[:len(w.p)-1]) }

// At most so many passes over all answers follow a new one; each costs up to as many projections as there are answers.
// On a large universe there are fewer, so that an update takes about a second at most.
const (
	passes  = 50
	maxWork = 1 << 29
)

func (w *weights) learn(entries []Entry) {
	last := entries[len(entries)-1]
	w.project(last.Query, float64(last.Value)/w.whole)
	for range min(passes, max(1, maxWork/(len(w.p)*len(entries)))) {
		if !w.reconcile(entries) {
			return
		}
	}
}

// reconcile projects onto the slab of each answer that the hypothesis is outside of, and reports whether there was one.
func (w *weights) reconcile(entries []Entry) bool {
	moved := false
	for _, e := range entries {
		target, now := float64(e.Value)/w.whole, w.mass(e.Query)
		if math.Abs(now-target) <= w.slab*(1+1e-6) {
			continue
		}
		moved = true
		w.project(e.Query, target+math.Copysign(w.slab, now-target))
	}
	return moved
}

// project moves to the distribution nearest in relative entropy at which q has the target's mass: p_i·exp(λ) in the
// query, normalised: exp(λ) is the odds ratio.
func (w *weights) project(q Query, target float64) {
	least := .25 / w.whole // of a row
	now := w.mass(q)
	low, high := least, 1-least
	target = min(max(target, low), high)
	if now <= 0 || now >= 1 {
		return
	}
	factor := target / now * (1 - now) / (1 - target)
	q.each(func(i int) { w.p[i] *= factor })
	total := 0.0
	for _, p := range w.p {
		total += p
	}
	for i := range w.p {
		w.p[i] /= total
	}
}
