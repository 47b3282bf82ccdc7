package planner

import (
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// An online release answers counting questions that are functions of its cells, one after the other, each analyst's from a
// session of her own (docs/adr/0024). Whether one is used is decided by public things: the policy, what she has paid for,
// how many updates her own session has left, and expected errors. Where a plain histogram of its cells would give less error
// at the same cost, the release is drawn as that histogram, unless the policy insists.

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
		if h.Spec.Online != nil && h.Spec.Cells == o.cells.cells && (!ok || h.At.After(found.At)) {
			found, ok = h, true
		}
	}
	return found, ok
}

// left is how many updates a held session has left.
func (ch *chooser) left(h Holding) int {
	if ch.c.Left == nil {
		return h.Spec.Online.Updates
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
		c.way.hold(o.holding, fmt.Sprintf("you have paid for online release %s, with %d of %d updates left: %s", o.Name, o.left, o.holding.Spec.Online.Updates, o.figures()))
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
