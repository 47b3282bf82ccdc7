package choose

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// SET dp.max_error = e: each count and sum that the answer is made of is to be off by e at most, at dp.confidence, at
// the least cost (docs/adr/0023). The error of a Spec is known before any data, so the least cost is found by halving
// whole micro-ε or pico-ρ: with one less, some count would be further off. Questions are paid for side by side and each
// needs what it needs, so what they cost together is least when each does.

// Tellable refuses what dp.max_error cannot bound beforehand.
func (ch *Optimizer) Tellable(questions []*linear.Question) *refuse.Refusal {
	if ch.Context.Settings.MaxError == 0 {
		return nil
	}
	for _, q := range questions {
		if q.UnknownError != nil {
			return unknownError.At(q.UnknownError.Pos, q.UnknownError.Name)
		}
	}
	if ch.Open == nil {
		return nil
	}
	for _, c := range ch.Open.Wanted {
		if f := ch.Open.Found[c]; f != nil && f.Measure != nil {
			return errorKeys.At(-1, c.Name)
		}
	}
	return nil
}

// most is dp.max_error as it was written.
func (ch *Weigher) most() string {
	return strconv.FormatFloat(ch.Context.Settings.MaxError, 'f', -1, 64)
}

// aim writes what is asked for.
func (ch *Weigher) aim() string {
	return "±" + ch.most() + " at " + strconv.FormatFloat(100*ch.Context.Settings.Confidence.Float(), 'g', 10, 64) + " %"
}

// bound is how far the whole numbers of a measured counter may be off.
func (ch *Weigher) bound(s *linear.Query, counter int) int64 {
	most, ok := new(big.Rat).SetString(ch.most())
	if !ok {
		return 0
	}
	if sum := s.Sums[counter]; sum != nil && sum.Unit != nil {
		most.Quo(most, sum.Unit)
	} else if sum == nil && counter < len(s.Worths) && s.Worths[counter] != nil && s.Worths[counter].Sign() > 0 {
		most.Quo(most, s.Worths[counter])
	}
	whole := new(big.Int).Quo(most.Num(), most.Denom())
	if !whole.IsInt64() {
		return math.MaxInt64
	}
	return whole.Int64()
}

// need is what the answers to one question are made of: the values that add up cells of its measured counters.
type need struct {
	*linear.Query
	most  []int     // by counter: the most cells that a value adds up
	each  []bool    // by counter: each cell is a value
	lists [][][]int // by counter: the cells of the other values
	at    []**Path  // where its path is wanted
}

// add notes the rows that a request fills.
func (n *need) add(lp *LeafPlan, a *Request, at **Path) {
	n.at = append(n.at, at)
	for _, s := range a.Reads {
		spots := a.Spots(lp.Frames[s], lp.Sets[s])
		for _, f := range a.Projections {
			c := a.Counting[f.Counter]
			if c < 0 {
				continue
			}
			if spots == nil && f.condition < 0 {
				n.each[c], n.most[c] = true, max(n.most[c], 1)
				continue
			}
			for _, row := range lp.Frames[s].RowOrder() {
				cells := a.CellsOf(f, row, spots)
				n.most[c] = max(n.most[c], len(cells))
				n.lists[c] = append(n.lists[c], cells)
			}
		}
	}
}

// needs lists what is wanted, each question once: two leaves may ask the same.
func needs(leaves []*LeafPlan, paths [][]*Path) (list []*need) {
	known := map[plans.Digest]*need{}
	for i, lp := range leaves {
		paths[i] = make([]*Path, len(lp.Requests))
		for j, a := range lp.Requests {
			if !a.Wanted() {
				continue
			}
			digest := a.Measure("", "").Digest
			n := known[digest]
			if n == nil {
				n = &need{a.Query, make([]int, len(a.Counts)), make([]bool, len(a.Counts)), make([][][]int, len(a.Counts)), nil}
				known[digest] = n
				list = append(list, n)
			}
			n.add(lp, a, &paths[i][j])
		}
	}
	return list
}

// rows are the values of a counter as they are read from a measure.
func (n *need) rows(c int, r *reuse.Reading) [][]mechanisms.Span {
	var out [][]mechanisms.Span
	if n.each[c] {
		out = slices.Clone(r.Spans[c])
	}
	for _, cells := range n.lists[c] {
		var list [][]mechanisms.Span
		for _, cell := range cells {
			list = append(list, r.Spans[c][cell])
		}
		out = append(out, plans.JoinSpans(list))
	}
	return out
}

// within reports whether every value, read so, is expected to be as exact as asked.
func (ch *Weigher) within(n *need, spec mechanisms.Spec, r *reuse.Reading) bool {
	for c := range n.Counts {
		if n.most[c] > 0 && r.Mix != nil {
			if ch.widestMixed(n, r.Mix, c) > ch.bound(n.Query, c) {
				return false
			}
			continue
		}
		if n.most[c] > 0 && !ch.allWithin(spec.Only(r.Counters[c]), n.rows(c, r), ch.bound(n.Query, c)) {
			return false
		}
	}
	return true
}

// maxWidths bounds the values whose half-widths are computed: those with the largest variances.
const maxWidths = 8

