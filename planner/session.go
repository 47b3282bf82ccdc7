package planner

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// An online release answers counting questions that are functions of its cells, one after the other, each analyst's from a
// session of her own (docs/adr/0024). Whether one is used is decided by public things: the policy, what she has paid for,
// how many updates her own session has left, and expected errors. Where a plain histogram of its cells would give less error
// at the same cost, the release is drawn as that histogram, unless the policy insists.

// cellsOf is the measure over the cells of a release, which may be wider than its columns'.
func cellsOf(r *policy.Release) *solved {
	s := identity(r.Table, r.Columns)
	for _, p := range s.parts {
		for i, c := range r.Columns {
			if c != r.Table.Columns[p.columns[0]] {
				continue
			}
			from := r.Cells(i)
			for at, first := range from {
				end := len(p.class)
				if at+1 < len(from) {
					end = from[at+1]
				}
				for cell := first; cell < end; cell++ {
					p.class[cell] = int32(at)
				}
			}
			p.classes = len(from)
		}
	}
	s.cells = 1
	for _, p := range s.parts {
		s.cells *= p.classes
	}
	return s
}

// sessionSpec is how an online release is measured.
func sessionSpec(r *policy.Release, cells int) (mechanisms.Spec, error) {
	o := mechanisms.Online{Rule: mechanisms.MultiplicativeWeights, Contribution: r.Table.ContributionTo(cells), Rows: r.Table.ExpectedRows, Updates: r.Updates, Queries: r.Queries, Cost: r.Cost}
	d := r.Table.Dataset
	switch r.Mechanism {
	case "median":
		o.Rule = mechanisms.Median
	case "median-basic":
		o.Rule, o.Rows = mechanisms.MedianBasic, d.Units
		return mechanisms.NewOnline(o, cells)
	}
	if d.Neighbors != privacy.ReplaceOne || !d.Unit.Row {
		o.Spare = o.Rows // the guess may be half of what is there
	}
	return mechanisms.NewOnline(o, cells)
}

// onlineRelease is a release as the planner looks at it. It is a function of the policy alone.
type onlineRelease struct {
	*policy.Release
	cells   *solved
	measure *Measure // not held, at the release's cost
	spec    mechanisms.Spec
	own     int64           // half-widths at the dataset's confidence: of an answer of the session,
	plain   int64           // and of a plain histogram's worst one
	rival   mechanisms.Spec // that histogram
	drawn   bool            // as a plain histogram
}

// beaten tells whether the histogram would answer a question at least as exactly as a session that is opened for it: of few
// cells it adds up little noise. The policy may insist all the same.
func (o *onlineRelease) beaten(r *reading) (here int64, beaten bool) {
	if o.drawn || o.Insist {
		return 0, false
	}
	for c := range r.spans {
		here = max(here, largestError(o.rival, r.looked(c), o.Table.Dataset.Defaults.Confidence).HalfWidth)
	}
	return here, here <= o.own
}

// onlineReleases remembers them: *policy.Release → *onlineRelease or error.
var onlineReleases sync.Map

func onlineOf(r *policy.Release) (*onlineRelease, error) {
	if known, ok := onlineReleases.Load(r); ok {
		if err, failed := known.(error); failed {
			return nil, err
		}
		return known.(*onlineRelease), nil
	}
	o, err := readOnline(r)
	if err != nil {
		onlineReleases.Store(r, err)
		return nil, err
	}
	onlineReleases.Store(r, o)
	return o, nil
}

func readOnline(r *policy.Release) (*onlineRelease, error) {
	o := &onlineRelease{Release: r, cells: cellsOf(r)}
	var err error
	if o.spec, err = sessionSpec(r, o.cells.cells); err != nil {
		return nil, err
	}
	if o.own, o.plain, err = o.spec.Rival(r.Table.Dataset.Defaults.Confidence); err != nil {
		return nil, err
	}
	if o.rival, err = mechanisms.Plain(1, o.cells.cells, r.Table.ContributionTo(o.cells.cells), privacy.Cost{Epsilon: r.Cost.Epsilon, Rho: r.Cost.Rho}); err != nil {
		return nil, err
	}
	kind := policy.OnlineRelease.String()
	if o.drawn = !r.Insist && o.plain <= o.own; o.drawn {
		kind, o.spec = policy.HistogramRelease.String(), o.rival
	}
	m := o.cells.measure(kind, r.Name)
	m.Declared, m.Shared, m.Spec, m.Cost = r, o.drawn, o.spec, r.Cost
	if !o.drawn {
		m.described = predicate.EncodeText(append(m.described, "online"...), r.Name)
		m.Digest = sha256.Sum256(m.described)
	}
	o.measure = m
	return o, nil
}

// figures names what a session and the plain histogram would be off.
func (o *onlineRelease) figures() string {
	return fmt.Sprintf("its answers are within ±%d at %g %%, a plain histogram of its %d cells would be within ±%d at the same cost", o.own, 100*o.Table.Dataset.Defaults.Confidence.Float(), o.cells.cells, o.plain)
}

// sessionWay is an online release that a question can be read from, and how her own session of it stands.
type sessionWay struct {
	*onlineRelease
	reading *reading
	held    bool
	holding Holding
	left    int // updates of what she holds
}

