// Package choose is the optimizer: it finds how each question is answered, from what is held, by a declared release or
// by measuring. An answer is a Path {what is measured, how it is read, what that costs, how far it is expected to be
// off}; one table of sources lists the paths of every kind of question (access_path.go), and the least error within a
// cost is taken, or the least cost within an error (max_error_search.go). Of
//
//	SELECT sex, count(*) FROM people GROUP BY ROLLUP (sex)
//
// the leaf plan has a request for counts by sex and one for the total (leaf_plan.go), which is read from the first
// (marginals.go). What is looked at is public: the policy, settings, what she has paid for, expected errors.
package choose

import (
	"math"
	"math/bits"
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
	byHeld   bool            // what is there only to say which groups have rows is read where it is held, and not bought
}

// Choose picks the paths of all leaf plans for at most the session's epsilon. Where none of them buys a presence, they
// are picked again with the whole of it.
func (ch *Optimizer) Choose(leaves []*LeafPlan) ([][]*Path, *refuse.Refusal) {
	if ch.Context.Settings.MaxError > 0 {
		return ch.accurate(leaves)
	}
	most := 0
	for _, lp := range leaves {
		if !lp.presence && slices.ContainsFunc(lp.Requests, (*Request).Wanted) {
			most++
		}
	}
	most -= ch.rollUp(leaves, most)
	paths, refusal := ch.equalShares(leaves, most)
	some := slices.ContainsFunc(leaves, func(lp *LeafPlan) bool { return lp.presence })
	if buys, presence := buysSome(leaves, paths); !some || presence || refusal == nil && !buys {
		return paths, refusal
	}
	hints, dates := ch.Hints, ch.Dates
	ch.byHeld = true
	whole, refused := ch.equalShares(leaves, most)
	ch.byHeld = false
	keep := refused == nil
	for i, lp := range leaves {
		keep = keep && (refusal != nil || !lp.presence || !choosesAnew(leaves, whole, i))
	}
	if keep {
		return whole, nil
	}
	ch.Hints, ch.Dates = hints, dates
	return paths, refusal
}

// buysSome reports whether something is bought for some leaf plans, and a presence.
func buysSome(leaves []*LeafPlan, paths [][]*Path) (some, presence bool) {
	for i, list := range paths {
		for _, w := range list {
			if w != nil && !w.Measure.Held {
				some, presence = true, presence || leaves[i].presence
			}
		}
	}
	return some, presence
}

// choosesAnew reports whether something is chosen anew among the rows of the i-th leaf plan.
func choosesAnew(leaves []*LeafPlan, paths [][]*Path, i int) bool {
	for at, list := range paths {
		for j, w := range list {
			if w == nil || w.Reading != nil || w.Measure.Held {
				continue
			}
			if asked, is := leaves[at].Requests[j].Asked.(*linear.Chosen); is && asked.Leaf == i {
				return true
			}
		}
	}
	return false
}

