package choose

import (
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// What she holds of her own under the pure accountant can be refined: the finest level that a statement might have paid
// for was drawn with it and stayed sealed, and a more exact level is made of that, for the difference (privacy rule 17,
// docs/adr/0023). Nothing is read of the data again: the answer speaks of them as they were at the first draw.

// refinement is the path of a held candidate at another level; nil means it cannot be refined so.
func (c alternative) refinement(level privacy.Epsilon) *Path {
	h := c.holding
	if h.Refinable == (plans.RefinableLevels{}) || c.path.Reading == nil || c.path.Reading.Mix != nil || c.path.Measure.Shared || level.Micro() <= h.Refinable.Level.Micro() || level.Micro() > h.Refinable.Top.Micro() {
		return nil
	}
	spec, ok := h.Spec.At(h.Refinable.Level, level)
	if !ok {
		return nil
	}
	if finest, ok := h.Spec.At(h.Refinable.Level, h.Refinable.Top); !ok || !spec.Refinable(h.Spec, finest) {
		return nil
	}
	m := *c.path.Measure
	m.Held, m.HeldID, m.Spec = false, 0, spec
	m.Refinement = &plans.Refinement{Level: level, Top: h.Refinable.Top, From: h.ID, Paid: h.Refinable.Level, Spec: h.Spec}
	m.Cost = privacy.Cost{Epsilon: privacy.MicroEpsilon(level.Micro() - h.Refinable.Level.Micro())}
	m.Why = "refines what you have, for which you paid ε " + h.Refinable.Level.String() + ": only the difference to ε " + level.String() + " is paid"
	w := *c.path
	w.Measure, w.Others = &m, nil
	return &w
}

// refined refines what is held and less exact than a fresh count for the share, where that makes it as exact: of
// several the cheapest. The sources before it have listed what is held.
func (ch *Weigher) refined(q *goal) []alternative {
	if ch.Context.Dataset.Accountant != privacy.Pure {
		return nil
	}
	var best *alternative
	for _, c := range q.held {
		w := c.refinement(q.share.Epsilon)
		if w == nil || best != nil && best.path.Measure.Cost.Fits(w.Measure.Cost) {
			continue
		}
		r := alternative{path: w, variance: ch.worst(w.Measure.Spec, w.Reading)}
		if q.Summed() == nil && ch.asExact(q, w, r.variance) || q.Summed() != nil && ch.exactEnough(q.Query, w.Measure.Spec, q.fresh) {
			best = &r
		}
	}
	if best == nil {
		return nil
	}
	return []alternative{*best}
}

// exactRefined refines what is held to the least level that is exact enough. The sources of what is held have listed
// it.
func (ch *Weigher) exactRefined(q *goal) []alternative {
	if ch.Context.Dataset.Accountant != privacy.Pure {
		return nil
	}
	var best *Path
	for _, c := range q.held {
		if c.refinement(c.holding.Refinable.Top) == nil {
			continue
		}
		level, ok := ch.Least(func(cost privacy.Cost) bool {
			spec, ok := c.holding.Spec.At(c.holding.Refinable.Level, cost.Epsilon)
			return ok && ch.within(q.need, spec, c.path.Reading)
		})
		if !ok {
			continue
		}
		w := c.refinement(level.Epsilon)
		if w != nil && (best == nil || w.Measure.Cost.Fits(best.Measure.Cost)) {
			best = w
			best.Measure.Why += "; the least cost for " + ch.aim()
		}
	}
	if best == nil {
		return nil
	}
	return []alternative{{path: best}}
}
