package pipeline

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/dpproxy/dpproxy/internal/moment"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// drawn is a measure's release, and the finest level where a ladder begins with it.
type drawn struct {
	noisy  privacy.Released[mechanisms.Noisy]
	finest mechanisms.Finest
	levels []privacy.Released[mechanisms.Noisy] // of a draw for several levels of trust, instead
}

// heldLevel is what a refinement is made of: a level of a release that she holds.
type heldLevel struct {
	shown  privacy.Released[mechanisms.Noisy]
	finest mechanisms.Finest
	asOf   int64 // of its rows
}

// loadHeld reads what a measure refines, before anything is charged: after the charge there is always an answer.
func (a *Answerer) loadHeld(ctx context.Context, s *Session, m *plans.Measure) (heldLevel, error) {
	if !m.Refines() {
		return heldLevel{}, nil
	}
	held, err := a.ledger.Load(ctx, s.User, m.Refinement.From)
	if err == nil {
		var h heldLevel
		if h.finest, err = a.ledger.Finest(ctx, s.User, m.Refinement.From); err == nil {
			h.shown, h.asOf = held.Noisy, held.Item.AsOf
			return h, nil
		}
	}
	if errors.Is(err, ledger.ErrNotHeld) { // revoked since the plan was made
		return heldLevel{}, ledger.ErrRefined
	}
	a.log.ErrorContext(ctx, "what is to be refined was not read", "kind", m.Kind, "table", m.Table.Name, "error", err)
	return heldLevel{}, errLedger
}

// refine makes a paid level of what is held, without the private database.
func (h heldLevel) refine(m *plans.Measure, receipt *ledger.Receipt, random io.Reader) (drawn, error) {
	if err := receipt.Spend(ledger.Digest(m.Digest)); err != nil {
		return drawn{}, err
	}
	noisy, err := mechanisms.Refine(m.Refinement.Spec, h.shown, m.Spec, h.finest, random)
	return drawn{noisy: noisy}, err
}

// released is release. What it takes to choose, to find keys or to make up rows depends on the scores that the rows have (how
// often a candidate is drawn anew): then its end is a multiple of step, as that of the query was.
func released(m *plans.Measure, levels []mechanisms.Level, truth privacy.Sensitive[[]privacy.Group], random io.Reader, step time.Duration) (drawn, error) {
	begun := time.Now()
	d, err := release(m, levels, truth, random)
	if step > 0 && (mechanisms.Is[*mechanisms.Choice](m.Spec) || mechanisms.Is[*mechanisms.Synthetic](m.Spec) || m.Open != nil) {
		moment.Until(moment.Next(begun, step), nil)
	}
	return d, err
}

// release adds a paid measure's noise to what the private database has counted.
func release(m *plans.Measure, levels []mechanisms.Level, truth privacy.Sensitive[[]privacy.Group], random io.Reader) (d drawn, err error) {
	switch {
	case len(levels) > 0:
		d.levels, err = mechanisms.ReleaseLevels(levels, m.Place, mechanisms.Weighed(m.Spec, truth, m.Weigh), random)
	case m.Open != nil:
		d.noisy, err = mechanisms.Discover(m.Finding, truth, random)
	case m.Refinement != nil:
		d.noisy, d.finest, err = mechanisms.ReleaseFirst(m.Spec, m.Refinement.Spec, m.Place, mechanisms.Weighed(m.Spec, truth, m.Weigh), random)
	default:
		d.noisy, err = mechanisms.Release(m.Spec, m.Place, mechanisms.Weighed(m.Spec, truth, m.Weigh), random)
	}
	return d, err
}

// ladderOf is a measure's ladder in the ledger's words.
func ladderOf(m *plans.Measure) ledger.Ladder {
	if m.Refinement == nil {
		return ledger.Ladder{}
	}
	return ledger.Ladder{Finest: m.Refinement.Top, Level: m.Refinement.Level, From: m.Refinement.From}
}

// refinements tell what was refined.
func refinements(plan *plans.Plan, bought purchase) (lines []string) {
	if bought.charged.IsZero() {
		return nil
	}
	for _, m := range plan.Measures {
		if m.Refines() {
			lines = append(lines, m.Name+" refines what you had: ε "+m.Refinement.Paid.String()+" was paid for it, ε "+m.Refinement.Level.String()+
				" now in all; it tells of the data as they were then")
		}
	}
	return lines
}