// equalShares picks the paths of all leaf plans: k of them for which something is bought, at the most so many, get an
// equal share each, and k is the smallest number for which that works out.
func (ch *Optimizer) equalShares(leaves []*LeafPlan, most int) ([][]*Path, *refuse.Refusal) {
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

// presencePart is the part of a statement's cost that presences take, which say which groups have rows where medians
// and the like of them are shown and no count is: the half-width of a count for it is about the rank error of a median
// among 50 values for the rest, which is an eighth more than it would be for all.
const presencePart = WholeShare / 8

// attempt picks the paths when each leaf plan may cost a k-th of the session's epsilon, of which each of its requests
// has a part, and presences together presencePart. A presence is bought only where something is chosen anew among its
// rows. What was read of what is held in an attempt before is read again.
func (ch *Optimizer) attempt(leaves []*LeafPlan, k int, before [][]*Path) (paths [][]*Path, bought int, refusal *refuse.Refusal) {
	share, presence := ch.Share(k), privacy.Cost{}
	var order, last []int
	for i, lp := range leaves {
		if lp.presence {
			last = append(last, i)
		} else {
			order = append(order, i)
		}
	}
	if len(last) > 0 && !ch.byHeld {
		share = PartOfCost(share, WholeShare-presencePart)
	}
	if len(last) > 0 {
		presence = PartOfCost(ch.Share(len(last)), presencePart)
	}
	ch.Hints, ch.Dates, ch.renewals = nil, nil, 0
	paths = make([][]*Path, len(leaves))
	buying := map[plans.Digest]*plans.Measure{}
	var rollups []int
	for _, i := range append(order, last...) {
		lp := leaves[i]
		paths[i] = make([]*Path, len(lp.Requests))
		parts, buys := (&LeafPlanner{Optimizer: ch}).shares(lp.Requests), false
		for j, a := range lp.Requests {
			if !a.Wanted() {
				continue
			}
			own := PartOfCost(share, parts[j])
			if lp.presence {
				if own = PartOfCost(presence, parts[j]); own.IsZero() {
					continue
				}
			}
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
			if lp.presence && !w.Measure.Held && (ch.byHeld || !choosesAnew(leaves, paths, i)) {
				continue
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
		if buys && !lp.presence {
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

// additive asks for counts and sums: for counters side by side, or by combination of their conditions; and for each
// grouping set by itself, or for some whose cells others add up. What has the least expected error is taken.
func (v *LeafPlanner) additive(lp *LeafPlan, counters []int) *refuse.Refusal {
	asks, counters := v.ofTotals(lp, counters)
	lp.Requests = append(lp.Requests, asks...)
	if len(counters) == 0 {
		return nil
	}
	form := func(keys linear.Set) (*Request, *refuse.Refusal) { return v.plain(lp.Question, keys, counters) }
	best, refusal := v.based(lp, form)
	if refusal != nil {
		return refusal
	}
	if a, refusal := v.marginal(lp, counters, best); refusal != nil {
		return refusal
	} else if a != nil {
		lp.Requests = append(lp.Requests, a)
		return nil
	}
	if conditional(lp.Question, counters) {
		form = func(keys linear.Set) (*Request, *refuse.Refusal) {
			if a := v.split(lp.Question, keys, counters); a != nil {
				return a, nil
			}
			return nil, linear.NoMechanism.At(-1, "conditions")
		}
		if other, refusal := v.based(lp, form); refusal == nil && v.preferred(other, best) {
			best = other
		}
	}
	lp.Requests = append(lp.Requests, best...)
	return nil
}

// preferred reports whether some requests are better than others: because she has paid for them, or by their error.
func (v *LeafPlanner) preferred(some, others []*Request) bool {
	if some, others := v.Optimizer.holdsAll(some), v.Optimizer.holdsAll(others); some != others {
		return some
	}
	return v.error(some) < v.error(others)
}

// conditional tells counters with different conditions.
func conditional(q *linear.Question, counters []int) bool {
	text := func(c int) string { return linear.WhereText(q.Counters[c].Where) }
	return slices.ContainsFunc(counters, func(c int) bool { return text(c) != text(counters[0]) })
}

// sumsClearlyWorse is how much more the error of sums of finer groups must be than that of groups asked for by
// themselves for these to be asked for: totals that are sums add up.
const sumsClearlyWorse = 1.25

// based chooses the sets that are asked for; the others are read from the one of these with the fewest cells. The sets
// that no other contains are asked for; then, one by one, the one that lowers the error most.
func (v *LeafPlanner) based(lp *LeafPlan, form func(linear.Set) (*Request, *refuse.Refusal)) ([]*Request, *refuse.Refusal) {
	made := map[int]*Request{}
	var bases, rest []int
	for s, keys := range lp.Sets {
		contained := slices.ContainsFunc(lp.Sets, func(other linear.Set) bool { return len(other) > len(keys) && reuse.ContainsAll(other, keys) })
		again := slices.ContainsFunc(lp.Sets[:s], func(other linear.Set) bool { return slices.Equal(other, keys) })
		if contained || again {
			if !again {
				rest = append(rest, s)
			}
			continue
		}
		var refusal *refuse.Refusal
		if made[s], refusal = form(keys); refusal != nil {
			return nil, refusal
		}
		bases = append(bases, s)
	}
	best := v.assigned(lp, made, bases)
	for len(rest) > 0 {
		next, found := -1, best
		for i, s := range rest {
			if made[s] == nil {
				var refusal *refuse.Refusal
				if made[s], refusal = form(lp.Sets[s]); refusal != nil {
					return nil, refusal
				}
			}
			if other := v.assigned(lp, made, append(bases[:len(bases):len(bases)], s)); v.error(other)*sumsClearlyWorse < v.error(best) && v.error(other) < v.error(found) {
				next, found = i, other
			}
		}
		if next < 0 {
			break
		}
		best, bases, rest = found, append(bases, rest[next]), slices.Delete(rest, next, next+1)
	}
	return best, nil
}

// assigned lets each set be read from one of the bases.
func (v *LeafPlanner) assigned(lp *LeafPlan, made map[int]*Request, bases []int) []*Request {
	asks := make([]*Request, len(bases))
	for i, s := range bases {
		same := *made[s]
		asks[i] = &same
	}
	for s, keys := range lp.Sets {
		var from *Request
		for _, a := range asks {
			if reuse.ContainsAll(a.set, keys) && (from == nil || a.Cells < from.Cells) {
				from = a
			}
		}
		from.Reads = append(from.Reads, s)
	}
	for _, a := range asks {
		a.weight *= float64(len(a.Reads))
	}
	return asks
}

// weight is the expected squared error of all that one set's rows take from a request, at the whole cost. An ask of a
// finer set that is read for a coarser one adds up the same cells, so weighs the same. Sums are measured by their
// range, as mechanisms.Counter is.
func (v *LeafPlanner) weight(a *Request) float64 {
	if !a.Wanted() {
		return 0
	}
	spec, err := a.Fresh(v.nominal())
	if err != nil {
		if spec, err = a.Fresh(v.Optimizer.Share(1)); err != nil {
			return math.Inf(1)
		}
	}
	total := 0.
	for _, f := range a.Projections {
		c := a.Counting[f.Counter]
		if c < 0 {
			continue
		}
		total += a.WeightOf(c) * v.Optimizer.variance(spec.Only(c)) * float64(a.CellsWhere(f.condition))
	}
	return total
}

// nominal is the cost at which requests are weighed: the whole, and no more than ε 1 or ρ 1/2. Noise on whole numbers
// is next to none where a cost is large, which says nothing of what a request errs by with a part of it.
func (v *LeafPlanner) nominal() privacy.Cost {
	c := v.Optimizer.Share(1)
	c.Epsilon, c.Rho = privacy.MicroEpsilon(min(c.Epsilon.Micro(), 1_000_000)), privacy.PicoRho(min(c.Rho.Pico(), 500_000_000_000))
	return c
}

// Order is the power of a part of the cost that errors fall with: noise grows as 1/cost (pure) or 1/√cost (zCDP).
func Order(a privacy.Accountant) float64 {
	if a == privacy.ZCDP {
		return 1
	}
	return 2
}

// Divided is the least sum of errors w/s^p over shares s that add up to 1: s is in proportion to w^(1/(p+1)).
func Divided(weights []float64, p float64) float64 {
	sum := 0.
	for _, w := range weights {
		sum += math.Pow(w, 1/(p+1))
	}
	return math.Pow(sum, p+1)
}

func (v *LeafPlanner) order() float64 { return Order(v.Optimizer.Context.Accountant()) }

// error is the least sum of the requests' errors when they share a cost.
func (v *LeafPlanner) error(asks []*Request) float64 {
	weights := make([]float64, len(asks))
	for i, a := range asks {
		weights[i] = a.weight
	}
	return Divided(weights, v.order())
}

// shares are the parts of the cost that a leaf plan's requests take, in 2^-20ths, those that measure nothing none.
func (v *LeafPlanner) shares(asks []*Request) []int64 {
	total, wanted := 0., make([]float64, len(asks))
	some := 0
	for i, a := range asks {
		if a.Wanted() {
			wanted[i] = math.Pow(max(a.weight, math.SmallestNonzeroFloat64), 1/(v.order()+1))
			total += wanted[i]
			some++
		}
	}
	out := make([]int64, len(asks))
	for i, a := range asks {
		if a.Wanted() && some == 1 {
			out[i] = WholeShare
		} else if a.Wanted() {
			out[i] = max(1, int64(wanted[i]/total*(WholeShare-float64(some))))
		}
	}
	return out
}

const WholeShare = 1 << 20

// PartOfCost is so many 2^-20ths of a cost, rounded down.
func PartOfCost(c privacy.Cost, part int64) privacy.Cost {
	if part == WholeShare {
		return c
	}
	of := func(n int64) int64 {
		high, low := bits.Mul64(uint64(n), uint64(part))
		return int64(high<<44 | low>>20)
	}
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(of(c.Epsilon.Micro())), Rho: privacy.PicoRho(of(c.Rho.Pico()))}
}
