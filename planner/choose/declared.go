package choose

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// What is on offer besides counting afresh: the releases that the policy declares, and a range release of her own.

// offered are all that is on offer for a question.
func (ch *Optimizer) offered(q *goal) []alternative {
	list := append(append(ch.openOnline(q), ch.declared(q)...), ch.ownRelease(q)...)
	if least(list) != nil {
		return list
	}
	if best := leastOf(list, func(c *alternative) bool { return c.hint != "" }); best != nil {
		ch.Hints.Add(best.hint)
	}
	return list
}

// judged says whether a release on offer may be bought for a question: one that costs no more than the question may,
// and that is as exact as counting afresh or that somebody has said is wanted. Of what is dearer and more exact than
// what she gets now, it says how she gets it.
func (ch *Weigher) judged(q *goal, c *alternative) {
	r := c.path.Measure.Declared
	switch priced := (privacy.Cost{Epsilon: r.Cost.Epsilon, Rho: r.Cost.Rho}); { // δ is the budget's alone
	case !priced.Fits(q.share):
		c.not = "dearer than dp.epsilon lets this question be"
		if !ch.asExact(q, c.path, c.variance) {
			return
		}
		wanted := ch.preferred(c.path.Measure)
		if alone, err := q.Fresh(priced); !wanted && err == nil {
			wanted = ch.noWider(q, c.path, c.variance, alone)
		}
		c.hint = hint(r, ch.off(c.path).HalfWidth, wanted)
	case !ch.preferred(c.path.Measure) && !ch.asExact(q, c.path, c.variance):
		c.not = lessExact
	}
}

// hint says how a release that is more exact than what she gets is bought.
func hint(r *policy.Release, within int64, wanted bool) string {
	what := "count by " + plans.ColumnNames(r.Columns)
	if r.Kind == policy.RangeRelease {
		what = "range over " + plans.ColumnNames(r.Columns)
	}
	how := ""
	if !wanted {
		how = "; SET dp.release = on"
	}
	return fmt.Sprintf("release %s: ε %s makes every %s free, this one within ±%d; SET dp.epsilon = %s%s", r.Name, r.Epsilon, what, within, r.Epsilon, how)
}

// declared finds the range releases and histograms of the policy that answer a question.
func (ch *Optimizer) declared(q *goal) (list []alternative) {
	columns, ok := q.Columns()
	if !ok {
		return nil
	}
	for _, r := range q.Table.Releases {
		if !reuse.ContainsAll(r.Columns, columns) || len(columns) == 0 && !r.Grows() { // of rows that are added, all are those so far
			continue
		}
		held, spec := ch.ofRelease(r)
		if held == nil {
			continue
		}
		reading := reuse.Cover(q.Query, held)
		if reading == nil {
			continue
		}
		w := declaredPath(r, held, spec, reading)
		c := alternative{path: w, variance: ch.worst(w.Measure.Spec, reading)}
		ch.judged(q, &c)
		list = append(list, c)
	}
	return list
}

// declaredPath reads a question from a release of the policy, bought now.
func declaredPath(r *policy.Release, measured *linear.Query, spec mechanisms.Spec, reading *reuse.Reading) *Path {
	w := &Path{Reading: reading, Measure: measured.Measure(r.Kind.String(), r.Name)}
	w.Measure.Shared, w.Measure.Declared, w.Measure.Cost = true, r, r.Cost
	w.Measure.Why = whyOffered(r)
	measured.Sold(w.Measure, spec)
	return w
}

// onlyOnRequest is why a release of her own is not bought.
const onlyOnRequest = "a release that the policy does not declare is bought with SET dp.release = on"

// ownRelease buys a range release over the only column that the question reads: SET dp.release = on.
func (ch *Optimizer) ownRelease(q *goal) []alternative {
	if !ch.Context.Settings.Release && !ch.Context.Alternatives {
		return nil
	}
	w := ch.ownRange(q.Query, q.share, q.Table.Appends != nil)
	if w == nil {
		return nil
	}
	c := alternative{path: w, variance: ch.worst(w.Measure.Spec, w.Reading)}
	if !ch.Context.Settings.Release {
		c.not = onlyOnRequest
	}
	return []alternative{c}
}

