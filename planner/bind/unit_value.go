package bind

import (
	"slices"
	"strconv"

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

// A sub-query that aggregates rows of the row's own unit is a value of that row. In SELECT count(*) FROM people p WHERE
// (SELECT count(*) FROM visits v WHERE v.person_id = p.person_id AND v.ward = 'A') >= 3 it is the column n of
//
//	people p LEFT JOIN (SELECT person_id, count(*) AS n FROM visits v WHERE v.ward = 'A' GROUP BY person_id) t ON t.person_id = p.person_id
//
// or 0 where the join finds nothing, as other aggregates are NULL there: a PerUnit and a Paired (ADR 12), which no row
// of another unit moves.

// unitValue is what such a sub-query came to, once it is among the rows' columns.
type unitValue struct {
	text  string
	value *semantics.Expr
}

// ofUnit translates such a sub-query; nil, nil means it is another one.
func (b *Binder) ofUnit(r *Rows, s *pg.SubLink) (*semantics.Expr, *refuse.Refusal) {
	sel, pos := s.Subselect.GetSelectStmt(), int(s.Location)
	if s.SubLinkType != pg.SubLinkType_EXPR_SUBLINK || sel == nil || sel.Larg != nil || len(sel.GroupClause)+len(sel.DistinctClause) > 0 || sel.HavingClause != nil ||
		ast.IsLimited(sel) || len(sel.TargetList) != 1 || !ast.HasAggregate(sel.TargetList[0].GetResTarget().GetVal()) {
		return nil, nil
	}
	text := ast.Deparsed(sel)
	for _, have := range r.values {
		if have.text == text {
			same := *have.value
			same.Pos = pos
			return &same, nil
		}
	}
	from, refusal := b.ownRows(sel, r.scope)
	if from == nil || refusal != nil {
		return nil, refusal
	}
	linked, own := links(sel, r, from)
	if len(linked) == 0 {
		return nil, nil
	}
	calls := aggregateCalls(sel.TargetList[0].GetResTarget().Val)
	grouped := groupedBy(sel, linked, own, calls)
	other, refusal := b.perUnit(grouped, from, false)
	if other == nil || refusal != nil {
		return nil, refusal
	}
	if len(other.exprs) != len(calls) || len(other.keys) != len(linked) {
		return nil, nil
	}
	var on []equation
	units := false
	for i, k := range linked {
		e, own, refusal := equated(r, other, k.around, &other.keys[i], pos)
		if refusal != nil {
			return nil, refusal
		}
		if units = units || own; !own {
			on = append(on, e)
		}
	}
	if !units {
		if refusal := b.alongUnit(on, r, other, pos); refusal != nil {
			return nil, refusal
		}
	}
	p := &derived.Paired{Left: r.Table, Right: other.Table, On: equals(r.Table, other.Table, on), Outer: true}
	if p.Where, refusal = b.Lowered(other.Table, other.where); refusal != nil {
		return nil, refusal
	}
	table := paired(b.Env.Work, p)
	if table == nil || table.MaxRowsPerUnit > r.Table.MaxRowsPerUnit || table.AnyRows && !p.KeepsLeft() {
		return nil, tooManyRows.At(pos, r.Table.Name, other.Table.Name, derived.MaxRows)
	}
	shift := len(r.Table.Columns)
	r.Become(table)
	value, refusal := b.ofAggregates(sel.TargetList[0].GetResTarget().Val, calls, other.exprs, shift)
	if refusal != nil {
		return nil, refusal
	}
	r.values = append(slices.Clone(r.values), unitValue{text, value})
	same := *value
	same.Pos = pos
	return &same, nil
}

// link is a key of a sub-query's rows that equals one of the rows around it.
type link struct {
	around *linear.Key
	node   *pg.Node // of the sub-query's own
}

// links are the keys that a sub-query's condition equates with those around it, and the rest of the condition.
func links(sel *pg.SelectStmt, around, from *Rows) (linked []link, own []*pg.Node) {
	for _, n := range ast.Conjuncts(sel.WhereClause) {
		k, others := equalKeys(n, around, from)
		if k == nil || from.sees(n) {
			own = append(own, n)
			continue
		}
		node := n.GetAExpr().Lexpr
		if mine, _ := from.KeyNode(node); mine == nil || mine.At != others.At {
			node = n.GetAExpr().Rexpr
		}
		linked = append(linked, link{k, node})
	}
	return linked, own
}

func aggregateCalls(n *pg.Node) (calls []*pg.FuncCall) {
	ast.Holds(n, func(n *pg.Node) bool {
		if f := n.GetFuncCall(); f != nil && ast.IsAggregate(f) {
			calls = append(calls, f)
		}
		return false
	})
	return calls
}

// groupedBy is the sub-query as one row for each value of the keys, which shows them and the aggregates.
func groupedBy(sel *pg.SelectStmt, linked []link, own []*pg.Node, calls []*pg.FuncCall) *pg.SelectStmt {
	out := &pg.SelectStmt{WithClause: sel.WithClause, FromClause: sel.FromClause, LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE}
	for i, k := range linked {
		out.GroupClause = append(out.GroupClause, k.node)
		out.TargetList = append(out.TargetList, pg.MakeResTargetNodeWithNameAndVal("key "+strconv.Itoa(i+1), k.node, -1))
	}
	for i, f := range calls {
		out.TargetList = append(out.TargetList, pg.MakeResTargetNodeWithNameAndVal("value "+strconv.Itoa(i+1), &pg.Node{Node: &pg.Node_FuncCall{FuncCall: f}}, -1))
	}
	out.WhereClause = AllOf(own)
	return out
}

// ofAggregates is an expression over aggregates that are columns from a place on, which are NULL where there are no
// rows: a count is 0 there.
func (b *Binder) ofAggregates(n *pg.Node, calls []*pg.FuncCall, columns []*semantics.Expr, shift int) (*semantics.Expr, *refuse.Refusal) {
	t := &semantics.Translator{Env: b.Env, Params: b.Params, Place: "SELECT"}
	given := map[*pg.Node]*semantics.Expr{}
	t.Hook = func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
		if e := given[n]; e != nil {
			return e, nil
		}
		f := n.GetFuncCall()
		at := slices.Index(calls, f)
		if f == nil || at < 0 {
			return nil, nil
		}
		column := columns[at].Shifted(shift)
		if name, _ := ast.FunctionName(f); name != "count" {
			return column, nil
		}
		counted := &pg.Node{Node: &pg.Node_FuncCall{FuncCall: &pg.FuncCall{Funcname: f.Funcname, Location: f.Location}}}
		given[counted] = column
		return t.Expr(&pg.Node{Node: &pg.Node_CoalesceExpr{CoalesceExpr: &pg.CoalesceExpr{Args: []*pg.Node{counted, pg.MakeAConstIntNode(0, -1)}, Location: f.Location}}})
	}
	return t.Expr(n)
}

