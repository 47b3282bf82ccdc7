package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// Sub-queries whose groups lie within a unit. In SELECT avg(s) FROM (SELECT person_id, sum(price) AS s FROM visits
// GROUP BY person_id) t the sub-query has one row for each unit, which is as private as any row: a derived table, over
// which the SELECT above is asked.

// unitRows binds a sub-query whose groups lie within a unit: SELECT person_id, sum(x) s FROM visits GROUP BY person_id.
// Its rows are private, and counted above.
type unitRows struct {
	unitAggregates
	u     *derived.PerUnit
	exprs []*semantics.Expr // of the keys that are not join keys, by derived column
	keys  []linear.Key
	said  bool // a key that does not say whose a row is is reported: nothing else reports it
}

// perUnit returns the rows of a grouped SELECT, or nil when its groups are not within units.
func (b *Binder) perUnit(sel *pg.SelectStmt, from *Rows, said bool) (*Rows, *refuse.Refusal) {
	source := *from
	sel = source.unstarred(sel)
	g := &unitRows{said: said, unitAggregates: unitAggregates{b: b, source: &source, filled: true}}
	g.put = g.column
	items, refusal := g.items(sel)
	if refusal != nil || !g.withinUnits(items) {
		return nil, nil // what it is, and what is wrong with it, is reported when it is bound as a leaf
	}
	if alone, refusal := from.rowByRow("grouped by unit"); refusal != nil {
		return nil, refusal
	} else if alone != from {
		return b.perUnit(sel, alone, said)
	}
	if refusal := b.RowPickers(sel, true); refusal != nil {
		return nil, refusal
	}
	b.LeavesOut(source.Table, "they are grouped by unit")
	if source.preserved > 0 {
		return nil, preservedJoined.At(source.pos, source.Table.Name)
	}
	if sel.WhereClause != nil {
		e, refusal := b.OverRows(&source, "WHERE").Condition(sel.WhereClause, "WHERE")
		if refusal != nil {
			return nil, refusal
		}
		source.where = append(slices.Clone(source.where), e)
	}
	for { // until the rows have all columns that are read
		b.Env.Work.Step(source.Table.Places * perPlace)
		g.u, g.exprs, g.keys = &derived.PerUnit{From: source.Table}, nil, nil
		for _, n := range items {
			if refusal := g.addKey(n); refusal != nil {
				return nil, refusal
			}
		}
		if out, refusal := g.derive(sel); out != nil || refusal != nil {
			return out, refusal
		}
	}
}

// withinUnits tells groups of which each is of one unit's rows: by a key that says whose a row is. A key that does not,
// and is a column too (a product's number), is grouped by as columns are; one that is never shown (a ticket's) makes
// groups of what each unit has of it, which is said.
func (g *unitRows) withinUnits(items []*pg.Node) bool {
	var hidden *linear.Key
	for _, n := range items {
		k, _ := g.source.KeyNode(n)
		if k == nil {
			continue
		}
		if g.source.KeyColumn(k).TellsUnit() {
			return true
		}
		if _, refusal := g.source.Column(ast.Strings(n.GetColumnRef().Fields), -1); refusal != nil && hidden == nil {
			hidden = k
		}
	}
	if hidden != nil && g.said {
		g.b.Notes.Add("groups of " + hidden.Name + " are of one " + g.source.Table.Dataset.Unit.Name + " each: rows of others that share it are groups of their own")
	}
	return hidden != nil
}

// items returns what the SELECT groups by: positions and output names mean targets.
func (g *unitRows) items(sel *pg.SelectStmt) ([]*pg.Node, *refuse.Refusal) {
	targets := g.source.Targets(sel)
	if IsDistinct(sel) && len(sel.GroupClause) == 0 && !slices.ContainsFunc(sel.TargetList, ast.HasAggregate) {
		var all []*pg.Node
		for _, t := range targets {
			all = append(all, t.Node)
		}
		return all, nil
	}
	var out []*pg.Node
	for _, n := range sel.GroupClause {
		if n.GetGroupingSet() != nil {
			return nil, noSets.At(int(n.GetGroupingSet().Location))
		}
		node, refusal := g.source.GroupItem(n, targets)
		if refusal != nil {
			return nil, refusal
		}
		out = append(out, node)
	}
	return out, nil
}

