package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/internal/moment"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/spans"
	"github.com/dpproxy/dpproxy/rewrite"
)

// place is what a statement holds while it has private rows read, whether it finds keys, buys or asks: one of its user's turns,
// and a place in the line for the private database. It has them until its last answer is read, and what it began has ended: nothing
// of it waits or is refused after another part was paid. A turn is waited for before a place, never with one in hand: else some could
// hold all the places and wait for turns, whose holders wait for places.
//
// It is in the context of all that is done for one statement (placeOf), so it also holds what parts of that tell one another: what
// was bought and answered before the statement itself is planned again (found, answers), and what it has been charged.
type place struct {
	mu       sync.Mutex
	holders  int                  // what goes on of the statement
	over     func()               // gives the turn back; nil: it has none
	leave    func(last time.Time) // gives the place back; nil: it has none
	last     time.Time            // when its last query returned
	asOf     int64                // of the rows that its queries read
	bytes    int64                // that are reserved for its results
	giveBack []func(last time.Time)
	beside   int       // how many of its queries may run beside the first of them
	first    sync.Once // ends the first of the holders

	ticket  bool                     // it has had its user's ticket
	found   privacy.Cost             // what has been bought first: keys, and answers of sub-queries
	answers map[string]*plans.Answer // of its sub-queries
	text    string                   // of the statement; empty: it is none
	charged privacy.Cost             // all that the statement has been charged
	away    time.Time                // when the ledger first failed to save what it has drawn
}

type placeKey struct{}

// inLine is a context of one statement. What it comes to hold it holds until done is called, and what it has begun has ended.
func inLine(ctx context.Context) (lined context.Context, done func()) {
	p := &place{holders: 1}
	return context.WithValue(ctx, placeKey{}, p), p.done
}

// done ends the first of the holders.
func (p *place) done() { p.first.Do(p.release) }

func placeOf(ctx context.Context) *place { return ctx.Value(placeKey{}).(*place) }

// release ends one of the holders.
func (p *place) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holders--; p.holders > 0 {
		return
	}
	if p.leave != nil {
		p.leave(p.last)
	}
	for _, giveBack := range p.giveBack {
		giveBack(p.last)
	}
	if p.over != nil {
		p.over()
	}
	p.leave, p.over, p.last, p.giveBack, p.bytes, p.beside = nil, nil, time.Time{}, nil, 0, 0
}

// hold is for what a statement begins and does not wait for to its end: it calls release.
func (p *place) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holders++
}

// ticket takes one of its user's for a statement that buys: one, however often it begins again (ADR 44).
func (a *Answerer) ticket(ctx context.Context, s *Session) bool {
	p := placeOf(ctx)
	p.ticket = p.ticket || a.turns.Ticket(s.User, s.Policy.Server.Limits.PurchasesPerSecond, time.Now())
	return p.ticket
}

