package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Sub-queries whose groups lie within a unit. In SELECT avg(s) FROM (SELECT person_id, sum(price) AS s FROM visits GROUP BY person_id) t the
// sub-query has one row for each unit, which is as private as any row: a derived table, over which the SELECT above is asked.

// unitRows binds a sub-query whose groups lie within a unit: SELECT person_id, sum(x) s FROM visits GROUP BY person_id. Its
// rows are private, and counted above.
type unitRows struct {
	unitAggregates
	u     *derived.PerUnit
	exprs []*semantics.Expr // of the keys that are not join keys, by derived column
	keys  []linear.Key
	said  bool // a key that does not say whose a row is is told: nothing else tells it
}

// unitAggregates binds aggregates over rows of one unit: over all of them, or over those of a window's frame.
type unitAggregates struct {
	b      *Binder
	source *Rows
	filled bool                                                                      // there is a row in any case
	put    func(a derived.UnitAggregate, pos int) (*semantics.Expr, *refuse.Refusal) // adds an aggregate once, and returns its column
}

// perUnit returns the rows of a grouped SELECT, or nil when its groups are not within units.
func (b *Binder) perUnit(sel *pg.SelectStmt, from *Rows, said bool) (*Rows, *refuse.Refusal) {
	source := *from
	sel = source.unstarred(sel)
	g := &unitRows{said: said, unitAggregates: unitAggregates{b: b, source: &source, filled: true}, u: &derived.PerUnit{}}
	g.put = g.column
	items, refusal := g.items(sel)
	if refusal != nil || !g.withinUnits(items) {
		return nil, nil // what it is, and what is wrong with it, is told when it is bound as a leaf
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
	b.foresee(&source, append(append([]*pg.Node{sel.HavingClause}, items...), sel.TargetList...)...)
	g.foreseeCounts(append([]*pg.Node{sel.HavingClause}, sel.TargetList...))
	for _, n := range items {
		if refusal := g.addKey(n); refusal != nil {
			return nil, refusal
		}
	}
	return g.derive(sel)
}

// withinUnits tells groups of which each is of one unit's rows: by a key that says whose a row is. A key that does not, and is a column too
// (a product's number), is grouped by as columns are; one that is never shown (a ticket's) makes groups of what each unit has of it,
// which is said.
func (g *unitRows) withinUnits(items []*pg.Node) bool {
	var hidden *linear.Key
	for _, n := range items {
		k, _ := g.source.KeyNode(n)
		if k == nil {
			continue
		}
		if k.Column.TellsUnit() {
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

// items are what the SELECT groups by: positions and output names stand for targets.
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
		if !k.Column.Unit && !slices.Contains(g.u.JoinKeys, k.Column) {
			g.u.JoinKeys = append(g.u.JoinKeys, k.Column)
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

// derive binds what the SELECT shows, and makes the table of its rows.
func (g *unitRows) derive(sel *pg.SelectStmt) (*Rows, *refuse.Refusal) {
	out := &Rows{pos: g.source.pos}
	var outputs []int // columns and keys
	t := &semantics.Translator{Env: g.b.Env, Params: g.b.Params, Columns: g.ungrouped, Hook: g.hook, Place: "SELECT"}
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
		if k != nil && slices.ContainsFunc(g.keys, func(have linear.Key) bool { return have.Column == k.Column }) {
			out.shape += "k"
			out.keys = append(out.keys, linear.Key{Name: ast.Label(target), Column: k.Column, Present: 0})
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
	var refusal *refuse.Refusal
	if g.u.Where, refusal = g.b.Lowered(g.source.Table, g.source.where); refusal != nil {
		return nil, refusal
	}
	g.u.From = g.source.Table
	if out.Table = derived.NewPerUnit(g.u); out.Table == nil {
		return nil, WideAggregate.At(g.source.pos)
	}
	for i := range out.keys {
		out.keys[i].Column = derived.KeyOf(out.Table, g.u, out.keys[i].Column)
	}
	if having != nil {
		out.where = []*semantics.Expr{having}
	}
	out.parts = []relation{{g.source.Alias(), nil, 0, len(out.names), 0, len(out.keys), outputs}}
	return out, nil
}

// ungrouped refuses a column that is neither a key nor inside an aggregate.
func (g *unitRows) ungrouped(fields []string, pos int) (*semantics.Expr, *refuse.Refusal) {
	if _, refusal := g.source.Column(fields, pos); refusal != nil {
		return nil, refusal
	}
	return nil, Ungrouped.At(pos, g.source.Alias()+"."+fields[len(fields)-1])
}

// hook translates group keys and aggregates over the derived columns: keys come first, aggregates after them.
func (g *unitRows) hook(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
	if f := n.GetFuncCall(); f != nil && ast.IsAggregate(f) {
		return g.aggregate(f)
	}
	switch n.GetNode().(type) {
	case *pg.Node_SubLink:
		return g.b.answeredFirst(n.GetSubLink(), &semantics.Translator{Env: g.b.Env, Params: g.b.Params, Columns: g.ungrouped, Hook: g.hook, Place: "HAVING"}, g.source)
	case *pg.Node_AConst, *pg.Node_ParamRef, nil:
		return nil, nil
	}
	if ast.HasAggregate(n) || ast.HasWindow(n) {
		return nil, nil
	}
	t := g.b.Settles(g.b.OverKeys(g.source, "SELECT"), g.source)
	e, refusal := g.b.Explore(t, n)
	if refusal != nil {
		return nil, nil
	}
	e = t.Settler.Settled(e)
	for i, have := range g.exprs {
		if have.Canon == e.Canon {
			return have.Moved(i), nil
		}
	}
	return nil, nil
}

// aggregate binds an aggregate over a unit's rows.
func (g *unitAggregates) aggregate(f *pg.FuncCall) (*semantics.Expr, *refuse.Refusal) {
	pos := int(f.Location)
	name, refusal := AggregateName(f)
	if refusal != nil {
		return nil, refusal
	}
	if f.AggWithinGroup || f.AggDistinct && name != "count" || !slices.Contains([]string{"count", "sum", "min", "max"}, name) || !f.AggStar && len(f.Args) != 1 {
		return nil, unitAggregate.At(pos, name)
	}
	t := g.b.Settles(g.b.OverKeys(g.source, "an aggregate"), g.source)
	if small := Filtered(f); small != f && (name == "min" || name == "max" || name == "sum" && small.Args[0].GetAConst() == nil) {
		f = small
	}
	var where []*semantics.Expr
	if f.AggFilter != nil {
		e, refusal := t.Condition(f.AggFilter, "FILTER")
		if refusal != nil {
			return nil, refusal
		}
		where = linear.Conjuncts([]*semantics.Expr{e})
	}
	if f.AggStar {
		return g.add(derived.UnitAggregate{Kind: derived.UnitCount}, where, policy.Int8, pos)
	}
	if k, _ := g.source.KeyNode(f.Args[0]); k != nil && name == "count" && !f.AggDistinct && g.isKey(f.Args[0], k) {
		g.b.SaysPartner(g.source, k)
		switch {
		case k.Present > 0:
			where = append(where, g.source.Present(k, pos))
		case !k.Column.Unit:
			where = append(where, g.b.Known(g.source, k, pos))
		}
		return g.add(derived.UnitAggregate{Kind: derived.UnitCount}, where, policy.Int8, pos)
	}
	arg, refusal := t.Expr(f.Args[0])
	if refusal != nil {
		return nil, refusal
	}
	if name == "sum" && semantics.Numeric(arg) {
		if c, holds, refusal := g.constantOf(f.Args[0], t); c != nil || refusal != nil {
			if refusal != nil {
				return nil, refusal
			}
			return g.sumOfConstant(arg, c, holds, where, pos)
		}
	}
	if refusal := semantics.Closed(g.source.Table, arg); refusal != nil && (name != "count" || f.AggDistinct) {
		return nil, refusal
	}
	if name == "count" && !f.AggDistinct {
		present, refusal := t.Not(semantics.Node(semantics.FormIsNull, "isnull", scalar.IsNull(arg.Expr), arg.Pos, arg))
		if refusal != nil {
			return nil, refusal
		}
		return g.add(derived.UnitAggregate{Kind: derived.UnitCount}, append(where, present), policy.Int8, pos)
	}
	if arg.Form != semantics.FormColumn {
		return nil, unitAggregate.At(pos, name+" of an expression")
	}
	return g.ofColumn(name, g.source.Table.Columns[arg.Cols[0]], where, pos)
}

// Filtered writes an aggregate that leaves NULLs out over CASE WHEN p THEN x END as one of x with FILTER (WHERE p), which says the same: how reports turn rows
// into columns, avg(CASE WHEN concept_id = 5089 THEN value END).
func Filtered(f *pg.FuncCall) *pg.FuncCall {
	if f.AggStar || f.AggWithinGroup || f.FuncVariadic || len(f.AggOrder) > 0 || len(f.Args) != 1 {
		return f
	}
	c := f.Args[0].GetCaseExpr()
	if c == nil || c.Arg != nil || len(c.Args) != 1 || c.Defresult != nil && !c.Defresult.GetAConst().GetIsnull() {
		return f
	}
	w := c.Args[0].GetCaseWhen()
	where := w.Expr
	if f.AggFilter != nil {
		where = &pg.Node{Node: &pg.Node_BoolExpr{BoolExpr: &pg.BoolExpr{Boolop: pg.BoolExprType_AND_EXPR, Args: []*pg.Node{f.AggFilter, w.Expr}, Location: c.Location}}}
	}
	return &pg.FuncCall{Funcname: f.Funcname, Args: []*pg.Node{w.Result}, AggDistinct: f.AggDistinct, AggFilter: where, Funcformat: f.Funcformat, Location: f.Location}
}

// foreseeCounts has the rows say which of their keys are NULL, where these are counted, before their table is taken.
func (g *unitAggregates) foreseeCounts(nodes []*pg.Node) {
	for _, n := range nodes {
		ast.Holds(n, func(n *pg.Node) bool {
			if f := n.GetFuncCall(); f != nil && len(f.Args) == 1 && !f.AggDistinct && !f.AggStar {
				name, refusal := ast.FunctionName(f)
				if k, _ := g.source.KeyNode(f.Args[0]); refusal == nil && name == "count" && k != nil && k.Present == 0 && !k.Column.Unit && g.isKey(f.Args[0], k) {
					g.b.Known(g.source, k, int(f.Location))
				}
			}
			return false
		})
	}
}

// isKey tells a reference to a key that is not a column with a domain as well, or one whose rows may be missing.
func (g *unitAggregates) isKey(n *pg.Node, k *linear.Key) bool {
	if k.Column.Unit || k.Present > 0 {
		return true
	}
	_, refusal := g.source.Column(ast.Strings(n.GetColumnRef().Fields), ast.Location(n))
	return refusal != nil
}

// constantOf reads what is summed up over a unit's rows as a constant in those for which a condition holds (nil: in all),
// and nothing in the others: 5, CASE WHEN p THEN 5 ELSE 0 END. The constant is nil for anything else.
func (g *unitAggregates) constantOf(n *pg.Node, t *semantics.Translator) (c, holds *semantics.Expr, refusal *refuse.Refusal) {
	if holds, refusal = t.IsOne(n); refusal != nil || holds != nil {
		return semantics.ConstantExpr(int64(1), policy.Int4, ast.Location(n)), holds, refusal
	}
	if w := n.GetCaseExpr(); w != nil && w.Arg == nil && len(w.Args) == 1 && t.AddsNothing(w.Defresult) {
		if holds, refusal = t.Condition(w.Args[0].GetCaseWhen().Expr, "CASE/WHEN"); refusal != nil {
			return nil, nil, refusal
		}
		n = w.Args[0].GetCaseWhen().Result
	}
	if c, refusal = t.Expr(n); refusal != nil || !c.IsConstant() || c.Parameter > 0 || semantics.MustConstant(c) == nil {
		return nil, nil, refusal
	}
	return c, holds, nil
}

// sumOfConstant is c times the number of a unit's rows for which it is summed up, NULL where the argument is in all of them.
func (g *unitAggregates) sumOfConstant(arg, c, holds *semantics.Expr, where []*semantics.Expr, pos int) (*semantics.Expr, *refuse.Refusal) {
	counted := slices.Clone(where)
	if holds != nil {
		counted = append(counted, holds)
	}
	typ := semantics.AggregateType("sum", arg.Type())
	n, refusal := g.add(derived.UnitAggregate{Kind: derived.UnitCount}, counted, typ, pos)
	if refusal != nil {
		return nil, refusal
	}
	total := n
	if c.Canon != semantics.ConstantExpr(int64(1), policy.Int4, -1).Canon {
		s, err := g.b.Env.Call("*", n.Expr, c.Expr)
		if err == nil {
			s, err = g.b.Env.Cast(s, typ, -1)
		}
		if err != nil {
			return nil, semantics.ScalarRefusal(err, pos)
		}
		total = semantics.Node(semantics.FormOther, "*", s, pos, n, c)
	}
	present, refusal := (&semantics.Translator{}).Not(semantics.Node(semantics.FormIsNull, "isnull", scalar.IsNull(arg.Expr), arg.Pos, arg))
	if refusal != nil {
		return nil, refusal
	}
	some := append(slices.Clone(where), present)
	if where, refusal := g.b.Lowered(g.source.Table, some); refusal != nil || where == nil && g.filled { // each unit has a row
		return total, refusal
	}
	rows, refusal := g.add(derived.UnitAggregate{Kind: derived.UnitCount}, some, policy.Int8, pos)
	if refusal != nil {
		return nil, refusal
	}
	any, err := g.b.Env.Call(">", rows.Expr, scalar.Constant(int64(0), policy.Int4))
	if err != nil {
		return nil, semantics.ScalarRefusal(err, pos)
	}
	s, err := g.b.Env.Case([]scalar.When{{If: any, Then: total.Expr}}, nil)
	if err != nil {
		return nil, semantics.ScalarRefusal(err, pos)
	}
	return semantics.Node(semantics.FormOther, "case0", s, pos, semantics.Node(semantics.FormCompare, ">", any, pos, rows, semantics.ConstantExpr(int64(0), policy.Int4, pos)), total), nil
}

// ofColumn binds count(DISTINCT c), sum(c), min(c) and max(c).
func (g *unitAggregates) ofColumn(name string, c *policy.Column, where []*semantics.Expr, pos int) (*semantics.Expr, *refuse.Refusal) {
	switch {
	case name == "count":
		return g.add(derived.UnitAggregate{Kind: derived.UnitDistinct, Column: c}, where, policy.Int8, pos)
	case name == "sum" && c.Type.Integer():
		typ := policy.Int8
		if c.Type == policy.Int8 {
			typ = policy.NumericType
		}
		return g.add(derived.UnitAggregate{Kind: derived.UnitSum, Column: c}, where, typ, pos)
	case name == "sum" && c.Type == policy.NumericType && c.Domain.Scale >= 0:
		return g.add(derived.UnitAggregate{Kind: derived.UnitSum, Column: c}, where, policy.NumericType, pos)
	case name == "min" && c.Domain.Ordered():
		return g.add(derived.UnitAggregate{Kind: derived.UnitMin, Column: c}, where, c.Type, pos)
	case name == "max" && c.Domain.Ordered():
		return g.add(derived.UnitAggregate{Kind: derived.UnitMax, Column: c}, where, c.Type, pos)
	}
	return nil, unitAggregate.At(pos, name+"("+c.Name+")")
}

// column is the derived column of an aggregate.
func (g *unitRows) column(a derived.UnitAggregate, pos int) (*semantics.Expr, *refuse.Refusal) {
	at := slices.IndexFunc(g.u.Aggregates, func(have derived.UnitAggregate) bool {
		return have.Kind == a.Kind && have.Column == a.Column && slices.Equal(predicate.Encode(nil, have.Where), predicate.Encode(nil, a.Where))
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

// add returns the column of an aggregate, in the type that SQL gives it.
func (g *unitAggregates) add(a derived.UnitAggregate, where []*semantics.Expr, typ policy.Type, pos int) (*semantics.Expr, *refuse.Refusal) {
	var refusal *refuse.Refusal
	if a.Where, refusal = g.b.Lowered(g.source.Table, where); refusal != nil {
		return nil, refusal
	}
	e, refusal := g.put(a, pos)
	if refusal != nil || e.Type() == typ {
		return e, refusal
	}
	s, err := g.b.Env.Cast(e.Expr, typ, -1)
	if err != nil {
		return nil, semantics.ScalarRefusal(err, pos)
	}
	return semantics.Node(semantics.FormOther, "cast:"+typ.Name(), s, pos, e), nil
}

// AggregateName is the name of an aggregate call, which holds neither another nor a window function.
func AggregateName(f *pg.FuncCall) (string, *refuse.Refusal) {
	name, refusal := ast.FunctionName(f)
	if refusal != nil {
		return "", refusal
	}
	for _, a := range append([]*pg.Node{f.AggFilter}, f.Args...) {
		if ast.HasAggregate(a) {
			return "", nested.At(ast.Location(a))
		}
		if ast.HasWindow(a) {
			return "", semantics.WindowIn.At(ast.Location(a), "an aggregate")
		}
	}
	return name, nil
}
