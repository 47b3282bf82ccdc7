// Package reuse reads a question from what an analyst has paid for already. Index holds her releases by what they can
// be used for; a release whose cells each lie inside one cell of a question, or outside of all, contains it
// (containment.go), and several of one epoch may add up to it (linear_combination.go). Who holds counts by age and sex
// gets
//
//	SELECT count(*) FROM people WHERE age BETWEEN 30 AND 39
//
// as the sum of twenty cells, for nothing.
package reuse

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Context is what a plan may depend on besides the statement: the policy, the analyst's own settings, and what she has
// paid for. Nothing in it comes from private rows or from another analyst's choices.
type Context struct {
	Policy   *policy.Policy
	Dataset  *policy.Dataset
	User     string
	Settings plans.Settings
	Holdings Holdings
	Public   PublicRows                              // nil: no public table has been copied
	Found    func(id int64) (mechanisms.Noisy, bool) // the keys of a release that she holds; nil means there are none
	Left     func(id int64) int                      // the updates left to an online release of hers, or the yes answers to a run of alarms, 0 if it has ended; nil if no online release has, and no run goes on
	Now      time.Time
	Work     *Work                    // what this one planning may take; nil means the default limits, and nothing that ends it earlier
	Answers  map[string]*plans.Answer // of the statement's sub-queries, by Inner.Key; those that are not there yet are still to be answered
	Types    *Types                   // of these sub-queries' columns; nil means that no engine tells them

	Unspent *privacy.Cost      // what is left to her, of a dataset of either accountant; nil means all of her budget
	Priced  privacy.Accountant // of a dataset of either: the one of the two in whose unit all that is bought is priced; 0 means whichever is better

	Alternatives bool // keep every way that was weighed, for EXPLAIN (ALTERNATIVES)
}

// Types are the types that an engine told of sub-queries that are answered first, where only it knows them. A statement
// is refused until they are known, and planned again.
type Types struct {
	Known  map[string][]plans.AnswerColumn // by Inner.Key; none where the engine refuses the sub-query
	Wanted *plans.Inner                    // whose columns planning looked for last; nil means it knew all
}

// Accountant is the one in whose unit a statement is priced.
func (c Context) Accountant() privacy.Accountant {
	if c.Dataset.Accountant != privacy.Either {
		return c.Dataset.Accountant
	}
	if c.Priced == privacy.ZCDP {
		return privacy.ZCDP
	}
	return privacy.Pure
}

// Share is a k-th of what a statement may cost, rounded down.
func (c Context) Share(k int) privacy.Cost {
	e := c.Settings.Epsilon
	if c.Accountant() == privacy.ZCDP {
		budget, _ := c.Dataset.Budget(c.User)
		return privacy.Cost{Rho: privacy.PicoRho(c.Dataset.RhoOf(e, budget.Cost).Pico() / int64(k))}
	}
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(e.Micro() / int64(k))}
}

// Part is the context of a k-th of a statement, which may cost a k-th of what the statement may. Of a dataset of either
// accountant it has a k-th of ε, of which k together come to no more in ρ than the whole: RhoOf grows at least in
// proportion to ε.
func (c Context) Part(k int) Context {
	if c.Dataset == nil || k == 1 {
		return c
	}
	if d := c.Settings.Delta.Atto(); d > 0 { // of dp.delta too: 0 would be auto
		c.Settings.Delta = privacy.AttoDelta(max(1, d/int64(k)))
	}
	e := c.Settings.Epsilon.Micro()
	if c.Dataset.Accountant == privacy.ZCDP { // ρ = ε²/2: the largest ε of which k together are within the whole
		square := new(big.Int).Mul(big.NewInt(e), big.NewInt(e))
		square.Sub(square.Quo(square, big.NewInt(int64(k))), big.NewInt(1)) // what half of it is rounded up by
		e = new(big.Int).Sqrt(square.Abs(square)).Int64()
	} else {
		e /= int64(k)
	}
	c.Settings.Epsilon = privacy.MicroEpsilon(e)
	return c
}

// LostInNoise reports whether a number of at most so many is within twice the error of a count of a table's rows that
// costs as much as a statement may: a function of the policy and the session's settings.
func (c Context) LostInNoise(t *policy.Table, most int) bool {
	if c.Settings.MaxError > 0 { // no answer is off by more
		return float64(most) <= c.Settings.MaxError
	}
	if c.Dataset == nil {
		return false
	}
	spec, err := mechanisms.Plain(1, 1, t.ContributionTo(most), c.Share(1))
	return err == nil && int64(most) <= 2*spec.Error(predicate.One(0), c.Settings.Confidence).HalfWidth
}