// turn has a statement that buys wait behind its user's own, if it has not done so before.
func (a *Answerer) turn(ctx context.Context, s *Session) (err error) {
	p := placeOf(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over == nil {
		p.over, err = a.turns.Wait(ctx, s.User, s.Policy.Server.Limits.UserPurchases)
	}
	return err
}

// admit has a statement wait for its place in the line, if it has none yet, and then looks whether the private database can run
// queries, and would plan these. It fails before anything is charged for what follows; kept is what an analyst is told of that.
func (a *Answerer) admit(ctx context.Context, s *Session, queries []rewrite.Query, kept string) error {
	p := placeOf(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	leave := p.leave
	if leave == nil {
		var err error
		var asOf func(...rewrite.Query) int64
		if asOf, leave, err = a.inTurn(ctx, s); err != nil {
			return err
		}
		p.asOf = asOf(queries...)
	} else if len(queries) == 0 {
		return nil
	}
	queries = slices.Clone(queries)
	for i := range queries {
		queries[i] = queries[i].Of(p.asOf)
	}
	err := p.room(ctx, a, s.Policy.Server.Timing.Fresh, queries)
	if err == nil {
		err = a.backend.Ready(ctx, queries...)
	}
	if err != nil {
		if p.leave == nil {
			leave(time.Time{})
		}
		if errors.Is(err, admission.ErrMemory) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err() // the client no longer waits: that says nothing of the database
		}
		a.log.ErrorContext(ctx, "private database not ready", "error", err)
		if errors.Is(err, backend.ErrUnplanned) {
			return &pgerror.Failure{SQLState: "DP004", Message: "the database does not accept the query that would answer this; " + kept,
				Hint: "The operator's log names the cause. Another form of the question may be accepted: EXPLAIN shows each one's query, free of charge.", Logged: true}
		}
		if errors.Is(err, backend.ErrDrift) || errors.Is(err, backend.ErrSettings) { // one word for all causes
			return &pgerror.Failure{SQLState: "DP004", Message: "the database is not, at present, what the policy was checked against; " + kept,
				Hint: "The operator's log names the cause. What was paid for is answered as ever.", Logged: true}
		}
		return &pgerror.Failure{SQLState: "DP004", Message: "the database cannot be reached; " + kept, Logged: true}
	}
	p.leave = leave
	return nil
}

// inTurn waits until the private database has a place for a statement of this user, and until it is admitted to the line.
func (a *Answerer) inTurn(ctx context.Context, s *Session) (asOf func(...rewrite.Query) int64, leave func(last time.Time), err error) {
	step := s.Policy.Server.Timing.Fresh
	done, err := a.workers.Query(ctx, s.User, step, a.backend.Lines(step))
	if err != nil {
		return nil, nil, err
	}
	asOf, left, err := a.backend.Admit(ctx, step, s.Policy)
	if err != nil {
		done(time.Time{})
		return nil, nil, err
	}
	return asOf, func(last time.Time) {
		left(last)
		done(last)
	}, nil
}

// execute runs the paid query of one measure of a statement.
func (a *Answerer) execute(ctx context.Context, s *Session, query rewrite.Query, receipt *ledger.Receipt) (privacy.Sensitive[[]privacy.Group], error) {
	counted, err := a.executeAll(ctx, s, query, []*ledger.Receipt{receipt})
	if err != nil {
		return privacy.Sensitive[[]privacy.Group]{}, err
	}
	return counted[0], nil
}

// executeAll runs a paid query of a statement, for all measures of its scan. A query after another begins on the grid: how long what lies between them took
// (whether an alarm's yes had to be saved) is not to show in when others' turns come.
func (a *Answerer) executeAll(ctx context.Context, s *Session, query rewrite.Query, receipts []*ledger.Receipt) ([]privacy.Sensitive[[]privacy.Group], error) {
	defer spans.Begin(ctx, spans.Execute, spans.Table(query.Table().Name))()
	p, timing := placeOf(ctx), s.Policy.Server.Timing
	if last := p.ran(); !last.IsZero() && timing.Grid > 0 {
		moment.Until(moment.Next(last, timing.Grid), nil)
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.last = time.Now()
	}()
	return a.backend.Execute(ctx, query.Of(p.rows()), receipts, timing.Fresh)
}

// rows is the moment of the rows that the statement's queries read.
func (p *place) rows() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asOf
}

// ran is when the last query of a statement returned, the zero time if it has run none.
func (p *place) ran() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// runs tells whether what is bought of a plan runs queries: all but what refines a release that is held.
func (a *Answerer) runs(plan *plans.Plan, wanted []int) bool {
	return a.behind(plan) || slices.ContainsFunc(wanted, func(i int) bool { return !plan.Measures[i].Refines() })
}

// resultBytes is what the results of queries take at most, which are run one after the other: each as it comes, and once more with
// its weights.
func resultBytes(queries []rewrite.Query) (most int64) {
	for _, q := range queries {
		most = max(most, 2*backend.Reserved(q))
	}
	return most
}

// room reserves memory for results of queries, as far as the statement has not done so before.
func (p *place) room(ctx context.Context, a *Answerer, step time.Duration, queries []rewrite.Query) error {
	bytes := resultBytes(queries) - p.bytes
	if bytes <= 0 {
		return nil
	}
	giveBack, err := a.workers.Reserve(ctx, bytes)
	if err != nil {
		return err
	}
	p.bytes += bytes
	p.giveBack = append(p.giveBack, admission.OnGrid(step, giveBack))
	return nil
}

// planned are the queries that buying the wanted measures of a plan runs, which the database is asked to plan before the charge:
// those of releases that grow too, which are rendered in their last step's form.
func planned(plan *plans.Plan, queries []rewrite.Query, wanted []int) (list []rewrite.Query) {
	for i, q := range queries {
		grows := plan.Measures[i].Continual != nil
		if q.Valid() && (grows || slices.Contains(wanted, i)) && !slices.ContainsFunc(list, q.Beside) {
			list = append(list, q)
		}
	}
	return list
}