// allWithin reports whether the half-widths over the rows of a count are within a bound. A cost is sought by halving,
// some hundred of them: where one row is off by more, the others are not looked at.
func (ch *Weigher) allWithin(spec mechanisms.Spec, rows [][]mechanisms.Span, bound int64) bool {
	type looked struct {
		row      int
		variance float64
	}
	errors, list := spec.Errors(ch.Context.Settings.Confidence), []looked(nil)
	for i := 0; i < len(rows); i += errors.Every(len(rows)) {
		l := looked{i, errors.Variance(rows[i])}
		if spec.Counts().Strategy.Kind == mechanisms.Identity && len(list) > 0 { // it grows with the number of cells
			if l.variance > list[0].variance {
				list[0] = l
			}
			continue
		}
		list = append(list, l)
	}
	slices.SortStableFunc(list, func(a, b looked) int { return cmp.Compare(b.variance, a.variance) })
	for _, l := range list[:min(len(list), maxWidths)] {
		if errors.Of(rows[l.row]).HalfWidth > bound {
			return false
		}
	}
	return true
}

// Least is the least cost at which enough holds, which must hold of each dearer one; false means of none.
func (ch *Weigher) Least(enough func(privacy.Cost) bool) (privacy.Cost, bool) {
	of, most := ch.costOf, int64(1e12)
	if ch.Context.Accountant() == privacy.ZCDP {
		most = 1e18
	}
	high := int64(1)
	for !enough(of(high)) {
		if high == most {
			return privacy.Cost{}, false
		}
		high = min(2*high, most)
	}
	low := high / 2 // is not enough, or is 0
	for high-low > 1 {
		if middle := low + (high-low)/2; enough(of(middle)) {
			high = middle
		} else {
			low = middle
		}
	}
	return of(high), true
}

// exactCount counts a question afresh at the least cost for its bounds, with the rows around its own where that is
// free.
func (ch *Weigher) exactCount(q *goal) []alternative {
	n := q.need
	if q.released {
		return nil
	}
	w := &Path{Measure: n.Measure(n.Kind(), n.Table.Name+n.About()), Reading: reuse.OwnReading(n.Query)}
	var ok bool
	if n.Summed() == nil {
		w.Measure.Spec, w.Measure.Cost, ok = ch.leastCounts(n)
	} else {
		w.Measure.Spec, w.Measure.Cost, ok = ch.leastSums(n)
	}
	if !ok {
		return nil
	}
	w.Measure.Why = "no release that you have paid for is exact enough"
	for _, c := range ch.widened(&goal{Query: n.Query, own: w.Measure, fresh: w.Measure.Spec, share: w.Measure.Cost}) {
		if ch.within(n, c.path.Measure.Spec, c.path.Reading) {
			w = c.path
			w.Measure.Why = "no release that you have paid for is exact enough; the rows around its own are counted too, which costs nothing more"
		}
	}
	w.Measure.Why += "; the least cost for " + ch.aim()
	return []alternative{{path: w}}
}

// leastCounts is for counts, all with one noise.
func (ch *Weigher) leastCounts(n *need) (mechanisms.Spec, privacy.Cost, bool) {
	bound, cells := ch.bound(n.Query, 0), []mechanisms.Span{{From: 0, To: slices.Max(n.most)}}
	cost, ok := ch.Least(func(c privacy.Cost) bool {
		spec, err := n.Fresh(c)
		return err == nil && spec.Error(cells, ch.Context.Settings.Confidence).HalfWidth <= bound
	})
	spec, err := n.Fresh(cost)
	return spec, cost, ok && err == nil
}

// leastSums is for counters that have a noise each, so a cost each.
func (ch *Weigher) leastSums(n *need) (spec mechanisms.Spec, sum privacy.Cost, ok bool) {
	counters := linear.CountersOf(n.Summed())
	costs := make([]privacy.Cost, len(counters))
	for c := range counters {
		bound, cells := ch.bound(n.Query, c), []mechanisms.Span{{From: 0, To: max(n.most[c], 1)}}
		costs[c], ok = ch.Least(func(cost privacy.Cost) bool {
			spec, err := mechanisms.SumsEach(counters[c:c+1], n.Cells, n.Contribution(), []privacy.Cost{cost})
			return err == nil && spec.Error(cells, ch.Context.Settings.Confidence).HalfWidth <= bound
		})
		if !ok {
			return spec, sum, false
		}
		sum = sum.Plus(costs[c])
	}
	spec, err := mechanisms.SumsEach(counters, n.Cells, n.Contribution(), costs)
	return spec, sum, err == nil
}

// exactRelease is a range release of her own at the least cost, where she has asked for one: SET dp.release = on.
func (ch *Optimizer) exactRelease(q *goal) []alternative {
	n := q.need
	if !ch.Context.Settings.Release && !ch.Context.Alternatives || ch.ownRange(n.Query, ch.Share(1), true) == nil {
		return nil
	}
	cost, ok := ch.Least(func(c privacy.Cost) bool {
		w := ch.ownRange(n.Query, c, true)
		return w != nil && ch.within(n, w.Measure.Spec, w.Reading)
	})
	if !ok {
		return nil
	}
	w := ch.ownRange(n.Query, cost, true)
	w.Measure.Why += "; the least cost for " + ch.aim()
	if q.released = ch.Context.Settings.Release; !q.released {
		return []alternative{{path: w, not: onlyOnRequest}}
	}
	return []alternative{{path: w}}
}
