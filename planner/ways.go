package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// way is one answer to a question: the measure that it is read from, and how.
type way struct {
	measure *Measure
	reading *reading
}

// chooser finds the way of each question. What it looks at is public: the policy, the session's settings, what the analyst
// has paid for, and expected errors.
type chooser struct {
	c     Context
	held  map[*policy.Table][]heldOn
	hints notes
}

type heldOn struct {
	holding Holding
	measure *heldMeasure
}

// choose picks the ways of all questions for at most the session's epsilon: k measures bought get an equal share each, and
// k is the smallest number for which that works out.
func (ch *chooser) choose(questions []*solved) ([]*way, *Refusal) {
	most := 0
	for _, s := range questions {
		if s.measured() {
			most++
		}
	}
	// What was bought for this statement before is found at the share that it was bought for.
	if ways, bought, refusal := ch.attempt(questions, max(most, 1)); refusal == nil && bought == 0 {
		return ways, nil
	}
	for k := 1; ; k++ {
		ch.hints = nil
		ways, bought, refusal := ch.attempt(questions, k)
		if refusal != nil || bought <= k || k >= most {
			return ways, refusal
		}
	}
}

// attempt picks the ways when each purchase may cost a k-th of the session's epsilon.
func (ch *chooser) attempt(questions []*solved, k int) (ways []*way, bought int, refusal *Refusal) {
	share := ch.share(k)
	ways = make([]*way, len(questions))
	buying := map[Digest]*Measure{}
	for i, s := range questions {
		if !s.measured() {
			continue
		}
		if share.IsZero() {
			return nil, 0, epsilonSmall.at(-1, ch.c.Settings.Epsilon.String(), k)
		}
		w, refusal := ch.one(s, share)
		if refusal != nil {
			return nil, 0, refusal
		}
		if m := w.measure; !m.Held {
			if same := buying[m.Digest]; same != nil && same.Shared == m.Shared && same.Kind == m.Kind {
				w.measure = same
			} else {
				buying[m.Digest] = m
				bought++
			}
		}
		ways[i] = w
	}
	return ways, bought, nil
}

// share is a k-th of what a statement may cost, rounded down.
func (ch *chooser) share(k int) privacy.Cost {
	e := ch.c.Settings.Epsilon
	if ch.c.Dataset.Accountant == privacy.ZCDP {
		return privacy.Cost{Rho: privacy.PicoRho(e.Rho().Pico() / int64(k))}
	}
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(e.Micro() / int64(k))}
}

