package outer

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// A query may fail by its constants alone, whatever is released: to_char(n, '9.9.9') on each row that there is. The binder, which knows the types of all parts, finds what each expression means
// to package scalar, and asks that whether it fails on every row. What counts is only what is evaluated for certain: in
//
//	SELECT k FROM (SELECT k, to_char(n, '9.9.9') AS t FROM leaf_1) AS s     t is not
//	SELECT k, to_char(n, '9.9.9') FROM leaf_1 WHERE n > 5                   no row may be left
//	SELECT k, t FROM (SELECT k, to_char(n, '9.9.9') AS t FROM leaf_1) AS s  fails
//
// The binder for DuckDB finds it for every sandbox, as it finds the types of parameters (parameters.go), and passes over what it cannot bind.

// certain is what is known of a query's rows before there are any.
type certain struct {
	rows  bool          // it has one, whatever is released
	fails error         // with which reading it ends
	means []scalar.Expr // by column, where there is a row: what its values are
}

// finding is what a binder that looks for certain failures knows.
type finding struct {
	env         scalar.Env
	broken      *refuse.Refusal          // of a literal that is none of the type that stands around it, which PostgreSQL finds before there are rows
	nodes       map[*pg.Node]scalar.Expr // what each bound expression means
	columnsMean map[string]scalar.Expr   // what columns of FROM are, by their texts, where they are more than values
}

// Failing is the refusal of a query that fails on the constants of its text alone; nil: it need not. postgreSQL tells that what package scalar does not know may yet be computed.
func Failing(p *plans.Plan, env scalar.Env, postgreSQL bool) *refuse.Refusal {
	b := &binder{plan: p, describing: describing{map[int]policy.Type{}, map[any]policy.Type{}}, finding: &finding{env: env, nodes: map[*pg.Node]scalar.Expr{}, columnsMean: map[string]scalar.Expr{}}}
	var q relation
	bound := b.attempt(func() { q = b.query(p.Outer.Tree.GetSelectStmt(), nil) })
	if b.broken != nil || !bound {
		return b.broken
	}
	err := q.fails
	for _, e := range q.means {
		if err == nil && e != nil {
			err = scalar.Fails(e)
		}
	}
	if err == nil || postgreSQL && scalar.IsBeyond(err) {
		return nil
	}
	return b.ofConstants(err)
}

// ofConstants is the refusal of an error that constants alone cause.
func (b *binder) ofConstants(err error) *refuse.Refusal {
	var fault *scalar.Error
	if errors.As(err, &fault) && fault.SQLState == "0A000" && !scalar.IsBeyond(err) { // PostgreSQL has none, either
		return refuse.Sandbox(fault.Message)
	}
	refusal := b.tried(func() { scalarFault(err) })
	if refusal.SQLState != "DP002" {
		refusal.Hint = refuse.OfConstants
	}
	return refusal
}

// literalRead looks at a literal that has got a type, and is read when the query runs.
func (b *binder) literalRead(text string, t typed) {
	if b.finding == nil || b.broken != nil {
		return
	}
	e, err := b.env.Cast(b.env.Untyped(text), t.oid, t.mod)
	if err == nil {
		_, err = e.Eval(nil)
	}
	if err != nil && !scalar.IsBeyond(err) {
		b.broken = b.ofConstants(err)
	}
}

// both is what is known of the rows of two tables side by side. One of them may be read first, and if it has no rows the other need not be.
func (c certain) both(other certain) certain {
	out := certain{rows: c.rows && other.rows}
	if out.fails = c.fails; !other.rows && other.fails == nil {
		out.fails = nil
	}
	if out.fails == nil && c.rows {
		out.fails = other.fails
	}
	return out
}

// ofLeaf is what is known of a leaf's rows.
func (b *binder) ofLeaf(name string) certain {
	return certain{rows: slices.ContainsFunc(b.plan.Leaves, func(l *plans.Leaf) bool { return l.Name == name && l.CertainRows() > 0 })}
}

