package pipeline

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/rewrite"
)

// A release that grows is bought without an observation, and then grown to the cells that are closed by the plan's time:
// by whoever reads it first on that day. Growing costs nothing and is not told to anybody (privacy rule 1).

// behind tells whether a release that the plan reads has not grown far enough.
func (a *Answerer) behind(plan *plans.Plan) bool {
	for _, m := range plan.Measures {
		if m.Continual != nil && m.Held && a.ledger.Grown(m.HeldID) < m.Continual.Through {
			return true
		}
	}
	return false
}

// beginGrowing saves a release that has just been paid for, before anything is counted for it.
func (a *Answerer) beginGrowing(ctx context.Context, x *execution, m *plans.Measure, receipt *ledger.Receipt) (int64, error) {
	if err := receipt.Spend(ledger.Digest(m.Digest)); err != nil {
		a.log.ErrorContext(ctx, "paid release was not begun", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return 0, errInternal
	}
	begun, err := mechanisms.Begin(m.Continual.Spec)
	if err != nil {
		a.log.ErrorContext(ctx, "paid release was not begun", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return 0, errInternal
	}
	return a.saved(ctx, x, m, receipt, drawn{noisy: begun})
}

// grow has a release drawn for the cells that have closed since it last grew, and saves that before anything is read.
func (a *Answerer) grow(ctx context.Context, x *execution, m *plans.Measure, id int64) error {
	receipt, step, err := a.ledger.Grow(ctx, x.User, id, m.Continual.Through)
	if err != nil {
		a.log.ErrorContext(ctx, "release was not grown", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return errLedger
	}
	if receipt == nil {
		return nil
	}
	defer a.ledger.Abandon(receipt) // does nothing once it is saved
	counted, err := m.Step(step)
	if err != nil {
		a.log.ErrorContext(ctx, "release was not grown", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return errInternal
	}
	query, err := rewrite.Render(counted, a.backend.Dialect())
	if err != nil {
		a.log.ErrorContext(ctx, "measure cannot be rendered", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return errInternal
	}
	truth, err := a.runQuery(ctx, x, query, receipt)
	if err != nil {
		a.log.ErrorContext(ctx, "step of a release was not run", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return errInternal
	}
	var part privacy.Released[mechanisms.Noisy]
	a.workers.Draw(x.User, func() {
		part, err = mechanisms.Grow(m.Continual.Spec, step, counted.Place, truth, a.randomness(x.Session))
	})
	if err != nil {
		a.log.ErrorContext(ctx, "no step was drawn", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return errInternal
	}
	_, err = a.saved(ctx, x, m, receipt, drawn{noisy: part})
	return err
}

// growAll grows every release of the plan that grows.
func (a *Answerer) growAll(ctx context.Context, x *execution, plan *plans.Plan, ids []int64) error {
	for i, m := range plan.Measures {
		if m.Continual == nil {
			continue
		}
		if err := a.grow(ctx, x, m, ids[i]); err != nil {
			return err
		}
	}
	return nil
}

// counted is the measure whose SQL shows how a measure is counted: of a release that grows, the step of the last cell,
// whatever has been drawn already.
func counted(m *plans.Measure) (*plans.Measure, error) {
	if m.Continual != nil {
		return m.Step(m.Continual.LastStep())
	}
	return m, nil
}

// growthText names the strategy and the noise of a release that grows, and how exact it is by now.
func growthText(m *plans.Measure) string {
	s, days := m.Continual.Spec, m.Continual.Through
	how := fmt.Sprintf("%s: the band has the length %d", s.Counts().Strategy.Kind, largest(s.Counts().Strategy.Radices))
	if s.Counts().Strategy.Kind == mechanisms.ContinualTree {
		how = fmt.Sprintf("%s of single cells, each once complete", s.Counts().Strategy.Kind)
		if n := len(s.Counts().Strategy.Radices); n > 0 {
			blocks, block := make([]string, n), 1
			for i := range blocks {
				block *= s.Counts().Strategy.Radices[n-1-i]
				blocks[i] = fmt.Sprint(block)
			}
			how = fmt.Sprintf("%s of single cells and blocks of %s, each once complete", s.Counts().Strategy.Kind, strings.Join(blocks, " and "))
		}
	}
	all, err := mechanisms.NewConfidence(.95)
	if err != nil {
		return how
	}
	sofar := m.Spec.Error([]mechanisms.Span{{From: 0, To: days}}, all).Variance
	return fmt.Sprintf("%s; paid for once with all %d cells, of which %d are closed, and each drawn once when it is; %s; ranges of the closed cells have RMSE %.1f, their sum %.1f",
		how, s.Cells, days, noiseText(s.Counts().Noise), m.Spec.RMSE(mechanisms.AllRanges), math.Sqrt(sofar))
}

// largest is the largest of a few numbers, 0 of none.
func largest(list []int) (most int) {
	for _, n := range list {
		most = max(most, n)
	}
	return most
}

// renderSteps writes the SQL of the releases that grow and have been paid for, for EXPLAIN.
func (a *Answerer) renderSteps(ctx context.Context, plan *plans.Plan, queries []rewrite.Query) {
	for i, m := range plan.Measures {
		if m.Continual == nil || !m.Held {
			continue
		}
		step, err := counted(m)
		if err == nil {
			queries[i], err = rewrite.Render(step, a.backend.Dialect())
		}
		if err != nil {
			a.log.ErrorContext(ctx, "measure cannot be rendered", "kind", m.Kind, "table", m.Table.Name, "error", err)
		}
	}
}

// asOf is a saved release as a plan reads it, and its Spec: of one that grows, what was known at the plan's time.
func asOf(r ledger.Release, through int) (mechanisms.Spec, privacy.Released[mechanisms.Noisy]) {
	if through == 0 {
		return specOf(r), r.Noisy
	}
	known := r.Item.Spec.Known(through)
	return r.Item.Spec.Through(through), privacy.PostProcess(r.Noisy, func(n mechanisms.Noisy) mechanisms.Noisy {
		return mechanisms.Noisy{Observations: n.Observations[:min(known, len(n.Observations))]}
	})
}
