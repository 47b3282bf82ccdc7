package choose

import (
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/totals"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Where a session bounds what a unit adds in all (SET dp.contribution), counts and sums are asked of units' totals, and
// not of so many rows of each: one request for each counter, over a table of shares (derived.Laddered). What cannot be
// asked so is asked as ever.

// mostRows is up to how many rows of a unit a ladder reaches where the policy lets a unit have several: that the bound
// is far too large costs next to nothing, and one that is too small loses what units have beyond it.
const mostRows = 1 << 20

// fewSteps is how many steps a ladder has that the bound of rows is as good as.
const fewSteps = 3

// ofTotals asks for the counters that add up as units' totals, and returns those that are asked by rows: all of them,
// where one has to be, since an average of all rows' sum over some rows' count is neither's. Where a unit has one row,
// and that is read for totals too, those are by rows that a ladder is no better for. So is whether a value has rows.
func (v *LeafPlanner) ofTotals(lp *LeafPlan, counters []int) (asks []*Request, rest []int) {
	set := v.Optimizer.Context.Settings
	if set.Contribution.ByRows(lp.Table) || v.byRows || set.MaxError > 0 || !derived.CanLadder(lp.Table) ||
		lp.Counters[counters[0]].Presence != "" {
		return nil, counters
	}
	quiet := *v
	quiet.Notes = new(semantics.Notes)
	for _, n := range counters {
		l, asRows := quiet.laddered(lp.Question, n)
		if l == nil {
			return nil, counters
		}
		if asRows {
			rest = append(rest, n)
			continue
		}
		form := func(keys linear.Set) (*Request, *refuse.Refusal) {
			return quiet.ofLadder(lp.Question, keys, n, *l)
		}
		own, refusal := quiet.based(lp, form)
		if refusal != nil { // keys of several columns, or too many cells
			return nil, counters
		}
		asks = append(asks, own...)
	}
	v.Notes.AddAll(*quiet.Notes)
	return asks, rest
}

// laddered are the rows whose totals a counter asks for, without keys; nil means it cannot be asked so, and asRows that
// where a unit has one row the bound of that is as good.
func (v *LeafPlanner) laddered(q *linear.Question, counter int) (l *derived.Laddered, asRows bool) {
	c := q.Counters[counter]
	solved, refusal := linear.Solve(q.On(nil, nil, []linear.Counter{c}), v.Binder.Env, new(semantics.Notes))
	if refusal != nil || len(solved.Counts) != 1 || len(solved.Grain) > 0 || solved.Rows > 0 {
		return nil, false
	}
	if solved.Empty { // which costs nothing by rows
		return &derived.Laddered{}, true
	}
	l = &derived.Laddered{From: q.Table, Where: predicate.All(solved.Filter, solved.Counts[0])}
	contribution := v.Optimizer.Context.Settings.Contribution
	most, unit, fixed := int64(1), big.NewRat(1, 1), contribution.Most
	// Of an average's sum and count no one bound is declared.
	declared := fixed == nil && !contribution.Ladder && q.UnknownError == nil
	if sums := solved.Summed(); sums != nil && sums[0] != nil {
		if len(sums[0].Terms) == 0 || sums[0].Values > 0 || contribution.Most != nil && !asItIs(sums[0]) {
			return nil, false
		}
		if of := only(c.Sum.Unit, sums[0]); declared && of != nil {
			fixed = of.MaxTotal
		}
		l.Value, l.Signs, unit = sums[0], sums[0].Bound.Low < 0, c.Sum.Unit
		most = max(-sums[0].Bound.Low, sums[0].Bound.High)
	}
	if declared && l.Value == nil {
		fixed = declaredCount(q.Table)
	}
	several := several(q.Table)
	if q.PerGroup == 1 { // a unit's rows are no more than the groups
		all := semantics.IdentityOf(len(q.Keys))
		keyed, refusal := linear.Solve(q.On(all, nil, []linear.Counter{c}), v.Binder.Env, new(semantics.Notes))
		if refusal != nil {
			return nil, false
		}
		most, several = int64(keyed.Cells), false
	}
	if fixed != nil {
		if l.Steps = clampedTo(new(big.Rat).Quo(fixed, unit)); l.Steps == nil {
			return nil, false
		}
		return l, !several && l.Steps[0] >= most
	}
	if several {
		most = min(most, totals.MaxTop/mostRows) * mostRows
	}
	l.Steps = totals.To(min(most, totals.MaxTop))
	return l, !several && len(l.Steps) <= fewSteps
}

// several reports whether a unit may have several rows of a table, or by rows one that is not of all of its rows.
func several(t *policy.Table) bool {
	bounded := func(t *policy.Table) bool { return !t.AnyRows && t.MaxRowsPerUnit > 1 }
	return derived.SeveralRows(t) && (t.MaxRowsPerUnit > 1 || slices.ContainsFunc(t.Base(), bounded))
}

// clampedTo is the ladder of one step, cut to a whole number; nil means there is none so small or large.
func clampedTo(clamp *big.Rat) totals.Ladder {
	whole := new(big.Int).Quo(clamp.Num(), clamp.Denom())
	if whole.Sign() <= 0 || !whole.IsInt64() || whole.Int64() > totals.MaxTop {
		return nil
	}
	return totals.Ladder{whole.Int64()}
}

// declaredCount is what a unit adds at most to a count of a table's rows: max_total_per_unit of the one table below it
// of which a unit may have several rows; nil means none is declared.
func declaredCount(t *policy.Table) *big.Rat {
	several := slices.DeleteFunc(t.Base(), func(b *policy.Table) bool { return b.MaxRowsPerUnit == 1 })
	if len(several) != 1 {
		return nil
	}
	return several[0].MaxTotal
}

// only is the column of which a sum adds up the values as they are; nil means it adds up others.
func only(unit *big.Rat, sum *plans.Sum) *policy.Column {
	if !asItIs(sum) || len(sum.Terms) != 1 || sum.Terms[0].Times != 1 || len(sum.Terms[0].Factors) != 1 {
		return nil
	}
	f := sum.Terms[0].Factors[0]
	if unit.Cmp(semantics.Power10(f.Exponent, 1)) != 0 { // a multiple of it
		return nil
	}
	return f.Column
}

// asItIs reports whether a sum is of a column's values, to which a clamp may be a bound: no squares or products, and
// not of how far values are from the middle of their domain.
func asItIs(sum *plans.Sum) bool {
	centred := func(f plans.Factor) bool { return f.Centre != 0 }
	return sum.Over <= 1 && !slices.ContainsFunc(sum.Terms, func(t plans.SumTerm) bool {
		return len(t.Factors) > 1 || slices.ContainsFunc(t.Factors, centred)
	})
}

// ofLadder asks for the shares of units by some keys and the steps of a ladder.
func (v *LeafPlanner) ofLadder(
	q *linear.Question, keys linear.Set, counter int, l derived.Laddered,
) (*Request, *refuse.Refusal) {
	sub := &linear.Question{SQL: q.SQL, OffGrid: q.OffGrid}
	byColumn, refusal := v.unitKeys(q, keys, &sub.Keys)
	if refusal != nil {
		return nil, refusal
	}
	l.Keys = byColumn
	l.Root = v.Optimizer.Context.Accountant() == privacy.ZCDP && len(l.Keys) > 0 && v.classed(&l)
	if n := len(l.Steps); l.Root && q.PerGroup == 1 && n > 1 { // a unit's rows are ones
		l.Steps = totals.To(totals.Norm(1, l.Steps[n-1]))
	}
	sub.Table = derived.NewLaddered(&l)
	step, share := len(l.Keys), sub.Table.Columns[len(l.Keys)+1]
	sub.Keys = append(sub.Keys, semantics.ColumnExpr(step, policy.Int8, -1, -1))
	sub.Counters = []linear.Counter{{Sum: linear.ShareOf(share, totals.Parts)}}
	a, refusal := v.plain(sub, semantics.IdentityOf(len(sub.Keys)), []int{0})
	if refusal != nil {
		return nil, refusal
	}
	a.set = keys
	a.Projections[0].Of = counter
	a.Ladder = l.Steps
	return a, nil
}

// StepOf is the number of the step that a cell is of.
func (a *Request) StepOf(cell int) int { return int(a.KeyValue(len(a.set), cell).(int64)) }

// Up to so many cells a key has a class of each, for shares whose squares add up to a unit's parts: where each holds one
// value, and where each is compared in SQL.
const (
	mostClasses  = 1 << 16
	mostCompared = 1 << 7
)

// classed gives each key its classes, where each cell is one, and reports whether all have some, and together with the
// steps no more than are looked at one by one (derived.MostApart).
func (v *LeafPlanner) classed(l *derived.Laddered) bool {
	combinations := len(l.Steps)
	if l.Signs {
		combinations *= 2
	}
	for i, k := range l.Keys {
		if k.First == nil {
			size, most := k.Column.Domain.Size(), mostClasses
			if !k.Column.Domain.Single() {
				most = mostCompared
			}
			if len(k.Column.Product) > 0 || size > most {
				return false
			}
			v.Binder.Env.Work.Take(size, 8)
			l.Keys[i].First = derived.Singles(size)
		}
		first, _ := derived.FirstCells(l.Keys[i].First)
		if combinations *= len(first); combinations > derived.MostApart {
			return false
		}
	}
	return true
}