// ownRange is a range release of her own over the only column that a question reads; one that grows, if that is wanted
// and the column's can.
func (ch *Optimizer) ownRange(s *linear.Query, share privacy.Cost, grows bool) *Path {
	columns, ok := s.Columns()
	if !ok || len(columns) != 1 || !columns[0].Domain.Ordered() {
		return nil
	}
	if columns[0].Domain.Size() > plans.MaxCells {
		return nil
	}
	held := linear.Identity(s.Table, columns)
	var spec mechanisms.Spec
	var err error
	if grows = grows && s.Table.Grows(columns[0]); grows {
		if held = growing(s.Table, columns[0], ch.Now()); held.Closed == 0 {
			return nil
		}
		spec, err = reuse.ContinualSpec(s.Table, held.Cells, share)
	} else {
		spec, err = mechanisms.Ranges(held.Cells, s.ContributionTo(held.Cells), share)
	}
	reading := reuse.Cover(s, held)
	if err != nil || reading == nil {
		return nil
	}
	w := &Path{Measure: held.Measure("range", s.Table.Name+"_"+columns[0].Name), Reading: reading}
	w.Measure.Rows, w.Measure.PerGroup = s.Rows, s.PerGroup // as its noise is made for
	w.Measure.Cost, w.Measure.Why = share, "dp.release is on: every range over "+columns[0].Name+" is free after it"+stale(s.Table, columns)
	held.Sold(w.Measure, spec)
	return w
}

// A declared release may be shown to analysts at several levels of trust, from one draw (docs/adr/0028). The policy
// that a plan is made of is that of her level (policy.Policy.For): here only the noise of each level is found.

// whyOffered says why a release is offered to her.
func whyOffered(r *policy.Release) string {
	why := "release " + r.Name + " is within dp.epsilon, and every such question is free after it"
	if level := r.Table.Dataset.Level; level != nil && r.Levels != nil {
		why += "; you have it at level " + level.Name + ": with more noise on top, for " + level.Share.String() + " of its ε"
	}
	return why + stale(r.Table, r.Columns)
}

// stale says that a release over the column by which rows are added does not grow, where it is so (privacy rule 19).
func stale(t *policy.Table, columns []*policy.Column) string {
	if t.Appends == nil || len(columns) != 1 || columns[0] != t.Appends.Column || t.Grows(columns[0]) {
		return ""
	}
	return "; it does not grow, since rows_per_unit_total is not given: days after today are in none but another one, which costs as much again"
}

// LevelNotes says which releases of a policy are not there for analysts at a level of trust.
func LevelNotes(p *policy.Policy) (notes []string) {
	for _, d := range p.Datasets {
		if len(d.Levels) == 0 {
			continue
		}
		for _, t := range d.Tables {
			for _, r := range t.All() {
				if names := unshown(d, r); len(names) > 0 {
					notes = append(notes, fmt.Sprintf("dataset %s: release %s is not there at level %s", d.ID, r.Name, strings.Join(names, ", ")))
				}
			}
		}
	}
	return notes
}

// unshown are the levels at which a release cannot be shown.
func unshown(d *policy.Dataset, r *policy.Release) (names []string) {
	var shown []mechanisms.Level
	if r.Levels != nil {
		shown, _ = reuse.ReleaseLevels(r, linear.Identity(r.Table, r.Columns).Cells)
	}
	for i, l := range d.Levels {
		if !slices.ContainsFunc(shown, func(s mechanisms.Level) bool { return s.Cost == r.Levels[i+1] }) {
			names = append(names, l.Name)
		}
	}
	return names
}

// DeclaredMeasure is the measure of a release that the policy declares, as a session that buys it first would draw it.
// One that grows is drawn when it is read, by the clock.
func DeclaredMeasure(r *policy.Release) (*plans.Measure, error) {
	if r.Kind == policy.OnlineRelease || r.Kind == policy.SyntheticRelease {
		return reuse.InstanceOf(r)
	}
	s := linear.Identity(r.Table, r.Columns)
	if r.Grows() {
		s = growing(r.Table, r.Columns[0], time.Time{})
	}
	spec, err := reuse.ReleaseSpec(r, s.Cells)
	if err != nil {
		return nil, err
	}
	m := s.Measure(r.Kind.String(), r.Name)
	m.Shared, m.Declared, m.Cost = true, r, r.Cost
	s.Sold(m, spec)
	return m, nil
}

