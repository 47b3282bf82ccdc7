package planner

import (
	"fmt"
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

type heldOn struct {
	holding  Holding
	measure  *heldMeasure
	declared *policy.Release
}

// choose picks the ways of all sheets for at most the session's epsilon: k sheets for which something is bought get an
// equal share each, and k is the smallest number for which that works out.
func (ch *chooser) choose(sheets []*sheet) ([][]*way, *Refusal) {
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
	e := ch.c.Settings.Epsilon
	if ch.open != nil && len(ch.open.wanted) > 0 { // the other half is for the keys
		k *= 2
	}
	if ch.c.Dataset.Accountant == privacy.ZCDP {
		return privacy.Cost{Rho: privacy.PicoRho(e.Rho().Pico() / int64(k))}
	}
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(e.Micro() / int64(k))}
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
// of this epoch goes before one that has gone stale, of which the latest is read.
func (ch *chooser) again(q *asking) (list []candidate) {
	if ch.c.Holdings == nil {
		return nil
	}
	current, latest := false, -1
	for _, h := range ch.c.Holdings.Held(q.own.Digest) {
		if h.Spec.Cells != q.fresh.Cells || h.Spec.Counters != q.fresh.Counters {
			continue
		}
		w := &way{measure: q.measure(q.own.Kind, q.own.Name), reading: ownReading(q.solved)}
		release := false
		if m := readDescribed(h, q.table); m != nil {
			w.measure = q.measure(m.kind, m.name)
			w.measure.Shared, release = m.shared, m.isRelease()
			w.measure.Declared = declaredAs(q.table, m.shared, m.name)
		} else if shared, kind, name, ok := describedHead(h); ok && shared {
			w.measure, release = q.measure(kind, name), true
			w.measure.Shared = true
		}
		w.hold(h, "the same question, asked before at least as exactly")
		c := candidate{way: w, variance: ch.worst(h.Spec, w.reading), holding: h}
		switch exact := q.summed() == nil && c.variance <= ch.variance(q.fresh) || q.summed() != nil && ch.exactEnough(h.Spec, q.fresh); {
		case !release && !exact:
			c.not = "less exact than a fresh count at dp.epsilon"
		case !ch.isStale(h, w.measure.Declared):
			current = true
		default:
			if c.not = ofAnotherEpoch; latest < 0 || h.At.After(list[latest].holding.At) {
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

const ofAnotherEpoch = "of an epoch gone by"

func (w *way) hold(h Holding, why string) {
	w.measure.Spec, w.measure.Held, w.measure.HeldID, w.measure.Cost, w.measure.Why = h.Spec, true, h.ID, privacy.Cost{}, why
}

// reuse finds what she has paid for that answers the question: releases of finer cells, and sums and differences of
// releases.
func (ch *chooser) reuse(q *asking) []candidate {
	list := settled(append(ch.reused(q, false), ch.combined(q)...))
	q.held = append(q.held, list...)
	return list
}

// reused are releases of finer cells: those that grow, or the others.
func (ch *chooser) reused(q *asking, grows bool) (list []candidate) {
	for _, h := range ch.current(ch.finer(q.solved)) {
		if h.measure.grows != grows {
			continue
		}
		r := coverHeld(q.solved, h.heldOn)
		if r == nil && !h.holding.Spec.Strategy.IsCube() {
			r = coverWithin(q.solved, h.measure.solved)
		}
		if r == nil {
			continue
		}
		w := &way{reading: r, measure: h.measure.held(), counts: h.measure.plain()}
		w.measure.Declared = h.declared
		w.holdOn(h.heldOn, "you have paid for "+w.measure.Kind+" "+w.measure.Name+", whose cells add up to it")
		variance := ch.worst(w.measure.Spec, r)
		list = append(list, candidate{way: w, variance: variance, holding: h.holding, order: h.order, released: h.measure.isRelease(), enough: variance <= ch.variance(q.fresh)})
	}
	return list
}

// settled says which of what is held may be read. Of what is as exact as a fresh count that is what has been held longest, so
// that the same question keeps its answer when more is bought; where nothing is, any release, whatever its error: it was
// bought for that.
func settled(list []candidate) []candidate {
	first := -1
	for i, c := range list {
		if c.enough && (first < 0 || c.order < list[first].order || c.order == list[first].order && c.variance < list[first].variance) {
			first = i
		}
	}
	for i := range list {
		switch c := &list[i]; {
		case first >= 0 && i != first:
			c.not = "what has been held longer is as exact as asked, and the same question keeps its answer"
		case first < 0 && !c.released:
			c.not = "less exact than a fresh count at dp.epsilon"
		}
	}
	return list
}

// isRelease tells releases, which answer whatever they can for free, from the answer to one question.
func (m *heldMeasure) isRelease() bool {
	return m.shared || m.kind == "range" || m.kind == "keys" || m.kind == cube
}

// stock is what she holds on a table; nil: nothing.
func (ch *chooser) stock(t *policy.Table) *Stock {
	if ch.c.Holdings == nil {
		return nil
	}
	s, known := ch.stocks[t]
	if !known {
		s = ch.c.Holdings.Stock(t)
		ch.stocks[t] = s
	}
	return s
}

// finer lists the counts by cells of at least a question's columns that she holds, and that can be read now.
func (ch *chooser) finer(s *solved) (list []*stocked) {
	if stock := ch.stock(s.table); stock != nil {
		for _, h := range stock.finer(s) {
			if h.measure.grows || h.holding.Spec.Grows() {
				own := *h
				own.measure = h.measure.copied() // how far it has grown is of this plan
				if h = &own; !ch.readable(&h.heldOn) {
					continue
				}
			}
			list = append(list, h)
		}
	}
	for _, h := range ch.open.held(s.table) {
		list = append(list, &stocked{heldOn: h})
	}
	return list
}

// declaredAs finds the policy's release that a measure holds.
func declaredAs(t *policy.Table, shared bool, name string) *policy.Release {
	for _, r := range t.All() {
		if shared && r.Name == name {
			return r
		}
	}
	return nil
}

// declared finds the releases of the policy that she may buy for this: ranges over a column that the question ranges over,
// and histograms that answer it no worse than counting it alone at that price would.
func (ch *chooser) declared(q *asking) (list []candidate) {
	columns, ok := q.columns()
	if !ok {
		return nil
	}
	bought := false
	for _, r := range q.table.Releases {
		if !containsAll(r.Columns, columns) || len(columns) == 0 && !r.Grows() { // of rows that are added, all are those so far
			continue
		}
		held, spec := ch.ofRelease(r)
		if held == nil {
			continue
		}
		reading := cover(q.solved, held)
		if reading == nil {
			continue
		}
		w := &way{reading: reading, measure: held.measure(r.Kind.String(), r.Name)}
		w.measure.Shared, w.measure.Declared, w.measure.Cost = true, r, r.Cost
		w.measure.Why = "release " + r.Name + " is within dp.epsilon, and every such question is free after it"
		held.sold(w.measure, spec)
		c := candidate{way: w, variance: ch.worst(w.measure.Spec, reading)}
		if r.Kind == policy.HistogramRelease {
			alone, err := mechanisms.Plain(len(q.counts), q.cells, q.contribution(), r.Cost)
			if err != nil || c.variance > 1.001*ch.variance(alone) {
				c.not = "further off than counting this alone at its price"
			}
		}
		if c.not == "" && !r.Cost.Fits(q.share) {
			c.not = "dearer than dp.epsilon lets this question be"
			ch.hints.add(hint(r))
		}
		bought = bought || c.not == ""
		list = append(list, c)
	}
	if bought {
		ch.hints = nil
	}
	return list
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
	if r.Grows() {
		return growingSpec(r.Table, cells, r.Cost)
	}
	if r.Kind == policy.OnlineRelease {
		o, err := onlineOf(r)
		if err != nil {
			return mechanisms.Spec{}, err
		}
		return o.spec, nil
	}
	if r.Kind == policy.RangeRelease {
		return mechanisms.Ranges(cells, r.Table.ContributionTo(cells), r.Cost)
	}
	return mechanisms.Plain(1, cells, r.Table.ContributionTo(cells), r.Cost)
}

// DeclaredMeasure is the measure of a release that the policy declares, as a session that buys it first would draw it. One
// that grows is drawn when it is read, by the clock.
func DeclaredMeasure(r *policy.Release) (*Measure, error) {
	if r.Kind == policy.OnlineRelease || r.Kind == policy.SyntheticRelease {
		return instanceOf(r)
	}
	s := identity(r.Table, r.Columns)
	if r.Grows() {
		s = growing(r.Table, r.Columns[0], time.Time{})
	}
	spec, err := releaseSpec(r, s.cells)
	if err != nil {
		return nil, err
	}
	m := s.measure(r.Kind.String(), r.Name)
	m.Shared, m.Declared, m.Cost = true, r, r.Cost
	s.sold(m, spec)
	return m, nil
}

// ownRelease buys a range release over the only column that the question reads: SET dp.release = on.
func (ch *chooser) ownRelease(q *asking) []candidate {
	if !ch.c.Settings.Release && !ch.c.Alternatives {
		return nil
	}
	w := ch.ownRange(q.solved, q.share, q.table.Appends != nil)
	if w == nil {
		return nil
	}
	c := candidate{way: w, variance: ch.worst(w.measure.Spec, w.reading)}
	if !ch.c.Settings.Release {
		c.not = "a release that the policy does not declare is bought with SET dp.release = on"
	}
	return []candidate{c}
}

// ownRange is a range release of her own over the only column that a question reads; one that grows, if that is wanted and
// the column's can.
func (ch *chooser) ownRange(s *solved, share privacy.Cost, grows bool) *way {
	columns, ok := s.columns()
	if !ok || len(columns) != 1 || !columns[0].Domain.Ordered() {
		return nil
	}
	held := identity(s.table, columns)
	var spec mechanisms.Spec
	var err error
	if grows = grows && s.table.Grows(columns[0]); grows {
		if held = growing(s.table, columns[0], ch.now()); held.closed == 0 {
			return nil
		}
		spec, err = growingSpec(s.table, held.cells, share)
	} else {
		spec, err = mechanisms.Ranges(held.cells, s.contributionTo(held.cells), share)
	}
	reading := cover(s, held)
	if err != nil || reading == nil {
		return nil
	}
	w := &way{measure: held.measure("range", s.table.Name+"_"+columns[0].Name), reading: reading}
	w.measure.Cost, w.measure.Why = share, "dp.release is on: every range over "+columns[0].Name+" is free after it"
	held.sold(w.measure, spec)
	return w
}
