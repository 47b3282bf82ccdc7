package planner

import (
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// way is one answer to a question: the measure that it is read from, and how.
type way struct {
	measure *Measure
	reading *reading
	alarm   *AlarmQuestion // what a run is asked
	others  []*Measure     // all that is read, where that is more than one; measure is the first
	contest *contest       // set: candidates are chosen
	counts  *solved        // what the measure counts, where that is more than the question
	share   privacy.Cost   // what it might have cost
}

// chooser finds the way of each question. What it looks at is public: the policy, the session's settings, what the analyst
// has paid for, and expected errors.
type chooser struct {
	c        Context
	now      func() time.Time // the plan's time; asking for it is noted
	stocks   map[*policy.Table]*Stock
	open     *opening
	hints    notes
	dates    notes // of the stale releases that answer
	renewals int   // of the last attempt: stale releases bought anew
}

// choose picks the ways of all sheets for at most the session's epsilon: k sheets for which something is bought get an
// equal share each, and k is the smallest number for which that works out.
func (ch *chooser) choose(sheets []*sheet) ([][]*way, *refuse.Refusal) {
	if ch.c.Settings.MaxError > 0 {
		return ch.accurate(sheets)
	}
	most := 0
	for _, sh := range sheets {
		if slices.ContainsFunc(sh.asks, (*ask).wanted) {
			most++
		}
	}
	most -= ch.lean(sheets, most)
	// What was bought for this statement before is found at the share that it was bought for.
	before, bought, refusal := ch.attempt(sheets, max(most, 1))
	free, hints, dates := refusal == nil && bought == 0, ch.hints, ch.dates
	if free && len(ch.dates) == 0 {
		return before, nil
	}
	for k := 1; ; k++ {
		ways, bought, refusal := ch.attempt(sheets, k)
		if refusal == nil && bought > k && k < most {
			continue
		}
		if free && (refusal != nil || ch.renewals == 0) {
			ch.hints, ch.dates = hints, dates
			return before, nil
		}
		return ways, refusal
	}
}

// attempt picks the ways when each sheet may cost a k-th of the session's epsilon, of which each of its asks has a part.
func (ch *chooser) attempt(sheets []*sheet, k int) (ways [][]*way, bought int, refusal *refuse.Refusal) {
	share := ch.share(k)
	ch.hints, ch.dates, ch.renewals = nil, nil, 0
	ways = make([][]*way, len(sheets))
	buying := map[Digest]*Measure{}
	var leaning []int
	for i, sh := range sheets {
		ways[i] = make([]*way, len(sh.asks))
		parts, buys := (&sheeter{ch: ch}).shares(sh.asks), false
		for j, a := range sh.asks {
			if !a.wanted() {
				continue
			}
			own := partOfCost(share, parts[j])
			if own.IsZero() {
				return nil, 0, epsilonSmall.At(-1, ch.c.Settings.Epsilon.String(), k*len(sh.asks))
			}
			w, refusal := ch.one(a.solved, own)
			if refusal != nil {
				return nil, 0, refusal
			}
			w = ch.beside(a.solved, w, ways)
			if w.share = own; sh.base != nil && !w.measure.Held {
				leaning = append(leaning, i)
				continue
			}
			if m := w.measure; !m.Held {
				if same := buying[m.Digest]; same != nil && same.Shared == m.Shared && same.Kind == m.Kind {
					if same.Cost.Fits(m.Cost) {
						same.Spec, same.Cost, same.Ladder = m.Spec, m.Cost, m.Ladder
					}
					w.measure = same
				} else {
					buying[m.Digest] = m
					buys = true
				}
			}
			ways[i][j] = w
		}
		if buys {
			bought++
		}
	}
	for _, i := range leaning {
		w, refusal := ch.leaning(sheets, ways, sheets[i], buying, share)
		if refusal != nil {
			return nil, 0, refusal
		}
		if ways[i][0] = w; !w.measure.Held && buying[w.measure.Digest] == nil {
			buying[w.measure.Digest] = w.measure
			bought++
		}
	}
	return ways, bought, nil
}

// share is a k-th of what a statement may cost, rounded down.
func (ch *chooser) share(k int) privacy.Cost {
	if ch.open != nil && len(ch.open.wanted) > 0 { // the other half is for the keys
		k *= 2
	}
	return ch.c.share(k)
}

// variance is the expected squared error of a count of one cell.
func (ch *chooser) variance(spec mechanisms.Spec) float64 {
	return spec.Error(predicate.One(0), ch.c.Settings.Confidence).Variance
}

// each is the expected squared error of a cell of a question's own measure, or of the worst row of its marginals.
func (ch *chooser) each(s *solved, spec mechanisms.Spec) float64 {
	if s.marginals == nil {
		return ch.variance(spec)
	}
	_, worst := worstRow(spec, s.marginals.rows, ch.c.Settings.Confidence)
	return worst
}
