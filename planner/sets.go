package planner

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// mostSets bounds the grouping sets of a SELECT.
const mostSets = 64

// groupClause binds GROUP BY. Its grouping sets are all combinations of one set of each item; a plain expression is the
// set of itself.
func (g *grouping) groupClause() *refuse.Refusal {
	sets, some := []set{nil}, false
	for _, n := range g.sel.GroupClause {
		item, refusal := g.itemSets(n)
		if refusal != nil {
			return refusal
		}
		some = some || n.GetGroupingSet() != nil
		var all []set
		for _, a := range sets {
			for _, b := range item {
				all = append(all, united(a, b))
			}
		}
		if sets = all; len(sets) > mostSets {
			return manySets.At(ast.Location(n), mostSets)
		}
	}
	if !some {
		return nil
	}
	if g.twice != nil { // ROLLUP (1, 2) of two equal items: each is NULL in the sets that leave it out
		return noForm.At(ast.Location(g.twice), "a grouping set that names one expression by two columns")
	}
	for _, s := range sets {
		if g.sel.GroupDistinct && slices.ContainsFunc(g.q.sets, func(have set) bool { return slices.Equal(have, s) }) {
			continue
		}
		g.q.sets = append(g.q.sets, s)
	}
	return nil
}

// united is the sorted union of two sets.
func united(a, b set) set { return union(append([]int{}, a...), b) }

// itemSets are the sets of one item of GROUP BY.
func (g *grouping) itemSets(n *pg.Node) ([]set, *refuse.Refusal) {
	s := n.GetGroupingSet()
	if s == nil {
		keys, refusal := g.itemKeys(n)
		return []set{keys}, refusal
	}
	if s.Kind == pg.GroupingSetKind_GROUPING_SET_EMPTY {
		return []set{{}}, nil
	}
	if s.Kind == pg.GroupingSetKind_GROUPING_SET_SETS {
		var all []set
		for _, c := range s.Content {
			sets, refusal := g.itemSets(c)
			if refusal != nil {
				return nil, refusal
			}
			if all = append(all, sets...); len(all) > mostSets {
				return nil, manySets.At(int(s.Location), mostSets)
			}
		}
		return all, nil
	}
	parts := make([]set, len(s.Content))
	for i, c := range s.Content {
		var refusal *refuse.Refusal
		if parts[i], refusal = g.itemKeys(c); refusal != nil {
			return nil, refusal
		}
	}
	var all []set
	if s.Kind == pg.GroupingSetKind_GROUPING_SET_ROLLUP {
		for n := len(parts); n >= 0; n-- {
			all = append(all, unitedAll(parts[:n]))
		}
		return all, nil
	}
	if len(parts) > 12 || 1<<len(parts) > mostSets {
		return nil, manySets.At(int(s.Location), mostSets)
	}
	for bits := 1<<len(parts) - 1; bits >= 0; bits-- {
		var chosen []set
		for i, p := range parts {
			if bits>>(len(parts)-1-i)&1 == 1 {
				chosen = append(chosen, p)
			}
		}
		all = append(all, unitedAll(chosen))
	}
	return all, nil
}

func unitedAll(parts []set) set {
	all := set{}
	for _, p := range parts {
		all = united(all, p)
	}
	return all
}

// itemKeys are the keys of an expression, or of several in parentheses.
func (g *grouping) itemKeys(n *pg.Node) (set, *refuse.Refusal) {
	if r := n.GetRowExpr(); r != nil && r.RowFormat == pg.CoercionForm_COERCE_IMPLICIT_CAST {
		all := set{}
		for _, a := range r.Args {
			keys, refusal := g.itemKeys(a)
			if refusal != nil {
				return nil, refusal
			}
			all = united(all, keys)
		}
		return all, nil
	}
	node, refusal := g.groupItem(n)
	if refusal != nil {
		return nil, refusal
	}
	k, refusal := g.key(node)
	if refusal == nil && node != n {
		if g.placed == nil {
			g.placed = map[int]*pg.Node{}
		}
		if have := g.placed[k]; have != nil && have != node {
			g.twice = n
		}
		g.placed[k] = node
	}
	return set{k}, refusal
}

// findLevels gives each grouping(…) a key of its own: which of its arguments a row is not grouped by.
func (g *grouping) findLevels() *refuse.Refusal {
	var refusal *refuse.Refusal
	note := func(n *pg.Node) bool {
		f := n.GetGroupingFunc()
		if f == nil || refusal != nil {
			return false
		}
		var keys set
		if keys, refusal = g.levelKeys(f); refusal != nil {
			return false
		}
		name := fmt.Sprint("grouping ", keys)
		if _, known := g.keyAt[name]; known {
			return false
		}
		if g.q.levels == nil {
			g.q.levels = map[int]set{}
		}
		g.keyAt[name] = len(g.q.keys)
		g.q.levels[len(g.q.keys)] = keys
		g.q.keys = append(g.q.keys, constantExpr(int64(0), policy.Int4, int(f.Location)))
		return false
	}
	for _, t := range g.targets {
		ast.Holds(t.node, note)
	}
	ast.Holds(g.sel.HavingClause, note)
	for _, n := range g.sel.SortClause {
		ast.Holds(n, note)
	}
	return refusal
}

// levelKeys are the keys that the arguments of grouping(…) are, in its order.
func (g *grouping) levelKeys(f *pg.GroupingFunc) (set, *refuse.Refusal) {
	keys := set{}
	for _, a := range f.Args {
		e, refusal := g.below("GROUPING").expr(a)
		if refusal != nil {
			return nil, refusal
		}
		k, known := g.keyAt[e.canon]
		if !known {
			return nil, notGrouped.At(ast.Location(a))
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// level finds the key of a grouping(…).
func (g *grouping) level(f *pg.GroupingFunc) (*found, *refuse.Refusal) {
	keys, refusal := g.levelKeys(f)
	if refusal != nil {
		return nil, refusal
	}
	k, known := g.keyAt[fmt.Sprint("grouping ", keys)]
	if !known {
		return nil, refuse.Construct.At(int(f.Location), "GROUPING in this place")
	}
	return &found{key: k, counter: -1, typ: policy.Int4}, nil
}

// levelOf is grouping(keys…) in the rows of a set: a bit for each key, 1 where the rows are not grouped by it.
func levelOf(keys, grouped set) int64 {
	n := int64(0)
	for _, k := range keys {
		n <<= 1
		if !slices.Contains(grouped, k) {
			n |= 1
		}
	}
	return n
}