// joinedRows is what is known of a join's rows. Its condition is evaluated on a pair of rows.
func (b *binder) joinedRows(j *pg.JoinExpr, left, right item) certain {
	out := left.certain.both(right.certain)
	b.evaluated(&out, j.GetQuals())
	switch {
	case j.GetJointype() == pg.JoinType_JOIN_FULL:
		out.rows = left.rows || right.rows
		b.perhapsNone(left, right)
	case j.GetJointype() == pg.JoinType_JOIN_LEFT:
		out.rows = left.rows
		b.perhapsNone(right)
	case j.GetJointype() == pg.JoinType_JOIN_RIGHT:
		out.rows = right.rows
		b.perhapsNone(left)
	case j.GetQuals() != nil || j.GetIsNatural() || len(j.GetUsingClause()) > 0:
		out.rows = false
	}
	return out
}

// perhapsNone notes that an outer join may find no rows of these.
func (b *binder) perhapsNone(items ...item) {
	if b.finding == nil {
		return
	}
	for _, it := range items {
		for _, c := range it.visible {
			b.columnsMean[c.sql] = scalar.Perhaps(c.value().scalarType(), c.mod)
		}
	}
}

// united is what is known of the rows of UNION; of EXCEPT and INTERSECT there may be none.
func (b *binder) united(s *pg.SelectStmt, left, right certain) certain {
	if b.finding == nil || s.GetOp() != pg.SetOperation_SETOP_UNION {
		return certain{}
	}
	out := certain{rows: (left.rows || right.rows) && !cut(s), fails: left.fails}
	if out.fails == nil {
		out.fails = right.fails
	}
	for i := range max(len(left.means), len(right.means)) {
		var of []scalar.Expr
		for _, side := range [][]scalar.Expr{left.means, right.means} {
			if i < len(side) && side[i] != nil {
				of = append(of, side[i])
			}
		}
		out.means = append(out.means, scalar.Unknown(policy.Text, -1, of...))
	}
	return out
}

// evaluated notes that an expression is evaluated on a row.
func (b *binder) evaluated(c *certain, nodes ...*pg.Node) {
	if b.finding == nil || !c.rows {
		return
	}
	for _, n := range nodes {
		if by := n.GetSortBy(); by != nil {
			n = by.GetNode()
		}
		if e := b.nodes[n]; e != nil && c.fails == nil && n.GetBoolExpr().GetBoolop() != pg.BoolExprType_AND_EXPR { // of WHERE, whose parts PostgreSQL puts into an order of its own
			c.fails = scalar.Fails(e)
		}
	}
}

// selected is what is known of the rows of a plain SELECT whose FROM has those; its parts are bound.
func (b *binder) selected(s *pg.SelectStmt, from certain, targets []target) certain {
	if b.finding == nil {
		return certain{}
	}
	b.evaluated(&from, s.GetWhereClause())
	from.rows = from.rows && s.GetWhereClause() == nil
	b.evaluated(&from, s.GetGroupClause()...)
	b.evaluated(&from, s.GetHavingClause())
	from.rows = from.rows && s.GetHavingClause() == nil
	b.evaluated(&from, s.GetSortClause()...)
	out := certain{rows: from.rows && !cut(s), fails: from.fails}
	for _, t := range targets {
		if len(s.GetDistinctClause()) > 0 && from.rows && out.fails == nil {
			out.fails = scalar.Fails(t.expr.meaning(t.expr.means))
		}
		var means scalar.Expr
		if out.rows {
			means = t.expr.meaning(t.expr.means)
		}
		out.means = append(out.means, means)
	}
	return out
}

// cut tells that LIMIT or OFFSET may leave no rows.
func cut(s *pg.SelectStmt) bool {
	limit := s.GetLimitCount().GetAConst()
	return s.GetLimitOffset() != nil || s.GetLimitCount() != nil && !limit.GetIsnull() && limit.GetIval().GetIval() < 1
}

// tabled notes what is known of a table of FROM.
func (b *binder) tabled(it item, c certain) item {
	it.certain = c
	if b.finding != nil {
		for i, e := range c.means {
			if e != nil {
				b.columnsMean[it.entries[0].columns[i].sql] = e
			}
		}
	}
	return it
}

// scalarType is the type that package scalar has an expression of; what has none, and is no constant, is a text.
func (e expr) scalarType() policy.Type {
	if e.oid == policy.Unknown && e.literal == nil && !e.null {
		return policy.Text
	}
	return e.oid
}

// meaning is an expression of package scalar's that has the type that was bound; without one it is a value of that type, and what stands in it is evaluated.
func (e expr) meaning(means scalar.Expr, of ...scalar.Expr) scalar.Expr {
	t := e.scalarType()
	of = slices.DeleteFunc(of, func(e scalar.Expr) bool { return e == nil })
	switch {
	case means == nil:
		return scalar.Perhaps(t, e.mod, of...)
	case means.Type() != t && e.oid != policy.Unknown:
		return scalar.Unknown(t, e.mod, means)
	}
	return means
}

