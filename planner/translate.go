package planner

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// translator turns expressions of the grammar into typed expressions over the columns of one row. What it does not know
// it refuses.
type translator struct {
	env     scalar.Env
	params  *parameters
	columns func(fields []string, pos int) (*expr, *refuse.Refusal) // nil: no columns are in sight
	hook    func(n *pg.Node) (*expr, *refuse.Refusal)               // tried first at each node; nil, nil: go on
	place   string                                                  // the clause, for messages
	settler *settler                                                // of sums of several columns; nil: none are
	holding []*pg.Node                                              // what must hold where a condition does: false there is as good as NULL
}

func (t *translator) expr(n *pg.Node) (*expr, *refuse.Refusal) {
	if t.hook != nil {
		if e, r := t.hook(n); e != nil || r != nil {
			return e, r
		}
	}
	switch v := n.GetNode().(type) {
	case *pg.Node_AConst:
		return t.constant(v.AConst)
	case *pg.Node_ColumnRef:
		return t.column(v.ColumnRef)
	case *pg.Node_ParamRef:
		return t.params.constant(int(v.ParamRef.Number), t.env, int(v.ParamRef.Location))
	case *pg.Node_AExpr:
		return t.operator(v.AExpr)
	case *pg.Node_BoolExpr:
		return t.boolean(v.BoolExpr)
	case *pg.Node_FuncCall:
		return t.call(v.FuncCall)
	case *pg.Node_TypeCast:
		return t.cast(v.TypeCast)
	case *pg.Node_NullTest:
		return t.nullTest(v.NullTest)
	case *pg.Node_BooleanTest:
		return t.booleanTest(v.BooleanTest)
	case *pg.Node_CaseExpr:
		return t.caseOf(v.CaseExpr)
	case *pg.Node_CoalesceExpr:
		return t.variadic("coalesce", v.CoalesceExpr.Args, int(v.CoalesceExpr.Location))
	case *pg.Node_MinMaxExpr:
		name := "greatest"
		if v.MinMaxExpr.Op == pg.MinMaxOp_IS_LEAST {
			name = "least"
		}
		return t.variadic(name, v.MinMaxExpr.Args, int(v.MinMaxExpr.Location))
	case *pg.Node_SqlvalueFunction:
		return t.sqlValue(v.SqlvalueFunction)
	case *pg.Node_SubLink:
		return t.subLink(v.SubLink)
	case *pg.Node_CollateClause:
		return nil, noForm.At(int(v.CollateClause.Location), "COLLATE")
	case *pg.Node_AArrayExpr:
		return nil, noForm.At(int(v.AArrayExpr.Location), "an array")
	case *pg.Node_RowExpr:
		return nil, noForm.At(int(v.RowExpr.Location), "a row expression")
	}
	return nil, noForm.At(ast.Location(n), "this expression")
}

// all translates a list.
func (t *translator) all(nodes []*pg.Node) ([]*expr, []scalar.Expr, *refuse.Refusal) {
	args, plain := make([]*expr, len(nodes)), make([]scalar.Expr, len(nodes))
	for i, n := range nodes {
		e, r := t.expr(n)
		if r != nil {
			return nil, nil, r
		}
		e = t.settler.settled(e)
		args[i], plain[i] = e, e.Expr
	}
	return args, plain, nil
}

// condition translates a predicate.
func (t *translator) condition(n *pg.Node, clause string) (*expr, *refuse.Refusal) {
	around := t.holding
	t.holding = ast.Conjuncts(n)
	e, r := t.expr(n)
	t.holding = around
	if r != nil {
		return nil, r
	}
	t.params.note(e, policy.Bool)
	if e.Type() == policy.Unknown {
		s, err := t.env.Coerce(e.Expr, policy.Bool)
		if err != nil {
			return nil, scalarRefusal(err, e.pos)
		}
		same := *e
		same.Expr = s
		e = &same
	}
	if e.Type() != policy.Bool {
		return nil, notBoolean.At(ast.Location(n), clause)
	}
	return e, nil
}

