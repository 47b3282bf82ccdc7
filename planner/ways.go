package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// way is one answer to a question: the measure that it is read from, and how.
type way struct {
	measure *Measure
	reading *reading
	contest *contest // set: candidates are chosen
}

// chooser finds the way of each question. What it looks at is public: the policy, the session's settings, what the analyst
// has paid for, and expected errors.
type chooser struct {
	c        Context
	now      func() time.Time // the plan's time; asking for it is noted
	held     map[*policy.Table][]heldOn
	open     *opening
	hints    notes
	dates    notes // of the stale releases that answer
	renewals int   // of the last attempt: stale releases bought anew
}

type heldOn struct {
	holding  Holding
	measure  *heldMeasure
	declared *policy.Release
}

// choose picks the ways of all sheets for at most the session's epsilon: k sheets for which something is bought get an
// equal share each, and k is the smallest number for which that works out.
func (ch *chooser) choose(sheets []*sheet) ([][]*way, *Refusal) {
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
func (ch *chooser) attempt(sheets []*sheet, k int) (ways [][]*way, bought int, refusal *Refusal) {
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
				return nil, 0, epsilonSmall.at(-1, ch.c.Settings.Epsilon.String(), k*len(sh.asks))
			}
			w, refusal := ch.one(a.solved, own)
			if refusal != nil {
				return nil, 0, refusal
			}
			if sh.base != nil && !w.measure.Held {
				leaning = append(leaning, i)
				continue
			}
			if m := w.measure; !m.Held {
				if same := buying[m.Digest]; same != nil && same.Shared == m.Shared && same.Kind == m.Kind {
					if same.Cost.Fits(m.Cost) {
						same.Spec, same.Cost = m.Spec, m.Cost
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
	e := ch.c.Settings.Epsilon
	if ch.open != nil && len(ch.open.wanted) > 0 { // the other half is for the keys
		k *= 2
	}
	if ch.c.Dataset.Accountant == privacy.ZCDP {
		return privacy.Cost{Rho: privacy.PicoRho(e.Rho().Pico() / int64(k))}
	}
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(e.Micro() / int64(k))}
}

// oneCounted picks the way of one question: what she has paid for, then a declared release that is worth its price, then a
// release of her own where she asked for that, then a fresh count.
func (ch *chooser) oneCounted(s *solved, share privacy.Cost) (*way, *Refusal) {
	own := s.measure(s.kind(), s.table.Name+s.about())
	fresh, err := s.fresh(share)
	if err != nil {
		return nil, noMechanism.at(-1, err.Error())
	}
	if w := ch.again(s, own, fresh, share); w != nil {
		return w, nil
	}
	if w := ch.reuse(s, fresh, share); w != nil {
		return w, nil
	}
	if w := ch.declared(s, share); w != nil {
		return w, nil
	}
	if ch.c.Settings.Release {
		if w := ch.ownRange(s, share); w != nil {
			return w, nil
		}
	}
	own.Spec, own.Cost, own.Why = fresh, share, "no release that you have paid for answers it"
	return &way{measure: own, reading: ownReading(s)}, nil
}

// kind is how a measure of the question's own cells is called.
func (s *solved) kind() string {
	if len(s.grain) > 0 {
		return "histogram"
	}
	return "count"
}

// variance is the expected squared error of a count of one cell.
func (ch *chooser) variance(spec mechanisms.Spec) float64 {
	return spec.Error(span(0), ch.c.Settings.Confidence).Variance
}

// about names the columns of a question.
func (s *solved) about() string {
	columns, _ := s.columns()
	if len(columns) == 0 {
		return ""
	}
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return ": " + strings.Join(names, ", ")
}

// again finds the same question among what she has paid for, at least as exact as asked now (privacy rule 3). A release
// of this epoch goes before one that has gone stale.
func (ch *chooser) again(s *solved, own *Measure, fresh mechanisms.Spec, share privacy.Cost) *way {
	if ch.c.Holdings == nil {
		return nil
	}
	var old *way
	var latest Holding
	for _, h := range ch.c.Holdings.Held(own.Digest) {
		if h.Spec.Cells != fresh.Cells || h.Spec.Counters != fresh.Counters {
			continue
		}
		w := &way{measure: own, reading: ownReading(s)}
		release := false
		if m := readDescribed(h, s.table); m != nil {
			w.measure = s.measure(m.kind, m.name)
			w.measure.Shared, release = m.shared, m.isRelease()
			w.measure.Declared = declaredAs(s.table, m.shared, m.name)
		}
		if !release && (s.summed() == nil && ch.worst(h.Spec, w.reading) > ch.variance(fresh) || s.summed() != nil && !ch.exactEnough(h.Spec, fresh)) {
			continue
		}
		w.hold(h, "the same question, asked before at least as exactly")
		if !ch.isStale(h, w.measure.Declared) {
			return w
		}
		if old == nil || h.At.After(latest.At) {
			old, latest = w, h
		}
	}
	if old == nil {
		return nil
	}
	return ch.renewed(old, latest, share)
}

func (w *way) hold(h Holding, why string) {
	w.measure.Spec, w.measure.Held, w.measure.HeldID, w.measure.Cost, w.measure.Why = h.Spec, true, h.ID, privacy.Cost{}, why
}

// reuse finds the most exact release of finer cells that she has paid for and that answers the question. A histogram of
// her own, bought for another question, must be at least as exact as a fresh count would be.
func (ch *chooser) reuse(s *solved, fresh mechanisms.Spec, share privacy.Cost) *way {
	type candidate struct {
		heldOn
		reading *reading
	}
	var found []candidate
	for _, h := range ch.current(ch.heldOn(s.table)) {
		if r := cover(s, h.measure.solved); r != nil {
			found = append(found, candidate{h, r})
		}
	}
	var best *candidate
	least := math.Inf(1)
	for i, c := range found {
		if len(found) == 1 && c.measure.isRelease() {
			best = &found[i]
			break
		}
		variance := ch.worst(c.holding.Spec, c.reading)
		if variance < least && (c.measure.isRelease() || variance <= ch.variance(fresh)) {
			best, least = &found[i], variance
		}
	}
	if best == nil {
		return nil
	}
	w := &way{reading: best.reading, measure: best.measure.measure(best.measure.kind, best.measure.name)}
	w.measure.Shared = best.measure.shared
	w.measure.Declared = best.declared
	w.hold(best.holding, "you have paid for "+w.measure.Kind+" "+w.measure.Name+", whose cells add up to it")
	return ch.renewed(w, best.holding, share)
}

// isRelease tells releases, which answer whatever they can for free, from the answer to one question.
func (m *heldMeasure) isRelease() bool { return m.shared || m.kind == "range" || m.kind == "keys" }

// heldOn reads the descriptions of what she holds on a table, once a statement.
func (ch *chooser) heldOn(t *policy.Table) []heldOn {
	if list, known := ch.held[t]; known || ch.c.Holdings == nil {
		return list
	}
	var list []heldOn
	for _, h := range ch.c.Holdings.HeldOn(t) {
		if m := readDescribed(h, t); m != nil {
			list = append(list, heldOn{h, m, declaredAs(t, m.shared, m.name)})
		}
	}
	list = append(list, ch.open.held(t)...)
	ch.held[t] = list
	return list
}

// declaredAs finds the policy's release that a measure holds.
func declaredAs(t *policy.Table, shared bool, name string) *policy.Release {
	for _, r := range t.Releases {
		if shared && r.Name == name {
			return r
		}
	}
	return nil
}

// declared finds a release of the policy that she may buy for this: a range over a column that the question ranges over,
// or a histogram that answers it no worse than counting it alone at that price would. Of several, the most exact.
func (ch *chooser) declared(s *solved, share privacy.Cost) *way {
	columns, ok := s.columns()
	if !ok || len(columns) == 0 {
		return nil
	}
	var best *way
	least := math.Inf(1)
	for _, r := range s.table.Releases {
		if !containsAll(r.Columns, columns) {
			continue
		}
		held := identity(s.table, r.Columns)
		reading := cover(s, held)
		if reading == nil {
			continue
		}
		spec, err := releaseSpec(r, held.cells)
		if err != nil {
			continue
		}
		if r.Kind == policy.RangeRelease && !r.Cost.Fits(share) {
			ch.hints.add(hint(r))
			continue
		}
		variance := ch.worst(spec, reading)
		if r.Kind == policy.HistogramRelease {
			alone, err := mechanisms.Plain(len(s.counts), s.cells, s.contribution(), r.Cost)
			if err != nil || variance > 1.001*ch.variance(alone) {
				continue
			}
			if !r.Cost.Fits(share) {
				ch.hints.add(hint(r))
				continue
			}
		}
		if variance >= least {
			continue
		}
		best, least = &way{reading: reading, measure: held.measure(r.Kind.String(), r.Name)}, variance
		best.measure.Shared, best.measure.Declared, best.measure.Spec, best.measure.Cost = true, r, spec, r.Cost
		best.measure.Why = "release " + r.Name + " is within dp.epsilon, and every such question is free after it"
	}
	if best != nil {
		ch.hints = nil
	}
	return best
}

func containsAll(list, wanted []*policy.Column) bool {
	for _, c := range wanted {
		if !slices.Contains(list, c) {
			return false
		}
	}
	return true
}

func hint(r *policy.Release) string {
	what := "count by " + columnNames(r.Columns)
	if r.Kind == policy.RangeRelease {
		what = "range over " + columnNames(r.Columns)
	}
	return fmt.Sprintf("release %s: ε %s makes every %s free; SET dp.epsilon = %s", r.Name, r.Epsilon, what, r.Epsilon)
}

// releaseSpec is how a declared release is measured.
func releaseSpec(r *policy.Release, cells int) (mechanisms.Spec, error) {
	if r.Kind == policy.RangeRelease {
		return mechanisms.Ranges(cells, r.Table.ContributionTo(cells), r.Cost)
	}
	return mechanisms.Plain(1, cells, r.Table.ContributionTo(cells), r.Cost)
}

// DeclaredMeasure is the measure of a release that the policy declares, as a session that buys it first would draw it.
func DeclaredMeasure(r *policy.Release) (*Measure, error) {
	s := identity(r.Table, r.Columns)
	spec, err := releaseSpec(r, s.cells)
	if err != nil {
		return nil, err
	}
	m := s.measure(r.Kind.String(), r.Name)
	m.Shared, m.Declared, m.Spec, m.Cost = true, r, spec, r.Cost
	return m, nil
}

// ownRange buys a range release over the only column that the question reads: SET dp.release = on.
func (ch *chooser) ownRange(s *solved, share privacy.Cost) *way {
	columns, ok := s.columns()
	if !ok || len(columns) != 1 || !columns[0].Domain.Ordered() {
		return nil
	}
	held := identity(s.table, columns)
	reading := cover(s, held)
	if reading == nil {
		return nil
	}
	spec, err := mechanisms.Ranges(held.cells, s.contributionTo(held.cells), share)
	if err != nil {
		return nil
	}
	w := &way{measure: held.measure("range", s.table.Name+"_"+columns[0].Name), reading: reading}
	w.measure.Spec, w.measure.Cost, w.measure.Why = spec, share, "dp.release is on: every range over "+columns[0].Name+" is free after it"
	return w
}
