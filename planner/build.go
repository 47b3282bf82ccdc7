// Package planner turns one SELECT into a plan or a refusal: Build parses nothing and runs nothing, it has the
// statement bound (packages bind, aggregate and outerquery), an access path of each question chosen (choose), and puts
// the plan together (plans). It is pure: no I/O, it never sees a row, and equal inputs give equal plans. Its rooms,
// each of which knows only those before it:
//
//	pgcatalog              PostgreSQL's own relations and functions, and what of them is shown
//	refuse, ast            a refusal; trees of the grammar
//	scalar, mysql, parse   typed expressions; MySQL's SELECTs as PostgreSQL's trees; text → statements
//	predicate, derived     conditions over cells; tables that joins and sub-queries make
//	plans                  what a plan is made of
//	semantics              what an expression over a row means
//	linear                 an aggregation as a linear map on cells
//	reuse                  what is held, and what can be read from it
//	discovery, lookup      the keys of columns whose values nobody declared; what public tables say of cells
//	bind                   the private rows that a SELECT is about, a file for each construct
//	formula, aggregate     SQL over counters; what is asked of private rows: GROUP BY and aggregates
//	outerquery             the cut at the boundary, and what is above the questions
//	choose, workload       access paths, and which is taken; many statements at once
//
// Beside them bounds plans what `dpproxy bounds` asks.
package planner

