package pipeline

import (
	"context"
	"log/slog"
	"math/big"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Estimate is what statements are planned by without a ledger and without a private database: nothing is charged.
type Estimate struct {
	Private  dialect.Dialect // of the private database
	Engine   sandbox.Engine  // nil: outer queries are written for PostgreSQL and not tried
	Holdings reuse.Holdings
	Public   reuse.PublicRows // nil: no public table was read
	Left     privacy.Cost     // of her budget
	Now      time.Time
	Log      *slog.Logger
}

// Offer is by what a SELECT would be answered.
type Offer struct {
	Plan      *plans.Plan
	Error     string   // of the columns of the answer, in words
	HalfWidth *big.Rat // the largest of a column, in its own unit; nil means none is known by constants
	Leaves    []OfferedLeaf
}

// OfferedLeaf is how one aggregation is answered.
type OfferedLeaf struct {
	SQL, Table, Kind, Source, Mechanism, Cost string
	Errors                                    []string
}

// Offer plans a SELECT, writes its SQL and has the sandbox try the outer query.
func (e Estimate) Offer(ctx context.Context, s *Session, stmt parse.Statement) (Offer, *refuse.Refusal) {
	plan, refusal := planner.Build(stmt, []policy.Value{}, reuse.Context{Policy: s.Policy, Dataset: s.Dataset, User: s.User, Settings: s.Settings.Settings, Holdings: e.Holdings, Public: e.Public, Now: e.Now, Unspent: &e.Left})
	if refusal != nil {
		return Offer{}, refusal
	}
	explain := func(p *plans.Plan) (explanation, *refuse.Refusal) {
		queries, above, refusal := render(context.Background(), p, e.Private, e.Log)
		if refusal == nil && p.Outer.Direct == nil && e.Engine != nil {
			_, refusal = (&outside{engine: e.Engine, workers: admission.NewWorkers(0, 0)}).bound(ctx, s, p, above)
		}
		if refusal != nil {
			return explanation{}, refusal
		}
		return explained(p, queries, above), nil
	}
	first, refusal := innerLeaves(plan, explain)
	if refusal != nil {
		return Offer{}, refusal
	}
	own, refusal := explain(plan)
	if refusal != nil {
		return Offer{}, refusal
	}
	offer := Offer{Plan: plan, Error: strings.Join(errorParts(plan), "; ")}
	if most, ok := widest(plan); ok {
		offer.HalfWidth = most.rat()
	}
	for _, l := range append(first, own.Leaves...) {
		offer.Leaves = append(offer.Leaves, OfferedLeaf{SQL: l.SQL, Table: l.Table, Kind: l.Kind, Source: l.Source, Mechanism: l.Mechanism, Cost: l.Cost, Errors: l.Errors})
	}
	return offer, nil
}

// HoldingsOf are a user's releases of a dataset, as planning reads them.
func HoldingsOf(releases []ledger.Release, user, dataset string) reuse.Holdings {
	return (&holdingsIndex{}).of(releases, user, dataset)
}
