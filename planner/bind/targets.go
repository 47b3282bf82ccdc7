package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// What a SELECT shows, and what GROUP BY means by it. SELECT *, age / 10 AS decade FROM people shows each column of people, then decade, which GROUP BY decade
// and GROUP BY 8 name.

// Target is one output column.
type Target struct {
	Label string
	Node  *pg.Node
}

// Targets are the output columns of a SELECT over the rows, with * written out.
func (r *Rows) Targets(sel *pg.SelectStmt) (targets []Target) {
	for _, n := range sel.TargetList {
		t := n.GetResTarget()
		parts, refusal := r.star(t)
		if parts == nil || refusal != nil {
			targets = append(targets, Target{ast.Label(t), t.Val})
			continue
		}
		pos := ast.Location(t.Val)
		for _, i := range r.starred(t, parts) {
			p := parts[slices.IndexFunc(parts, func(p relation) bool { return i >= p.from && i < p.to })]
			targets = append(targets, Target{r.names[i], pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(p.alias), pg.MakeStrNode(r.names[i])}, int32(pos))})
		}
	}
	return targets
}

// GroupItem finds the expression that an item of GROUP BY stands for: an output column by its position, or by its name where no column of the rows has it.
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