func (t *translator) constant(c *pg.A_Const) (*expr, *refuse.Refusal) {
	pos := int(c.Location)
	if c.Isnull {
		return constantExpr(nil, policy.Unknown, pos), nil
	}
	switch v := c.Val.(type) {
	case *pg.A_Const_Ival:
		return constantExpr(int64(v.Ival.GetIval()), policy.Int4, pos), nil
	case *pg.A_Const_Boolval:
		return constantExpr(v.Boolval.GetBoolval(), policy.Bool, pos), nil
	case *pg.A_Const_Sval:
		return constantExpr(v.Sval.GetSval(), policy.Unknown, pos), nil
	case *pg.A_Const_Fval:
		if i, err := strconv.ParseInt(v.Fval.Fval, 0, 64); err == nil {
			return constantExpr(i, policy.Int8, pos), nil
		}
		value, err := t.env.ParseText(policy.NumericType, strings.ReplaceAll(v.Fval.Fval, "_", ""))
		if err != nil {
			return nil, scalarRefusal(err, pos)
		}
		return constantExpr(value, policy.NumericType, pos), nil
	}
	return nil, noForm.At(pos, "a bit string")
}

func (t *translator) column(c *pg.ColumnRef) (*expr, *refuse.Refusal) {
	fields := ast.Strings(c.Fields)
	if len(fields) < len(c.Fields) {
		return nil, noForm.At(int(c.Location), "a whole row")
	}
	if t.columns == nil {
		return nil, unknownColumn.At(int(c.Location), strings.Join(fields, "."))
	}
	return t.columns(fields, int(c.Location))
}

func (t *translator) boolean(b *pg.BoolExpr) (*expr, *refuse.Refusal) {
	args, plain, r := t.all(b.Args)
	if r != nil {
		return nil, r
	}
	for _, a := range args {
		t.params.note(a, policy.Bool)
	}
	var s scalar.Expr
	var err error
	f, op := formNot, "not"
	switch b.Boolop {
	case pg.BoolExprType_AND_EXPR:
		f, op = formAnd, "and"
		s, err = scalar.And(plain...)
	case pg.BoolExprType_OR_EXPR:
		f, op = formOr, "or"
		s, err = scalar.Or(plain...)
	default:
		s, err = scalar.Not(plain[0])
	}
	if err != nil {
		return nil, scalarRefusal(err, int(b.Location))
	}
	return node(f, op, s, int(b.Location), args...), nil
}

func (t *translator) nullTest(n *pg.NullTest) (*expr, *refuse.Refusal) {
	arg, r := t.expr(n.Arg)
	if r != nil {
		return nil, r
	}
	arg = t.settler.settled(arg)
	e := node(formIsNull, "isnull", scalar.IsNull(arg.Expr), int(n.Location), arg)
	if n.Nulltesttype == pg.NullTestType_IS_NOT_NULL {
		return t.not(e)
	}
	return e, nil
}

func (t *translator) not(e *expr) (*expr, *refuse.Refusal) {
	s, err := scalar.Not(e.Expr)
	if err != nil {
		return nil, scalarRefusal(err, e.pos)
	}
	return node(formNot, "not", s, e.pos, e), nil
}

func (t *translator) booleanTest(b *pg.BooleanTest) (*expr, *refuse.Refusal) {
	arg, r := t.expr(b.Arg)
	if r != nil {
		return nil, r
	}
	t.params.note(arg, policy.Bool)
	var want policy.Value
	op := "isunknown"
	switch b.Booltesttype {
	case pg.BoolTestType_IS_TRUE, pg.BoolTestType_IS_NOT_TRUE:
		want, op = true, "istrue"
	case pg.BoolTestType_IS_FALSE, pg.BoolTestType_IS_NOT_FALSE:
		want, op = false, "isfalse"
	}
	s, err := scalar.IsTruth(arg.Expr, want)
	if err != nil {
		return nil, scalarRefusal(err, int(b.Location))
	}
	e := node(formIs, op, s, int(b.Location), arg)
	e.want = want
	switch b.Booltesttype {
	case pg.BoolTestType_IS_NOT_TRUE, pg.BoolTestType_IS_NOT_FALSE, pg.BoolTestType_IS_NOT_UNKNOWN:
		return t.not(e)
	}
	return e, nil
}

