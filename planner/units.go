package planner

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// perUnit asks for the numbers of units in the groups of some keys.
//
// With the unit's own key it has at most one row in each group: the derived table has one for each unit and combination of
// classes of cells, and no two combinations have equal keys, since in each column the classes are told by all keys that
// read it.
func (v *sheeter) perUnit(q *question, keys set, counters []int) (*ask, *refuse.Refusal) {
	u := &derived.PerUnit{From: q.table}
	var refusal *refuse.Refusal
	if u.Where, refusal = v.b.lowered(q.table, q.where); refusal != nil {
		return nil, refusal
	}
	sub := &question{sql: q.sql, perGroup: 1, offGrid: q.offGrid}
	if key := q.counters[counters[0]].units.key; key >= 0 {
		u.JoinKeys, u.Present, sub.perGroup = []*policy.Column{q.table.Keys[key]}, true, 0
	}
	byColumn := map[int]int{} // the derived column of each column
	for _, k := range keys {
		e := q.keys[k]
		if len(e.cols) > 1 {
			return nil, distinctKeys.At(e.pos, q.table.Dataset.Unit.Name)
		}
		if len(e.cols) == 1 {
			if _, known := byColumn[e.cols[0]]; !known {
				byColumn[e.cols[0]] = len(u.Keys)
				key, refusal := v.unitKey(q, keys, e.cols[0])
				if refusal != nil {
					return nil, refusal
				}
				u.Keys = append(u.Keys, key)
			}
			e = e.moved(byColumn[e.cols[0]])
		}
		sub.keys = append(sub.keys, e)
	}
	for _, c := range counters {
		where, refusal := v.some(q, u, q.counters[c].where)
		if refusal != nil {
			return nil, refusal
		}
		sub.counters = append(sub.counters, counter{where: where})
	}
	if sub.table = derived.NewPerUnit(u); sub.table == nil {
		return nil, wideAggregate.At(v.positionOf(q))
	}
	a, refusal := v.better(sub)
	if refusal != nil {
		return nil, refusal
	}
	a.set = keys
	for i := range a.fills {
		a.fills[i].of = counters[a.fills[i].of]
	}
	return a, nil
}

// better asks for all counters of a question side by side, or by combination of their conditions.
func (v *sheeter) better(q *question) (*ask, *refuse.Refusal) {
	keys, counters := set(identityOf(len(q.keys))), identityOf(len(q.counters))
	a, refusal := v.plain(q, keys, counters)
	if refusal != nil || !conditional(q, counters) {
		return a, refusal
	}
	if split := v.split(q, keys, counters); split != nil && split.weight < a.weight {
		return split, nil
	}
	return a, nil
}

func (v *sheeter) positionOf(q *question) int {
	return (&solver{s: &solved{question: q}}).positionOfKeys()
}

// unitKey puts the cells of a column into classes on which all keys over it are the same.
func (v *sheeter) unitKey(q *question, keys set, column int) (derived.UnitKey, *refuse.Refusal) {
	c := q.table.Columns[column]
	if len(c.Product) > 0 {
		return derived.UnitKey{Column: c}, nil // its parts together tell its cells
	}
	var over []*expr
	for _, k := range keys {
		if e := q.keys[k]; slices.Equal(e.cols, []int{column}) {
			if over = append(over, e); e.form == formColumn {
				return derived.UnitKey{Column: c}, nil
			}
		}
	}
	first, refusal := firstCellsOf(newBox(q.table, v.b.env), column, over)
	return derived.UnitKey{Column: c, First: first}, refusal
}

// some is the condition that a unit has rows for which where holds: that their number is above 0.
func (v *sheeter) some(q *question, u *derived.PerUnit, where []*expr) ([]*expr, *refuse.Refusal) {
	if len(where) == 0 {
		return nil, nil
	}
	holds, refusal := v.b.lowered(q.table, where)
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
	n := columnExpr(len(u.Keys)+at, policy.Int8, -1, where[0].pos)
	t := &translator{env: v.b.env, params: v.b.params}
	e, refusal := t.combine(">", where[0].pos, n, constantExpr(int64(0), policy.Int8, -1))
	return []*expr{e}, refusal
}

// tellKeys notes what a number of different values of a join key is.
func (v *sheeter) tellKeys(q *question) {
	for _, c := range q.counters {
		if c.units != nil && c.units.key >= 0 {
			name := q.table.Keys[c.units.key].Name
			v.notes.add("different values of " + name[strings.LastIndex(name, ".")+1:] + " are counted within each " + q.table.Dataset.Unit.Name + ": one that two of them share counts twice")
		}
	}
}
