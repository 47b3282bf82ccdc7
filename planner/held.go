package planner

import (
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// What she has paid for is looked at first: the same question, then what releases of finer cells, sums and differences
// answer (docs/adr/0007, 0022).

// again finds the same question among what she has paid for, at least as exact as asked now (privacy rule 3). A release
// of this epoch goes before one that has gone stale, of which the latest is read.
func (ch *chooser) again(q *asking) (list []candidate) {
	if ch.c.Holdings == nil {
		return nil
	}
	current, latest := false, -1
	for _, h := range ch.c.Holdings.Held(q.own.Digest) {
		if h.Spec.Cells != q.fresh.Cells || h.Spec.Counters != q.fresh.Counters {
			continue
		}
		w := &way{measure: q.measure(q.own.Kind, q.own.Name), reading: ownReading(q.solved)}
		release := false
		if m := readDescribed(h, q.table); m != nil {
			w.measure = q.measure(m.kind, m.name)
			w.measure.Shared, release = m.shared, m.isRelease()
			w.measure.Declared = declaredAs(q.table, m.shared, m.name)
		} else if shared, kind, name, ok := describedHead(h); ok && shared {
			w.measure, release = q.measure(kind, name), true
			w.measure.Shared = true
		}
		w.hold(h, "the same question, asked before at least as exactly")
		c := candidate{way: w, variance: ch.worst(h.Spec, w.reading), holding: h}
		switch exact := q.summed() == nil && c.variance <= ch.each(q.solved, q.fresh) || q.summed() != nil && ch.exactEnough(q.solved, h.Spec, q.fresh); {
		case !release && !exact:
			c.not = "less exact than a fresh count at dp.epsilon"
		case !ch.isStale(h, w.measure.Declared):
			current = true
		default:
			if c.not = ofAnotherEpoch; latest < 0 || h.At.After(list[latest].holding.At) {
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

const ofAnotherEpoch = "of an epoch gone by"

func (w *way) hold(h Holding, why string) {
	w.measure.Spec, w.measure.Held, w.measure.HeldID, w.measure.Cost, w.measure.Why = h.Spec, true, h.ID, privacy.Cost{}, why
}

// reuse finds what she has paid for that answers the question: releases of finer cells, and sums and differences of
// releases.
func (ch *chooser) reuse(q *asking) []candidate {
	list := settled(append(ch.reused(q, false), ch.combined(q)...))
	q.held = append(q.held, list...)
	return list
}

// reused are releases of finer cells: those that grow, or the others.
func (ch *chooser) reused(q *asking, grows bool) (list []candidate) {
	for _, h := range ch.current(ch.finer(q.solved)) {
		if h.measure.grows != grows {
			continue
		}
		r := coverHeld(q.solved, h.heldOn)
		if r == nil && !h.holding.Spec.Counts().Strategy.IsCube() {
			r = coverWithin(q.solved, h.measure.solved)
		}
		if r == nil {
			continue
		}
		w := &way{reading: r, measure: h.measure.held(), counts: h.measure.plain()}
		w.measure.Declared = h.declared
		w.holdOn(h.heldOn, "you have paid for "+w.measure.Kind+" "+w.measure.Name+", whose cells add up to it")
		variance := ch.worst(w.measure.Spec, r)
		list = append(list, candidate{way: w, variance: variance, holding: h.holding, order: h.order, released: h.measure.isRelease(), enough: variance <= ch.each(q.solved, q.fresh)})
	}
	return list
}

// settled says which of what is held may be read. Of what is as exact as a fresh count that is what has been held longest, so
// that the same question keeps its answer when more is bought; where nothing is, any release, whatever its error: it was
// bought for that.
func settled(list []candidate) []candidate {
	first := -1
	for i, c := range list {
		if c.enough && (first < 0 || c.order < list[first].order || c.order == list[first].order && c.variance < list[first].variance) {
			first = i
		}
	}
	for i := range list {
		switch c := &list[i]; {
		case first >= 0 && i != first:
			c.not = "what has been held longer is as exact as asked, and the same question keeps its answer"
		case first < 0 && !c.released:
			c.not = "less exact than a fresh count at dp.epsilon"
		}
	}
	return list
}

// isRelease tells releases, which answer whatever they can for free, from the answer to one question.
func (m *heldMeasure) isRelease() bool {
	return m.shared || m.kind == "range" || m.kind == "keys" || m.kind == cube
}

// stock is what she holds on a table; nil: nothing.
func (ch *chooser) stock(t *policy.Table) *Stock {
	if ch.c.Holdings == nil {
		return nil
	}
	s, known := ch.stocks[t]
	if !known {
		s = ch.c.Holdings.Stock(t)
		ch.stocks[t] = s
	}
	return s
}

// finer lists the counts by cells of at least a question's columns that she holds, and that can be read now.
func (ch *chooser) finer(s *solved) (list []*stocked) {
	if stock := ch.stock(s.table); stock != nil {
		for _, h := range stock.finer(s) {
			if h.measure.grows || h.holding.Spec.Grows() {
				own := *h
				own.measure = h.measure.copied() // how far it has grown is of this plan
				if h = &own; !ch.readable(&h.heldOn) {
					continue
				}
			}
			list = append(list, h)
		}
	}
	for _, h := range ch.open.held(s.table) {
		list = append(list, &stocked{heldOn: h})
	}
	return list
}

// declaredAs finds the policy's release that a measure holds.
func declaredAs(t *policy.Table, shared bool, name string) *policy.Release {
	for _, r := range t.All() {
		if shared && r.Name == name {
			return r
		}
	}
	return nil
}
