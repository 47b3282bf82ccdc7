package choose

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// perUnit asks for the numbers of units in the groups of some keys.
//
// With the unit's own key it has at most one row in each group: the derived table has one for each unit and combination
// of classes of cells, and no two combinations have equal keys, since in each column the classes are told by all keys
// that read it.
func (v *LeafPlanner) perUnit(q *linear.Question, keys linear.Set, counters []int) (*Request, *refuse.Refusal) {
	u := &derived.PerUnit{From: q.Table}
	var refusal *refuse.Refusal
	if u.Where, refusal = v.Binder.Lowered(q.Table, q.Where); refusal != nil {
		return nil, refusal
	}
	sub := &linear.Question{SQL: q.SQL, PerGroup: 1, OffGrid: q.OffGrid}
	if key := q.Counters[counters[0]].Units.Key; key != nil {
		u.JoinKeys, u.Present, sub.PerGroup = []*policy.Column{q.Table.Keys[key.At]}, true, 0
	}
	byColumn := map[int]int{} // the derived column of each column
	for _, k := range keys {
		e := q.Keys[k]
		if len(e.Cols) > 1 {
			return nil, distinctKeys.At(e.Pos, q.Table.Dataset.Unit.Name)
		}
		if len(e.Cols) == 1 {
			if _, known := byColumn[e.Cols[0]]; !known {
				byColumn[e.Cols[0]] = len(u.Keys)
				key, refusal := v.unitKey(q, keys, e.Cols[0])
				if refusal != nil {
					return nil, refusal
				}
				u.Keys = append(u.Keys, key)
			}
			e = e.Moved(byColumn[e.Cols[0]])
		}
		sub.Keys = append(sub.Keys, e)
	}
	for _, c := range counters {
		where, refusal := v.some(q, u, q.Counters[c].Where)
		if refusal != nil {
			return nil, refusal
		}
		sub.Counters = append(sub.Counters, linear.Counter{Where: where})
	}
	if sub.Table = derived.NewPerUnit(u); sub.Table == nil {
		return nil, bind.WideAggregate.At((&linear.Solver{Query: &linear.Query{Question: q}}).PositionOfKeys())
	}
	a, refusal := v.better(sub)
	if refusal != nil {
		return nil, refusal
	}
	a.set = keys
	for i := range a.Projections {
		a.Projections[i].Of = counters[a.Projections[i].Of]
	}
	return a, nil
}

// better asks for all counters of a question side by side, or by combination of their conditions.
func (v *LeafPlanner) better(q *linear.Question) (*Request, *refuse.Refusal) {
	keys, counters := linear.Set(semantics.IdentityOf(len(q.Keys))), semantics.IdentityOf(len(q.Counters))
	a, refusal := v.plain(q, keys, counters)
	if refusal != nil || !conditional(q, counters) {
		return a, refusal
	}
	if split := v.split(q, keys, counters); split != nil && split.weight < a.weight {
		return split, nil
	}
	return a, nil
}

// unitKey puts the cells of a column into classes on which all keys over it are the same.
func (v *LeafPlanner) unitKey(q *linear.Question, keys linear.Set, column int) (derived.UnitKey, *refuse.Refusal) {
	c := q.Table.Columns[column]
	if len(c.Product) > 0 {
		return derived.UnitKey{Column: c}, nil // its parts together tell its cells
	}
	var over []*semantics.Expr
	for _, k := range keys {
		if e := q.Keys[k]; slices.Equal(e.Cols, []int{column}) {
			if over = append(over, e); e.Form == semantics.FormColumn {
				return derived.UnitKey{Column: c}, nil
			}
		}
	}
	first, refusal := linear.FirstCellsOf(semantics.NewBox(q.Table, v.Binder.Env), column, over)
	return derived.UnitKey{Column: c, First: first}, refusal
}

// some is the condition that a unit has rows for which where holds: that their number is above 0.
func (v *LeafPlanner) some(q *linear.Question, u *derived.PerUnit, where []*semantics.Expr) ([]*semantics.Expr, *refuse.Refusal) {
	if len(where) == 0 {
		return nil, nil
	}
	holds, refusal := v.Binder.Lowered(q.Table, where)
	if refusal != nil || holds == nil {
		return nil, refusal
	}
	at := slices.IndexFunc(u.Aggregates, func(have derived.UnitAggregate) bool {
		return slices.Equal(predicate.Encode(nil, have.Where), predicate.Encode(nil, holds))
	})
	if at < 0 {
		at = len(u.Aggregates)
		u.Aggregates = append(u.Aggregates, derived.UnitAggregate{Kind: derived.UnitCount, Where: holds})
	}
	n := semantics.ColumnExpr(len(u.Keys)+at, policy.Int8, -1, where[0].Pos)
	t := &semantics.Translator{Env: v.Binder.Env, Params: v.Binder.Params}
	e, refusal := t.Combine(">", where[0].Pos, n, semantics.ConstantExpr(int64(0), policy.Int8, -1))
	return []*semantics.Expr{e}, refusal
}

// noteKeys notes what a number of different values of a join key is.
func (v *LeafPlanner) noteKeys(q *linear.Question) {
	for _, c := range q.Counters {
		if c.Units != nil && c.Units.Key != nil {
			name := q.Table.Keys[c.Units.Key.At].Name
			v.Notes.Add("different values of " + name[strings.LastIndex(name, ".")+1:] + " are counted within each " + q.Table.Dataset.Unit.Name + ": one that two of them share counts twice")
		}
	}
}