// mean notes what a bound expression means.
func (b *binder) mean(node *pg.Node, e expr, refused *refuse.Refusal, sc *scope) expr {
	if refused != nil && strings.HasPrefix(refused.SQLState, "22") { // the binder has found it
		e.means = scalar.Failing(e.oid, refused.SQLState, refused.Message)
		b.nodes[node] = e.means
		return e
	}
	var list []scalar.Expr
	of := func(nodes ...*pg.Node) []scalar.Expr {
		list = make([]scalar.Expr, len(nodes))
		for i, n := range nodes {
			if b.nodes[n] == nil { // a pattern with its ESCAPE
				b.attempt(func() { b.expr(n, sc) })
			}
			list[i] = b.nodes[n]
		}
		return list
	}
	made := func(call func(args ...scalar.Expr) (scalar.Expr, error), nodes ...*pg.Node) (out scalar.Expr) {
		if args := of(nodes...); !slices.Contains(args, nil) {
			if out, err := call(args...); err == nil {
				return out
			}
		}
		return nil
	}
	known := func(of ...scalar.Expr) scalar.Expr { // a value that is not NULL on every row, where nothing in it is
		return scalar.Unknown(e.scalarType(), e.mod, slices.DeleteFunc(of, func(e scalar.Expr) bool { return e == nil })...)
	}
	named := func(name string) func(args ...scalar.Expr) (scalar.Expr, error) {
		return func(args ...scalar.Expr) (scalar.Expr, error) { return b.env.Call(name, args...) }
	}
	var means scalar.Expr
	switch n := node.GetNode().(type) {
	case *pg.Node_AConst:
		means = b.constantMeant(e, n.AConst)
	case *pg.Node_ColumnRef:
		if means = b.columnsMean[e.sql]; means == nil {
			means = known()
		}
	case *pg.Node_SubLink: // of which e has it: (SELECT to_char(n, '9.9.9'))
		means = e.means
	case *pg.Node_TypeCast:
		means = made(func(args ...scalar.Expr) (scalar.Expr, error) { return b.env.Cast(args[0], e.oid, e.mod) }, n.TypeCast.GetArg())
		if v, constant := b.constantAs(n.TypeCast.GetArg(), policy.Text); constant && e.oid == typeOid && !isOid(v) {
			means = scalar.Failing(e.oid, "22P02", "invalid input syntax for type oid")
		}
	case *pg.Node_ParamRef:
		if e.given && e.literal != nil {
			means = scalar.Constant(*e.literal, policy.Unknown)
		}
	case *pg.Node_SqlvalueFunction, *pg.Node_GroupingFunc:
		means = known()
	case *pg.Node_CollateClause:
		of(n.CollateClause.GetArg())
	case *pg.Node_AExpr:
		operands := []*pg.Node{n.AExpr.GetLexpr(), n.AExpr.GetRexpr()}
		switch kind := n.AExpr.GetKind(); {
		case kind == pg.A_Expr_Kind_AEXPR_OP && operands[0] == nil:
			means = made(named(lastName(n.AExpr.GetName())), operands[1])
		case kind == pg.A_Expr_Kind_AEXPR_OP, kind == pg.A_Expr_Kind_AEXPR_LIKE, kind == pg.A_Expr_Kind_AEXPR_ILIKE, kind == pg.A_Expr_Kind_AEXPR_SIMILAR:
			means = made(named(lastName(n.AExpr.GetName())), operands...)
		default: // IN, BETWEEN and their like, which may not come to what stands on the right
			of(operands[0])
		}
	case *pg.Node_BoolExpr:
		join := map[pg.BoolExprType]func(...scalar.Expr) (scalar.Expr, error){pg.BoolExprType_AND_EXPR: scalar.And, pg.BoolExprType_OR_EXPR: scalar.Or}[n.BoolExpr.GetBoolop()]
		if join == nil {
			means = known(of(n.BoolExpr.GetArgs()...)...)
		} else if means = made(join, n.BoolExpr.GetArgs()...); means == nil {
			list = nil
		}
	case *pg.Node_CaseExpr:
		means = b.caseMeant(n.CaseExpr)
	case *pg.Node_CoalesceExpr:
		if means = made(b.env.Coalesce, n.CoalesceExpr.GetArgs()...); means == nil {
			list = nil
		}
	case *pg.Node_MinMaxExpr, *pg.Node_NullTest, *pg.Node_BooleanTest, *pg.Node_AArrayExpr, *pg.Node_RowExpr:
		means = known(of(ast.Children(node)...)...)
	case *pg.Node_FuncCall:
		name := lastName(n.FuncCall.GetFuncname())
		if means = b.failsAs(name, n.FuncCall, e, sc); means != nil {
			break
		}
		switch {
		case n.FuncCall.GetAggFilter() != nil: // which may leave no row
		case n.FuncCall.GetOver() != nil:
			of(append(slices.Clone(n.FuncCall.GetArgs()[:min(1, len(n.FuncCall.GetArgs()))]), windowNodes(n.FuncCall.GetOver(), sc)...)...)
			if slices.Contains(valued, name) {
				means = known(list...)
			}
		case slices.Contains(aggregates, name):
			if of(n.FuncCall.GetArgs()...); slices.Contains(valued, name) {
				means = known(list...)
			}
		case name == "width_bucket" && len(n.FuncCall.GetArgs()) == 2:
			if array := n.FuncCall.GetArgs()[1].GetAArrayExpr(); array != nil {
				means = made(named(scalar.WidthBucketOf), append([]*pg.Node{n.FuncCall.GetArgs()[0]}, array.GetElements()...)...)
			}
		default:
			means = made(named(name), n.FuncCall.GetArgs()...)
		}
	}
	e.means = e.meaning(means, list...)
	b.nodes[node] = e.means
	return e
}

