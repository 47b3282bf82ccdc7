package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// grouping is a SELECT that aggregates private rows: a question below, and expressions over its answer above.
type grouping struct {
	b       *binder
	sel     *pg.SelectStmt
	rows    *rows
	q       *question
	leaf    int // index of its leaf
	keyAt   map[string]int
	placed  map[int]*pg.Node // by key: the item of SELECT that GROUP BY names it by, by place or name
	twice   *pg.Node         // an item of GROUP BY that names a key by another item of SELECT, which PostgreSQL takes for another key
	targets []target
	above   bool            // DISTINCT remains above the leaf
	centred map[string]bool // arguments, by canonical text, of aggregates about a mean
	values  map[string]*value
	alarms  map[*pg.Node]*found // comparisons of a count with a constant, where nothing else is shown
	fanned  *fanned             // the rows meet a public list
}

// target is one output column.
type target struct {
	label string
	node  *pg.Node
}

// group binds a grouped SELECT over private rows.
func (b *binder) group(sel *pg.SelectStmt, from *rows) (*grouping, *refuse.Refusal) {
	if g := b.groups[sel]; g != nil {
		return g, nil
	}
	if from.matched == nil {
		return b.groupOf(sel, from)
	}
	questions := len(b.questions)
	g, refusal := b.groupOf(sel, from)
	if refusal == nil {
		if refusal = g.meets(); refusal == nil {
			return g, nil
		}
		delete(b.groups, sel)
		b.questions = b.questions[:questions]
	}
	alone, refusal := from.matched()
	if refusal != nil {
		return nil, refusal
	}
	return b.groupOf(sel, alone)
}

func (b *binder) groupOf(sel *pg.SelectStmt, from *rows) (*grouping, *refuse.Refusal) {
	if refusal := b.rowPickers(sel, false); refusal != nil {
		return nil, refusal
	}
	own := *from
	g := &grouping{b: b, sel: sel, rows: &own, q: &question{table: from.table, kept: from.kept, offGrid: b.c.Settings.OffGrid}, keyAt: map[string]int{}}
	own.asked = g.q
	t := g.below("WHERE")
	g.q.where = from.where
	if sel.WhereClause != nil && ast.HasAggregate(sel.WhereClause) {
		return nil, refuse.AggregateIn.At(ast.Location(sel.WhereClause), "WHERE")
	}
	if from.fan != nil {
		if refusal := g.fan(from); refusal != nil {
			return nil, refusal
		}
		g.q.turned = g.fanned
	} else if sel.WhereClause != nil {
		e, refusal := t.condition(sel.WhereClause, "WHERE")
		if refusal != nil {
			return nil, refusal
		}
		g.q.where = append(append([]*expr{}, from.where...), e)
	}
	g.expandTargets()
	g.findCentred()
	if refusal := g.findKeys(); refusal != nil {
		return nil, refusal
	}
	g.combine()
	if g.fanned != nil {
		if refusal := g.fanned.told(ast.Location(sel.FromClause[0])); refusal != nil {
			return nil, refusal
		}
	} else {
		g.findTop()
		g.findAlarms()
	}
	if g.q.sql = b.text; b.top != sel {
		g.q.sql = deparsed(sel)
	}
	g.leaf = len(b.questions)
	if g.fanned != nil {
		for _, sub := range g.fanned.each {
			sub.leaf = g.leaf
		}
	}
	b.questions = append(b.questions, g.q)
	b.groups[sel] = g
	return g, nil
}

// below translates over the private rows.
func (g *grouping) below(place string) *translator { return g.b.overRows(g.rows, place) }

// expandTargets writes * out.
func (g *grouping) expandTargets() {
	for _, n := range g.sel.TargetList {
		t := n.GetResTarget()
		parts, refusal := g.rows.star(t)
		if parts == nil || refusal != nil {
			g.targets = append(g.targets, target{ast.Label(t), t.Val})
			continue
		}
		pos := ast.Location(t.Val)
		for _, i := range g.rows.starred(t, parts) {
			p := parts[slices.IndexFunc(parts, func(p relation) bool { return i >= p.from && i < p.to })]
			g.targets = append(g.targets, target{g.rows.names[i], pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(p.alias), pg.MakeStrNode(g.rows.names[i])}, int32(pos))})
		}
	}
}

