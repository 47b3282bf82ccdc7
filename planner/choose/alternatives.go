package choose

import (
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
)

// EXPLAIN (ALTERNATIVES) SELECT … lists every path that the sources find for each question of a statement: of
//
//	SELECT count(*) FROM people WHERE age BETWEEN 30 AND 39
//
// what is held, the declared release over age, a range release of her own, the count with the rows around it, a fresh
// count.

// Alternatives are the paths of all questions of a plan, those that were taken first.
func (ch *Optimizer) Alternatives(leaves []*LeafPlan, paths [][]*Path) (list []plans.Alternative) {
	quiet := *ch // what it notes was noted when the paths were taken
	wanted := map[plans.Digest]*need{}
	if ch.Context.Settings.MaxError > 0 {
		for _, n := range needs(leaves, make([][]*Path, len(leaves))) {
			wanted[n.Measure("", "").Digest] = n
		}
	}
	for i, lp := range leaves {
		for j, a := range lp.Requests {
			if taken := paths[i][j]; taken != nil {
				q := quiet.goalOf(a.Query, taken.shareOr(ch))
				q.need = wanted[a.Measure("", "").Digest]
				list = append(list, quiet.alternatives(plans.LeafName(a.Asked.ShownBy(i)), q, taken)...)
			}
		}
	}
	return list
}

// shareOr is what the path might have cost.
func (w *Path) shareOr(ch *Optimizer) privacy.Cost {
	if w.share.IsZero() {
		return ch.Share(1)
	}
	return w.share
}

// alternatives are the paths of a question, of which one was taken.
func (ch *Optimizer) alternatives(leaf string, q *goal, taken *Path) (out []plans.Alternative) {
	all, names := []alternative{{path: taken}}, []string{taken.name}
	ch.enumerate(q, taken, func(from source, c alternative) {
		all, names = append(all, c), append(names, c.named(from.name))
	})
	seen := map[string]bool{}
	for i, c := range all {
		m := c.path.Measure
		name := string(m.Digest[:]) + m.Kind + m.Cost.String() + predicate.Text(m.HeldID)
		if seen[name] {
			continue
		}
		seen[name] = true
		a := plans.Alternative{Leaf: leaf, Path: names[i], Kind: m.Kind, Name: m.Name, Held: m.Held, Cost: m.Cost, Taken: i == 0, Why: m.Why}
		if a.Error = ch.off(c.path); mechanisms.Is[*mechanisms.Choice](m.Spec) {
			a.Rank = m.Spec.RankError(ch.Context.Settings.Confidence)
		}
		if i > 0 {
			a.Why = ch.whyNot(c, taken, a.Error, out[0].Error, q)
		}
		out = append(out, a)
	}
	return out
}

// enumerate lists what every source finds.
func (ch *Optimizer) enumerate(q *goal, taken *Path, list func(source, alternative)) {
	if !mechanisms.Is[*mechanisms.Choice](taken.Measure.Spec) {
		q.taken = taken
	}
	unmeasured := q.refusal != nil
	for _, from := range sources {
		find := from.find
		if q.need != nil {
			find = from.exact
		}
		if from.answers&q.kind == 0 || find == nil || unmeasured && from.role != contender {
			continue
		}
		found := find(ch, q)
		if c := least(found); q.taken == nil && c != nil {
			q.taken = c.path
		}
		for _, c := range found {
			list(from, c)
		}
	}
}

// named is how what a source finds is called.
func (c alternative) named(source string) string {
	switch r := c.path.Reading; {
	case source == "widening" && c.path.Measure.Held:
		return "asked before"
	case source == "fresh count" && c.path.counts != nil:
		return "widening"
	case source == onOfferSource && mechanisms.Is[*mechanisms.Online](c.path.Measure.Spec):
		return "online release"
	case source == onOfferSource && c.path.Measure.Declared == nil:
		return "own range release"
	case source != "containment":
	case r != nil && r.Mix != nil:
		return "linear combination"
	case mechanisms.Is[*mechanisms.Online](c.path.Measure.Spec):
		return "online release"
	case c.path.Measure.Spec.Counts().Strategy.IsCube():
		return "containment in marginals"
	}
	return source
}

// whyNot says why a path was not taken.
func (ch *Weigher) whyNot(c alternative, taken *Path, off, least mechanisms.Error, q *goal) string {
	switch m := c.path.Measure; {
	case c.not != "":
		return c.not
	case taken.Measure.Held && !m.Held:
		return "what you have paid for answers it for nothing"
	case taken.name == skiRental:
		return "such questions have come to the price of the release that is bought"
	case q.need != nil && !m.Cost.Fits(taken.Measure.Cost):
		return "dearer, for what is asked now"
	case q.need == nil && off.Variance > least.Variance:
		return "expected to be further off"
	case taken.Measure.Held && taken.Measure.Digest == q.own.Digest && m.Digest != q.own.Digest:
		return "the same question keeps its answer"
	case taken.Measure.Declared != nil:
		return "the release answers more than this question"
	}
	return "no nearer than what is taken"
}