// A range release over the column by which rows are added grows: it is paid for once, with all days of the domain, and
// answers from those that are closed (docs/adr/0027). Which are, the plan's time says, and nothing else: what has been
// drawn already is for the ledger to know, and does not show (privacy rule 1).

// growing is the measure of a release that grows over a column of t, as it is at a time. Its cells are the column's
// but for NULL; closed is 0 where there is nothing to read yet.
func growing(t *policy.Table, c *policy.Column, at time.Time) *linear.Query {
	s := linear.Identity(t, []*policy.Column{c})
	p := s.Factors[0]
	p.Classes = c.Domain.Regular
	for i := p.Classes; i < len(p.Class); i++ {
		p.Class[i] = -1
	}
	s.Cells, s.Continual, s.Closed = p.Classes, true, t.Appends.Closed(at)
	return s
}

// ofRelease is the measure of a release of the policy, and its Spec; nil where nothing can be read of it yet.
func (ch *Optimizer) ofRelease(r *policy.Release) (*linear.Query, mechanisms.Spec) {
	s := linear.Identity(r.Table, r.Columns)
	if r.Grows() {
		if s = growing(r.Table, r.Columns[0], ch.Now()); s.Closed == 0 {
			return nil, mechanisms.Spec{}
		}
	}
	spec, err := reuse.ReleaseSpec(r, s.Cells)
	if err != nil {
		return nil, mechanisms.Spec{}
	}
	return s, spec
}

// readable prepares a held release that grows for reading, and reports whether it can be read.
func (ch *Optimizer) readable(h *reuse.HeldOn) bool {
	m := h.Measure
	if m.Continual != h.Holding.Spec.Grows() {
		return false
	}
	if !m.Continual {
		return true
	}
	c := m.Table.Columns[m.Grain[0]]
	if len(m.Grain) != 1 || !m.Table.Grows(c) {
		return false
	}
	m.Closed = m.Table.Appends.Closed(ch.Now())
	return m.Closed > 0
}

// holdOn reads a question from what is held.
func (w *Path) holdOn(h reuse.HeldOn, why string) {
	w.hold(h.Holding, why)
	h.Measure.Sold(w.Measure, h.Holding.Spec)
}

// continual finds the releases that grow among what she has paid for. They go before the answers that she has kept:
// those are of the days that had passed when they were counted.
func (ch *Optimizer) continual(q *goal) []alternative {
	if q.Table.Appends == nil {
		return nil
	}
	return settled(ch.reused(q, true))
}

// NoteUnclosed notes what the paths leave out of the cells that are shown.
func NoteUnclosed(leaves []*LeafPlan, paths [][]*Path, notes *semantics.Notes) {
	for i, list := range paths {
		for j, w := range list {
			if w == nil || w.Reading == nil || len(w.Reading.Open) == 0 {
				continue
			}
			a := leaves[i].Requests[j]
			for cell := range w.Reading.Open {
				if a.Chooses() || slices.ContainsFunc(a.Projections, func(f Projection) bool { return f.condition < 0 || a.KeyValue(f.condition, int(cell)) == true }) {
					notes.Add(w.Reading.Note)
				}
			}
		}
	}
}

// An online release answers counting questions that are functions of its cells, one after the other, each analyst's
// from a session of her own (docs/adr/0024). Whether one is used is decided by public things: the policy, what she has
// paid for, how many updates her own session has left, and expected errors. Where a plain histogram of its cells would
// give less error at the same cost, the release is drawn as that histogram, unless the policy insists.

// onlinePath is an online release whose columns a question reads, and the state of her own session of it.
type onlinePath struct {
	*reuse.OnlineRelease
	cover   func() *reuse.Reading // nil: the question cannot be read from it. Looked for once, and by whom it concerns: cells may be many
	held    bool
	holding reuse.Holding
	left    int // updates of what she holds
}