// addKey adds a key of the groups: a join key, or an expression over one column.
func (g *unitRows) addKey(n *pg.Node) *refuse.Refusal {
	k, refusal := g.source.KeyNode(n)
	if refusal != nil {
		return refusal
	}
	if k != nil {
		if k.Present > 0 {
			return outerCondition.At(ast.Location(n))
		}
		if own := g.source.KeyColumn(k); !own.Unit && !slices.Contains(g.u.JoinKeys, own) {
			g.u.JoinKeys = append(g.u.JoinKeys, own)
		}
		g.keys = append(g.keys, *k)
		return nil
	}
	if ast.HasAggregate(n) {
		return refuse.AggregateIn.At(ast.Location(n), "GROUP BY")
	}
	t := g.b.OverRows(g.source, "GROUP BY")
	e, refusal := t.Expr(n)
	if refusal != nil {
		return refusal
	}
	e = t.Settler.Settled(e)
	if e.IsConstant() || slices.ContainsFunc(g.exprs, func(have *semantics.Expr) bool { return have.Canon == e.Canon }) {
		return nil
	}
	key, refusal := g.b.unitKey(g.source, e)
	if refusal == nil {
		g.exprs = append(g.exprs, e)
		g.u.Keys = append(g.u.Keys, key)
	}
	return refusal
}

// unitKey is an expression over one column, as a unit's rows are grouped or partitioned by it.
func (b *Binder) unitKey(r *Rows, e *semantics.Expr) (derived.UnitKey, *refuse.Refusal) {
	switch refusal := semantics.Closed(r.Table, e); {
	case refusal != nil:
		return derived.UnitKey{}, refusal
	case len(e.Cols) > 1:
		return derived.UnitKey{}, belowJoin.At(e.Pos)
	}
	k := derived.UnitKey{Column: r.Table.Columns[e.Cols[0]]}
	var refusal *refuse.Refusal
	if e.Form != semantics.FormColumn {
		k.First, refusal = linear.FirstCellsOf(semantics.NewBox(r.Table, b.Env), e.Cols[0], []*semantics.Expr{e})
	}
	return k, refusal
}

// derive binds what the SELECT shows, and makes the table of its rows. It returns nil, nil if these have got further
// columns since their groups were bound.
func (g *unitRows) derive(sel *pg.SelectStmt) (*Rows, *refuse.Refusal) {
	out := &Rows{pos: g.source.pos}
	var outputs []int // columns and keys
	t := g.translator("SELECT")
	var having *semantics.Expr
	if sel.HavingClause != nil {
		e, refusal := t.Condition(sel.HavingClause, "HAVING")
		if refusal != nil {
			return nil, refusal
		}
		having = e
	}
	for _, n := range sel.TargetList {
		target := n.GetResTarget()
		if ast.HasWindow(target.Val) {
			return nil, WindowOnRows.At(ast.Location(target.Val))
		}
		k, refusal := g.source.KeyNode(target.Val)
		if refusal != nil {
			return nil, refusal
		}
		if k != nil && slices.ContainsFunc(g.keys, func(have linear.Key) bool { return have.At == k.At }) {
			out.shape += "k"
			out.keys = append(out.keys, linear.Key{Name: ast.Label(target), At: k.At})
			outputs = append(outputs, -len(out.keys))
			continue
		}
		e, refusal := t.Expr(target.Val)
		if refusal != nil {
			return nil, refusal
		}
		out.shape += "c"
		outputs = append(outputs, len(out.names))
		out.names, out.exprs = append(out.names, ast.Label(target)), append(out.exprs, e)
	}
	if g.u.From != g.source.Table {
		return nil, nil
	}
	var refusal *refuse.Refusal
	if g.u.Where, refusal = g.b.Lowered(g.source.Table, g.source.where); refusal != nil {
		return nil, refusal
	}
	if out.Table = derived.NewPerUnit(g.u); out.Table == nil {
		return nil, WideAggregate.At(g.source.pos)
	}
	for i, k := range out.keys {
		out.keys[i].At = slices.Index(g.u.KeysOf(), g.source.KeyColumn(&k))
	}
	if out.where = g.ofKeys(); having != nil {
		out.where = append(out.where, having)
	}
	out.parts = []relation{{g.source.Alias(), nil, 0, len(out.names), 0, len(out.keys), outputs, always}}
	return out, nil
}

