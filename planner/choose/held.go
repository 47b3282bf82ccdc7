package choose

import (
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// What she has paid for is looked at first: the same question, then what releases of finer cells, sums and differences
// answer (docs/adr/0007, 0022).

// askedBefore returns the path of the same question to a holding.
func askedBefore(q *goal, h reuse.Holding) *Path {
	w := &Path{Measure: q.Measure(q.own.Kind, q.own.Name), Reading: reuse.OwnReading(q.Query)}
	shared, kind, name, ok := reuse.DescribedHead(h)
	if ok && (shared || reuse.ReadDescribed(h, q.Table) != nil) {
		w.Measure = q.Measure(kind, name)
		w.Measure.Shared, w.Measure.Declared = shared, reuse.DeclaredAs(q.Table, shared, name)
	}
	w.hold(h, "the same question, asked before at least as exactly")
	return w
}

// again finds the same question among what she has paid for, at least as exact as asked now (privacy rule 3). A release
// of this epoch goes before one that has gone stale, of which the latest is read.
func (ch *Optimizer) again(q *goal) (list []alternative) {
	if ch.Context.Holdings == nil {
		return nil
	}
	current, latest := false, -1
	for _, h := range ch.Context.Holdings.Held(q.own.Digest) {
		if h.Spec.Cells != q.fresh.Cells || h.Spec.Counters != q.fresh.Counters {
			continue
		}
		w := askedBefore(q, h)
		c := alternative{path: w, variance: ch.worst(h.Spec, w.Reading), holding: h}
		switch {
		case !ch.preferred(w.Measure) && !(q.Summed() == nil && ch.asExact(q, w, c.variance) || q.Summed() != nil && ch.exactEnough(q.Query, h.Spec, q.fresh)):
			c.not = lessExact
		case !ch.isStale(h, w.Measure.Declared):
			current = true
		default:
			if c.not = reuse.OfAnotherEpoch; latest < 0 || h.At.After(list[latest].holding.At) {
				latest = len(list)
			}
		}
		list = append(list, c)
	}
	if !current && latest >= 0 {
		list[latest].not = ""
	}
	q.held = append(q.held, list...)
	return list
}

func (w *Path) hold(h reuse.Holding, why string) { reuse.Hold(w.Measure, h, why) }

// reuse finds what she has paid for that answers the question: releases of finer cells, and sums and differences of
// releases.
func (ch *Optimizer) reuse(q *goal) []alternative {
	list := ch.reused(q, false)
	if !ch.aloneIn(q.Table, list) {
		list = append(list, ch.combined(q, ch.oldestEnough(list))...)
	}
	list = settled(list)
	q.held = append(q.held, list...)
	return list
}

// aloneIn reports whether the one release that could stand in sums and differences answers by itself: it is read as
// exactly as can be.
func (ch *Optimizer) aloneIn(t *policy.Table, list []alternative) bool {
	views := ch.views(t)
	if views == nil || ch.Context.Alternatives {
		return false
	}
	e := views.Extent()
	return e.Combine == 1 && slices.ContainsFunc(list, func(c alternative) bool { return c.holding.ID == e.Only && c.not == "" })
}

// oldestEnough is the age of the oldest of what is held that is as exact as asked; MaxInt: there is none, or all is to
// be listed. No combination with anything younger is taken then (settled).
func (ch *Weigher) oldestEnough(list []alternative) int {
	oldest := math.MaxInt
	for _, c := range list {
		if c.enough && !ch.Context.Alternatives {
			oldest = min(oldest, c.order)
		}
	}
	return oldest
}

// reused are releases of finer cells: those that grow, or the others.
func (ch *Optimizer) reused(q *goal, grows bool) (list []alternative) {
	for _, h := range ch.current(ch.finer(q.Query)) {
		if h.Measure.Continual != grows {
			continue
		}
		r := reuse.CoverHeld(q.Query, h.HeldOn)
		if r == nil && !h.Holding.Spec.Counts().Strategy.IsCube() {
			r = reuse.CoverWithin(q.Query, h.Measure.Query)
		}
		if r == nil {
			continue
		}
		w := &Path{Reading: r, Measure: h.Measure.Held(), counts: h.Measure.Plain()}
		w.Measure.Declared = h.Declared
		w.holdOn(h.HeldOn, "you have paid for "+w.Measure.Kind+" "+w.Measure.Name+", whose cells add up to it")
		variance := ch.worst(w.Measure.Spec, r)
		list = append(list, alternative{path: w, variance: variance, holding: h.Holding, order: h.Order, preferred: ch.preferred(w.Measure), enough: variance <= ch.each(q.Query, q.fresh) || !ch.preferred(w.Measure) && ch.asExact(q, w, variance)})
	}
	return list
}

// heldLonger is why something held is not read.
const heldLonger = "what has been held longer is as exact as asked, and the same question keeps its answer"

// settled says which of what is held may be read. Of what is as exact as a fresh count that is what has been held
// longest, so that the same question keeps its answer when more is bought; where nothing is, a release that is
// preferred, whatever its error.
func settled(list []alternative) []alternative {
	first := -1
	for i, c := range list {
		if c.enough && (first < 0 || c.order < list[first].order || c.order == list[first].order && c.variance < list[first].variance) {
			first = i
		}
	}
	for i := range list {
		switch c := &list[i]; {
		case first >= 0 && i != first:
			c.not = heldLonger
		case first < 0 && !c.preferred:
			c.not = lessExact
		}
	}
	return list
}

// views is what she holds on a table; nil means nothing.
func (ch *Optimizer) views(t *policy.Table) *reuse.Views {
	if ch.Context.Holdings == nil {
		return nil
	}
	s, known := ch.Views[t]
	if !known {
		s = ch.Context.Holdings.Views(t)
		ch.Views[t] = s
	}
	return s
}

// finer lists the counts by cells of at least a question's columns that she holds, and that can be read now.
func (ch *Optimizer) finer(s *linear.Query) (list []*reuse.View) {
	if views := ch.views(s.Table); views != nil {
		for _, h := range views.Finer(s) {
			if h.Measure.Continual || h.Holding.Spec.Grows() {
				own := *h
				own.Measure = h.Measure.Copied() // how far it has grown is of this plan
				if h = &own; !ch.readable(&h.HeldOn) {
					continue
				}
			}
			list = append(list, h)
		}
	}
	for _, h := range ch.Open.Held(s.Table) {
		list = append(list, &reuse.View{HeldOn: h})
	}
	return list
}
