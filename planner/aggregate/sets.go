package aggregate

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// GROUPING SETS, ROLLUP and CUBE. GROUP BY ROLLUP (sex, city) has the sets (sex, city), (sex) and (); grouping(city) is
// a constant of each.

// maxSets bounds the grouping sets of a SELECT.
const maxSets = 64

// groupClause binds GROUP BY. Its grouping sets are all combinations of one set of each item; a plain expression is the
// set of itself.
func (g *Grouping) groupClause() *refuse.Refusal {
	sets, some := []linear.Set{nil}, false
	for _, n := range g.Sel.GroupClause {
		item, refusal := g.itemSets(n)
		if refusal != nil {
			return refusal
		}
		some = some || n.GetGroupingSet() != nil
		var all []linear.Set
		for _, a := range sets {
			for _, b := range item {
				all = append(all, linear.United(a, b))
			}
		}
		if sets = all; len(sets) > maxSets {
			return manySets.At(ast.Location(n), maxSets)
		}
	}
	if !some {
		return nil
	}
	if g.twice != nil { // ROLLUP (1, 2) of two equal items: each is NULL in the sets that leave it out
		return semantics.NoForm.At(ast.Location(g.twice), "a grouping set that names one expression by two columns")
	}
	for _, s := range sets {
		if g.Sel.GroupDistinct && slices.ContainsFunc(g.Question.Sets, func(have linear.Set) bool { return slices.Equal(have, s) }) {
			continue
		}
		g.Question.Sets = append(g.Question.Sets, s)
	}
	return nil
}

// itemSets are the sets of one item of GROUP BY.
func (g *Grouping) itemSets(n *pg.Node) ([]linear.Set, *refuse.Refusal) {
	s := n.GetGroupingSet()
	if s == nil {
		keys, refusal := g.itemKeys(n)
		return []linear.Set{keys}, refusal
	}
	if s.Kind == pg.GroupingSetKind_GROUPING_SET_EMPTY {
		return []linear.Set{{}}, nil
	}
	if s.Kind == pg.GroupingSetKind_GROUPING_SET_SETS {
		var all []linear.Set
		for _, c := range s.Content {
			sets, refusal := g.itemSets(c)
			if refusal != nil {
				return nil, refusal
			}
			if all = append(all, sets...); len(all) > maxSets {
				return nil, manySets.At(int(s.Location), maxSets)
			}
		}
		return all, nil
	}
	parts := make([]linear.Set, len(s.Content))
	for i, c := range s.Content {
		var refusal *refuse.Refusal
		if parts[i], refusal = g.itemKeys(c); refusal != nil {
			return nil, refusal
		}
	}
	var all []linear.Set
	if s.Kind == pg.GroupingSetKind_GROUPING_SET_ROLLUP {
		for n := len(parts); n >= 0; n-- {
			all = append(all, linear.UnitedAll(parts[:n]))
		}
		return all, nil
	}
	if len(parts) > 12 || 1<<len(parts) > maxSets {
		return nil, manySets.At(int(s.Location), maxSets)
	}
	for bits := 1<<len(parts) - 1; bits >= 0; bits-- {
		var chosen []linear.Set
		for i, p := range parts {
			if bits>>(len(parts)-1-i)&1 == 1 {
				chosen = append(chosen, p)
			}
		}
		all = append(all, linear.UnitedAll(chosen))
	}
	return all, nil
}

// itemKeys are the keys of an expression, or of several in parentheses.
func (g *Grouping) itemKeys(n *pg.Node) (linear.Set, *refuse.Refusal) {
	if r := n.GetRowExpr(); r != nil && r.RowFormat == pg.CoercionForm_COERCE_IMPLICIT_CAST {
		all := linear.Set{}
		for _, a := range r.Args {
			keys, refusal := g.itemKeys(a)
			if refusal != nil {
				return nil, refusal
			}
			all = linear.United(all, keys)
		}
		return all, nil
	}
	node, refusal := g.Rows.GroupItem(n, g.Targets)
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
	return linear.Set{k}, refusal
}

// findLevels gives each grouping(…) a key of its own: which of its arguments a row is not grouped by.
func (g *Grouping) findLevels() *refuse.Refusal {
	var refusal *refuse.Refusal
	note := func(n *pg.Node) bool {
		f := n.GetGroupingFunc()
		if f == nil || refusal != nil {
			return false
		}
		var keys linear.Set
		if keys, refusal = g.levelKeys(f); refusal != nil {
			return false
		}
		name := fmt.Sprint("grouping ", keys)
		if _, known := g.keyAt[name]; known {
			return false
		}
		if g.Question.Levels == nil {
			g.Question.Levels = map[int]linear.Set{}
		}
		g.keyAt[name] = len(g.Question.Keys)
		g.Question.Levels[len(g.Question.Keys)] = keys
		g.Question.Keys = append(g.Question.Keys, semantics.ConstantExpr(int64(0), policy.Int4, int(f.Location)))
		return false
	}
	g.visit(note)
	return refusal
}

// levelKeys are the keys that the arguments of grouping(…) are, in its order.
func (g *Grouping) levelKeys(f *pg.GroupingFunc) (linear.Set, *refuse.Refusal) {
	keys := linear.Set{}
	for _, a := range f.Args {
		e, refusal := g.Below("GROUPING").Expr(a)
		if refusal != nil {
			return nil, refusal
		}
		k, known := g.keyAt[e.Canon]
		if !known {
			return nil, notGrouped.At(ast.Location(a))
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// level finds the key of a grouping(…).
func (g *Grouping) level(f *pg.GroupingFunc) (*Found, *refuse.Refusal) {
	keys, refusal := g.levelKeys(f)
	if refusal != nil {
		return nil, refusal
	}
	k, known := g.keyAt[fmt.Sprint("grouping ", keys)]
	if !known {
		return nil, refuse.Construct.At(int(f.Location), "GROUPING in this place")
	}
	return &Found{Key: k, Counter: -1, Type: policy.Int4}, nil
}