// onlineFor lists the online releases that have a question's columns. It looks once for each question: what she holds
// may change while this is planned, and all sources are to see the same of it. Else one would find that she does not
// hold a release yet and the next that she does, and she would pay for a fresh count.
func (ch *Optimizer) onlineFor(q *goal) []*onlinePath {
	if !q.looked {
		q.sessions, q.looked = ch.lookForSessions(q), true
	}
	return q.sessions
}

func (ch *Optimizer) lookForSessions(q *goal) (list []*onlinePath) {
	columns, ok := q.Columns()
	if !ok || len(q.Table.Sessions) == 0 || len(columns) == 0 || q.Summed() != nil || q.Table.Derived != nil {
		return nil
	}
	for _, r := range q.Table.Sessions {
		if !reuse.ContainsAll(r.Columns, columns) {
			continue
		}
		o, err := reuse.OnlineOf(r)
		if err != nil {
			ch.Hints.Add("release " + r.Name + " is not used: " + err.Error())
			continue
		}
		path := &onlinePath{OnlineRelease: o, cover: sync.OnceValue(func() *reuse.Reading { return reuse.Cover(q.Query, o.Cells) })}
		if path.holding, path.held = ch.holdingOf(o); path.held {
			path.left = ch.left(path.holding)
		}
		list = append(list, path)
	}
	return list
}

// holdingOf is the session that she has paid for last.
func (ch *Weigher) holdingOf(o *reuse.OnlineRelease) (found reuse.Holding, ok bool) {
	if ch.Context.Holdings == nil || o.Drawn {
		return reuse.Holding{}, false
	}
	for _, h := range ch.Context.Holdings.Held(o.Measure.Digest) {
		if mechanisms.Is[*mechanisms.Online](h.Spec) && h.Spec.Cells == o.Cells.Cells && (!ok || h.At.After(found.At)) {
			found, ok = h, true
		}
	}
	return found, ok
}

// left is how many updates a held session, or yes answers a run of alarms, has left.
func (ch *Weigher) left(h reuse.Holding) int {
	if o, ok := h.Spec.Kind.(*mechanisms.Online); ok && ch.Context.Left == nil {
		return o.Updates
	}
	if ch.Context.Left == nil {
		return 0
	}
	return ch.Context.Left(h.ID)
}

// reuseAny finds all that she has paid for and that answers: releases of counts, and sessions that go on. One that has
// stopped answers nothing.
func (ch *Optimizer) reuseAny(q *goal) []alternative {
	list := ch.reuse(q)
	for _, o := range ch.onlineFor(q) {
		if !o.held || o.cover() == nil {
			continue
		}
		m := *o.Measure
		c := alternative{path: &Path{Measure: &m, Reading: o.cover()}, variance: ch.worst(o.holding.Spec, o.cover()), holding: o.holding, order: len(list)}
		c.path.hold(o.holding, fmt.Sprintf("you have paid for online release %s, with %d of %d updates left: %s", o.Name, o.left, o.holding.Spec.Kind.(*mechanisms.Online).Updates, o.Figures()))
		switch {
		case o.left == 0:
			c.not = "it has stopped: its updates are used up"
			ch.Hints.Add("online release " + o.Name + " has stopped: its updates are used up")
		case !ch.asExact(q, c.path, c.variance) && !ch.preferred(&m):
			c.not = lessExact
		}
		list = append(list, c)
	}
	return list
}

// openOnline finds the online releases that she may open for this.
func (ch *Optimizer) openOnline(q *goal) (list []alternative) {
	for _, o := range ch.onlineFor(q) {
		if o.held && !ch.isStale(o.holding, o.Release) || o.cover() == nil {
			continue
		}
		m := *o.Measure
		switch {
		case o.Drawn:
			m.Why = "online release " + o.Name + " is drawn as a plain histogram, which gives less error: " + o.Figures()
		case o.Insist:
			m.Why = "the policy insists on online release " + o.Name + ": " + o.Figures()
		default:
			m.Why = "online release " + o.Name + " is within dp.epsilon: " + o.Figures()
		}
		c := alternative{path: &Path{Measure: &m, Reading: o.cover()}, variance: ch.worst(o.Spec, o.cover())}
		ch.judged(q, &c)
		list = append(list, c)
	}
	return list
}