// isOid tells a text that reads as an oid, or as none at all.
func isOid(v policy.Value) bool {
	text, ok := v.(string)
	_, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return !ok || err == nil
}

// windowOf is a window as it is defined, here or under its name.
func windowOf(w *pg.WindowDef, sc *scope) *pg.WindowDef {
	if named, ok := sc.windows[w.GetName()]; ok {
		return named
	}
	return w
}

// windowNodes are what a window's rows are parted and ordered by.
func windowNodes(w *pg.WindowDef, sc *scope) (nodes []*pg.Node) {
	w = windowOf(w, sc)
	nodes = slices.Clone(w.GetPartitionClause())
	for _, by := range w.GetOrderClause() {
		nodes = append(nodes, by.GetSortBy().GetNode())
	}
	return nodes
}

// constantMeant is a constant of the query.
func (b *binder) constantMeant(e expr, c *pg.A_Const) scalar.Expr {
	switch v := c.GetVal().(type) {
	case nil:
		return scalar.Constant(nil, policy.Unknown)
	case *pg.A_Const_Ival:
		return scalar.Constant(int64(v.Ival.GetIval()), policy.Int4)
	case *pg.A_Const_Boolval:
		return scalar.Constant(v.Boolval.GetBoolval(), policy.Bool)
	case *pg.A_Const_Sval:
		return b.env.Untyped(v.Sval.GetSval())
	case *pg.A_Const_Fval:
		if v, err := b.env.ParseText(e.oid, v.Fval.GetFval()); err == nil {
			return scalar.Constant(v, e.oid)
		}
	}
	return nil
}

// caseMeant is a CASE without an operand, whose constant conditions choose.
func (b *binder) caseMeant(n *pg.CaseExpr) scalar.Expr {
	var arms []scalar.When
	for _, node := range n.GetArgs() {
		when := scalar.When{If: b.nodes[node.GetCaseWhen().GetExpr()], Then: b.nodes[node.GetCaseWhen().GetResult()]}
		if when.If == nil || when.Then == nil || n.GetArg() != nil {
			return nil
		}
		arms = append(arms, when)
	}
	out, err := b.env.Case(arms, b.nodes[n.GetDefresult()])
	if err != nil {
		return nil
	}
	if none, constant := scalar.ConstantValue(b.nodes[n.GetDefresult()]); n.GetDefresult() == nil || constant && none == nil {
		return scalar.Perhaps(out.Type(), out.Typmod(), out)
	}
	return out
}

// valued are the aggregates and window functions that have a value where there is a row and their argument has one.
var valued = strings.Fields("count sum avg min max bool_and bool_or every row_number rank dense_rank percent_rank cume_dist ntile first_value last_value")

