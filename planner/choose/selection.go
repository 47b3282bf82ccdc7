package choose

import (
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// A choice, such as percentile_cont(0.5) WITHIN GROUP (ORDER BY age), is the same one asked before, is read from counts
// by finer cells that are held, from a declared release, from counts bought for it where these are expected to tell it
// nearer, or is made by the exponential mechanism. All that is looked at is public.

// chosenBefore is the same choice, asked before.
func (ch *Weigher) chosenBefore(q *goal) []alternative { return ch.sameChoice(q.own, q.fresh, nil) }

// chosen is the choice itself.
func (ch *Weigher) chosen(q *goal) []alternative {
	w := &Path{Measure: q.own}
	w.Measure.Spec, w.Measure.Cost = q.fresh, q.share
	w.Measure.Why = "no release that you have paid for tells it, and it is expected to be nearer than counts at this price"
	return []alternative{{path: w}}
}

// sameChoice finds the same choice among what she has paid for, at least as exact as asked now.
func (ch *Weigher) sameChoice(own *plans.Measure, fresh mechanisms.Spec, of *linear.TopK) []alternative {
	if ch.Context.Holdings == nil {
		return nil
	}
	for _, h := range ch.Context.Holdings.Held(own.Digest) {
		if held, ok := h.Spec.Kind.(*mechanisms.Choice); ok && fresh.Kind.(*mechanisms.Choice).Cost.Fits(held.Cost) {
			same := *own
			w := &Path{Measure: &same, TopK: of}
			w.hold(h, "the same question, asked before at least as exactly")
			return []alternative{{path: w, holding: h}}
		}
	}
	return nil
}

// chosenFromHeld finds the counts by finer cells that she has paid for and that tell a choice nearest. Counts of her
// own, bought for another question, must be expected to be at least as near as the choice itself.
func (ch *Optimizer) chosenFromHeld(q *goal) []alternative {
	s := q.Query
	var best *Path
	var from reuse.HeldOn
	least := math.Inf(1)
	for _, h := range ch.current(ch.finer(s)) {
		reading := reuse.Cover(s, h.Measure.Query)
		if reading == nil {
			continue
		}
		variance := ch.prefixVariance(s, h.Measure.Seen(h.Holding.Spec), reading)
		m := h.Measure.Held()
		m.Declared = h.Declared
		m.Spec = h.Measure.Seen(h.Holding.Spec)
		if variance >= least || !ch.preferred(m) && !ch.asNear(q, &Path{Measure: m, Reading: reading}, variance) {
			continue
		}
		best, from, least = &Path{Reading: reading, Measure: h.Measure.Measure(h.Measure.Kind, h.Measure.Name)}, h.HeldOn, variance
		best.Measure.Shared, best.Measure.Declared = h.Measure.Shared, h.Declared
	}
	if best == nil {
		return nil
	}
	best.holdOn(from, "you have paid for "+best.Measure.Kind+" "+best.Measure.Name+", from whose sums it is read")
	return []alternative{{path: best, variance: least, holding: from.Holding}}
}

// chosenFromCounts buys counts that quantiles are read from: a release of her own with dp.release, or one that is
// expected to be nearer than the choice at the same price.
func (ch *Optimizer) chosenFromCounts(q *goal) []alternative {
	s := q.Query
	if s.Chosen().Kind != mechanisms.Quantiles {
		return nil
	}
	if w := ch.ownRange(s, q.share, true); w != nil && ch.Context.Settings.Release {
		return []alternative{{path: w}}
	}
	if w := ch.ownRange(s, q.share, false); w != nil {
		return ch.ownPrefixes(s, w, q.fresh, q.share)
	}
	spec, err := mechanisms.Plain(1, s.Cells, s.Contribution(), q.share)
	if err != nil {
		return nil
	}
	w := &Path{Measure: s.Measure("histogram", s.Table.Name+s.About()), Reading: reuse.OwnReading(s)}
	if !ch.nearer(s, q.fresh, ch.prefixVariance(s, spec, w.Reading)) {
		return nil
	}
	w.Measure.Spec, w.Measure.Cost = spec, q.share
	w.Measure.Why = "so few values are expected to be told nearer by their counts"
	return []alternative{{path: w}}
}

// ownPrefixes turns a range release of the argument into one that is best for prefixes, where quantiles read from it
// are expected to be nearer than the choice. It is no release by name: she has not asked for one.
func (ch *Weigher) ownPrefixes(s *linear.Query, w *Path, fresh mechanisms.Spec, share privacy.Cost) []alternative {
	spec, err := mechanisms.RangesFor(mechanisms.AllPrefixes, w.Measure.Spec.Cells, w.Measure.Contribution(), share)
	if err != nil || !ch.nearer(s, fresh, ch.prefixVariance(s, spec, w.Reading)) {
		return nil
	}
	w.Measure.Spec, w.Measure.Kind = spec, "prefixes"
	w.Measure.Why = "the quantiles of this question are expected to be nearer when read together from sums of the first cells"
	return []alternative{{path: w}}
}

// chosenFromDeclared finds the releases of the policy that quantiles may be read from: ranges over their argument, and
// histograms that are expected to be nearer than the choice.
func (ch *Optimizer) chosenFromDeclared(q *goal) (list []alternative) {
	columns, ok := q.Columns()
	if !ok || q.Chosen().Kind != mechanisms.Quantiles {
		return nil
	}
	for _, r := range q.Table.Releases {
		if !reuse.ContainsAll(r.Columns, columns) {
			continue
		}
		measured, spec := ch.ofRelease(r)
		if measured == nil {
			continue
		}
		reading := reuse.Cover(q.Query, measured)
		if reading == nil {
			continue
		}
		c := alternative{path: declaredPath(r, measured, spec, reading), variance: ch.prefixVariance(q.Query, measured.Seen(spec), reading)}
		switch {
		case !ch.preferred(c.path.Measure) && !ch.asNear(q, c.path, c.variance):
			c.not = "further off than choosing at the price of this question"
		case !r.Cost.Fits(q.share):
			c.not = "dearer than dp.epsilon lets this question be"
		}
		list = append(list, c)
	}
	return list
}

// asNear reports whether a choice that is read from counts is expected to be as near as the choice itself, or is a
// quantile within a smaller error of rank.
func (ch *Weigher) asNear(q *goal, w *Path, variance float64) bool {
	confidence := ch.Context.Settings.Confidence
	return ch.nearer(q.Query, q.fresh, variance) || q.Chosen().Kind == mechanisms.Quantiles && rankOf(q.Query, w, confidence) <= q.fresh.RankError(confidence)
}

// nearer reports whether reading from counts, whose sums have such a variance, is expected to be nearer than the
// choice.
func (ch *Weigher) nearer(s *linear.Query, fresh mechanisms.Spec, variance float64) bool {
	if s.Chosen().Kind != mechanisms.Quantiles {
		cells := 1 + len(s.Chosen().Groups[0])
		return 2*math.Sqrt(variance*math.Log(float64(cells))) < fresh.RankError(ch.Context.Settings.Confidence)
	}
	return fresh.PreferPrefixes(s.GroupRows(), variance)
}

// Bounds of the work of guessing a variance: some groups, some places in each.
const (
	guessedGroups = 4
	guessedPlaces = 16
)

// prefixVariance is the variance that the sums of a group's first cells have on average; of other choices than
// quantiles that of single cells.
func (ch *Weigher) prefixVariance(s *linear.Query, spec mechanisms.Spec, r *reuse.Reading) float64 {
	errors := spec.Only(r.Counters[0]).Errors(ch.Context.Settings.Confidence)
	sum, n := 0.0, 0
	for g := 0; g < len(s.Chosen().Groups); g += 1 + len(s.Chosen().Groups)/guessedGroups {
		cells := s.Chosen().Groups[g]
		var spans []mechanisms.Span
		for i, cell := range cells {
			if s.Chosen().Kind != mechanisms.Quantiles {
				spans = nil
			}
			spans = append(spans, r.Spans[0][cell]...)
			if i%(1+len(cells)/guessedPlaces) == 0 {
				sum, n = sum+errors.Variance(spans), n+1
			}
		}
	}
	return sum / float64(max(n, 1))
}

// choices makes a leaf plan for each choice of each grouping set: what is asked are the argument's cells in each group.
func (v *LeafPlanner) choices(leaves []*LeafPlan) ([]*LeafPlan, *refuse.Refusal) {
	var out []*LeafPlan
	for i, lp := range leaves {
		for at, keys := range lp.Sets {
			for n, from := range lp.Question.Choices {
				own := lp.On(keys, nil, nil)
				own.Where = append(slices.Clone(own.Where), from.Where...)
				own.Keys = append(own.Keys, from.Arg)
				own.CounterFor(nil)
				s, refusal := linear.Solve(own, v.Binder.Env, v.Notes)
				if refusal != nil && refusal.ID == linear.TooManyCells.ID && len(own.Keys) == 1 {
					refusal = refusal.Hinting("Order by coarser values: floor(x / 100) for numbers, date_trunc('hour', t) for times.")
				}
				if refusal != nil {
					return nil, refusal
				}
				s.Asked = &linear.Chosen{Leaf: i, Set: at, Of: n, Kind: from.Kind, Shares: ascending(from.Shares)}
				a := &Request{Query: s, set: keys, Projections: []Projection{{0, 0, -1}}}
				if a.Wanted() {
					s.Group()
				}
				s.NoteBounds(v.Notes)
				out = append(out, &LeafPlan{Question: own, Requests: []*Request{a}})
			}
		}
	}
	return out, nil
}

// countPresence counts the rows among which something is chosen, where no counter does: what is chosen among no rows is
// any value. It reports whether nothing else is counted. Groups of found keys have rows, as has a whole table a column
// of which is not NULL.
func countPresence(q *linear.Question) bool {
	found := func(e *semantics.Expr) bool { return semantics.Closed(q.Table, e) != nil }
	if q.Turned != nil || slices.ContainsFunc(q.Keys, found) {
		return false
	}
	before := len(q.Counters)
	for _, set := range q.Choices {
		counts := func(c linear.Counter) bool { return c.CountsRowsOf(set.Where) }
		there := semantics.NotNull(set.Arg).Canon
		excludes := func(e *semantics.Expr) bool { return e.Canon != there }
		some := len(q.Keys)+len(q.Where) > 0 || slices.ContainsFunc(set.Where, excludes)
		if some && !slices.ContainsFunc(q.Counters, counts) {
			q.CounterFor(set.Where)
		}
	}
	counts := func(c linear.Counter) bool { return c.Choice == nil }
	return len(q.Counters) > before && !slices.ContainsFunc(q.Counters[:before], counts)
}

// ascending sorts shares.
func ascending(shares []mechanisms.Share) []mechanisms.Share {
	out := slices.Clone(shares)
	slices.SortFunc(out, func(a, b mechanisms.Share) int { return int(a.Num*b.Den - b.Num*a.Den) })
	return out
}

// ChosenColumn is one column of a choice, for the rows of the set that shows it.
func ChosenColumn(s *linear.Query, lp *LeafPlan, c *linear.Choice, w *Path, confidence mechanisms.Confidence) *plans.SelectedValue {
	frame, keys := lp.Frames[s.Chosen().Set], semantics.IdentityOf(len(lp.Sets[s.Chosen().Set]))
	order := frame.ShownRows()
	out := &plans.SelectedValue{Kind: s.Chosen().Kind, Between: c.Between, At: make([]int, len(order)), Values: make([][]policy.Value, len(order))}
	each, share := 1, 0
	if out.Kind == mechanisms.Quantiles {
		out.Share = lp.Question.Choices[c.Set].Shares[c.At]
		each, share = len(s.Chosen().Shares), slices.Index(s.Chosen().Shares, out.Share)
	}
	if w != nil && w.Reading != nil {
		out.Spans = make([][][]mechanisms.Span, len(order))
	}
	var shown [][]policy.Value
	if w != nil {
		out.Rows, out.Rank = s.GroupRows(), rankOf(s, w, confidence)
		shown = shownCandidates(s, c.Typ)
		if w.Reading != nil && out.Kind == mechanisms.Quantiles {
			out.Least = sumError(s.Chosen().Groups[0], w, confidence)
		}
	}
	for r, cell := range order {
		g, known := s.Chosen().ByKeys[frame.KeysText(cell, keys)]
		if out.At[r] = -1; w == nil || !known {
			continue
		}
		out.At[r], out.Values[r] = g*each+share, shown[g]
		if out.Spans == nil {
			continue
		}
		for _, own := range s.Chosen().Groups[g] {
			out.Spans[r] = append(out.Spans[r], w.Reading.Spans[0][own])
		}
	}
	return out
}

// shownCandidates are the values of each group's cells, in the type of their column.
func shownCandidates(s *linear.Query, typ policy.Type) [][]policy.Value {
	out := make([][]policy.Value, len(s.Chosen().Groups))
	from := s.Keys[len(s.Keys)-1].Type()
	for g, cells := range s.Chosen().Groups {
		for _, cell := range cells {
			out[g] = append(out[g], shownAs(typ, s.Chosen().Values[cell], from))
		}
	}
	return out
}

// shownAs is a value in the type of its column.
func shownAs(to policy.Type, v policy.Value, from policy.Type) policy.Value {
	if to == from || v == nil {
		return v
	}
	e, err := (scalar.Env{}).Cast(scalar.Constant(v, from), to, -1)
	if err != nil {
		return nil
	}
	if v, err = e.Eval(nil); err != nil {
		return nil
	}
	return v
}

// rankOf is how many rows a path is expected to be off at most: of counts, in the sum of half of the first group's
// cells.
func rankOf(s *linear.Query, w *Path, confidence mechanisms.Confidence) float64 {
	if w.Reading == nil {
		return w.Measure.Spec.RankError(confidence)
	}
	cells := s.Chosen().Groups[0]
	if s.Chosen().Kind == mechanisms.Quantiles {
		cells = cells[:(len(cells)+1)/2]
	} else {
		cells = cells[:1]
	}
	return float64(sumError(cells, w, confidence))
}

// sumError is the half-width of the sum of some cells of what is read.
func sumError(cells []int, w *Path, confidence mechanisms.Confidence) int64 {
	var spans []mechanisms.Span
	for _, cell := range cells {
		spans = append(spans, w.Reading.Spans[0][cell]...)
	}
	return w.Measure.Spec.Only(w.Reading.Counters[0]).Error(spans, confidence).HalfWidth
}