// findKeys binds GROUP BY: columns first, then output names and positions, then expressions. SELECT DISTINCT without
// aggregation groups by what it shows.
func (g *grouping) findKeys() *refuse.Refusal {
	aggregated := g.sel.HavingClause != nil || len(g.sel.GroupClause) > 0
	for _, t := range g.targets {
		aggregated = aggregated || ast.HasAggregate(t.node)
	}
	if isDistinct(g.sel) && !aggregated {
		for _, t := range g.targets {
			if ast.HasWindow(t.node) {
				return windowOnRows.At(ast.Location(t.node))
			}
			if refusal := g.addKey(t.node); refusal != nil {
				return refusal
			}
		}
		return nil
	}
	g.above = len(g.sel.DistinctClause) > 0
	if refusal := g.groupClause(); refusal != nil {
		return refusal
	}
	return g.findLevels()
}

// groupItem finds the expression that a GROUP BY item stands for.
func (g *grouping) groupItem(n *pg.Node) (*pg.Node, *refuse.Refusal) {
	if c := n.GetAConst(); c != nil && c.GetIval() != nil && !c.Isnull {
		i := int(c.GetIval().Ival)
		if i < 1 || i > len(g.targets) {
			return nil, badOrdinal.At(int(c.Location), "GROUP BY", i)
		}
		return g.targets[i-1].node, nil
	}
	if names := ast.Strings(n.GetColumnRef().GetFields()); len(names) == 1 {
		if _, refusal := g.rows.column(names, ast.Location(n)); refusal != nil && refusal.ID == unknownColumn.ID {
			for _, t := range g.targets {
				if t.label == names[0] {
					return t.node, nil
				}
			}
		}
	}
	return n, nil
}

func (g *grouping) addKey(n *pg.Node) *refuse.Refusal {
	_, refusal := g.key(n)
	return refusal
}

// key is the index of a key, added at first use.
func (g *grouping) key(n *pg.Node) (int, *refuse.Refusal) {
	if ast.HasAggregate(n) {
		return 0, refuse.AggregateIn.At(ast.Location(n), "GROUP BY")
	}
	t := g.below("GROUP BY")
	e, refusal := t.expr(n)
	if refusal != nil {
		return 0, refusal
	}
	e = t.settler.settled(e)
	if e.Type() == policy.Unknown {
		s, err := g.b.env.Coerce(e.Expr, policy.Text)
		if err != nil {
			return 0, scalarRefusal(err, e.pos)
		}
		typed := *e
		typed.Expr = s
		e = &typed
	}
	if _, known := g.keyAt[e.canon]; !known {
		if g.fanned != nil {
			if refusal := g.fanned.key(n, e.pos); refusal != nil {
				return 0, refusal
			}
		} else {
			g.b.open.want(g.rows.table, e.cols)
		}
		g.keyAt[e.canon] = len(g.q.keys)
		g.q.keys = append(g.q.keys, e)
	}
	return g.keyAt[e.canon], nil
}

// found is what a node above the leaf reads from it: a key, or a counter with the type that SQL gives its aggregate.
type found struct {
	key, counter int      // −1: not that
	formula      *pg.Node // over the leaf's columns, in neither case
	typ          policy.Type
	choice       bool // the counter is a choice, of the type
}

// look finds the leaf's column that a node stands for; nil, nil: none, go on with its parts.
func (g *grouping) look(n *pg.Node, place string) (*found, *refuse.Refusal) {
	if f := g.alarms[n]; f != nil {
		return f, nil
	}
	if g.fanned != nil && g.fanned.race != nil && n == g.fanned.label {
		return &found{key: -1, counter: 0, typ: policy.Int8}, nil
	}
	if f := n.GetFuncCall(); f != nil && ast.IsAggregate(f) {
		if place != "" {
			return nil, refuse.AggregateIn.At(int(f.Location), place)
		}
		return g.aggregate(f)
	}
	switch n.GetNode().(type) {
	case *pg.Node_SubLink:
		return g.keyElsewhere(n), nil
	case *pg.Node_AConst, *pg.Node_ParamRef, nil:
		return nil, nil
	}
	if f := n.GetGroupingFunc(); f != nil {
		return g.level(f)
	}
	isColumn := n.GetColumnRef() != nil
	if !isColumn && (ast.HasAggregate(n) || ast.HasWindow(n)) {
		return nil, nil
	}
	e, refusal := g.below("SELECT").expr(n)
	if refusal != nil {
		if isColumn {
			return nil, refusal
		}
		return nil, nil
	}
	for _, canon := range []string{e.canon, g.settledCanon(e)} {
		if k, known := g.keyAt[canon]; known {
			return &found{key: k, counter: -1, typ: g.q.keys[k].Type()}, nil
		}
	}
	if isColumn {
		names := ast.Strings(n.GetColumnRef().Fields)
		return nil, ungrouped.At(ast.Location(n), g.rows.alias()+"."+names[len(names)-1])
	}
	return nil, nil
}

