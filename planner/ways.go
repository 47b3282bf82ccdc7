package planner

import (
	"fmt"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// way is one answer to a question: the measure that it is read from, and how.
type way struct {
	measure *Measure
	reading *reading
	error   mechanisms.Error // the largest over the answer
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
	fresh, refusal := ch.fresh(s, share)
	if refusal != nil {
		return nil, refusal
	}
	if w := ch.again(s, fresh); w != nil {
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
	return fresh, nil
}

// fresh counts the question's own cells, once each.
func (ch *chooser) fresh(s *solved, share privacy.Cost) (*way, *Refusal) {
	kind, name := "count", s.table.Name
	if s.cells > 1 || len(s.grain) > 0 {
		kind = "histogram"
	}
	m := s.measure(kind, name+s.about())
	spec, err := mechanisms.Plain(len(s.counts), s.cells, s.table.Contribution(), share)
	if err != nil {
		return nil, noMechanism.at(-1, err.Error())
	}
	m.Spec, m.Cost = spec, share
	m.Why = "no release that you have paid for answers it"
	w := &way{measure: m, reading: ownReading(s)}
	w.error = spec.Error(span(0), ch.c.Settings.Confidence)
	return w, nil
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
func (ch *chooser) again(s *solved, fresh *way) *way {
	if ch.c.Holdings == nil {
		return nil
	}
	for _, h := range ch.c.Holdings.Held(fresh.measure.Digest) {
		if h.Spec.Cells != fresh.measure.Spec.Cells || h.Spec.Counters != fresh.measure.Spec.Counters {
			continue
		}
		w := &way{measure: s.measure(fresh.measure.Kind, fresh.measure.Name), reading: ownReading(s)}
		if m := readDescribed(h, s.table); m != nil {
			w.measure.Kind, w.measure.Name, w.measure.Shared = m.kind, m.name, m.shared
		}
		w.error = ch.worst(h.Spec, w.reading)
		if w.error.Variance > fresh.error.Variance && !w.measure.Shared && w.measure.Kind != "range" {
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
func (ch *chooser) reuse(s *solved, fresh *way) *way {
	var best *way
	for _, h := range ch.heldOn(s.table) {
		r := cover(s, h.measure.solved)
		if r == nil {
			continue
		}
		w := &way{reading: r, error: ch.worst(h.holding.Spec, r)}
		if !h.measure.shared && h.measure.kind != "range" && w.error.Variance > fresh.error.Variance || best != nil && w.error.Variance >= best.error.Variance {
			continue
		}
		w.measure = h.measure.measure(h.measure.kind, h.measure.name)
		w.measure.Shared = h.measure.shared
		w.measure.Declared = declaredAs(s.table, w.measure)
		w.hold(h.holding, "you have paid for "+h.measure.kind+" "+h.measure.name+", whose cells add up to it")
		best = w
	}
	return best
}

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
	for _, r := range s.table.Releases {
		held := identity(s.table, r.Columns)
		reading := cover(s, held)
		if reading == nil {
			continue
		}
		spec, err := releaseSpec(r, held.cells)
		if err != nil {
			continue
		}
		w := &way{reading: reading, error: ch.worst(spec, reading)}
		if r.Kind == policy.HistogramRelease {
			alone, err := mechanisms.Plain(len(s.counts), s.cells, s.table.Contribution(), r.Cost)
			if err != nil || w.error.Variance > 1.001*alone.Error(span(0), ch.c.Settings.Confidence).Variance {
				continue
			}
		}
		if !r.Cost.Fits(share) {
			ch.hints.add(hint(r))
			continue
		}
		if best != nil && w.error.Variance >= best.error.Variance {
			continue
		}
		w.measure = held.measure(r.Kind.String(), r.Name)
		w.measure.Shared, w.measure.Declared, w.measure.Spec, w.measure.Cost = true, r, spec, r.Cost
		w.measure.Why = "release " + r.Name + " is within dp.epsilon, and every such question is free after it"
		best = w
	}
	if best != nil {
		ch.hints = nil
	}
	return best
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
	w.error = ch.worst(spec, reading)
	return w
}

// mostErrors bounds how many rows' errors a plan computes.
const mostErrors = 256

// worst is the largest expected error over the rows of a reading (over evenly chosen ones where there are very many).
func (ch *chooser) worst(spec mechanisms.Spec, r *reading) mechanisms.Error {
	var out mechanisms.Error
	for _, rows := range r.spans {
		if e := largestError(spec, rows, ch.c.Settings.Confidence); e.Variance > out.Variance {
			out = e
		}
	}
	return out
}

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
	for i := 0; i < len(rows); i += 1 + len(rows)/mostErrors {
		if e := spec.Error(rows[i], confidence); e.Variance > out.Variance {
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
