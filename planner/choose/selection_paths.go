package choose

import (
	"math"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// chosenFrom are the sources of choices: what she has paid for, a declared release that is worth its price, a release of her
// own where she asked for that or where it is expected to be nearer, then the choice itself. All that is looked at is public.
var chosenFrom = []source{
	{"asked before", func(ch *Optimizer, q *goal) []alternative {
		return only(ch.sameChoice(q.Query.ChoiceMeasure(), q.choosing))
	}},
	{"containment", func(ch *Optimizer, q *goal) []alternative { return only(ch.readChoice(q.Query, q.choosing, q.share)) }},
	{"counts for a choice", func(ch *Optimizer, q *goal) []alternative {
		if q.Chosen.Kind != mechanisms.Quantiles {
			return nil
		}
		return only(ch.boughtForChoice(q.Query, q.choosing, q.share))
	}},
	{"selection", func(_ *Optimizer, q *goal) []alternative {
		w := &Path{Measure: q.Query.ChoiceMeasure()}
		w.Measure.Spec, w.Measure.Cost = q.choosing, q.share
		w.Measure.Why = "no release that you have paid for tells it, and it is expected to be nearer than counts at this price"
		return only(w)
	}},
}

// only is the candidate of a source that has compared its own.
func only(w *Path) []alternative {
	if w == nil {
		return nil
	}
	return []alternative{{way: w}}
}

// oneChoice picks the way of a choice.
func (ch *Optimizer) oneChoice(s *linear.Query, share privacy.Cost) (*Path, *refuse.Refusal) {
	q, refusal := ch.goalOf(s, share)
	if refusal != nil {
		return nil, refusal
	}
	for _, from := range chosenFrom {
		if c := least(from.find(ch, q)); c != nil {
			return c.way, nil
		}
	}
	return nil, linear.NoMechanism.At(-1, "nothing answers this")
}

// sameChoice finds the same choice among what she has paid for, at least as exact as asked now.
func (ch *Optimizer) sameChoice(own *plans.Measure, fresh mechanisms.Spec) *Path {
	if ch.Context.Holdings == nil {
		return nil
	}
	for _, h := range ch.Context.Holdings.Held(own.Digest) {
		if held, ok := h.Spec.Kind.(*mechanisms.Choice); ok && fresh.Kind.(*mechanisms.Choice).Cost.Fits(held.Cost) {
			w := &Path{Measure: own}
			w.hold(h, "the same question, asked before at least as exactly")
			return w
		}
	}
	return nil
}

// readChoice finds the counts by finer cells that she has paid for and that tell a choice nearest. Counts of her own, bought
// for another question, must be expected to be at least as near as the choice itself.
func (ch *Optimizer) readChoice(s *linear.Query, fresh mechanisms.Spec, share privacy.Cost) *Path {
	var best *Path
	var from reuse.HeldOn
	least := math.Inf(1)
	for _, h := range ch.current(ch.finer(s)) {
		reading := reuse.Cover(s, h.Measure.Query)
		if reading == nil {
			continue
		}
		variance := ch.prefixVariance(s, h.Measure.Seen(h.Holding.Spec), reading)
		if variance >= least || !h.Measure.IsRelease() && !ch.nearer(s, fresh, variance) {
			continue
		}
		best, from, least = &Path{Reading: reading, Measure: h.Measure.Measure(h.Measure.Kind, h.Measure.Name)}, h.HeldOn, variance
		best.Measure.Shared, best.Measure.Declared = h.Measure.Shared, h.Declared
	}
	if best == nil {
		return nil
	}
	best.holdOn(from, "you have paid for "+best.Measure.Kind+" "+best.Measure.Name+", from whose sums it is read")
	return ch.renewed(best, from.Holding, share)
}

// boughtForChoice buys counts that quantiles are read from: a declared release, one of her own with dp.release, or one that
// is expected to be nearer than the choice at the same price.
func (ch *Optimizer) boughtForChoice(s *linear.Query, fresh mechanisms.Spec, share privacy.Cost) *Path {
	if w := ch.declaredForChoice(s, fresh, share); w != nil {
		return w
	}
	if w := ch.ownRange(s, share, true); w != nil && ch.Context.Settings.Release {
		return w
	}
	if w := ch.ownRange(s, share, false); w != nil {
		return ch.ownPrefixes(s, w, fresh, share)
	}
	spec, err := mechanisms.Plain(1, s.Cells, s.Contribution(), share)
	if err != nil {
		return nil
	}
	w := &Path{Measure: s.Measure("histogram", s.Table.Name+s.About()), Reading: reuse.OwnReading(s)}
	if !ch.nearer(s, fresh, ch.prefixVariance(s, spec, w.Reading)) {
		return nil
	}
	w.Measure.Spec, w.Measure.Cost = spec, share
	w.Measure.Why = "so few values are expected to be told nearer by their counts"
	return w
}

// ownPrefixes turns a range release of the argument into one that is best for prefixes, where quantiles read from it are
// expected to be nearer than the choice. It is no release by name: she has not asked for one.
func (ch *Optimizer) ownPrefixes(s *linear.Query, w *Path, fresh mechanisms.Spec, share privacy.Cost) *Path {
	spec, err := mechanisms.RangesFor(mechanisms.AllPrefixes, w.Measure.Spec.Cells, w.Measure.Contribution(), share)
	if err != nil || !ch.nearer(s, fresh, ch.prefixVariance(s, spec, w.Reading)) {
		return nil
	}
	w.Measure.Spec, w.Measure.Kind = spec, "prefixes"
	w.Measure.Why = "the quantiles of this question are expected to be nearer when read together from sums of the first cells"
	return w
}

// declaredForChoice finds a release of the policy that she may buy for quantiles: a range over their argument, or a
// histogram that is expected to be nearer than the choice.
func (ch *Optimizer) declaredForChoice(s *linear.Query, fresh mechanisms.Spec, share privacy.Cost) *Path {
	columns, ok := s.Columns()
	if !ok {
		return nil
	}
	var best *Path
	least := math.Inf(1)
	for _, r := range s.Table.Releases {
		if !reuse.ContainsAll(r.Columns, columns) {
			continue
		}
		held, spec := ch.ofRelease(r)
		if held == nil {
			continue
		}
		reading := reuse.Cover(s, held)
		if reading == nil {
			continue
		}
		variance := ch.prefixVariance(s, held.Seen(spec), reading)
		if r.Kind == policy.HistogramRelease && !ch.nearer(s, fresh, variance) {
			continue
		}
		if !r.Cost.Fits(share) {
			ch.Hints.Add(hint(r))
			continue
		}
		if variance >= least {
			continue
		}
		best, least = &Path{Reading: reading, Measure: held.Measure(r.Kind.String(), r.Name)}, variance
		best.Measure.Shared, best.Measure.Declared, best.Measure.Cost = true, r, r.Cost
		held.Sold(best.Measure, spec)
		best.Measure.Why = offered(r)
	}
	return best
}

// nearer tells whether reading from counts, whose sums have such a variance, is expected to be nearer than the choice.
func (ch *Optimizer) nearer(s *linear.Query, fresh mechanisms.Spec, variance float64) bool {
	if s.Chosen.Kind != mechanisms.Quantiles {
		cells := 1 + len(s.Chosen.Groups[0])
		return 2*math.Sqrt(variance*math.Log(float64(cells))) < fresh.RankError(ch.Context.Settings.Confidence)
	}
	return fresh.PreferPrefixes(s.GroupRows(), variance)
}

// Bounds of the work of guessing a variance: some groups, some places in each.
const (
	guessedGroups = 4
	guessedPlaces = 16
)

// prefixVariance is the variance that the sums of a group's first cells have on average; of other choices than quantiles
// that of single cells.
func (ch *Optimizer) prefixVariance(s *linear.Query, spec mechanisms.Spec, r *reuse.Reading) float64 {
	errors := spec.Only(r.Counters[0]).Errors(ch.Context.Settings.Confidence)
	sum, n := 0.0, 0
	for g := 0; g < len(s.Chosen.Groups); g += 1 + len(s.Chosen.Groups)/guessedGroups {
		cells := s.Chosen.Groups[g]
		var spans []mechanisms.Span
		for i, cell := range cells {
			if s.Chosen.Kind != mechanisms.Quantiles {
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