import (
	"math"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/planner/discovery"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/lookup"
	"github.com/dpproxy/dpproxy/planner/outerquery"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Build has a statement planned by four functions, each of which calls the next, most often once:
//
//	buildEither   in ε, in ρ, or in both, of which one is taken
//	planWithin    with a part of the cost for each sub-query that is answered first (inner.go)
//	planOpen      until the keys of its columns without declared values are known
//	build         bound, chosen for, put together: the plan itself

// Build plans a Select with its parameters.
func Build(s parse.Statement, params []policy.Value, c reuse.Context) (p *plans.Plan, refusal *refuse.Refusal) {
	c = c.Limited()
	defer c.Stopped(&refusal)
	c.Settings.Literals = s.Literals
	p, refusal = buildEither(s, params, c)
	return p, s.Placed(refusal)
}

// planOpen binds and plans a statement until nothing of its open columns is missing.
func planOpen(s parse.Statement, values []policy.Value, c reuse.Context, in *inners) (*plans.Plan, *refuse.Refusal) {
	o := discovery.New()
	last := semantics.OpenColumn.At(-1, "that it asks for")
	for range discovery.MaxBindings {
		o.Tables = map[*policy.Table]*policy.Table{}
		p, refusal := build(s, values, c, o, in)
		if o.Learns(refusal) {
			if refusal != nil {
				last = refusal
			}
			continue
		}
		if refusal != nil && refusal.ID == linear.TooManyCells.ID && !o.Large && c.Dataset != nil && c.Dataset.Threshold {
			o.Large = true
			continue
		}
		if refusal != nil || len(o.Wanted) == len(o.Found) {
			if refusal == nil {
				refusal = o.Finish(p, c)
			}
			if refusal != nil {
				return nil, refusal
			}
			p.Alternatives = append(p.Alternatives, otherwise(p, s, values, c, o, in)...)
			return p, nil
		}
		for _, column := range o.Wanted {
			if o.Found[column] != nil {
				continue
			}
			if refusal := o.Find(column, c); refusal != nil {
				return nil, refusal
			}
		}
	}
	return nil, last
}

// otherwise are the ways to answer a statement that another dp.contribution has, which those of its plan are not.
func otherwise(
	planned *plans.Plan, s parse.Statement, values []policy.Value, c reuse.Context, o *discovery.Keys, in *inners,
) (list []plans.Alternative) {
	if !c.Alternatives {
		return nil
	}
	for _, other := range []plans.Contribution{{Rows: true}, {Ladder: true}} {
		c.Settings.Contribution = other
		p, refusal := build(s, values, c, o, in)
		if refusal != nil || p == nil {
			continue
		}
		for _, way := range p.Alternatives {
			known := slices.ContainsFunc(planned.Alternatives, func(have plans.Alternative) bool {
				return have.Name == way.Name && have.Kind == way.Kind && have.Steps == way.Steps
			})
			if way.Taken && !known {
				way.Taken, way.Why = false, "SET dp.contribution = "+other.String()
				list = append(list, way)
			}
		}
	}
	return list
}

// build plans a statement by the keys that o has for its columns without declared values. Neither a plan nor a refusal:
// some of them are lacking, which o notes.
func build(s parse.Statement, values []policy.Value, c reuse.Context, o *discovery.Keys, in *inners) (*plans.Plan, *refuse.Refusal) {
	if s.Kind != parse.KindSelect {
		if refusal := parse.Refuse(s); refusal != nil {
			return nil, refusal
		}
		return nil, s.NotSelect()
	}
	if s.HandedOn { // its rows are not looked at, but kept (privacy rule 31)
		c.Settings.Probes = plans.ProbesRefused
	}
	b, out, refusal := bound(s, values, c, o, in, nil)
	if refusal != nil || o.Lacks() {
		return nil, refusal
	}
	var occupied map[*pg.SelectStmt]bool
	if out.Tree != nil || s.Listed { // else nothing is above groups but conditions and an order
		occupied = outerquery.Occupied(b, s.Listed)
	}
	if len(occupied) > 0 {
		if b, out, refusal = bound(s, values, c, o, in, occupied); refusal != nil || o.Lacks() {
			return nil, refusal
		}
	}
	if refusal = out.Direct.Failing(); refusal != nil {
		return nil, refusal
	}
	notes := &b.Notes
	chosen, refusal := choosePaths(b, notes)
	if refusal != nil {
		return nil, refusal
	}
	plan := assembly{&plans.Plan{Dataset: c.Dataset, Outer: out.Outer, Columns: plans.Bounded(out.Columns, s.Bounds), Confidence: c.Settings.Confidence, CoversAll: c.Settings.CoversAll, ErrorColumns: c.Settings.ErrorColumns, Significant: c.Settings.Significant, Bounds: s.Bounds}}
	plan.addLeaves(chosen, notes)
	if d := out.Direct; d != nil && d.Leaf >= 0 {
		if refusal = d.FailingOnRows(plan.Leaves[d.Leaf].CertainRows()); refusal != nil {
			return nil, refusal
		}
	}
	plan.Outputs = outerquery.Outputs(b, plan.Plan, notes, s.Listed)
	if c.Alternatives {
		plan.Alternatives = chosen.optimizer.Alternatives(chosen.all, chosen.paths)
	}
	plan.Notes = append(append(*notes, chosen.optimizer.Dates...), chosen.optimizer.Hints...)
	if refusal = plan.addSyntheticRows(out.Synthetic, c); refusal != nil {
		return nil, refusal
	}
	for _, t := range out.Probed {
		plan.Probed = append(plan.Probed, t.Name)
		plan.Notes = append(plan.Notes, "a SELECT of rows of "+t.Name+" has none, by dp.probes = empty; count(*), sums and the like are answered")
	}
	plan.noteErrors(out.Shown)
	if out.Shown != nil && out.Shown.Leaf >= 0 {
		errors := func(p *plans.Plan) { assembly{p}.noteErrors(out.Shown) }
		plan.Rated = &plans.Rated{Leaf: out.Shown.Leaf, Errors: errors}
	}
	if plan.Buys() {
		plan.Statement = plan.digest(s.Text, values)
	}
	plan.Asked, plan.Outer.Literals, plan.Outer.Given = b.Env.Asked, c.Settings.Literals, b.Given
	return plan.Plan, nil
}

// bound is a statement with its questions, of which those of some SELECTs leave out groups that nobody is in.
func bound(s parse.Statement, values []policy.Value, c reuse.Context, o *discovery.Keys, in *inners,
	occupied map[*pg.SelectStmt]bool) (*aggregate.Binder, *outerquery.Bound, *refuse.Refusal) {
	b := aggregate.NewBinder(c, &semantics.Parameters{Values: values, Types: s.ParamTypes, Describing: values == nil})
	b.Open, b.Inner, b.Occupied = o, in.answer, occupied
	b.Text, b.Top, b.Inside = s.Text, s.Select(), in.depth > 1
	out, refusal := outerquery.Bind(b)
	return b, out, refusal
}

// chosenPaths are the leaf plans of a statement, those of its questions before those of what is selected or compared in
// them, and the paths that were taken for each.
type chosenPaths struct {
	optimizer *choose.Optimizer
	all       []*choose.LeafPlan
	questions int // how many of them are the questions'
	paths     [][]*choose.Path
}

// choosePaths finds how the questions of a bound statement are answered.
func choosePaths(b *aggregate.Binder, notes *semantics.Notes) (c chosenPaths, refusal *refuse.Refusal) {
	for _, q := range b.Questions {
		if q.Preserved > 0 {
			if refusal = lookup.Unseen(q, b.Env.Work); refusal != nil {
				return c, refusal
			}
		}
	}
	c.optimizer = &choose.Optimizer{Now: b.Env.Clock, Views: map[*policy.Table]*reuse.Views{}, Open: b.Open}
	c.optimizer.Context = b.Context
	leaves, selected, refusal := (&choose.LeafPlanner{Binder: b, Notes: notes, Optimizer: c.optimizer}).LeafPlans()
	if refusal != nil {
		return c, refusal
	}
	if refusal = c.optimizer.Tellable(b.Questions); refusal != nil {
		return c, refusal
	}
	c.all, c.questions = append(slices.Clone(leaves), selected...), len(leaves)
	if c.paths, refusal = c.optimizer.Choose(c.all); refusal != nil {
		return c, refusal
	}
	choose.NoteUnclosed(c.all, c.paths, notes)
	return c, nil
}

// Of a dataset of the accountant either a statement is planned twice: for ε, with Laplace noise, and for ρ, with
// Gaussian noise. Of
//
//	SET dp.max_error = 10; SELECT count(*) FROM people
//
// the first costs ε 0.28, of which (1, 1e-6) holds 3, the other ρ 0.019, of which it holds 1: it is the first. Of one
// within ±100 it holds 33 and 127: the other. So a choice is made as if all that is asked from now on were such
// statements, by what is left of either at equal error: whoever asks the like of what she has asked gets as many
// answers as from the better of the two accountants (docs/adr/0111). Costs, errors and what is left are public, or her
// own.

// buildEither plans a statement in the unit that is better for it.
func buildEither(s parse.Statement, params []policy.Value, c reuse.Context) (*plans.Plan, *refuse.Refusal) {
	if c.Dataset == nil || c.Dataset.Accountant != privacy.Either || c.Priced != 0 {
		return planWithin(s, params, c, 0)
	}
	c.Priced = privacy.Pure
	pure, refusal := planWithin(s, params, c, 0)
	if refusal == nil && beginsFree(pure) {
		return pure, nil
	}
	c.Priced = privacy.ZCDP
	concentrated, other := planWithin(s, params, c, 0)
	switch {
	case other != nil:
		return pure, refusal
	case refusal != nil || beginsFree(concentrated):
		return concentrated, nil
	}
	// A declared release is bought once for all that it answers from then on.
	if some := declares(pure); some != declares(concentrated) {
		only := concentrated
		if some {
			only = pure
		}
		if c.Holds(only.Charge()) {
			return only, nil
		}
	}
	times := 1.
	if c.Settings.MaxError == 0 { // else both are as exact as asked
		times = timesTheError(pure, concentrated)
	}
	chosen, why := c.Better(pure.Charge(), concentrated.Charge(), times)
	plan := pure
	if chosen == privacy.ZCDP {
		plan = concentrated
	}
	plan.Priced = why
	return plan, nil
}

// beginsFree reports whether a plan costs nothing, or all that is answered first of it is held: what is left of it to
// buy is known, and compared, once it is answered.
func beginsFree(p *plans.Plan) bool {
	if p.Cost.IsZero() {
		return true
	}
	first := p.Inmost()
	dear := func(in *plans.Inner) bool { return !in.Plan.Cost.IsZero() }
	return slices.ContainsFunc(first, func(in *plans.Inner) bool { return in.Plan.Private() }) && !slices.ContainsFunc(first, dear)
}

// declares reports whether a plan buys a release that the policy declares.
func declares(p *plans.Plan) bool {
	return slices.ContainsFunc(p.Measures, func(m *plans.Measure) bool { return m.Declared != nil && !m.Held })
}

// timesTheError is how many times the squared error of one plan of a statement is that of another, in the geometric
// mean of what its leaves tell: counts and sums by their largest variance, what is chosen by its rank.
func timesTheError(some, others *plans.Plan) float64 {
	sum, n := 0., 0
	for i := range min(len(some.Leaves), len(others.Leaves)) {
		for k := range min(len(some.Leaves[i].Counts), len(others.Leaves[i].Counts)) {
			a, b := some.Leaves[i].Counts[k].Runs, others.Leaves[i].Counts[k].Runs
			for r := range min(len(a), len(b)) {
				if x, y := squaredError(some, &a[r]), squaredError(others, &b[r]); x > 0 && y > 0 {
					sum, n = sum+math.Log(x/y), n+1
				}
			}
		}
	}
	if n == 0 {
		return 1
	}
	return math.Exp(sum / float64(n))
}

func squaredError(p *plans.Plan, run *plans.Run) float64 {
	switch {
	case run.Selected != nil:
		return run.Selected.Rank * run.Selected.Rank
	case run.Measure < 0 || run.Threshold != nil || run.Ladder != nil:
		return 0
	case run.Mix != nil:
		return p.WidestError(run, p.Confidence).Variance
	}
	_, variance := plans.WorstRow(p.Measures[run.Measure].Spec.Only(run.Counter), run.Spans, p.Confidence)
	return variance
}

// catalogue lists every refusal, in the order of the documentation.
func catalogue() []*refuse.Reason {
	several := []*refuse.Reason{refuse.UnknownFunction, refuse.BoundPlace, refuse.UnknownType, refuse.BlankPadded, refuse.UnknownParam, refuse.AggregateIn, refuse.Construct}
	return slices.Concat(reuse.Refusals, parse.RefusedTexts, parse.RefusedStatements, several, semantics.Refusals, bind.Refusals, aggregate.Refusals, outerquery.Refusals, linear.Refusals,
		choose.Refusals, refuse.AfterPlanning, parse.RefusedMySQL)
}
