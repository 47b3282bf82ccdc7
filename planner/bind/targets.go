package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// What a SELECT shows, and what GROUP BY means by it. SELECT *, age / 10 AS decade FROM people shows each column of
// people, then decade, which GROUP BY decade and GROUP BY 8 name.

// Target is one output column.
type Target struct {
	Label string
	Node  *pg.Node
}

// Targets are the output columns of a SELECT over the rows, with * written out. The keys that catalogs list are among
// them: SELECT DISTINCT * FROM visits tells rows of two people apart, and so is refused, where the names and times
// alone would be groups of both.
func (r *Rows) Targets(sel *pg.SelectStmt) (targets []Target) {
	for _, n := range sel.TargetList {
		t := n.GetResTarget()
		parts, refusal := r.star(t)
		if parts == nil || refusal != nil {
			targets = append(targets, Target{ast.Label(t), t.Val})
			continue
		}
		pos := ast.Location(t.Val)
		for _, i := range r.starredWithKeys(t, parts) {
			p := parts[slices.IndexFunc(parts, func(p relation) bool { return i >= p.from && i < p.to || -1-i >= p.fromKey && -1-i < p.toKey })]
			name := ""
			if i >= 0 {
				name = r.names[i]
			} else {
				name = r.keys[-1-i].Name
			}
			targets = append(targets, Target{name, pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(p.alias), pg.MakeStrNode(name)}, int32(pos))})
		}
	}
	return targets
}

// unstarred is a SELECT with * written out.
func (r *Rows) unstarred(sel *pg.SelectStmt) *pg.SelectStmt {
	if !slices.ContainsFunc(sel.TargetList, func(n *pg.Node) bool { parts, _ := r.star(n.GetResTarget()); return parts != nil }) {
		return sel
	}
	var list []*pg.Node
	for _, t := range r.Targets(sel) {
		list = append(list, pg.MakeResTargetNodeWithNameAndVal(t.Label, t.Node, int32(ast.Location(t.Node))))
	}
	return &pg.SelectStmt{DistinctClause: sel.DistinctClause, TargetList: list, FromClause: sel.FromClause, WhereClause: sel.WhereClause, GroupClause: sel.GroupClause,
		GroupDistinct: sel.GroupDistinct, HavingClause: sel.HavingClause, WindowClause: sel.WindowClause, SortClause: sel.SortClause, LimitOffset: sel.LimitOffset, LimitCount: sel.LimitCount,
		LimitOption: sel.LimitOption, LockingClause: sel.LockingClause, WithClause: sel.WithClause, Op: sel.Op}
}

// GroupItem finds the expression that an item of GROUP BY stands for: an output column by its position, or by its name
// where no column of the rows has it.
func (r *Rows) GroupItem(n *pg.Node, targets []Target) (*pg.Node, *refuse.Refusal) {
	if c := n.GetAConst(); c != nil && c.GetIval() != nil && !c.Isnull {
		i := int(c.GetIval().Ival)
		if i < 1 || i > len(targets) {
			return nil, BadOrdinal.At(int(c.Location), "GROUP BY", i)
		}
		return targets[i-1].Node, nil
	}
	if names := ast.Strings(n.GetColumnRef().GetFields()); len(names) == 1 {
		if _, refusal := r.Column(names, ast.Location(n)); refusal != nil && refusal.ID == semantics.UnknownColumn.ID {
			for _, t := range targets {
				if t.Label == names[0] {
					return t.Node, nil
				}
			}
		}
	}
	return n, nil
}
