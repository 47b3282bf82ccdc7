package planner

import (
	"fmt"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// A release with `refresh:` belongs to an epoch, which the clock fixes: epochs are as long as refresh and begin with Unix
// time. She paid in the epoch of the draw, so the time of her payment tells it, and nothing of when others asked (privacy
// rule 1). Of an epoch gone by, the release is stale: bought anew where that fits, else still read, free, with its date
// (privacy rule 3).

// isStale tells whether a held release is of an epoch gone by. Such a plan depends on the time.
func (ch *chooser) isStale(h Holding, r *policy.Release) bool {
	return r != nil && r.Refresh > 0 && epochOf(ch.now(), r.Refresh) > epochOf(h.At, r.Refresh)
}

// current leaves out the stale draws of a release of which a later one is held.
func (ch *chooser) current(list []*stocked) []*stocked {
	latest := map[*policy.Release]time.Time{}
	for _, h := range list {
		if h.declared != nil && h.holding.At.After(latest[h.declared]) {
			latest[h.declared] = h.holding.At
		}
	}
	out := list[:0:0]
	for _, h := range list {
		if r := h.declared; !ch.isStale(h.holding, r) || epochOf(h.holding.At, r.Refresh) == epochOf(latest[r], r.Refresh) {
			out = append(out, h)
		}
	}
	return out
}

// renewed buys a stale release anew where it fits the share; else what is held answers, with a note of its date.
func (ch *chooser) renewed(w *way, h Holding, share privacy.Cost) *way {
	r := w.measure.Declared
	if !ch.isStale(h, r) {
		return w
	}
	date := epochDate(h.At, r.Refresh)
	spec, err := releaseSpec(r, h.Spec.Cells)
	if err == nil && r.Cost.Fits(share) {
		w.measure.Spec, w.measure.Cost, w.measure.Held, w.measure.HeldID = spec, r.Cost, false, 0
		w.measure.Why = "what you have paid for of release " + r.Name + " is of " + date + "; it is bought anew"
		ch.renewals++
		return w
	}
	w.measure.Why += "; it is of " + date
	ch.dates.add(fmt.Sprintf("%s is of %s; it may be bought anew with SET dp.epsilon = %s", r.Name, date, r.Epsilon))
	return w
}
