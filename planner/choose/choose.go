// Package choose is the optimizer: it finds how each question is answered, from what is held, by a declared release or
// by measuring. An answer is a Path {what is measured, how it is read, what that costs, how far it is expected to be
// off}; one table of sources lists the paths of every kind of question (access_path.go), and the least error within a
// cost is taken, or the least cost within an error (max_error_search.go). Of
//
//	SELECT sex, count(*) FROM people GROUP BY ROLLUP (sex)
//
// the leaf plan has a request for counts by sex and one for the total (leaf_plan.go), which is read from the first
// (rollup.go). What is looked at is public: the policy, the session's settings, what she has paid for, expected errors.
package choose

import (
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/discovery"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Path is one answer to a question: the measure that it is read from, and how.
type Path struct {
	Measure   *plans.Measure
	Reading   *reuse.Reading
	Threshold *plans.ThresholdQuestion // what a run is asked
	Others    []*plans.Measure         // all that is read, where that is more than one; measure is the first
	TopK      *linear.TopK             // set: candidates are chosen
	counts    *linear.Query            // what the measure counts, where that is more than the question
	share     privacy.Cost             // what it might have cost
	name      string                   // of the source that it comes from
}

// Weigher compares paths by their costs and expected errors.
type Weigher struct{ Context reuse.Context }

// Optimizer finds the path of each question. What it looks at is public: the policy, the session's settings, what the
// analyst has paid for, and expected errors.
type Optimizer struct {
	Weigher
	Now      func() time.Time // the plan's time; asking for it is noted
	Views    map[*policy.Table]*reuse.Views
	Open     *discovery.Keys
	Hints    semantics.Notes
	Dates    semantics.Notes // of the stale releases that answer
	renewals int             // of the last attempt: stale releases bought anew
}

// Choose picks the paths of all leaf plans for at most the session's epsilon: k leaf plans for which something is
// bought get an equal share each, and k is the smallest number for which that works out.
func (ch *Optimizer) Choose(leaves []*LeafPlan) ([][]*Path, *refuse.Refusal) {
	if ch.Context.Settings.MaxError > 0 {
		return ch.accurate(leaves)
	}
	most := 0
	for _, lp := range leaves {
		if slices.ContainsFunc(lp.Requests, (*Request).Wanted) {
			most++
		}
	}
	most -= ch.rollUp(leaves, most)
	// What was bought for this statement before is found at the share that it was bought for.
	before, bought, refusal := ch.attempt(leaves, max(most, 1), nil)
	free, hints, dates := refusal == nil && bought == 0, ch.Hints, ch.Dates
	if free && len(ch.Dates) == 0 {
		return before, nil
	}
	for k := 1; ; k++ {
		paths, bought, refusal := ch.attempt(leaves, k, nil)
		if refusal == nil && bought > k && k < most {
			continue
		}
		if free && (refusal != nil || ch.renewals == 0) {
			ch.Hints, ch.Dates = hints, dates
			return before, nil
		}
		if refusal == nil && bought > 0 && bought < k { // what is held for less is read all the same, and the others have what it leaves
			hints, dates := ch.Hints, ch.Dates
			if more, again, refused := ch.attempt(leaves, bought, paths); refused == nil && again == bought {
				paths = more
			}
			ch.Hints, ch.Dates = hints, dates
		}
		return paths, refusal
	}
}

// attempt picks the paths when each leaf plan may cost a k-th of the session's epsilon, of which each of its requests
// has a part. What was read of what is held in an attempt before is read again.
func (ch *Optimizer) attempt(leaves []*LeafPlan, k int, before [][]*Path) (paths [][]*Path, bought int, refusal *refuse.Refusal) {
	share := ch.Share(k)
	ch.Hints, ch.Dates, ch.renewals = nil, nil, 0
	paths = make([][]*Path, len(leaves))
	buying := map[plans.Digest]*plans.Measure{}
	var rollups []int
	for i, lp := range leaves {
		paths[i] = make([]*Path, len(lp.Requests))
		parts, buys := (&LeafPlanner{Optimizer: ch}).shares(lp.Requests), false
		for j, a := range lp.Requests {
			if !a.Wanted() {
				continue
			}
			own := PartOfCost(share, parts[j])
			if own.IsZero() {
				return nil, 0, epsilonSmall.At(-1, ch.Context.Settings.Epsilon.String(), k*len(lp.Requests))
			}
			if before != nil && before[i][j] != nil && before[i][j].Measure.Held {
				paths[i][j] = before[i][j]
				continue
			}
			w, refusal := ch.one(a.Query, own)
			if refusal != nil {
				return nil, 0, refusal
			}
			w = ch.beside(a.Query, w, paths)
			if w.share = own; lp.base != nil && !w.Measure.Held {
				rollups = append(rollups, i)
				continue
			}
			if m := w.Measure; !m.Held {
				if same := buying[m.Digest]; same != nil && same.Shared == m.Shared && same.Kind == m.Kind {
					if same.Cost.Fits(m.Cost) {
						same.Spec, same.Cost, same.Refinement = m.Spec, m.Cost, m.Refinement
					}
					w.Measure = same
				} else {
					buying[m.Digest] = m
					buys = true
				}
			}
			paths[i][j] = w
		}
		if buys {
			bought++
		}
	}
	for _, i := range rollups {
		w, refusal := ch.rolledUp(leaves, paths, leaves[i], buying, share)
		if refusal != nil {
			return nil, 0, refusal
		}
		if paths[i][0] = w; !w.Measure.Held && buying[w.Measure.Digest] == nil {
			buying[w.Measure.Digest] = w.Measure
			bought++
		}
	}
	return paths, bought, nil
}

// Share is a k-th of what a statement may cost, rounded down.
func (ch *Optimizer) Share(k int) privacy.Cost {
	if ch.Open != nil && len(ch.Open.Wanted) > 0 { // the other half is for the keys
		k *= 2
	}
	return ch.Context.Share(k)
}

// variance is the expected squared error of a count of one cell.
func (ch *Weigher) variance(spec mechanisms.Spec) float64 {
	return spec.Error(predicate.One(0), ch.Context.Settings.Confidence).Variance
}

// each is the expected squared error of a cell of a question's own measure, or of the worst row of its marginals.
func (ch *Weigher) each(s *linear.Query, spec mechanisms.Spec) float64 {
	if s.Marginals == nil {
		return ch.variance(spec)
	}
	_, worst := plans.WorstRow(spec, s.Marginals.Rows, ch.Context.Settings.Confidence)
	return worst
}
