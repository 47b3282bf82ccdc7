package choose

import (
	"fmt"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// A release with `refresh:` belongs to an epoch, which the clock fixes: epochs are as long as refresh and begin with
// Unix time. She paid in the epoch of the draw, so the time of her payment tells it, and nothing of when others asked
// (privacy rule 1). Of an epoch gone by, the release is stale: bought anew where that fits, else still read, free, with
// its date (privacy rule 3).

// isStale reports whether a held release is of an epoch gone by. Such a plan depends on the time.
func (ch *Optimizer) isStale(h reuse.Holding, r *policy.Release) bool {
	return r != nil && r.Refresh > 0 && reuse.EpochOf(ch.Now(), r.Refresh) > reuse.EpochOf(h.At, r.Refresh)
}

// current leaves out the stale draws of a release of which a later one is held.
func (ch *Optimizer) current(list []*reuse.View) []*reuse.View {
	latest := map[*policy.Release]time.Time{}
	for _, h := range list {
		if h.Declared != nil && h.Holding.At.After(latest[h.Declared]) {
			latest[h.Declared] = h.Holding.At
		}
	}
	out := list[:0:0]
	for _, h := range list {
		if r := h.Declared; !ch.isStale(h.Holding, r) || reuse.EpochOf(h.Holding.At, r.Refresh) == reuse.EpochOf(latest[r], r.Refresh) {
			out = append(out, h)
		}
	}
	return out
}

// renewed buys a stale release anew where it fits the share; else what is held answers, with a note of its date.
func (ch *Optimizer) renewed(w *Path, h reuse.Holding, share privacy.Cost) *Path {
	r := w.Measure.Declared
	if !ch.isStale(h, r) {
		return w
	}
	date := reuse.EpochDate(h.At, r.Refresh)
	spec, err := reuse.ReleaseSpec(r, h.Spec.Cells)
	if err == nil && r.Cost.Fits(share) {
		w.Measure.Spec, w.Measure.Cost, w.Measure.Held, w.Measure.HeldID = spec, r.Cost, false, 0
		w.Measure.Why = "what you have paid for of release " + r.Name + " is of " + date + "; it is bought anew"
		ch.renewals++
		return w
	}
	w.Measure.Why += "; it is of " + date
	ch.Dates.Add(fmt.Sprintf("%s is of %s; it may be bought anew with SET dp.epsilon = %s", r.Name, date, r.Epsilon))
	return w
}
