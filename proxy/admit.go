package proxy

import (
	"context"
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/planner"
)

// place is what a statement holds while it has private rows read, whether it finds keys, buys or asks: one of its user's turns,
// and a place in the line for the private database. It has them until it has ended, and what it began: nothing of it waits
// or is refused after another part was paid. A turn is waited for before a place, never with one in hand: else some could
// hold all the places and wait for turns, whose holders wait for places.
type place struct {
	mu      sync.Mutex
	holders int    // what goes on of the statement
	over    func() // gives the turn back; nil: it has none
	leave   func() // gives the place back; nil: it has none
}

type placeKey struct{}

// inLine is a context of one statement. What it comes to hold it holds until done is called and what it has begun has ended.
func inLine(ctx context.Context) (lined context.Context, done func()) {
	p := &place{holders: 1}
	return context.WithValue(ctx, placeKey{}, p), p.release
}

// placeOf is a statement's place; what comes from no analyst has one for each purchase.
func placeOf(ctx context.Context) *place {
	if p, ok := ctx.Value(placeKey{}).(*place); ok {
		return p
	}
	return &place{}
}

// release ends one of the holders.
func (p *place) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holders--; p.holders > 0 {
		return
	}
	for _, back := range []*func(){&p.leave, &p.over} {
		if *back != nil {
			(*back)()
			*back = nil
		}
	}
}

// turn has a statement that buys wait behind its user's own, if it has not done so before. done is called when it has bought.
func (a *Answerer) turn(ctx context.Context, s *Session, p *place) (done func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over == nil {
		if p.over, err = a.turns.wait(ctx, s.User, s.Policy.Server.Limits.UserPurchases); err != nil {
			return nil, err
		}
	}
	p.holders++
	return p.release, nil
}

// admit has a statement wait for its place in the line, if it has none yet, and then looks whether the private database can run
// queries. It fails before anything is charged for what follows; kept is what an analyst is told of that. done is called when
// the queries have returned.
func (a *Answerer) admit(ctx context.Context, s *Session, p *place, kept string) (done func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leave == nil {
		leave, err := a.backend.Admit(ctx, s.Policy.Server.Timing.Fresh)
		if err != nil {
			return nil, err
		}
		if err := a.backend.Ready(ctx); err != nil {
			leave()
			if ctx.Err() != nil {
				return nil, ctx.Err() // the client no longer waits: that says nothing of the database
			}
			a.log.Error("private database not ready", "error", err)
			return nil, &Failure{SQLState: "DP004", Message: "the database cannot be reached; " + kept}
		}
		p.leave = leave
	}
	p.holders++
	return p.release, nil
}

// runs tells whether what is bought of a plan runs queries: all but what refines a release that is held.
func (a *Answerer) runs(plan *planner.Plan, wanted []int) bool {
	return a.behind(plan) || slices.ContainsFunc(wanted, func(i int) bool { return !plan.Measures[i].Refines() })
}