// existsCompared translates EXISTS whose condition compares a column of the sub-query's rows with the row around it,
// once, beside keys that are equal: EXISTS (SELECT … WHERE o.person_id = v.person_id AND o.day < v.day) says that the
// least of these days is before v.day, and <> that the least or the largest differs. Nil, nil means it is another one.
func (b *Binder) existsCompared(r *Rows, s *pg.SubLink, t *semantics.Translator) (*semantics.Expr, *refuse.Refusal) {
	sel := s.Subselect.GetSelectStmt()
	if s.SubLinkType != pg.SubLinkType_EXISTS_SUBLINK || sel == nil || sel.Larg != nil || IsGrouped(sel) || ast.IsLimited(sel) {
		return nil, nil
	}
	from, refusal := b.ownRows(sel, r.scope)
	if from == nil || refusal != nil {
		return nil, refusal
	}
	linked, own := links(sel, r, from)
	at := slices.IndexFunc(own, func(n *pg.Node) bool { column, _, _ := compares(n, r, from); return column != nil })
	if len(linked) == 0 || at < 0 {
		return nil, nil
	}
	column, around, operator := compares(own[at], r, from)
	where := slices.DeleteFunc(ast.Conjuncts(sel.WhereClause), func(n *pg.Node) bool { return n == own[at] })
	var out *pg.Node
	for _, end := range extremes[operator] {
		call := &pg.Node{Node: &pg.Node_FuncCall{FuncCall: &pg.FuncCall{Funcname: []*pg.Node{pg.MakeStrNode(end)}, Args: []*pg.Node{column}, Location: s.Location}}}
		value := &pg.SelectStmt{WithClause: sel.WithClause, FromClause: sel.FromClause, TargetList: []*pg.Node{pg.MakeResTargetNodeWithVal(call, -1)},
			WhereClause: pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, where, -1), LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE}
		link := &pg.Node{Node: &pg.Node_SubLink{SubLink: &pg.SubLink{SubLinkType: pg.SubLinkType_EXPR_SUBLINK, Subselect: ast.Select(value), Location: s.Location}}}
		one := pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode(operator)}, link, around, s.Location)
		if out == nil {
			out = one
		} else {
			out = pg.MakeBoolExprNode(pg.BoolExprType_OR_EXPR, []*pg.Node{out, one}, s.Location)
		}
	}
	return t.Expr(&pg.Node{Node: &pg.Node_BooleanTest{BooleanTest: &pg.BooleanTest{Arg: out, Booltesttype: pg.BoolTestType_IS_TRUE, Location: s.Location}}})
}