// patterns are the functions that take a regular expression as their second argument.
var patterns = []string{"substring", "regexp_replace", "regexp_match", "regexp_matches", "regexp_count", "regexp_like", "regexp_instr", "regexp_substr", "regexp_split_to_array", "regexp_split_to_table"}

// positive are the arguments of functions, by their places, that must be above zero.
var positive = map[string]map[int][2]string{
	"ntile": {0: {"22014", "argument of ntile must be greater than zero"}}, "nth_value": {1: {"22016", "argument of nth_value must be greater than zero"}},
	"regexp_replace": {3: {"22023", `invalid value for parameter "start"`}},
	"regexp_count":   {2: {"22023", `invalid value for parameter "start"`}},
	"regexp_instr":   {2: {"22023", `invalid value for parameter "start"`}, 3: {"22023", `invalid value for parameter "n"`}},
	"regexp_substr":  {2: {"22023", `invalid value for parameter "start"`}, 3: {"22023", `invalid value for parameter "n"`}},
}

// constantAs is the value that a constant has as one of a type; false: it is none, or has none.
func (b *binder) constantAs(n *pg.Node, t policy.Type) (policy.Value, bool) {
	e := b.nodes[n]
	if e == nil || t == policy.Float8 && (e.Type() == policy.Unknown || e.Type().Textual()) {
		return nil, false
	}
	e, err := b.env.Cast(e, t, -1)
	if err == nil {
		e, err = scalar.Fold(e)
	}
	if err != nil {
		return nil, false
	}
	return scalar.ConstantValue(e)
}

// failsAs is a call that fails by its constants, of a function that package scalar does not know; nil: it is none.
func (b *binder) failsAs(name string, n *pg.FuncCall, e expr, sc *scope) scalar.Expr {
	if name == "generate_series" || slices.Contains(patterns, name) { // which have no answer where an argument is NULL
		for _, a := range n.GetArgs() {
			means := b.nodes[a]
			if v, constant := b.constantAs(a, policy.Text); means == nil || scalar.PerhapsNull(means) || constant && v == nil {
				return nil
			}
		}
	}
	number := func(i int) (v policy.Value, known bool) {
		if i >= len(n.GetArgs()) {
			return nil, false
		}
		return b.constantAs(n.GetArgs()[i], policy.Float8)
	}
	for i, fault := range positive[name] {
		if v, known := number(i); known && v != nil && v.(float64) < 1 {
			return scalar.Failing(e.oid, fault[0], fault[1])
		}
	}
	switch {
	case name == "percentile_cont" || name == "percentile_disc":
		if v, known := number(0); known && v != nil && !(v.(float64) >= 0 && v.(float64) <= 1) {
			return scalar.Failing(e.oid, "22003", "percentile value is not between 0 and 1")
		}
	case name == "generate_series" && len(n.GetArgs()) == 3:
		if v, known := number(2); known && v == 0.0 {
			return scalar.Failing(e.oid, "22023", "step size cannot equal zero")
		}
		if v, known := b.constantAs(n.GetArgs()[2], policy.IntervalT); known && v == (policy.Interval{}) {
			return scalar.Failing(e.oid, "22023", "step size cannot equal zero")
		}
	case name == "regexp_match" && len(n.GetArgs()) == 3:
		if v, known := b.constantAs(n.GetArgs()[2], policy.Text); known && v != nil && strings.Contains(v.(string), "g") {
			return scalar.Failing(e.oid, "22023", `regexp_match() does not support the "global" option`)
		}
	}
	if w := windowOf(n.GetOver(), sc); w != nil {
		for i, offset := range []*pg.Node{w.GetStartOffset(), w.GetEndOffset()} {
			if v, known := b.constantAs(offset, policy.Float8); known && v != nil && v.(float64) < 0 {
				return scalar.Failing(e.oid, "22013", "frame "+[...]string{"starting", "ending"}[i]+" offset must not be negative")
			}
		}
	}
	if slices.Contains(patterns, name) && len(n.GetArgs()) > 1 {
		text, pattern := b.nodes[n.GetArgs()[0]], b.nodes[n.GetArgs()[1]]
		if text == nil || pattern == nil || pattern.Type() != policy.Unknown && !pattern.Type().Textual() {
			return nil
		}
		if matches, err := b.env.Call("~", text, pattern); err == nil {
			return e.meaning(nil, matches)
		}
	}
	return nil
}
