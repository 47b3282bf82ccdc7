package planner

import (
	"math"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// chosenFrom are the sources of choices: what she has paid for, a declared release that is worth its price, a release of her
// own where she asked for that or where it is expected to be nearer, then the choice itself. All that is looked at is public.
var chosenFrom = []source{
	func(ch *chooser, q *asking) []candidate {
		return only(ch.sameChoice(q.solved.choiceMeasure(), q.choosing))
	},
	func(ch *chooser, q *asking) []candidate { return only(ch.readChoice(q.solved, q.choosing, q.share)) },
	func(ch *chooser, q *asking) []candidate {
		if q.chosen.kind != mechanisms.Quantiles {
			return nil
		}
		return only(ch.boughtForChoice(q.solved, q.choosing, q.share))
	},
	func(_ *chooser, q *asking) []candidate {
		w := &way{measure: q.solved.choiceMeasure()}
		w.measure.Spec, w.measure.Cost = q.choosing, q.share
		w.measure.Why = "no release that you have paid for tells it, and it is expected to be nearer than counts at this price"
		return only(w)
	},
}

// only is the candidate of a source that has compared its own.
func only(w *way) []candidate {
	if w == nil {
		return nil
	}
	return []candidate{{way: w}}
}

// oneChoice picks the way of a choice.
func (ch *chooser) oneChoice(s *solved, share privacy.Cost) (*way, *refuse.Refusal) {
	q, refusal := ch.asking(s, share)
	if refusal != nil {
		return nil, refusal
	}
	for _, from := range chosenFrom {
		if c := least(from(ch, q)); c != nil {
			return c.way, nil
		}
	}
	return nil, noMechanism.At(-1, "nothing answers this")
}

// sameChoice finds the same choice among what she has paid for, at least as exact as asked now.
func (ch *chooser) sameChoice(own *Measure, fresh mechanisms.Spec) *way {
	if ch.c.Holdings == nil {
		return nil
	}
	for _, h := range ch.c.Holdings.Held(own.Digest) {
		if held, ok := h.Spec.Kind.(*mechanisms.Choice); ok && fresh.Kind.(*mechanisms.Choice).Cost.Fits(held.Cost) {
			w := &way{measure: own}
			w.hold(h, "the same question, asked before at least as exactly")
			return w
		}
	}
	return nil
}

// readChoice finds the counts by finer cells that she has paid for and that tell a choice nearest. Counts of her own, bought
// for another question, must be expected to be at least as near as the choice itself.
func (ch *chooser) readChoice(s *solved, fresh mechanisms.Spec, share privacy.Cost) *way {
	var best *way
	var from heldOn
	least := math.Inf(1)
	for _, h := range ch.current(ch.finer(s)) {
		reading := cover(s, h.measure.solved)
		if reading == nil {
			continue
		}
		variance := ch.prefixVariance(s, h.measure.seen(h.holding.Spec), reading)
		if variance >= least || !h.measure.isRelease() && !ch.nearer(s, fresh, variance) {
			continue
		}
		best, from, least = &way{reading: reading, measure: h.measure.measure(h.measure.kind, h.measure.name)}, h.heldOn, variance
		best.measure.Shared, best.measure.Declared = h.measure.shared, h.declared
	}
	if best == nil {
		return nil
	}
	best.holdOn(from, "you have paid for "+best.measure.Kind+" "+best.measure.Name+", from whose sums it is read")
	return ch.renewed(best, from.holding, share)
}

// boughtForChoice buys counts that quantiles are read from: a declared release, one of her own with dp.release, or one that
// is expected to be nearer than the choice at the same price.
func (ch *chooser) boughtForChoice(s *solved, fresh mechanisms.Spec, share privacy.Cost) *way {
	if w := ch.declaredForChoice(s, fresh, share); w != nil {
		return w
	}
	if w := ch.ownRange(s, share, true); w != nil && ch.c.Settings.Release {
		return w
	}
	if w := ch.ownRange(s, share, false); w != nil {
		return ch.ownPrefixes(s, w, fresh, share)
	}
	spec, err := mechanisms.Plain(1, s.cells, s.contribution(), share)
	if err != nil {
		return nil
	}
	w := &way{measure: s.measure("histogram", s.table.Name+s.about()), reading: ownReading(s)}
	if !ch.nearer(s, fresh, ch.prefixVariance(s, spec, w.reading)) {
		return nil
	}
	w.measure.Spec, w.measure.Cost = spec, share
	w.measure.Why = "so few values are expected to be told nearer by their counts"
	return w
}

// ownPrefixes turns a range release of the argument into one that is best for prefixes, where quantiles read from it are
// expected to be nearer than the choice. It is no release by name: she has not asked for one.
func (ch *chooser) ownPrefixes(s *solved, w *way, fresh mechanisms.Spec, share privacy.Cost) *way {
	spec, err := mechanisms.RangesFor(mechanisms.AllPrefixes, w.measure.Spec.Cells, w.measure.Contribution(), share)
	if err != nil || !ch.nearer(s, fresh, ch.prefixVariance(s, spec, w.reading)) {
		return nil
	}
	w.measure.Spec, w.measure.Kind = spec, "prefixes"
	w.measure.Why = "the quantiles of this question are expected to be nearer when read together from sums of the first cells"
	return w
}

// declaredForChoice finds a release of the policy that she may buy for quantiles: a range over their argument, or a
// histogram that is expected to be nearer than the choice.
func (ch *chooser) declaredForChoice(s *solved, fresh mechanisms.Spec, share privacy.Cost) *way {
	columns, ok := s.columns()
	if !ok {
		return nil
	}
	var best *way
	least := math.Inf(1)
	for _, r := range s.table.Releases {
		if !containsAll(r.Columns, columns) {
			continue
		}
		held, spec := ch.ofRelease(r)
		if held == nil {
			continue
		}
		reading := cover(s, held)
		if reading == nil {
			continue
		}
		variance := ch.prefixVariance(s, held.seen(spec), reading)
		if r.Kind == policy.HistogramRelease && !ch.nearer(s, fresh, variance) {
			continue
		}
		if !r.Cost.Fits(share) {
			ch.hints.add(hint(r))
			continue
		}
		if variance >= least {
			continue
		}
		best, least = &way{reading: reading, measure: held.measure(r.Kind.String(), r.Name)}, variance
		best.measure.Shared, best.measure.Declared, best.measure.Cost = true, r, r.Cost
		held.sold(best.measure, spec)
		best.measure.Why = offered(r)
	}
	return best
}

// nearer tells whether reading from counts, whose sums have such a variance, is expected to be nearer than the choice.
func (ch *chooser) nearer(s *solved, fresh mechanisms.Spec, variance float64) bool {
	if s.chosen.kind != mechanisms.Quantiles {
		cells := 1 + len(s.chosen.groups[0])
		return 2*math.Sqrt(variance*math.Log(float64(cells))) < fresh.RankError(ch.c.Settings.Confidence)
	}
	return fresh.PreferPrefixes(s.groupRows(), variance)
}

// groupRows is the public guess of the rows in one group.
func (s *solved) groupRows() int64 { return s.table.ExpectedRows / int64(len(s.chosen.groups)) }

// Bounds of the work of guessing a variance: some groups, some places in each.
const (
	guessedGroups = 4
	guessedPlaces = 16
)

// prefixVariance is the variance that the sums of a group's first cells have on average; of other choices than quantiles
// that of single cells.
func (ch *chooser) prefixVariance(s *solved, spec mechanisms.Spec, r *reading) float64 {
	errors := spec.Only(r.counters[0]).Errors(ch.c.Settings.Confidence)
	sum, n := 0.0, 0
	for g := 0; g < len(s.chosen.groups); g += 1 + len(s.chosen.groups)/guessedGroups {
		cells := s.chosen.groups[g]
		var spans []mechanisms.Span
		for i, cell := range cells {
			if s.chosen.kind != mechanisms.Quantiles {
				spans = nil
			}
			spans = append(spans, r.spans[0][cell]...)
			if i%(1+len(cells)/guessedPlaces) == 0 {
				sum, n = sum+errors.Variance(spans), n+1
			}
		}
	}
	return sum / float64(max(n, 1))
}
