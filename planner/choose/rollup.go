package choose

import (
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// rollUp lets a count be read from another count of the same statement whose cells add up to it, such as a total beside
// the groups: then nothing is paid for it, the others have more, and the answers add up. It tells how many do, of so
// many that are measured. Whether it is worth it goes by the sum of the mean errors of all counts.
func (ch *Optimizer) rollUp(leaves []*LeafPlan, measured int) (rollups int) {
	v := &LeafPlanner{Optimizer: ch}
	for _, lp := range leaves {
		if !lp.isPlain() {
			continue
		}
		var on *LeafPlan
		least := math.Inf(1)
		for _, other := range leaves {
			if other == lp || other.base != nil || !other.isPlain() || slices.ContainsFunc(leaves, func(s *LeafPlan) bool { return s.base == lp }) {
				continue
			}
			if r := reuse.CoverWithin(lp.Requests[0].Query, other.Requests[0].Query); r != nil {
				if cells := r.MeanCells(); cells < least {
					on, least = other, cells
				}
			}
		}
		if on == nil {
			continue
		}
		rest := 0.
		for _, other := range leaves {
			if other != lp && other.base == nil && len(other.Requests) > 0 {
				rest += v.error(other.Requests) / float64(max(1, other.values()))
			}
		}
		k := float64(measured - rollups)
		alone := (rest + v.error(lp.Requests)/float64(lp.values())) * math.Pow(k, v.order())
		one := v.weight(on.Requests[0]) / float64(on.values())
		if read := (rest + one*least) * math.Pow(k-1, v.order()); read <= alone*sumsClearlyWorse {
			lp.base = on
			rollups++
		}
	}
	return rollups
}

// isPlain tells a leaf plan of counts of rows that one request answers.
func (lp *LeafPlan) isPlain() bool {
	return len(lp.Requests) == 1 && lp.Requests[0].Wanted() && lp.Requests[0].Summed() == nil && lp.Requests[0].PerGroup == 0 && lp.Requests[0].Marginals == nil && !lp.Requests[0].Compares()
}

// values is the number of counts that a leaf plan shows.
func (lp *LeafPlan) values() int {
	n := 0
	for s := range lp.Sets {
		n += len(lp.Frames[s].ShownRows())
	}
	counted := 0
	for _, c := range lp.Counters {
		if c.Width == nil {
			counted++
		}
	}
	return n * counted
}

// rolledUp reads a leaf plan from the measure of the one that it is rolled up from, where that is measured as itself.
func (ch *Optimizer) rolledUp(leaves []*LeafPlan, paths [][]*Path, lp *LeafPlan, buying map[plans.Digest]*plans.Measure, share privacy.Cost) (*Path, *refuse.Refusal) {
	m := lp.base.Requests[0].Query
	if w := paths[slices.Index(leaves, lp.base)][0]; w != nil && w.Measure.Digest == m.Measure("", "").Digest {
		return &Path{Measure: w.Measure, Reading: reuse.CoverWithin(lp.Requests[0].Query, m), name: fromAnother}, nil
	} else if w != nil && w.counts != nil {
		own, err := m.Fresh(share)
		r := reuse.Cover(lp.Requests[0].Query, w.counts)
		if r != nil && err == nil && ch.worst(w.Measure.Spec, r) <= ch.worst(own, reuse.CoverWithin(lp.Requests[0].Query, m)) {
			return &Path{Measure: w.Measure, Reading: r, counts: w.counts, name: fromAnother}, nil
		}
	}
	w, refusal := ch.one(lp.Requests[0].Query, share)
	if refusal != nil {
		return nil, refusal
	}
	if same := buying[w.Measure.Digest]; same != nil && !w.Measure.Held && same.Shared == w.Measure.Shared && same.Kind == w.Measure.Kind {
		w.Measure = same
	}
	return w, nil
}
