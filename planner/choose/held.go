package choose

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// What she has paid for is looked at first: the same question, then what releases of finer cells, sums and differences
// answer (docs/adr/0007, 0022).

// askedBefore returns the path of the same question to a holding.
func askedBefore(q *goal, h reuse.Holding) *Path {
	w := &Path{Measure: q.Measure(q.own.Kind, q.own.Name), Reading: reuse.OwnReading(q.Query)}
	shared, kind, name, ok := reuse.DescribedHead(h)
	if ok && (shared || reuse.ReadDescribed(h, q.Table) != nil) {
		w.Measure = q.Measure(kind, name)
		w.Measure.Shared, w.Measure.Declared = shared, reuse.DeclaredAs(q.Table, shared, name)
	}
	w.hold(h, "the same question, asked before at least as exactly")
	return w
}

// again finds the same question among what she has paid for, at least as exact as asked now (privacy rule 3). A release
// of this epoch goes before one that has gone stale, of which the latest is read.
func (ch *Optimizer) again(q *goal) (list []alternative) {
	if ch.Context.Holdings == nil {
		return nil
	}
	current, latest := false, -1
	for _, h := range ch.Context.Holdings.Held(q.own.Digest) {
		if h.Spec.Cells != q.fresh.Cells || h.Spec.Counters != q.fresh.Counters {
			continue
		}
		w := askedBefore(q, h)
		c := alternative{path: w, variance: ch.worst(h.Spec, w.Reading), holding: h}
		switch {
		case !ch.preferred(w.Measure) && !(q.Summed() == nil && ch.asExact(q, w, c.variance) || q.Summed() != nil && ch.exactEnough(q.Query, h.Spec, q.fresh)):
			c.not = lessExact
		case !ch.isStale(h, w.Measure.Declared):
			current = true
		default:
			if c.not = reuse.OfAnotherEpoch; latest < 0 || h.At.After(list[latest].holding.At) {
				latest = len(list)
			}
		}
		list = append(list, c)
	}
	if !current && latest >= 0 {
		list[latest].not = ""
	}
	q.held = append(q.held, list...)
	return list
}

func (w *Path) hold(h reuse.Holding, why string) { reuse.Hold(w.Measure, h, why) }

// reuse finds what she has paid for that answers the question: releases of finer cells, and sums and differences of
// releases.
func (ch *Optimizer) reuse(q *goal) []alternative {
	list := ch.reused(q, false)
	if !ch.aloneIn(q.Table, list) {
		list = append(list, ch.combined(q, ch.oldestEnough(list))...)
	}
	list = settled(list)
	q.held = append(q.held, list...)
	return list
}

// aloneIn reports whether the one release that could be a term of sums and differences answers by itself: it is read as
// exactly as can be.
func (ch *Optimizer) aloneIn(t *policy.Table, list []alternative) bool {
	views := ch.views(t)
	if views == nil || ch.Context.Alternatives {
		return false
	}
	e := views.Extent()
	return e.Combine == 1 && slices.ContainsFunc(list, func(c alternative) bool { return c.holding.ID == e.Only && c.not == "" })
}

// oldestEnough is the age of the oldest of what is held that is as exact as asked; MaxInt: there is none, or all is to
// be listed. No combination with anything younger is taken then (settled).
func (ch *Weigher) oldestEnough(list []alternative) int {
	oldest := math.MaxInt
	for _, c := range list {
		if c.enough && !ch.Context.Alternatives {
			oldest = min(oldest, c.order)
		}
	}
	return oldest
}

// reused are releases of finer cells: those that grow, or the others.
func (ch *Optimizer) reused(q *goal, grows bool) (list []alternative) {
	for _, h := range ch.current(ch.finer(q.Query)) {
		if h.Measure.Continual != grows {
			continue
		}
		r := reuse.CoverHeld(q.Query, h.HeldOn)
		if r == nil && !h.Holding.Spec.Counts().Strategy.IsCube() {
			r = reuse.CoverWithin(q.Query, h.Measure.Query)
		}
		if r == nil {
			continue
		}
		w := &Path{Reading: r, Measure: h.Measure.Held(), counts: h.Measure.Plain()}
		w.Measure.Declared = h.Declared
		w.holdOn(h.HeldOn, "you have paid for "+w.Measure.Kind+" "+w.Measure.Name+", whose cells add up to it")
		variance := ch.worst(w.Measure.Spec, r)
		list = append(list, alternative{path: w, variance: variance, holding: h.Holding, order: h.Order, preferred: ch.preferred(w.Measure), enough: variance <= ch.each(q.Query, q.fresh) || !ch.preferred(w.Measure) && ch.asExact(q, w, variance)})
	}
	return list
}

// heldLonger is why something held is not read.
const heldLonger = "what has been held longer is as exact as asked, and the same question keeps its answer"

// settled says which of what is held may be read. Of what is as exact as a fresh count that is what has been held
// longest, so that the same question keeps its answer when more is bought; where nothing is, a release that is
// preferred, whatever its error.
func settled(list []alternative) []alternative {
	first := -1
	for i, c := range list {
		if c.enough && (first < 0 || c.order < list[first].order || c.order == list[first].order && c.variance < list[first].variance) {
			first = i
		}
	}
	for i := range list {
		switch c := &list[i]; {
		case first >= 0 && i != first:
			c.not = heldLonger
		case first < 0 && !c.preferred:
			c.not = lessExact
		}
	}
	return list
}

