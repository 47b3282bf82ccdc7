package pipeline

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/internal/moment"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/proxy/spans"
	"github.com/dpproxy/dpproxy/rewrite"
)

// releases draws, saves and asks releases. All of them have one life: a measure is priced (Item), its rows are read
// when plans.Measure.Reads says, it is drawn as plans.Measure.Drawing says, saved, and read (read.go) or asked
// (live.go).
type releases struct {
	database *database
	ledger   ledger.Ledger
	random   io.Reader
	live     live
	log      *slog.Logger
}

// A measure that is not too long (plans.Measure.IsTooLong) is an item that the ledger takes: before its meaning, its
// description (plans.Measure.Describe) has two bytes, and its kind and name with their lengths. Else one of these is
// negative, which does not compile.
const _ = uint(ledger.MaxNamed-plans.MaxNamed) +
	uint(ledger.MaxDescribed-plans.MaxDescribed-plans.MaxNamed-8)

// Item is a measure as the ledger is asked for it.
func Item(m *plans.Measure) ledger.Item {
	it := ledger.Item{Digest: ledger.Digest(m.Digest), Kind: m.Kind, Name: m.Name,
		Table: m.Table.Schema + "." + m.Table.Name, Shared: m.Shared, Cost: m.Cost, Spec: m.Paid(), Described: m.Describe()}
	if r := m.Refinement; r != nil {
		it.Ladder = ledger.Ladder{Finest: r.Top, Level: r.Level, From: r.From}
	}
	if m.Declared != nil {
		it.Refresh = m.Declared.Refresh
	}
	return it
}

// queried are the measures whose SQL a measure of a plan has run: of a release that grows its last step, whatever has
// been drawn already; of a run of alarms its questions.
func queried(plan *plans.Plan, i int) (list []*plans.Measure, err error) {
	m := plan.Measures[i]
	switch m.Reads() {
	case plans.Never:
	case plans.EachStep:
		m, err = m.Step(m.Continual.LastStep())
		list = append(list, m)
	case plans.EachQuestion:
		for run := range runs(plan) {
			if run.Measure == i && run.Threshold != nil {
				list = append(list, run.Threshold.Measure)
			}
		}
	default:
		list = append(list, m)
	}
	return list, err
}

// loadHeld reads what a measure refines, and of which moment its rows are, before anything is charged: after the charge
// there is always an answer.
func (r *releases) loadHeld(
	ctx context.Context, s *Session, m *plans.Measure,
) (held *mechanisms.Held, asOf int64, _ error) {
	if !m.Refines() {
		return nil, 0, nil
	}
	from, err := r.ledger.Load(ctx, s.User, m.Refinement.From)
	if err == nil {
		held = &mechanisms.Held{Spec: m.Refinement.Spec, Shown: from.Noisy}
		if held.Finest, err = r.ledger.Finest(ctx, s.User, m.Refinement.From); err == nil {
			return held, from.Item.AsOf, nil
		}
	}
	if errors.Is(err, ledger.ErrNotHeld) { // revoked since the plan was made
		return nil, 0, ledger.ErrRefined
	}
	r.log.ErrorContext(ctx, "what is to be refined was not read", "kind", m.Kind, "table", m.Table.Name, "error", err)
	return nil, 0, errLedger
}