// one picks the way of one question: what she has paid for, then a declared release that is worth its price, then a
// release of her own where she asked for that, then a fresh count.
func (ch *chooser) one(s *solved, share privacy.Cost) (*way, *Refusal) {
	own := s.measure(s.kind(), s.table.Name+s.about())
	fresh, err := mechanisms.Plain(len(s.counts), s.cells, s.table.Contribution(), share)
	if err != nil {
		return nil, noMechanism.at(-1, err.Error())
	}
	if w := ch.again(s, own, fresh); w != nil {
		return w, nil
	}
	if w := ch.reuse(s, fresh); w != nil {
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

// again finds the same question among what she has paid for, at least as exact as asked now (privacy rule 3).
func (ch *chooser) again(s *solved, own *Measure, fresh mechanisms.Spec) *way {
	if ch.c.Holdings == nil {
		return nil
	}
	for _, h := range ch.c.Holdings.Held(own.Digest) {
		if h.Spec.Cells != fresh.Cells || h.Spec.Counters != fresh.Counters {
			continue
		}
		w := &way{measure: own, reading: ownReading(s)}
		release := false
		if m := readDescribed(h, s.table); m != nil {
			w.measure = s.measure(m.kind, m.name)
			w.measure.Shared, release = m.shared, m.isRelease()
			w.measure.Declared = declaredAs(s.table, w.measure)
		}
		if !release && ch.worst(h.Spec, w.reading) > ch.variance(fresh) {
			continue
		}
		w.hold(h, "the same question, asked before at least as exactly")
		return w
	}
	return nil
}

func (w *way) hold(h Holding, why string) {
	w.measure.Spec, w.measure.Held, w.measure.HeldID, w.measure.Cost, w.measure.Why = h.Spec, true, h.ID, privacy.Cost{}, why
}

// reuse finds the most exact release of finer cells that she has paid for and that answers the question. A histogram of
// her own, bought for another question, must be at least as exact as a fresh count would be.
func (ch *chooser) reuse(s *solved, fresh mechanisms.Spec) *way {
	type candidate struct {
		heldOn
		reading *reading
	}
	var found []candidate
	for _, h := range ch.heldOn(s.table) {
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
	w.measure.Declared = declaredAs(s.table, w.measure)
	w.hold(best.holding, "you have paid for "+w.measure.Kind+" "+w.measure.Name+", whose cells add up to it")
	return w
}

// isRelease tells releases, which answer whatever they can for free, from the answer to one question.
func (m *heldMeasure) isRelease() bool { return m.shared || m.kind == "range" }

// heldOn reads the descriptions of what she holds on a table, once a statement.
func (ch *chooser) heldOn(t *policy.Table) []heldOn {
	if list, known := ch.held[t]; known || ch.c.Holdings == nil {
		return list
	}
	var list []heldOn
	for _, h := range ch.c.Holdings.HeldOn(t) {
		if m := readDescribed(h, t); m != nil {
			list = append(list, heldOn{h, m})
		}
	}
	ch.held[t] = list
	return list
}

// declaredAs finds the policy's release that a measure holds.
func declaredAs(t *policy.Table, m *Measure) *policy.Release {
	for _, r := range t.Releases {
		if m.Shared && r.Name == m.Name {
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
			alone, err := mechanisms.Plain(len(s.counts), s.cells, s.table.Contribution(), r.Cost)
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
		return mechanisms.Ranges(cells, r.Table.Contribution(), r.Cost)
	}
	return mechanisms.Plain(1, cells, r.Table.Contribution(), r.Cost)
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
	spec, err := mechanisms.Ranges(held.cells, s.table.Contribution(), share)
	if err != nil {
		return nil
	}
	w := &way{measure: held.measure("range", s.table.Name+"_"+columns[0].Name), reading: reading}
	w.measure.Spec, w.measure.Cost, w.measure.Why = spec, share, "dp.release is on: every range over "+columns[0].Name+" is free after it"
	return w
}

// mostErrors bounds how many rows' errors a plan computes.
const mostErrors = 256

// worst is the largest expected squared error over the rows of a reading.
func (ch *chooser) worst(spec mechanisms.Spec, r *reading) float64 {
	most := 0.0
	for _, rows := range r.spans {
		most = max(most, largestError(spec, rows, ch.c.Settings.Confidence).Variance)
	}
	return most
}

// largestError is the largest expected error over rows, over evenly chosen ones where there are very many.
func largestError(spec mechanisms.Spec, rows [][]mechanisms.Span, confidence mechanisms.Confidence) mechanisms.Error {
	var out mechanisms.Error
	if spec.Strategy.Kind == mechanisms.Identity {
		most := -1
		for i, spans := range rows {
			if most < 0 || countCells(spans) > countCells(rows[most]) {
				most = i
			}
		}
		if most < 0 {
			return out
		}
		return spec.Error(rows[most], confidence)
	}
	errors := spec.Errors(confidence)
	for i := 0; i < len(rows); i += 1 + len(rows)/mostErrors {
		if e := errors.Of(rows[i]); e.Variance > out.Variance {
			out = e
		}
	}
	return out
}

func countCells(spans []mechanisms.Span) int {
	n := 0
	for _, s := range spans {
		n += s.To - s.From
	}
	return n
}
