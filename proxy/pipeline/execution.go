package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

// execution is one statement on its way through the pipeline: who asks, and what its parts tell one another. Of
//
//	SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)
//
// the average is bought and answered first, and the statement is planned again with it: that is in prior by then, and
// what admission has granted for the average serves the count as well.
type execution struct {
	*Session
	begun    time.Time
	going    bool   // what is answered first may have been charged, or read: see hurried
	text     string // of the statement, for the operator; empty means it is none
	prior    prior
	since    int64 // the first number of a release that it was not planned by; 0 means that is not known
	token    bool  // it has had its user's token of purchases
	admitted grants
	failing  time.Time // since when the ledger does not save what was drawn; of the goroutine that draws

	mu      sync.Mutex
	charged privacy.Cost // all that it has been charged
}

// prior is what a statement has bought before it is planned to the end: keys that nobody declared, and answers of
// sub-queries.
type prior struct {
	cost    privacy.Cost
	answers map[string]*plans.Answer // of sub-queries, by their keys; never changed, but replaced
}

// newExecution begins to execute a statement. Whoever does ends it by admitted.done.
func newExecution(s *Session, text string) *execution {
	return &execution{Session: s, begun: time.Now(), text: text, admitted: grants{holders: 1}}
}

// plannedBy notes what it is planned by.
func (x *execution) plannedBy(held []ledger.Release) {
	x.since = 1
	for _, r := range held {
		x.since = max(x.since, r.ID+1)
	}
}

// wasCharged notes what has been charged by now: whoever draws knows it first, and the client may have left meanwhile.
func (x *execution) wasCharged(all privacy.Cost) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.charged = all
}

// chargedSoFar is what it has been charged by now.
func (x *execution) chargedSoFar() privacy.Cost {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.charged
}

// Pace is what a statement tells the grid on which its answer leaves (ADRs 36 and 45). A context without one keeps to
// none.
type Pace struct {
	ReadsRows func() // private rows are read
	AwaitGrid func() // a clock may be asked, whose time is in the answer: waits for the grid if rows were read
}

type paceKey struct{}

// WithPace is a context of one statement, which keeps to its session's pace.
func WithPace(ctx context.Context, p Pace) context.Context {
	return context.WithValue(ctx, paceKey{}, p)
}

// ReadsRows says that private rows are read for what this context belongs to. Whoever calls it decides by public
// things.
func ReadsRows(ctx context.Context) {
	if p, ok := ctx.Value(paceKey{}).(Pace); ok {
		p.ReadsRows()
	}
}

// awaitGrid is called before a clock may be asked.
func awaitGrid(ctx context.Context) {
	if p, ok := ctx.Value(paceKey{}).(Pace); ok {
		p.AwaitGrid()
	}
}

// What a statement costs may change between EXPLAIN and the statement: a policy is reloaded, a release is revoked,
// another session of hers refines one. SET dp.max_cost = 0.1 has it refused then, before anything of it is charged: who
// was shown a price pays that or less (docs/adr/0134). It looks at the plan, so that it depends on what the price
// depends on, and on nothing else.
//
//	SET dp.max_cost = 0; SELECT count(*) FROM people   -- answered if it is free, and else not

// tooDear is the error of a plan that costs more than the session lets it, together with what was bought first for it.
// A cost is in ρ where it names ρ, and else in ε, as amounts are in dp.budget. δ is bounded by dp.delta.
func tooDear(x *execution, cost privacy.Cost) error {
	if x.Settings.MaxCost == nil || cost.IsZero() {
		return nil
	}
	whole := x.prior.cost.Plus(cost)
	if withinMax(whole, *x.Settings.MaxCost) {
		return nil
	}
	kept := "nothing was charged"
	if !x.prior.cost.IsZero() {
		kept = "nothing more was charged"
	}
	return &pgerror.Failure{SQLState: "53400", Message: fmt.Sprintf("this costs %s, and dp.max_cost is %s; %s", whole, x.Settings.MaxCost, kept),
		Hint: "EXPLAIN shows what it costs and why. SET dp.max_cost = off lets it cost as much as dp.epsilon allows."}
}

// withinMax compares in units of 1e-12, in which both are whole. A δ alone is more than nothing.
func withinMax(cost privacy.Cost, most privacy.Rho) bool {
	const picoPerMicro = 1_000_000
	epsilon := cost.Epsilon.Micro()
	return cost.Rho.Pico() <= most.Pico() && epsilon <= most.Pico()/picoPerMicro && (most.Pico() > 0 || cost.IsZero())
}