// draw runs one paid measure, draws its release and saves that. A fault in it is no reason not to answer the others,
// which are paid for too (privacy rule 5).
func (r *releases) draw(
	ctx context.Context, x *execution, m *plans.Measure, rows trueCounts, held *mechanisms.Held, receipt *ledger.Receipt,
) (id int64, err error) {
	defer rows.over()
	defer r.database.recovered(ctx, &err)
	var truth privacy.Sensitive[[]privacy.Group]
	if rows.groups != nil {
		truth, err = rows.groups()
	} else {
		err = receipt.Spend(ledger.Digest(m.Digest))
	}
	if err != nil {
		r.log.ErrorContext(ctx, "paid measure was not run", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return 0, errInternal
	}
	one := newInstance()
	one.by = x.Session
	d := m.Drawing(receipt.Levels())
	d.Held, d.Save = held, func(step []byte) error { return r.extend(one.by, id, step) }
	var out mechanisms.Drawn
	ended := spans.Begin(ctx, spans.Noise, spans.Table(m.Table.Name), spans.Kind(m.Kind))
	r.database.workers.Draw(x.User, func() {
		out, err = onStep(d, truth, r.randomness(x.Session), x.Policy.Server.Timing.Fresh)
	})
	ended()
	if err != nil {
		r.log.ErrorContext(ctx, "no release was drawn", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return 0, errInternal
	}
	if one.asked = out.Live; one.asked != nil {
		defer r.live.opening(one, &id)()
	}
	if id, err = r.save(ctx, x, receipt, out); err != nil {
		r.log.ErrorContext(ctx, "release was not saved", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return 0, errLedger
	}
	return id, nil
}

// randomness is what a session's releases are drawn from, marked where its policy wants them drawn in fixed work.
func (r *releases) randomness(s *Session) io.Reader {
	if s.Policy.Server.FixedWork {
		return mechanisms.FixedWork(r.random)
	}
	return r.random
}

// onStep draws. What it takes to choose, to find keys or to make up rows depends on the scores that the rows have (how
// often a candidate is drawn anew): then its end is a multiple of step, as that of the query was.
func onStep(
	d mechanisms.Drawing, truth privacy.Sensitive[[]privacy.Group], random io.Reader, step time.Duration,
) (mechanisms.Drawn, error) {
	begun := time.Now()
	out, err := d.Draw(truth, random)
	scores := mechanisms.Is[*mechanisms.Choice](d.Spec) || mechanisms.Is[*mechanisms.Synthetic](d.Spec) || d.Keys != nil
	if step > 0 && scores {
		moment.Until(moment.Next(begun, step), nil)
	}
	return out, err
}

// savePatience is how long the drawn releases of a statement wait together for a ledger that is away: as long as a
// standby takes to be promoted. The charge is durable by then, so what is given up here is paid and lost.
const (
	savePatience = time.Minute
	savePause    = 2 * time.Second // at most, between two tries
)

// save saves what was drawn. Saving again stores the same draw, never another one.
func (r *releases) save(
	ctx context.Context, x *execution, receipt *ledger.Receipt, d mechanisms.Drawn,
) (id int64, err error) {
	defer spans.Begin(ctx, spans.Save)()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, savePause) {
		if id, err = r.ledger.Save(ctx, receipt, d); err == nil {
			x.failing = time.Time{}
			return id, nil
		}
		if !errors.Is(err, ledger.ErrUnavailable) && !errors.Is(err, ledger.ErrFull) {
			return 0, err
		}
		if x.failing.IsZero() {
			x.failing = time.Now()
		}
		if time.Since(x.failing) > savePatience {
			return 0, err
		}
		time.Sleep(pause)
	}
}

// behind reports whether a release that the plan reads has not grown far enough.
func (r *releases) behind(plan *plans.Plan) bool {
	return slices.ContainsFunc(plan.Measures, func(m *plans.Measure) bool {
		return m.Held && m.Through() > 0 && r.ledger.Grown(m.HeldID) < m.Through()
	})
}

// growAll grows every release of a plan that grows to the cells that are closed by the plan's time: it is done by
// whoever reads it first on that day. Growing costs nothing and is not shown to anybody (privacy rule 1).
func (r *releases) growAll(ctx context.Context, x *execution, plan *plans.Plan, ids []int64) error {
	for i, m := range plan.Measures {
		if m.Reads() != plans.EachStep {
			continue
		}
		if err := r.grow(ctx, x, m, ids[i]); err != nil {
			return err
		}
	}
	return nil
}

// grow has a release drawn for the cells that have closed since it last grew, and saves that before anything is read.
func (r *releases) grow(ctx context.Context, x *execution, m *plans.Measure, id int64) error {
	receipt, step, err := r.ledger.Grow(ctx, x.User, id, m.Through())
	if err != nil {
		r.log.ErrorContext(ctx, "release was not grown", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return errLedger
	}
	if receipt == nil {
		return nil
	}
	defer r.ledger.Abandon(receipt) // does nothing once it is saved
	counted, err := m.Step(step)
	if err != nil {
		r.log.ErrorContext(ctx, "release was not grown", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return errInternal
	}
	query, err := rewrite.Render(counted, r.database.backend.Dialect())
	if err != nil {
		r.log.ErrorContext(ctx, "measure cannot be rendered", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return errInternal
	}
	_, err = r.draw(ctx, x, counted, trueCounts{func() (privacy.Sensitive[[]privacy.Group], error) {
		return r.database.runQuery(ctx, x, query, receipt)
	}, func() {}}, nil, receipt)
	return err
}

// load reads a saved release of hers.
func (r *releases) load(ctx context.Context, s *Session, id int64) (ledger.Release, error) {
	release, err := r.ledger.Load(ctx, s.User, id)
	if err != nil {
		r.log.ErrorContext(ctx, "saved release cannot be read", "release", id, "error", err)
		return ledger.Release{}, errLedger
	}
	return release, nil
}
