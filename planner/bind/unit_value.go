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
	if same := r.valued(text, pos); same != nil {
		return same, nil
	}
	from, refusal := b.ownRows(sel, r.scope)
	if from == nil || refusal != nil {
		return nil, refusal
	}
	linked, alike, own := links(sel, r, from)
	if len(linked) == 0 {
		return nil, nil
	}
	calls := aggregateCalls(sel.TargetList[0].GetResTarget().Val)
	grouped := groupedBy(sel, append(nodesOf(linked), nodesOf(alike)...), own, calls)
	other, refusal := b.perUnit(grouped, from, false)
	if other == nil || refusal != nil {
		return nil, refusal
	}
	if len(other.exprs) != len(alike)+len(calls) || len(other.keys) != len(linked) {
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
	for i, l := range alike {
		p.Alike = append(p.Alike, derived.Equal{Left: l.column, Right: other.Table.Columns[other.exprs[i].Cols[0]]})
	}
	b.noteAlike(r, other, p.Alike)
	if p.Where, refusal = b.Lowered(other.Table, other.where); refusal != nil {
		return nil, refusal
	}
	table := paired(b.Env.Work, p)
	if table == nil || table.MaxRowsPerUnit > r.Table.MaxRowsPerUnit || table.AnyRows && !p.KeepsLeft() {
		return nil, tooManyRows.At(pos, r.Table.Name, other.Table.Name, derived.MaxRows)
	}
	shift := len(r.Table.Columns)
	r.Become(table)
	value, refusal := b.ofAggregates(sel.TargetList[0].GetResTarget().Val, calls, other.exprs[len(alike):], shift)
	if refusal != nil {
		return nil, refusal
	}
	r.values = append(slices.Clone(r.values), unitValue{text, value})
	return r.valued(text, pos), nil
}

// valued is what a sub-query came to, where it is among the rows' columns already, and else nil.
func (r *Rows) valued(text string, pos int) *semantics.Expr {
	for _, have := range r.values {
		if have.text == text {
			same := *have.value
			same.Pos = pos
			return &same
		}
	}
	return nil
}

// link is a key, or a column, of a sub-query's rows that equals one of the rows around it.
type link struct {
	around *linear.Key
	column *policy.Column
	node   *pg.Node // of the sub-query's own
}

func nodesOf(list []link) (nodes []*pg.Node) {
	for _, l := range list {
		nodes = append(nodes, l.node)
	}
	return nodes
}

// links are the keys and the columns that a sub-query's condition equates with those around it, and the rest of the
// condition.
func links(sel *pg.SelectStmt, around, from *Rows) (linked, alike []link, own []*pg.Node) {
	for _, n := range ast.Conjuncts(sel.WhereClause) {
		k, others := equalKeys(n, around, from)
		if k == nil || from.sees(n) {
			if e, mine := equalOf(n, around, from); mine != nil {
				alike = append(alike, link{nil, e.Left, mine})
			} else {
				own = append(own, n)
			}
			continue
		}
		node := n.GetAExpr().Lexpr
		if mine, _ := from.KeyNode(node); mine == nil || mine.At != others.At {
			node = n.GetAExpr().Rexpr
		}
		linked = append(linked, link{k, nil, node})
	}
	return linked, alike, own
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
func groupedBy(sel *pg.SelectStmt, keys, own []*pg.Node, calls []*pg.FuncCall) *pg.SelectStmt {
	out := &pg.SelectStmt{WithClause: sel.WithClause, FromClause: sel.FromClause, LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE}
	for i, k := range keys {
		out.GroupClause = append(out.GroupClause, k)
		out.TargetList = append(out.TargetList, pg.MakeResTargetNodeWithNameAndVal("key "+strconv.Itoa(i+1), k, -1))
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
	linked, _, own := links(sel, r, from)
	at := slices.IndexFunc(own, func(n *pg.Node) bool { column, _, _ := compares(n, r, from); return column != nil })
	if len(linked) == 0 || at < 0 || slices.ContainsFunc(slices.Delete(slices.Clone(own), at, at+1), from.readsOthers) {
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
