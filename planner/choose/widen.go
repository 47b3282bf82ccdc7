package choose

import (
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// Where a row falls into one cell of a measure, neighbours move it by what a unit's rows move one count, however many
// cells there are (add-remove; privacy rule 10). So a count under a condition costs no more, and errs no more, if the
// rows outside the condition are counted beside it, in cells of their own: the condition's complement, and for `sex =
// 'Female' AND age = 30` every other sex and age. These answer later questions for free. See docs/adr/0026.

// widened is the fresh measure of a question with the cells around its own, none where that is dearer, means something
// else, or has nothing to add. Its own cells are whole cells of the measure, so that they err as they would alone.
func (ch *Weigher) widened(q *goal) []alternative {
	most := ch.Context.Dataset.Buying.Cells
	if most == 0 || !q.Widens() {
		return nil
	}
	wide := q.Around(most)
	if wide == nil || q.Table.BoundsGroups(q.Cells) != q.Table.BoundsGroups(wide.Cells) {
		return nil
	}
	spec, err := wide.Fresh(q.share)
	if err != nil || ch.variance(spec) > ch.variance(q.fresh) {
		return nil
	}
	r := reuse.Cover(q.Query, wide)
	if r == nil {
		return nil
	}
	m := wide.Measure("histogram", q.own.Name)
	if held := ch.widenedBefore(q, m, spec, r); held != nil {
		return held
	}
	m.Spec, m.Cost = spec, q.share
	m.Why = "no release that you have paid for answers it as exactly; the rows around its own are counted too, which costs nothing more"
	return []alternative{{path: &Path{Measure: m, Reading: r, counts: wide}, variance: ch.worst(spec, r)}}
}

// widenedBefore finds the same cells among what she has paid for, at least as exact as they would be now. Containment
// looks at a few of those that are alike: of a slider's fortieth stop, asked again, it may see none.
func (ch *Weigher) widenedBefore(q *goal, m *plans.Measure, spec mechanisms.Spec, r *reuse.Reading) []alternative {
	if ch.Context.Holdings == nil {
		return nil
	}
	for _, h := range ch.Context.Holdings.Held(m.Digest) {
		if shared, _, _, ok := reuse.DescribedHead(h); !ok || shared || h.Spec.Cells != spec.Cells || h.Spec.Counters != spec.Counters || ch.worst(h.Spec, r) > ch.worst(spec, r) {
			continue
		}
		reuse.Hold(m, h, "the same question, asked before at least as exactly")
		return []alternative{{path: &Path{Measure: m, Reading: r}, variance: ch.worst(h.Spec, r), holding: h}}
	}
	return nil
}

// fromAnother names the path of a question that is read from what another question of the statement buys.
const fromAnother = "another question's counts"

// beside reads a question that would be measured from what the statement buys already, where that is no less exact.
func (ch *Weigher) beside(s *linear.Query, w *Path, paths [][]*Path) *Path {
	if w.counts == nil || w.Measure.Held {
		return w
	}
	for _, list := range paths {
		for _, have := range list {
			if have == nil || have.counts == nil || have.Measure.Held || have.counts.Table != s.Table {
				continue
			}
			if r := reuse.Cover(s, have.counts); r != nil && ch.worst(have.Measure.Spec, r) <= ch.worst(w.Measure.Spec, w.Reading) {
				return &Path{Measure: have.Measure, Reading: r, counts: have.counts, name: fromAnother}
			}
		}
	}
	return w
}