// extremes are the values of a column of which one compares so with another value where any value of the column does.
var extremes = map[string][]string{"<": {"min"}, "<=": {"min"}, ">": {"max"}, ">=": {"max"}, "<>": {"min", "max"}}

// compares reads a comparison of a column of a sub-query's rows with an expression over the row around it; nil means it
// is something else.
func compares(n *pg.Node, around, own *Rows) (column, other *pg.Node, operator string) {
	e := n.GetAExpr()
	if e == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 || e.Lexpr == nil {
		return nil, nil, ""
	}
	left, right, operator := e.Lexpr, e.Rexpr, e.Name[0].GetString_().GetSval()
	if !ofRows(left, own) {
		left, right, operator = right, left, predicate.Mirrored[operator]
	}
	if extremes[operator] == nil || !ofRows(left, own) || !readsOnly(right, around, own) {
		return nil, nil, ""
	}
	if c, _ := own.Column(ast.Strings(left.GetColumnRef().Fields), -1); c.Form != semantics.FormColumn || !own.Table.Columns[c.Cols[0]].Domain.Ordered() {
		return nil, nil, ""
	}
	return left, right, operator
}

// ofRows tells a reference to a column of some rows.
func ofRows(n *pg.Node, r *Rows) bool {
	words := ast.Strings(n.GetColumnRef().GetFields())
	if len(words) == 0 {
		return false
	}
	_, refusal := r.Column(words, -1)
	return refusal == nil
}

// readsOnly tells an expression that reads columns of the rows around it, and none of a sub-query's own, whose names
// come first.
func readsOnly(n *pg.Node, around, own *Rows) bool {
	list, queries := columnsOf(n)
	return len(list) > 0 && !queries &&
		!slices.ContainsFunc(list, func(n *pg.Node) bool { return ofRows(n, own) || !ofRows(n, around) })
}

