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
	counts  *solved      // what the measure counts, where that is more than the question
	share   privacy.Cost // what it might have cost
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

// kind is how a measure of the question's own cells is called.
func (s *solved) kind() string {
	if s.marginals != nil {
		return MarginalsKind
	}
	if len(s.grain) > 0 {
		return "histogram"
	}
	return "count"
}

// variance is the expected squared error of a count of one cell.
func (ch *chooser) variance(spec mechanisms.Spec) float64 {
	return spec.Error(span(0), ch.c.Settings.Confidence).Variance
}

// each is the expected squared error of a cell of a question's own measure, or of the worst row of its marginals.
func (ch *chooser) each(s *solved, spec mechanisms.Spec) float64 {
	if s.marginals == nil {
		return ch.variance(spec)
	}
	_, worst := worstRow(spec, s.marginals.rows, ch.c.Settings.Confidence)
	return worst
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
		switch exact := q.summed() == nil && c.variance <= ch.each(q.solved, q.fresh) || q.summed() != nil && ch.exactEnough(q.solved, h.Spec, q.fresh); {
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
	return list
}

const ofAnotherEpoch = "of an epoch gone by"

func (w *way) hold(h Holding, why string) {
	w.measure.Spec, w.measure.Held, w.measure.HeldID, w.measure.Cost, w.measure.Why = h.Spec, true, h.ID, privacy.Cost{}, why
}

// reuse finds the releases of finer cells that she has paid for and that answer the question. A histogram of her own,
// bought for another question, must be at least as exact as a fresh count would be.
func (ch *chooser) reuse(q *asking) (list []candidate) {
	for _, h := range ch.current(ch.heldOn(q.table)) {
		r := coverHeld(q.solved, h)
		if r == nil {
			continue
		}
		w := &way{reading: r, measure: h.measure.measure(h.measure.kind, h.measure.name), counts: h.measure.solved}
		w.measure.Shared, w.measure.Declared = h.measure.shared, h.declared
		w.hold(h.holding, "you have paid for "+w.measure.Kind+" "+w.measure.Name+", whose cells add up to it")
		c := candidate{way: w, variance: ch.worst(h.holding.Spec, r), holding: h.holding}
		if !h.measure.isRelease() && c.variance > ch.each(q.solved, q.fresh) {
			c.not = "less exact than a fresh count at dp.epsilon"
		}
		list = append(list, c)
	}
	return list
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

// declared finds the releases of the policy that she may buy for this: ranges over a column that the question ranges over,
// and histograms that answer it no worse than counting it alone at that price would.
func (ch *chooser) declared(q *asking) (list []candidate) {
	columns, ok := q.columns()
	if !ok || len(columns) == 0 {
		return nil
	}
	bought := false
	for _, r := range q.table.Releases {
		if !containsAll(r.Columns, columns) {
			continue
		}
		held := identity(q.table, r.Columns)
		reading := cover(q.solved, held)
		if reading == nil {
			continue
		}
		spec, err := releaseSpec(r, held.cells)
		if err != nil {
			continue
		}
		w := &way{reading: reading, measure: held.measure(r.Kind.String(), r.Name)}
		w.measure.Shared, w.measure.Declared, w.measure.Spec, w.measure.Cost = true, r, spec, r.Cost
		w.measure.Why = "release " + r.Name + " is within dp.epsilon, and every such question is free after it"
		c := candidate{way: w, variance: ch.worst(spec, reading)}
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

// ownRelease buys a range release over the only column that the question reads: SET dp.release = on.
func (ch *chooser) ownRelease(q *asking) []candidate {
	if !ch.c.Settings.Release && !ch.c.Alternatives {
		return nil
	}
	w := ch.ownRange(q.solved, q.share)
	if w == nil {
		return nil
	}
	c := candidate{way: w, variance: ch.worst(w.measure.Spec, w.reading)}
	if !ch.c.Settings.Release {
		c.not = "a release that the policy does not declare is bought with SET dp.release = on"
	}
	return []candidate{c}
}

// ownRange is a range release of her own over the only column that a question reads.
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