// views is what she holds on a table; nil means nothing.
func (ch *Optimizer) views(t *policy.Table) *reuse.Views {
	if ch.Context.Holdings == nil {
		return nil
	}
	s, known := ch.Views[t]
	if !known {
		s = ch.Context.Holdings.Views(t)
		ch.Views[t] = s
	}
	return s
}

// finer lists the counts by cells of at least a question's columns that she holds, and that can be read now.
func (ch *Optimizer) finer(s *linear.Query) (list []*reuse.View) {
	if views := ch.views(s.Table); views != nil {
		for _, h := range views.Finer(s) {
			if h.Measure.Continual || h.Holding.Spec.Grows() {
				own := *h
				own.Measure = h.Measure.Copied() // how far it has grown is of this plan
				if h = &own; !ch.readable(&h.HeldOn) {
					continue
				}
			}
			list = append(list, h)
		}
	}
	for _, h := range ch.Open.Held(s.Table) {
		list = append(list, &reuse.View{HeldOn: h})
	}
	return list
}

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

// combined finds the sum or difference of releases of one epoch that answers a question. Of all that do as exactly as
// asked, those held longest: the same question keeps its answer when more is bought (docs/adr/0022). Nothing younger
// than oldest is looked at; where that leaves one release, which does by itself, there is nothing to combine it with.
func (ch *Optimizer) combined(q *goal, oldest int) []alternative {
	views := ch.views(q.Table)
	if views == nil || q.Marginals != nil || derived.IsLaddered(q.Table) || q.Table.MaxGroups > 0 ||
		q.Cells*len(q.Counts) > reuse.MaxMixedRows {
		return nil
	}
	find := func() (list []reuse.CombinedReading) {
		rows := ch.mixings(views, q, oldest)
		t := &reuse.Combining{Views: views, Confidence: ch.Context.Settings.Confidence}
		for _, of := range reuse.EpochsOf(rows) {
			if m := t.Within(q.Query, rows, of); m != nil {
				list = append(list, *m)
			}
		}
		return list
	}
	var found []reuse.CombinedReading
	extent := views.Extent()
	if extent.Read == 0 || extent.Eldest == oldest {
		return nil
	}
	if extent.Ages {
		found = find()
	} else {
		found = views.Remembered(reuse.MixKey{Of: q.own.Digest, At: fmt.Sprint(q.share, ch.Context.Settings.Confidence, ch.Context.Settings.MaxError, oldest)}, find)
	}
	list := make([]alternative, len(found))
	for i, m := range found {
		w := &Path{Reading: m.Reading, counts: m.Counts, Others: m.Measures, Measure: m.Measures[0]}
		list[i] = alternative{path: w, variance: m.Variance, holding: m.Holding, order: m.Order, preferred: !slices.ContainsFunc(m.Measures, func(m *plans.Measure) bool { return !ch.preferred(m) }), enough: m.Enough || ch.asExact(q, w, m.Variance)}
	}
	return list
}

// mixings are the rows of a question; nil where one of them is nothing that releases add up to.
func (ch *Optimizer) mixings(views *reuse.Views, q *goal, oldest int) []reuse.Mixing {
	var rows []reuse.Mixing
	for c := range q.Counts {
		adds, ok := q.AddsUp(c)
		if !ok {
			return nil
		}
		limit := ch.variance(q.fresh.Only(c))
		if ch.Context.Settings.MaxError != 0 {
			limit = ch.varianceWithin(ch.bound(q.Query, c))
		}
		for cell := range q.Cells {
			wanted, ok := q.ConditionOf(c, cell)
			if _, never := wanted.(predicate.Never); !ok || never {
				return nil
			}
			rows = append(rows, reuse.Mixing{Counter: c, Cell: cell, Wanted: wanted, Adds: adds, Limit: limit, Near: nil})
			last := &rows[len(rows)-1]
			last.Near = slices.DeleteFunc(views.Near(wanted), func(s *reuse.View) bool { return s.Order > oldest || ch.isStale(s.Holding, s.Declared) })
			if len(last.Near) == 0 {
				return nil
			}
		}
	}
	return rows
}

// widestMixed is the largest half-width over the values of a counter that are read from several releases.
func (ch *Weigher) widestMixed(n *need, m *reuse.Combination, c int) int64 {
	lists := slices.Clone(n.lists[c])
	if n.each[c] {
		for cell := range n.Cells {
			lists = append(lists, []int{cell})
		}
	}
	rows := make([][]mechanisms.Weighted, len(lists))
	for i, cells := range lists {
		var row []plans.Term
		for _, cell := range cells {
			row = append(row, m.Terms[c][cell]...)
		}
		rows[i] = m.Weighted(row)
	}
	return mechanisms.WidestMixed(rows, ch.Context.Settings.Confidence).HalfWidth
}

// varianceWithin is the variance that a value may have to be within dp.max_error: of the noises that there are, at the
// confidence, the one whose sums reach furthest for their deviation is the discrete Laplace's alone.
func (ch *Weigher) varianceWithin(bound int64) float64 {
	reach := max(-math.Log(1-ch.Context.Settings.Confidence.Float())/math.Sqrt2, math.Sqrt2*math.Erfinv(ch.Context.Settings.Confidence.Float()))
	return math.Pow((float64(bound)+.5)/reach, 2)
}

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