// unitAggregates binds aggregates over rows of one unit: over all of them, sum(price) of SELECT person_id, sum(price)
// FROM visits GROUP BY person_id, or over those of a window's frame, sum(price) OVER (PARTITION BY person_id ORDER BY
// day).
type unitAggregates struct {
	b      *Binder
	source *Rows
	filled bool                                                                      // there is a row in any case
	put    func(a derived.UnitAggregate, pos int) (*semantics.Expr, *refuse.Refusal) // adds an aggregate once, and returns its column
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
	t := g.b.OverRows(g.source, "an aggregate")
	if small := Filtered(f); small != f && (name == "min" || name == "max" || f.AggDistinct || name == "sum" && small.Args[0].GetAConst() == nil) {
		f = small
	}
	where, refusal := FilterOf(f, t)
	if refusal != nil {
		return nil, refusal
	}
	if f.AggStar {
		return g.add(derived.UnitAggregate{Kind: derived.UnitCount}, where, policy.Int8, pos)
	}
	if present := g.source.Whole(f.Args[0]); present != nil && name == "count" && !f.AggDistinct {
		if !present.IsConstant() {
			where = append(where, present)
		}
		return g.add(derived.UnitAggregate{Kind: derived.UnitCount}, where, policy.Int8, pos)
	}
	if k, _ := g.source.KeyNode(f.Args[0]); k != nil && name == "count" && g.isKey(f.Args[0], k) && (!f.AggDistinct || !g.source.KeyColumn(k).Unit) {
		g.b.SaysPartner(g.source, k)
		if f.AggDistinct { // orders of a customer, of whom the rows are order lines
			return g.add(derived.UnitAggregate{Kind: derived.UnitDistinctKeys, Key: g.source.KeyColumn(k)}, where, policy.Int8, pos)
		}
		switch {
		case k.Present > 0:
			where = append(where, g.source.Present(k, pos))
		case !g.source.KeyColumn(k).Unit:
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
		return g.add(derived.UnitAggregate{Kind: derived.UnitCount}, append(where, semantics.NotNull(arg)), policy.Int8, pos)
	}
	if arg.Form != semantics.FormColumn {
		return nil, unitAggregate.At(pos, name+" of an expression")
	}
	return g.ofColumn(name, g.source.Table.Columns[arg.Cols[0]], where, pos)
}

// FilterOf are the conditions of an aggregate's FILTER.
func FilterOf(f *pg.FuncCall, t *semantics.Translator) ([]*semantics.Expr, *refuse.Refusal) {
	if f.AggFilter == nil {
		return nil, nil
	}
	e, refusal := t.Condition(f.AggFilter, "FILTER")
	if refusal != nil {
		return nil, refusal
	}
	return linear.Conjuncts([]*semantics.Expr{e}), nil
}

// Filtered writes an aggregate that leaves NULLs out over CASE WHEN p THEN x END as one of x with FILTER (WHERE p),
// which says the same: how reports turn rows into columns, avg(CASE WHEN concept_id = 5089 THEN value END).
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

// isKey tells a reference to a key that is not a column with a domain as well, or one whose rows may be missing.
func (g *unitAggregates) isKey(n *pg.Node, k *linear.Key) bool {
	if g.source.KeyColumn(k).Unit || k.Present > 0 {
		return true
	}
	_, refusal := g.source.Column(ast.Strings(n.GetColumnRef().Fields), ast.Location(n))
	return refusal != nil
}

// constantOf reads what is summed up over a unit's rows as a constant in those for which a condition holds (nil means
// in all), and nothing in the others: 5, CASE WHEN p THEN 5 ELSE 0 END. The constant is nil for anything else.
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

// sumOfConstant is c times the number of a unit's rows for which it is summed up, NULL where the argument is in all of
// them.
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
	some := append(slices.Clone(where), semantics.NotNull(arg))
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
	return semantics.Made(semantics.FormOther, "case0", s, err, pos, semantics.Node(semantics.FormCompare, ">", any, pos, rows, semantics.ConstantExpr(int64(0), policy.Int4, pos)), total)
}

// ofColumn binds count(DISTINCT c), sum(c), min(c) and max(c).
func (g *unitAggregates) ofColumn(name string, c *policy.Column, where []*semantics.Expr, pos int) (*semantics.Expr, *refuse.Refusal) {
	switch {
	case name == "count":
		return g.add(derived.UnitAggregate{Kind: derived.UnitDistinct, Column: c}, where, policy.Int8, pos)
	case name == "sum" && (c.Type.Integer() && !c.Listed() || c.Type == policy.NumericType && c.Domain.Scale >= 0):
		return g.add(derived.UnitAggregate{Kind: derived.UnitSum, Column: c}, where, semantics.AggregateType(name, c.Type), pos)
	case name == "min" && c.Domain.Ordered():
		return g.add(derived.UnitAggregate{Kind: derived.UnitMin, Column: c}, where, c.Type, pos)
	case name == "max" && c.Domain.Ordered():
		return g.add(derived.UnitAggregate{Kind: derived.UnitMax, Column: c}, where, c.Type, pos)
	}
	return nil, unitAggregate.At(pos, name+"("+c.Name+")")
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
	return semantics.Made(semantics.FormOther, "cast:"+typ.Name(), s, err, pos, e)
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