func (t *translator) cast(c *pg.TypeCast) (*expr, *refuse.Refusal) {
	if e := t.char(c); e != nil {
		return e, nil
	}
	typ, typmod, array, r := ast.ScalarType(c.TypeName)
	if r != nil {
		return nil, r
	}
	if array {
		return nil, noForm.At(int(c.Location), "an array")
	}
	arg, r := t.expr(c.Arg)
	if r != nil {
		return nil, r
	}
	t.params.note(arg, typ)
	if s := c.Arg.GetAConst().GetSval(); s != nil && typ == policy.IntervalT {
		arg = constantExpr(ast.IntervalText(s.Sval, c.TypeName.Typmods), policy.Unknown, arg.pos)
	}
	if !t.settler.keeps(arg, typ, typmod) {
		arg = t.settler.settled(arg)
	}
	s, err := t.env.Cast(arg.Expr, typ, typmod)
	if err != nil {
		return nil, scalarRefusal(err, int(c.Location))
	}
	if !arg.isConstant() && arg.Type() == typ && arg.Typmod() == typmod && arg.blanks == 0 {
		return arg, nil // as in PostgreSQL: GROUP BY GROUPING SETS ((plan, plan::text), (plan)) has one key
	}
	e := node(formOther, "cast:"+strconv.Itoa(int(typ))+":"+strconv.Itoa(int(typmod)), s, int(c.Location), arg)
	if e.monotone = arg.monotone && ordered(arg.Type()) && ordered(typ); e.monotone && !arg.isNumber() && !sameClock(e, arg) {
		e.setClock(t.env.Zone, arg)
	}
	return e, nil
}

// ordered tells of which types a cast keeps the order.
func ordered(t policy.Type) bool {
	switch t {
	case policy.Int2, policy.Int4, policy.Int8, policy.Float4, policy.Float8, policy.NumericType, policy.DateType, policy.TimestampT, policy.TimestampTZ:
		return true
	}
	return false
}

func (t *translator) caseOf(c *pg.CaseExpr) (*expr, *refuse.Refusal) {
	var args []*expr
	arms := make([]scalar.When, len(c.Args))
	for i, n := range c.Args {
		w := n.GetCaseWhen()
		test := w.Expr
		if c.Arg != nil {
			test = pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode("=")}, c.Arg, w.Expr, w.Location)
		}
		cond, r := t.condition(test, "CASE/WHEN")
		if r != nil {
			return nil, r
		}
		then, r := t.expr(w.Result)
		if r != nil {
			return nil, r
		}
		then = t.settler.settled(then)
		arms[i] = scalar.When{If: cond.Expr, Then: then.Expr}
		args = append(args, cond, then)
	}
	var otherwise scalar.Expr
	if c.Defresult != nil {
		e, r := t.expr(c.Defresult)
		if r != nil {
			return nil, r
		}
		e = t.settler.settled(e)
		args, otherwise = append(args, e), e.Expr
	}
	s, err := t.env.Case(arms, otherwise)
	if err != nil {
		return nil, scalarRefusal(err, int(c.Location))
	}
	for i, a := range args {
		if i%2 == 1 || i == len(args)-1 {
			t.params.note(a, s.Type())
		}
	}
	return node(formOther, "case"+strconv.Itoa(len(args)%2), s, int(c.Location), args...), nil
}

// variadic is COALESCE, GREATEST or LEAST.
func (t *translator) variadic(name string, nodes []*pg.Node, pos int) (*expr, *refuse.Refusal) {
	args, plain, r := t.all(nodes)
	if r != nil {
		return nil, r
	}
	var s scalar.Expr
	var err error
	if name == "coalesce" {
		s, err = t.env.Coalesce(plain...)
	} else {
		s, err = t.env.Call(name, plain...)
	}
	if err != nil {
		return nil, scalarRefusal(err, pos)
	}
	for _, a := range args {
		t.params.note(a, s.Type())
	}
	e := node(formOther, name, s, pos, args...)
	e.order(t.env, name)
	if charOrUnknown(args) {
		e.blanks = args[slices.IndexFunc(args, func(a *expr) bool { return a.blanks > 0 })].blanks
	}
	return e, nil
}

// output translates a column of the answer: a literal without a type is text.
func (t *translator) output(n *pg.Node) (*expr, *refuse.Refusal) {
	e, refusal := t.expr(n)
	if refusal != nil || e.Type() != policy.Unknown {
		return e, refusal
	}
	s, err := t.env.Coerce(e.Expr, policy.Text)
	if err != nil {
		return nil, scalarRefusal(err, e.pos)
	}
	typed := *e
	typed.Expr = s
	return &typed, nil
}

// joined is the junction of two parts of which the first may be missing.
func (t *translator) joined(f form, pos int, a, b *expr) (*expr, *refuse.Refusal) {
	if a == nil {
		return b, nil
	}
	return t.junction(f, pos, a, b)
}