// onlineFor lists the online releases that a question can be read from. It looks once for each question: what she holds may
// change while this is planned, and all sources are to see the same of it. Else one would find that she does not hold a
// release yet and the next that she does, and she would pay for a fresh count.
func (ch *chooser) onlineFor(q *asking) []sessionWay {
	if !q.looked {
		q.sessions, q.looked = ch.lookForSessions(q), true
	}
	return q.sessions
}

func (ch *chooser) lookForSessions(q *asking) (list []sessionWay) {
	columns, ok := q.columns()
	if !ok || len(q.table.Sessions) == 0 || len(columns) == 0 || q.summed() != nil || q.table.Derived != nil {
		return nil
	}
	for _, r := range q.table.Sessions {
		if !containsAll(r.Columns, columns) {
			continue
		}
		o, err := onlineOf(r)
		if err != nil {
			ch.hints.add("release " + r.Name + " is not used: " + err.Error())
			continue
		}
		if reading := cover(q.solved, o.cells); reading != nil {
			way := sessionWay{onlineRelease: o, reading: reading}
			if way.holding, way.held = ch.holdingOf(o); way.held {
				way.left = ch.left(way.holding)
			}
			list = append(list, way)
		}
	}
	return list
}

// holdingOf is the session that she has paid for last.
func (ch *chooser) holdingOf(o *onlineRelease) (found Holding, ok bool) {
	if ch.c.Holdings == nil || o.drawn {
		return Holding{}, false
	}
	for _, h := range ch.c.Holdings.Held(o.measure.Digest) {
		if mechanisms.Is[*mechanisms.Online](h.Spec) && h.Spec.Cells == o.cells.cells && (!ok || h.At.After(found.At)) {
			found, ok = h, true
		}
	}
	return found, ok
}

// left is how many updates a held session has left.
func (ch *chooser) left(h Holding) int {
	if ch.c.Left == nil {
		return h.Spec.Kind.(*mechanisms.Online).Updates
	}
	return ch.c.Left(h.ID)
}

// reuseAny finds all that she has paid for and that answers: releases of counts, and sessions that go on.
func (ch *chooser) reuseAny(q *asking) []candidate {
	list := ch.reuse(q)
	for _, o := range ch.onlineFor(q) {
		if !o.held {
			continue
		}
		m := *o.measure
		c := candidate{way: &way{measure: &m, reading: o.reading}, variance: ch.worst(o.holding.Spec, o.reading), holding: o.holding, order: len(list)}
		c.way.hold(o.holding, fmt.Sprintf("you have paid for online release %s, with %d of %d updates left: %s", o.Name, o.left, o.holding.Spec.Kind.(*mechanisms.Online).Updates, o.figures()))
		if o.left == 0 {
			c.not = "it has stopped: its updates are used up"
			ch.hints.add("online release " + o.Name + " has stopped: its updates are used up")
		}
		list = append(list, c)
	}
	return list
}

// openSession finds the online releases that she may open for this.
func (ch *chooser) openSession(q *asking) (list []candidate) {
	for _, o := range ch.onlineFor(q) {
		if o.held && !ch.isStale(o.holding, o.Release) {
			continue
		}
		m := *o.measure
		switch {
		case o.drawn:
			m.Why = "online release " + o.Name + " is drawn as a plain histogram, which gives less error: " + o.figures()
		case o.plain <= o.own:
			m.Why = "the policy insists on online release " + o.Name + ": " + o.figures()
		default:
			m.Why = "online release " + o.Name + " is within dp.epsilon: " + o.figures()
		}
		c := candidate{way: &way{measure: &m, reading: o.reading}, variance: ch.worst(o.spec, o.reading)}
		if priced := (privacy.Cost{Epsilon: o.Cost.Epsilon, Rho: o.Cost.Rho}); !priced.Fits(q.share) { // δ is the budget's alone
			c.not = "dearer than dp.epsilon lets this question be"
			ch.hints.add(fmt.Sprintf("release %s: ε %s makes every count by %s free; SET dp.epsilon = %s", o.Name, o.Epsilon, columnNames(o.Columns), o.Epsilon))
		} else if here, beaten := o.beaten(o.reading); beaten {
			c.not = fmt.Sprintf("a plain histogram of its cells would answer this within ±%d at the same cost: %s", here, o.figures())
			ch.hints.add("online release " + o.Name + " is not opened for this: " + c.not)
		} else if better := ch.declaredBetter(q, c); better != nil && !o.Insist {
			c.not = "release " + better.way.measure.Name + " is no dearer and more exact"
		}
		list = append(list, c)
	}
	return list
}

// declaredBetter is a release of the policy, of another kind, that answers a question more exactly than an online one and
// costs no more.
func (ch *chooser) declaredBetter(q *asking, online candidate) *candidate {
	quiet := *ch // what is noted is noted when it is chosen
	best := least(quiet.declared(q))
	if best == nil || best.variance > online.variance || !best.way.measure.Cost.Fits(online.way.measure.Cost) {
		return nil
	}
	return best
}

// stopped refuses a question that a stopped session of hers would answer, where the policy does not let it be counted
// afresh.
func (ch *chooser) stopped(q *asking) []candidate {
	for _, o := range ch.onlineFor(q) {
		if o.held && !o.Recount && o.left == 0 {
			q.refusal = sessionStopped.At(-1, o.Name, o.Updates, q.table.Name)
		}
	}
	return nil
}
