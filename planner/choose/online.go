package choose

import (
	"fmt"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// An online release answers counting questions that are functions of its cells, one after the other, each analyst's
// from a session of her own (docs/adr/0024). Whether one is used is decided by public things: the policy, what she has
// paid for, how many updates her own session has left, and expected errors. Where a plain histogram of its cells would
// give less error at the same cost, the release is drawn as that histogram, unless the policy insists.

// onlinePath is an online release whose columns a question reads, and how her own session of it stands.
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
