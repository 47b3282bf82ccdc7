package pipeline

import (
	"context"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/rewrite"
)

// The queries of a statement that buys several measures run side by side, as far as the private database has places that nobody waits for:
//
//	SELECT (SELECT count(*) FROM people), (SELECT count(*) FROM visits WHERE minutes > 20)
//
// has two. Only the reading overlaps: they are charged together before the first of them runs, and drawn and saved one after another in the plan's
// order, each as soon as its groups are there and those before it are saved (privacy rule 4). What is read, and what is drawn from it with which randomness,
// is what it would be one after the other.
//
// Claim. On a grid (ADRs 36 and 45) the times tell no more of the rows than one after the other. Proof. How many run beside the first hangs on the plan
// and on which places are free, which become free at public moments. Each query takes a place of its own in the line, so that a turn still comes
// within three steps, and returns at a public moment since its turn; the first to be drawn waits for the first query, and so on, so that what
// follows begins at the largest of some public moments.

// widen takes places for queries beside the first of a statement that has been admitted, and memory for their results, of what is to be had at once.
func (a *Answerer) widen(ctx context.Context, s *Session, plan *plans.Plan, queries []rewrite.Query, wanted []int) {
	if !readOnce(plan, wanted) {
		return
	}
	var bytes []int64
	for _, i := range wanted {
		if !plan.Measures[i].Refines() {
			bytes = append(bytes, resultBytes(queries[i:i+1]))
		}
	}
	slices.SortFunc(bytes, func(a, b int64) int { return int(min(max(b-a, -1), 1)) })
	p, step := placeOf(ctx), s.Policy.Server.Timing.Fresh
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := 1 + p.beside; k < min(len(bytes), a.backend.Places()); k++ { // memory for the largest has been reserved
		leave, had := a.workers.Spare(s.User, step, a.backend.Lines(step))
		if !had {
			return
		}
		_, left, err := a.backend.Admit(ctx, step, s.Policy)
		if err != nil {
			leave(time.Time{})
			return
		}
		giveBack, had := a.workers.ReserveSpare(bytes[k])
		if !had {
			left(time.Time{})
			leave(time.Time{})
			return
		}
		p.beside++
		p.giveBack = append(p.giveBack, left, leave, admission.OnGrid(step, giveBack))
	}
}

// readOnce tells whether each of the measures that are bought reads its rows when it is bought, or none: what asks its rows again and again does so
// by itself.
func readOnce(plan *plans.Plan, wanted []int) bool {
	return !slices.ContainsFunc(wanted, func(i int) bool { return !plan.Measures[i].Refines() && !readsOnce(plan.Measures[i]) })
}

// trueCounts are what a paid query counts: groups waits for it, and over says that its result is drawn from.
type trueCounts struct {
	groups func() (privacy.Sensitive[[]privacy.Group], error)
	over   func()
}

// readBeside runs the queries of the receipts that a statement has. rows are those of the kth of what is wanted, each taken once, in this order:
// so many queries run, or wait to be drawn from, as the statement has places.
func (a *Answerer) readBeside(ctx context.Context, s *Session, plan *plans.Plan, queries []rewrite.Query, wanted []int, outcomes []ledger.Outcome) (rows func(k int) trueCounts) {
	alone := func(k int) trueCounts {
		return trueCounts{func() (privacy.Sensitive[[]privacy.Group], error) {
			return a.execute(ctx, s, queries[wanted[k]], outcomes[k].Receipt)
		}, func() {}}
	}
	beside := placeOf(ctx).queriesBeside()
	if beside == 0 || !readOnce(plan, wanted) {
		return alone
	}
	type result struct {
		groups privacy.Sensitive[[]privacy.Group]
		err    error
	}
	free, results := make(chan struct{}, 1+beside), make([]chan result, len(wanted))
	var run []int
	for k, i := range wanted {
		if outcomes[k].Receipt != nil && !plan.Measures[i].Refines() {
			results[k] = make(chan result, 1)
			run = append(run, k)
		}
	}
	go func() {
		for _, k := range run {
			free <- struct{}{}
			go func() {
				var r result
				defer func() { results[k] <- r }()
				defer a.recovered(ctx, &r.err)
				r.groups, r.err = alone(k).groups()
			}()
		}
	}()
	return func(k int) trueCounts {
		if results[k] == nil {
			return alone(k)
		}
		return trueCounts{func() (privacy.Sensitive[[]privacy.Group], error) {
			r := <-results[k]
			return r.groups, r.err
		}, func() { <-free }}
	}
}

// queriesBeside is how many queries may run beside the first.
func (p *place) queriesBeside() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.beside
}