// ofKeys returns the conditions of the rows that are about one key alone: they hold of each group too, and of what is
// grouped by that key further up no other groups are shown.
func (g *unitRows) ofKeys() (where []*semantics.Expr) {
	for _, e := range g.source.where {
		if len(e.Cols) != 1 {
			continue
		}
		at := slices.IndexFunc(g.exprs, func(k *semantics.Expr) bool { return k.Form == semantics.FormColumn && k.Cols[0] == e.Cols[0] })
		if at >= 0 {
			where = append(where, e.Moved(at))
		}
	}
	return where
}

// ungrouped refuses a column that is neither a key nor inside an aggregate.
func (g *unitRows) ungrouped(fields []string, pos int) (*semantics.Expr, *refuse.Refusal) {
	if _, refusal := g.source.Column(fields, pos); refusal != nil {
		return nil, refusal
	}
	return nil, g.source.Ungrouped(fields, pos)
}

// translator translates over the units: group keys and aggregates are the derived columns, keys first.
func (g *unitRows) translator(place string) *semantics.Translator {
	t := &semantics.Translator{Env: g.b.Env, Params: g.b.Params, Columns: g.ungrouped, Place: place}
	t.Constants = func(n *pg.Node, each bool) []*semantics.Expr { return constants(g.b, n, each, g.source) }
	t.Hook = func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
		if f := n.GetFuncCall(); f != nil && ast.IsAggregate(f) {
			return g.aggregate(f)
		}
		switch n.GetNode().(type) {
		case *pg.Node_AConst, *pg.Node_ParamRef, nil:
			return nil, nil
		}
		if !ast.HasAggregate(n) && !ast.HasWindow(n) {
			below := g.b.OverRows(g.source, "SELECT")
			if e, refusal := g.b.Explore(below, n); refusal == nil {
				e = below.Settler.Settled(e)
				for i, have := range g.exprs {
					if have.Canon == e.Canon {
						return have.Moved(i), nil
					}
				}
			}
		}
		if s := n.GetSubLink(); s != nil {
			return g.b.answeredFirst(s, t, g.source)
		}
		return nil, nil
	}
	return t
}

// column is the derived column of an aggregate.
func (g *unitRows) column(a derived.UnitAggregate, pos int) (*semantics.Expr, *refuse.Refusal) {
	at := slices.IndexFunc(g.u.Aggregates, func(have derived.UnitAggregate) bool {
		return have.Kind == a.Kind && have.Column == a.Column && have.Key == a.Key && slices.Equal(predicate.Encode(nil, have.Where), predicate.Encode(nil, a.Where))
	})
	if at < 0 {
		at = len(g.u.Aggregates)
		g.u.Aggregates = append(g.u.Aggregates, a)
	}
	c, domain := a.Shown(g.source.Table.MaxRowsPerUnit)
	if domain == nil {
		return nil, WideAggregate.At(pos)
	}
	return semantics.ColumnExpr(len(g.exprs)+at, c.Type, c.Typmod, pos), nil
}