// Holdings looks up what the analyst has paid for. Implementations answer from memory.
type Holdings interface {
	// Held returns the live releases of that measure that she has paid for, most exact first.
	Held(d plans.Digest) []Holding
	// Views returns what she has paid for over a table; nil is nothing.
	Views(table *policy.Table) *Views
}

// Holding is one saved release.
type Holding struct {
	ID        int64
	Digest    plans.Digest
	Spec      mechanisms.Spec
	At        time.Time
	AsOf      int64 // nanoseconds since 1970: of the snapshot that it was drawn from; 0 means its rows were read live
	Refinable plans.RefinableLevels
	Cost      privacy.Cost // what she paid for it
	// Described is the planner's own description of the measure (Measure.Describe), from which Reuse rebuilds it.
	Described []byte
}

// Work is what planning one statement may take, and the context that ends it: see scalar.Work. Each call of Build takes
// one of its own.
type Work = scalar.Work

// Limits of Work.
type Limits = scalar.Limits

// DefaultLimits are those of a plan whose Context brings none.
var DefaultLimits = scalar.DefaultLimits

// NewWork returns what a plan may take until ctx is done.
func NewWork(ctx context.Context, l Limits) *Work { return scalar.NewWork(ctx, l) }

// Limited is the context with the default limits where it has none, and with all of its own for each plan that is made
// in it.
func (c Context) Limited() Context {
	if c.Work == nil {
		c.Work = NewWork(context.Background(), DefaultLimits)
	}
	c.Work = c.Work.Renewed()
	return c
}

// RefuseEnded is the refusal of a statement whose planning was ended.
func RefuseEnded(cause error) *refuse.Refusal { return planningEnded.At(-1, cause) }

// Stopped turns the end of planning by its limits or its context into a refusal. It is deferred.
func (c Context) Stopped(refusal **refuse.Refusal) {
	c.Work.Close()
	switch r := recover().(type) {
	case nil:
	case *scalar.Stop:
		switch {
		case r.Cause != nil:
			*refusal = planningEnded.At(-1, r.Cause)
		case r.Bytes:
			*refusal = planningMemory.At(-1, r.Limit>>20)
		default:
			*refusal = planningSteps.At(-1, r.Limit)
		}
	default:
		panic(r)
	}
}

// Better tells which of two prices of one thing is taken in a dataset of either accountant: one in ε, one in ρ, the
// squared error for the first being so many times that for the other. Where one alone is held by what is left of her
// budget, it is that one. Else it is the one of which more are held, if those in ρ were bought at the error of the
// first: noise grows with 1/√ρ, so that they cost as many times less. An ε goes by what is left of ε, or of ρ by what
// it comes to there, whichever is more; where both hold as many, it is ε, after which both are still open.
func (c Context) Better(epsilon, rho accounting.Charge, times float64) (privacy.Accountant, string) {
	left := c.left()
	of := func(left, each int64) float64 { return float64(left) / float64(max(each, 1)) }
	some := max(of(left.Epsilon.Micro(), epsilon.Cost.Epsilon.Micro()), of(left.Rho.Pico(), epsilon.Converted.Pico()))
	others := of(left.Rho.Pico(), rho.Cost.Rho.Pico()) * times
	chosen := privacy.Pure
	switch first, second := c.Holds(epsilon), c.Holds(rho); {
	case first != second && second, first == second && others > some:
		chosen = privacy.ZCDP
	}
	return chosen, fmt.Sprintf("what is left holds about %.3g such statements in ε, and %.3g as exact ones in ρ", some, others)
}

// Holds reports whether what is left to her holds a charge.
func (c Context) Holds(charge accounting.Charge) bool {
	return accounting.Filter{Limit: c.left()}.Holds(charge)
}

// left is what is left to her.
func (c Context) left() privacy.Cost {
	if c.Unspent != nil {
		return *c.Unspent
	}
	budget, _ := c.Dataset.Budget(c.User)
	return budget.Cost
}

// PublicRows are the rows of the public tables, as they were copied last.
type PublicRows interface {
	// Rows returns a table's rows in the order of its columns, and false before the first copy.
	Rows(t *policy.Table) ([][]policy.Value, bool)
	// Cached returns what was made under a name of the rows that Rows returns, if that is kept; Keep keeps it, as long
	// as these are the table's rows. Neither changes what a plan is.
	Cached(t *policy.Table, rows [][]policy.Value, name string) any
	Cache(t *policy.Table, rows [][]policy.Value, name string, made any)
}

// NoCache is for PublicRows that keep nothing.
type NoCache struct{}

// Cached: see PublicRows.
func (NoCache) Cached(*policy.Table, [][]policy.Value, string) any { return nil }

// Cache: see PublicRows.
func (NoCache) Cache(*policy.Table, [][]policy.Value, string, any) {}