// keyElsewhere finds the key that a sub-query is; nil: it is none. What it would add to the rows is left out.
func (g *grouping) keyElsewhere(n *pg.Node) *found {
	own := *g.rows
	own.asked = nil
	e, refusal := g.b.overRows(&own, "SELECT").expr(n)
	if refusal != nil {
		return nil
	}
	if k, known := g.keyAt[e.canon]; known {
		return &found{key: k, counter: -1, typ: g.q.keys[k].Type()}
	}
	return nil
}

// hook is look for expressions over the leaf's row: its keys, then its counters.
func (g *grouping) hook(n *pg.Node) (*expr, *refuse.Refusal) {
	f, refusal := g.look(n, "")
	if f == nil || refusal != nil {
		return nil, refusal
	}
	pos := ast.Location(n)
	if f.formula != nil {
		return (&translator{env: g.b.env, params: g.b.params, columns: g.leafColumn, place: "SELECT"}).expr(f.formula)
	}
	if f.key >= 0 {
		k := g.q.keys[f.key]
		return columnExpr(f.key, k.Type(), k.Typmod(), pos), nil
	}
	if f.choice {
		return columnExpr(len(g.q.keys)+f.counter, f.typ, -1, pos), nil
	}
	e := columnExpr(len(g.q.keys)+f.counter, policy.Int8, -1, pos)
	if f.typ == policy.Int8 {
		return e, nil
	}
	s, err := g.b.env.Cast(e.Expr, f.typ, -1)
	if err != nil {
		return nil, scalarRefusal(err, pos)
	}
	return node(formOther, "cast:"+f.typ.Name(), s, pos, e), nil
}

// leafColumn resolves a column of the leaf in a formula.
func (g *grouping) leafColumn(fields []string, pos int) (*expr, *refuse.Refusal) {
	for i := range g.q.counters {
		if fields[len(fields)-1] == g.q.columnName(i) {
			if g.q.counters[i].alarm != nil {
				return columnExpr(len(g.q.keys)+i, policy.Bool, -1, pos), nil
			}
			return columnExpr(len(g.q.keys)+i, policy.Int8, -1, pos), nil
		}
	}
	return nil, unknownColumn.At(pos, strings.Join(fields, "."))
}

// findCentred notes the arguments of aggregates about a mean: sums of them are added up from the same centre.
func (g *grouping) findCentred() {
	g.centred = map[string]bool{}
	note := func(n *pg.Node) bool {
		f := n.GetFuncCall()
		if f == nil || len(f.Args) == 0 {
			return false
		}
		if name, refusal := ast.FunctionName(f); refusal == nil && (moments[name] || pairs[name]) {
			for _, a := range f.Args {
				if e, refusal := g.below("an aggregate").expr(a); refusal == nil {
					g.centred[e.canon] = true
				}
			}
		}
		return false
	}
	for _, t := range g.targets {
		ast.Holds(t.node, note)
	}
	ast.Holds(g.sel.HavingClause, note)
	for _, n := range g.sel.SortClause {
		ast.Holds(n, note)
	}
}

// deparsed writes a SELECT for people.
func deparsed(sel *pg.SelectStmt) string {
	text, err := pg.Deparse(&pg.ParseResult{Version: ast.GrammarVersion, Stmts: []*pg.RawStmt{{Stmt: ast.Select(sel)}}})
	if err != nil {
		return ""
	}
	return text
}

// settledCanon names a sum of several columns by its computed column, where it is a key by that.
func (g *grouping) settledCanon(e *expr) string {
	own := *g.rows
	own.asked = nil
	return g.b.settles(&translator{}, &own).settler.settled(e).canon
}
