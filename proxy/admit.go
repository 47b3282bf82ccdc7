package proxy

import (
	"context"
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/planner"
)

// place is a statement's in the line for the private database, which it has from before its first charge until after its last
// query, whether it finds keys, buys or asks.
type place struct {
	mu      sync.Mutex
	holders int    // what goes on of the statement
	leave   func() // nil: it has not been admitted
}

type placeKey struct{}

// inLine is a context of one statement, whose place is held until done is called, and what it has begun has ended.
func inLine(ctx context.Context) (lined context.Context, done func()) {
	p := &place{holders: 1}
	return context.WithValue(ctx, placeKey{}, p), p.release
}

// release ends what admit began.
func (p *place) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holders--; p.holders == 0 && p.leave != nil {
		p.leave()
		p.leave = nil
	}
}

// admit has a statement wait for its place, if it has none yet, and then looks whether the private database can run queries.
// It fails before anything is charged for what follows; kept is what an analyst is told of that. done is called when the
// queries have returned.
func (a *Answerer) admit(ctx context.Context, s *Session, kept string) (done func(), err error) {
	p, ok := ctx.Value(placeKey{}).(*place)
	if !ok {
		p = &place{}
	}
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
