package planner

import (
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// SET dp.max_error = e: each count and sum that the answer is made of is to be off by e at most, at dp.confidence, at the
// least cost (docs/adr/0023). The error of a Spec is known before any data, so the least cost is found by halving whole
// micro-ε or pico-ρ: with one less, some count would be further off. Questions are paid for side by side and each needs
// what it needs, so what they cost together is least when each does.

// untold is an aggregate whose error depends on the data.
type untold struct {
	name string
	pos  int
}

// tellable refuses what dp.max_error cannot bound beforehand.
func (ch *chooser) tellable(questions []*question) *refuse.Refusal {
	if ch.c.Settings.MaxError == 0 {
		return nil
	}
	for _, q := range questions {
		if q.untold != nil {
			return errorUntold.At(q.untold.pos, q.untold.name)
		}
	}
	if ch.open == nil {
		return nil
	}
	for _, c := range ch.open.wanted {
		if f := ch.open.found[c]; f != nil && f.measure != nil {
			return errorKeys.At(-1, c.Name)
		}
	}
	return nil
}

// most is dp.max_error as it was written.
func (ch *chooser) most() string { return strconv.FormatFloat(ch.c.Settings.MaxError, 'f', -1, 64) }

// aim writes what is asked for.
func (ch *chooser) aim() string {
	return "±" + ch.most() + " at " + strconv.FormatFloat(100*ch.c.Settings.Confidence.Float(), 'g', 10, 64) + " %"
}

// bound is how far the whole numbers of a measured counter may be off.
func (ch *chooser) bound(s *solved, counter int) int64 {
	most, ok := new(big.Rat).SetString(ch.most())
	if !ok {
		return 0
	}
	if sum := s.sums[counter]; sum != nil && sum.unit != nil {
		most.Quo(most, sum.unit)
	} else if sum == nil && counter < len(s.worths) && s.worths[counter] != nil && s.worths[counter].Sign() > 0 {
		most.Quo(most, s.worths[counter])
	}
	whole := new(big.Int).Quo(most.Num(), most.Denom())
	if !whole.IsInt64() {
		return math.MaxInt64
	}
	return whole.Int64()
}

// need is what the answers to one question are made of: the values that add up cells of its measured counters.
type need struct {
	*solved
	most  []int     // by counter: the most cells that a value adds up
	each  []bool    // by counter: each cell is a value
	lists [][][]int // by counter: the cells of the other values
	at    []**way   // where its way is wanted
}

// add notes the rows that an ask fills.
func (n *need) add(sh *sheet, a *ask, at **way) {
	n.at = append(n.at, at)
	for _, s := range a.reads {
		spots := a.spots(sh.frames[s], sh.sets[s])
		for _, f := range a.fills {
			c := a.counting[f.counter]
			if c < 0 {
				continue
			}
			if spots == nil && f.condition < 0 {
				n.each[c], n.most[c] = true, max(n.most[c], 1)
				continue
			}
			for _, row := range sh.frames[s].rowOrder() {
				cells := a.cellsOf(f, row, spots)
				n.most[c] = max(n.most[c], len(cells))
				n.lists[c] = append(n.lists[c], cells)
			}
		}
	}
}

// needs lists what is wanted, each question once: two leaves may ask the same.
func needs(sheets []*sheet, ways [][]*way) (list []*need) {
	known := map[Digest]*need{}
	for i, sh := range sheets {
		ways[i] = make([]*way, len(sh.asks))
		for j, a := range sh.asks {
			if !a.wanted() {
				continue
			}
			digest := a.measure("", "").Digest
			n := known[digest]
			if n == nil {
				n = &need{a.solved, make([]int, len(a.counts)), make([]bool, len(a.counts)), make([][][]int, len(a.counts)), nil}
				known[digest] = n
				list = append(list, n)
			}
			n.add(sh, a, &ways[i][j])
		}
	}
	return list
}

// rows are the values of a counter as they are read from a measure.
func (n *need) rows(c int, r *reading) [][]mechanisms.Span {
	var out [][]mechanisms.Span
	if n.each[c] {
		out = slices.Clone(r.spans[c])
	}
	for _, cells := range n.lists[c] {
		var list [][]mechanisms.Span
		for _, cell := range cells {
			list = append(list, r.spans[c][cell])
		}
		out = append(out, joinSpans(list))
	}
	return out
}

// within tells whether every value, read so, is expected to be as exact as asked.
func (ch *chooser) within(n *need, spec mechanisms.Spec, r *reading) bool {
	for c := range n.counts {
		if n.most[c] > 0 && r.mix != nil {
			if ch.widestMixed(n, r.mix, c) > ch.bound(n.solved, c) {
				return false
			}
			continue
		}
		if n.most[c] > 0 && !ch.allWithin(spec.Only(r.counters[c]), n.rows(c, r), ch.bound(n.solved, c)) {
			return false
		}
	}
	return true
}

// mostWidths bounds the values whose half-widths are computed: those with the largest variances.
const mostWidths = 8

// allWithin tells whether the half-widths over the rows of a count are within a bound. A cost is sought by halving, some
// hundred of them: where one row is off by more, the others are not looked at.
func (ch *chooser) allWithin(spec mechanisms.Spec, rows [][]mechanisms.Span, bound int64) bool {
	type looked struct {
		row      int
		variance float64
	}
	errors, list := spec.Errors(ch.c.Settings.Confidence), []looked(nil)
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
	slices.SortStableFunc(list, func(a, b looked) int {
		if a.variance == b.variance {
			return 0
		}
		if a.variance > b.variance {
			return -1
		}
		return 1
	})
	for _, l := range list[:min(len(list), mostWidths)] {
		if errors.Of(rows[l.row]).HalfWidth > bound {
			return false
		}
	}
	return true
}

// least is the least cost at which enough holds, which must hold of each dearer one; false: of none.
func (ch *chooser) least(enough func(privacy.Cost) bool) (privacy.Cost, bool) {
	of, most := ch.costOf, int64(1e12)
	if ch.c.Dataset.Accountant == privacy.ZCDP {
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

// counted counts a question afresh at the least cost for its bounds; nil: there is none.
func (ch *chooser) counted(n *need) *way {
	w := &way{measure: n.measure(n.kind(), n.table.Name+n.about()), reading: ownReading(n.solved)}
	var ok bool
	if n.summed() == nil {
		w.measure.Spec, w.measure.Cost, ok = ch.leastCounts(n)
	} else {
		w.measure.Spec, w.measure.Cost, ok = ch.leastSums(n)
	}
	if !ok {
		return nil
	}
	w.measure.Why = "no release that you have paid for is exact enough"
	for _, c := range ch.widened(&asking{solved: n.solved, own: w.measure, fresh: w.measure.Spec, share: w.measure.Cost}) {
		if ch.within(n, c.way.measure.Spec, c.way.reading) {
			w = c.way
			w.measure.Why = "no release that you have paid for is exact enough; the rows around its own are counted too, which costs nothing more"
		}
	}
	w.measure.Why += "; the least cost for " + ch.aim()
	return w
}

// leastCounts is for counts, all with one noise.
func (ch *chooser) leastCounts(n *need) (mechanisms.Spec, privacy.Cost, bool) {
	bound, cells := ch.bound(n.solved, 0), []mechanisms.Span{{From: 0, To: slices.Max(n.most)}}
	cost, ok := ch.least(func(c privacy.Cost) bool {
		spec, err := n.fresh(c)
		return err == nil && spec.Error(cells, ch.c.Settings.Confidence).HalfWidth <= bound
	})
	spec, err := n.fresh(cost)
	return spec, cost, ok && err == nil
}

// leastSums is for counters that have a noise each, so a cost each.
func (ch *chooser) leastSums(n *need) (spec mechanisms.Spec, sum privacy.Cost, ok bool) {
	counters := countersOf(n.summed())
	costs := make([]privacy.Cost, len(counters))
	for c := range counters {
		bound, cells := ch.bound(n.solved, c), []mechanisms.Span{{From: 0, To: max(n.most[c], 1)}}
		costs[c], ok = ch.least(func(cost privacy.Cost) bool {
			spec, err := mechanisms.SumsEach(counters[c:c+1], n.cells, n.contribution(), []privacy.Cost{cost})
			return err == nil && spec.Error(cells, ch.c.Settings.Confidence).HalfWidth <= bound
		})
		if !ok {
			return spec, sum, false
		}
		sum = sum.Plus(costs[c])
	}
	spec, err := mechanisms.SumsEach(counters, n.cells, n.contribution(), costs)
	return spec, sum, err == nil
}

// freshRange is a range release of her own at the least cost, where she has asked for one: SET dp.release = on.
func (ch *chooser) freshRange(n *need) *way {
	if !ch.c.Settings.Release || ch.ownRange(n.solved, ch.share(1), true) == nil {
		return nil
	}
	cost, ok := ch.least(func(c privacy.Cost) bool {
		w := ch.ownRange(n.solved, c, true)
		return w != nil && ch.within(n, w.measure.Spec, w.reading)
	})
	if !ok {
		return nil
	}
	w := ch.ownRange(n.solved, cost, true)
	w.measure.Why += "; the least cost for " + ch.aim()
	return w
}
