package semantics

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

// Translator turns expressions of the grammar into typed expressions over the columns of one row. What it does not know
// it refuses.
type Translator struct {
	Env     scalar.Env
	Params  *Parameters
	Columns func(fields []string, pos int) (*Expr, *refuse.Refusal) // nil: no columns are in sight
	Hook    func(n *pg.Node) (*Expr, *refuse.Refusal)               // tried first at each node; nil, nil means go on
	Place   string                                                  // the clause, for messages

	// Constants has a constant evaluated that is not computed here, or, if each is set, the elements of an array. It
	// returns nil if it is none.
	Constants func(n *pg.Node, each bool) []*Expr
	Texts     *Texts     // what may be asked of texts that nobody declared; nil means nothing
	Settler   *Settler   // of sums of several columns; nil means none are
	Holding   []*pg.Node // what must hold where a condition does: false there is as good as NULL
}

// Expr translates a node of the grammar's tree into what it means over a row. What is in another place than its own (a
// key, a sub-query) the Hook knows first.
func (t *Translator) Expr(n *pg.Node) (*Expr, *refuse.Refusal) {
	if t.Hook != nil {
		if e, r := t.Hook(n); e != nil || r != nil {
			return e, r
		}
	}
	e, r := t.byKind(n)
	if list := t.elsewhere(n, false, r); len(list) == 1 {
		return list[0], nil
	}
	return e, r
}

// beyond are the refusals of what package scalar does not know, which an engine may, and of what fails while the value of
// a constant is awaited.
var beyond = []*refuse.Reason{NoForm, NoOperator, NotAllowed, Unsupported, RowSubquery, Evaluation,
	refuse.UnknownFunction, refuse.UnknownType}

// elsewhere is a constant in words that are not known here, or the elements of such an array; nil means it is none.
func (t *Translator) elsewhere(n *pg.Node, each bool, r *refuse.Refusal) []*Expr {
	if r == nil || t.Constants == nil {
		return nil
	}
	if !slices.ContainsFunc(beyond, func(known *refuse.Reason) bool { return known.ID == r.ID }) {
		return nil
	}
	return t.Constants(n, each)
}

// byKind translates a node by its kind, wherever it is.
func (t *Translator) byKind(n *pg.Node) (*Expr, *refuse.Refusal) {
	switch v := n.GetNode().(type) {
	case *pg.Node_AConst:
		return t.constant(v.AConst)
	case *pg.Node_ColumnRef:
		return t.column(v.ColumnRef)
	case *pg.Node_ParamRef:
		return t.Params.constant(int(v.ParamRef.Number), t.Env, int(v.ParamRef.Location))
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
		return t.variadic(ast.MinMaxName(v.MinMaxExpr), v.MinMaxExpr.Args, int(v.MinMaxExpr.Location))
	case *pg.Node_SqlvalueFunction:
		return t.sqlValue(v.SqlvalueFunction)
	case *pg.Node_SubLink:
		return t.subLink(v.SubLink)
	case *pg.Node_CollateClause:
		return t.collated(v.CollateClause)
	}
	return nil, NoForm.At(ast.Location(n), untranslated(n))
}

// untranslated names a node of a kind that is no value of a row, for the refusal.
func untranslated(n *pg.Node) string {
	switch n.GetNode().(type) {
	case *pg.Node_AArrayExpr:
		return "an array"
	case *pg.Node_RowExpr:
		return "a row expression"
	}
	return "this expression"
}

// byBytes are the collations by which cells compare in any case, whatever the database's default is.
var byBytes = map[string]bool{"C": true, "POSIX": true, "ucs_basic": true, "default": true}

// collated is a text under one of them, which changes nothing but how letters change their case.
func (t *Translator) collated(c *pg.CollateClause) (*Expr, *refuse.Refusal) {
	e, r := t.Expr(c.Arg)
	if r != nil {
		return nil, r
	}
	names := ast.Strings(c.Collname)
	if name := names[len(names)-1]; !byBytes[name] || len(names) > 1 && names[0] != "pg_catalog" {
		return nil, collation.At(int(c.Location), name)
	}
	if !e.Type().Textual() && e.Type() != policy.Unknown {
		return nil, NoForm.At(int(c.Location), "COLLATE of "+e.Type().Name())
	}
	same := *e
	same.Collated = names[len(names)-1] != "default"
	return &same, nil
}

// changesCase are the functions and operators to which a collation says which letters are the same but for their case.
var changesCase = map[string]bool{"lower": true, "upper": true, "initcap": true, "~~*": true, "!~~*": true, "~": true,
	"!~": true, "~*": true, "!~*": true, "regexp_like": true, "similar_to_escape": true}

// caseOfCollated refuses them of a text under a collation of its own.
func caseOfCollated(name string, pos int, args []*Expr) *refuse.Refusal {
	if changesCase[name] && slices.ContainsFunc(args, func(a *Expr) bool { return a.Collated }) {
		return NoForm.At(pos, name+" under COLLATE").Hinting("Leave COLLATE out.")
	}
	return nil
}

// All translates a list.
func (t *Translator) All(nodes []*pg.Node) ([]*Expr, []scalar.Expr, *refuse.Refusal) {
	args, plain := make([]*Expr, len(nodes)), make([]scalar.Expr, len(nodes))
	for i, n := range nodes {
		e, r := t.Expr(n)
		if r != nil {
			return nil, nil, r
		}
		e = t.Settler.Settled(e)
		args[i], plain[i] = e, e.Expr
	}
	return args, plain, nil
}

// Condition translates a predicate.
func (t *Translator) Condition(n *pg.Node, clause string) (*Expr, *refuse.Refusal) {
	around := t.Holding
	t.Holding = ast.Conjuncts(n)
	e, r := t.Expr(n)
	t.Holding = around
	if r != nil {
		return nil, r
	}
	t.Params.Note(e, policy.Bool)
	if e, r = t.Typed(e, policy.Bool); r != nil {
		return nil, r
	}
	if e.Type() != policy.Bool {
		return nil, notBoolean.At(ast.Location(n), clause)
	}
	return e, nil
}

// literal is an untyped literal. Two of one text are not one expression where they may be read as two values: in a
// policy's view and in what an analyst asks of it.
func (t *Translator) literal(text string, pos int) *Expr {
	e := ConstantExpr(text, policy.Unknown, pos)
	e.Expr = t.Env.Untyped(text)
	if l := t.Env.Literals; !l.SameSettings(t.Env.Zone, t.Env.Form) {
		e.Canon += ":" + l.Zone.String() + ":" + l.Form.Dates + ":" + l.Form.Intervals
	}
	return e
}

func (t *Translator) constant(c *pg.A_Const) (*Expr, *refuse.Refusal) {
	pos := int(c.Location)
	if c.Isnull {
		return ConstantExpr(nil, policy.Unknown, pos), nil
	}
	switch v := c.Val.(type) {
	case *pg.A_Const_Ival:
		return ConstantExpr(int64(v.Ival.GetIval()), policy.Int4, pos), nil
	case *pg.A_Const_Boolval:
		return ConstantExpr(v.Boolval.GetBoolval(), policy.Bool, pos), nil
	case *pg.A_Const_Sval:
		return t.literal(v.Sval.GetSval(), pos), nil
	case *pg.A_Const_Fval:
		if i, err := strconv.ParseInt(v.Fval.Fval, 0, 64); err == nil {
			return ConstantExpr(i, policy.Int8, pos), nil
		}
		value, err := t.Env.ParseText(policy.NumericType, strings.ReplaceAll(v.Fval.Fval, "_", ""))
		if err != nil {
			return nil, ScalarRefusal(err, pos)
		}
		return ConstantExpr(value, policy.NumericType, pos), nil
	}
	return nil, NoForm.At(pos, "a bit string")
}

func (t *Translator) column(c *pg.ColumnRef) (*Expr, *refuse.Refusal) {
	fields := ast.Strings(c.Fields)
	if len(fields) < len(c.Fields) {
		return nil, NoForm.At(int(c.Location), "a whole row")
	}
	if t.Columns == nil {
		return nil, UnknownColumn.At(int(c.Location), strings.Join(fields, "."))
	}
	e, refusal := t.Columns(fields, int(c.Location))
	if e != nil { // a sub-query's column may be a long expression, of which the one that reads it has a copy
		t.Env.Work.Take(2, len(e.Canon))
	}
	return e, refusal
}

func (t *Translator) boolean(b *pg.BoolExpr) (*Expr, *refuse.Refusal) {
	args, plain, r := t.All(b.Args)
	if r != nil {
		return nil, r
	}
	for _, a := range args {
		t.Params.Note(a, policy.Bool)
	}
	var s scalar.Expr
	var err error
	f, op := formNot, "not"
	switch b.Boolop {
	case pg.BoolExprType_AND_EXPR:
		f, op = FormAnd, "and"
		s, err = scalar.And(plain...)
	case pg.BoolExprType_OR_EXPR:
		f, op = FormOr, "or"
		s, err = scalar.Or(plain...)
	default:
		s, err = scalar.Not(plain[0])
	}
	if err != nil {
		return nil, ScalarRefusal(err, int(b.Location))
	}
	return Node(f, op, s, int(b.Location), args...), nil
}

func (t *Translator) nullTest(n *pg.NullTest) (*Expr, *refuse.Refusal) {
	arg, r := t.Expr(n.Arg)
	if r != nil {
		return nil, r
	}
	arg = t.Settler.Settled(arg)
	e := Node(FormIsNull, "isnull", scalar.IsNull(arg.Expr), int(n.Location), arg)
	if n.Nulltesttype == pg.NullTestType_IS_NOT_NULL {
		return t.Not(e)
	}
	return e, nil
}

// Not is NOT e.
func (t *Translator) Not(e *Expr) (*Expr, *refuse.Refusal) {
	s, err := scalar.Not(e.Expr)
	return Made(formNot, "not", s, err, e.Pos, e)
}

// NotNull is e IS NOT NULL.
func NotNull(e *Expr) *Expr {
	absent := Node(FormIsNull, "isnull", scalar.IsNull(e.Expr), e.Pos, e)
	present, _ := scalar.Not(absent.Expr) // of a truth value, which always is one
	return Node(formNot, "not", present, e.Pos, absent)
}

func (t *Translator) booleanTest(b *pg.BooleanTest) (*Expr, *refuse.Refusal) {
	arg, r := t.Expr(b.Arg)
	if r != nil {
		return nil, r
	}
	t.Params.Note(arg, policy.Bool)
	var want policy.Value
	switch b.Booltesttype {
	case pg.BoolTestType_IS_TRUE, pg.BoolTestType_IS_NOT_TRUE:
		want = true
	case pg.BoolTestType_IS_FALSE, pg.BoolTestType_IS_NOT_FALSE:
		want = false
	}
	e, r := t.isTruth(arg, want, int(b.Location))
	if r != nil {
		return nil, r
	}
	switch b.Booltesttype {
	case pg.BoolTestType_IS_NOT_TRUE, pg.BoolTestType_IS_NOT_FALSE, pg.BoolTestType_IS_NOT_UNKNOWN:
		return t.Not(e)
	}
	return e, nil
}

// isTruth is arg IS TRUE, IS FALSE or, for no value, IS UNKNOWN.
func (t *Translator) isTruth(arg *Expr, want policy.Value, pos int) (*Expr, *refuse.Refusal) {
	s, err := scalar.IsTruth(arg.Expr, want)
	if err != nil {
		return nil, ScalarRefusal(err, pos)
	}
	e := Node(FormIs, map[policy.Value]string{true: "istrue", false: "isfalse", nil: "isunknown"}[want], s, pos, arg)
	e.Want = want
	return e, nil
}

// otherType is what to write instead of a value of a type that expressions cannot have.
const otherType = "Over private rows values are numbers, texts, booleans, dates, times, timestamps and intervals: for timetz write (at AT TIME ZONE 'Europe/Berlin')::time, for money numeric."

func (t *Translator) cast(c *pg.TypeCast) (*Expr, *refuse.Refusal) {
	if e := t.char(c); e != nil {
		return e, nil
	}
	typ, typmod, array, r := ast.ScalarType(c.TypeName)
	if name := strings.TrimPrefix(ast.TypeName(c.TypeName), "pg_catalog."); r != nil && r.ID == refuse.UnknownType.ID && scalar.IsType(name) {
		return nil, Unsupported.At(int(c.TypeName.Location), "type "+name+" is not supported").Hinting(otherType)
	}
	if r != nil {
		return nil, r
	}
	if array {
		return nil, NoForm.At(int(c.Location), "an array")
	}
	arg, r := t.Expr(c.Arg)
	if r != nil {
		return nil, r
	}
	t.Params.Note(arg, typ)
	if s := c.Arg.GetAConst().GetSval(); s != nil && typ == policy.IntervalT {
		arg = t.literal(ast.IntervalText(s.Sval, c.TypeName.Typmods), arg.Pos)
	}
	if !t.Settler.keeps(arg, typ, typmod) {
		arg = t.Settler.Settled(arg)
	}
	return t.As(arg, typ, typmod, int(c.Location))
}

// As is an expression as a value of a type, x::typ.
func (t *Translator) As(arg *Expr, typ policy.Type, typmod int32, pos int) (*Expr, *refuse.Refusal) {
	s, err := t.Env.Cast(arg.Expr, typ, typmod)
	if err != nil {
		return nil, ScalarRefusal(err, pos)
	}
	if !arg.IsConstant() && arg.Type() == typ && arg.Typmod() == typmod {
		return arg, nil // as in PostgreSQL: GROUP BY GROUPING SETS ((plan, plan::text), (plan)) has one key
	}
	e := Node(FormOther, "cast:"+strconv.Itoa(int(typ))+":"+strconv.Itoa(int(typmod)), s, pos, arg)
	if arg.Type() == policy.TimeT || typ == policy.TimeT {
		return e, t.dayTime(e, arg)
	}
	if e.Monotone = arg.Monotone && ordered(arg.Type()) && ordered(typ); e.Monotone && arg.Type().Moment() && !sameClock(e, arg) {
		e.setClock(t.Env.Zone, arg)
	}
	return e, nil
}

// ordered tells of which types a cast keeps the order.
func ordered(t policy.Type) bool {
	return t.Integer() || t.Floating() || t == policy.NumericType || t.Moment()
}

func (t *Translator) caseOf(c *pg.CaseExpr) (*Expr, *refuse.Refusal) {
	var parts []*Expr
	for _, n := range c.Args {
		w := n.GetCaseWhen()
		cond, r := t.arm(c, w)
		if r != nil {
			return nil, r
		}
		then, r := t.Expr(w.Result)
		if r != nil {
			return nil, r
		}
		parts = append(parts, cond, t.Settler.Settled(then))
	}
	if c.Defresult != nil {
		e, r := t.Expr(c.Defresult)
		if r != nil {
			return nil, r
		}
		parts = append(parts, t.Settler.Settled(e))
	}
	return t.Case(parts, int(c.Location))
}

// arm is the condition of an arm of CASE.
func (t *Translator) arm(c *pg.CaseExpr, w *pg.CaseWhen) (*Expr, *refuse.Refusal) {
	test := w.Expr
	if c.Arg != nil {
		test = pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode("=")}, c.Arg, w.Expr, w.Location)
	}
	return t.Condition(test, "CASE/WHEN")
}

// Case is a choice: conditions, each with its result, and at the end what there is else, if anything. The results are
// brought to one type, which what there is else decides first.
func (t *Translator) Case(parts []*Expr, pos int) (*Expr, *refuse.Refusal) {
	var arms []scalar.When
	var otherwise scalar.Expr
	for i, e := range parts {
		if i%2 == 1 {
			arms = append(arms, scalar.When{If: parts[i-1].Expr, Then: e.Expr})
		} else if i == len(parts)-1 {
			otherwise = e.Expr
		}
	}
	s, err := t.Env.Case(arms, otherwise)
	if err != nil {
		return nil, ScalarRefusal(err, pos)
	}
	for i, e := range parts {
		if i%2 == 1 || i == len(parts)-1 {
			t.Params.Note(e, s.Type())
		}
	}
	return Node(FormOther, "case"+strconv.Itoa(len(parts)%2), s, pos, parts...), nil
}

// variadic is COALESCE, GREATEST or LEAST.
func (t *Translator) variadic(name string, nodes []*pg.Node, pos int) (*Expr, *refuse.Refusal) {
	args, plain, r := t.All(nodes)
	if r != nil {
		return nil, r
	}
	s, err := t.Env.Call(name, plain...)
	if err != nil {
		return nil, ScalarRefusal(err, pos)
	}
	for _, a := range args {
		t.Params.Note(a, s.Type())
	}
	e := Node(FormOther, name, s, pos, args...)
	e.order(t.Env, name)
	return e, nil
}

// scalars are arguments as package scalar has them.
func scalars(args []*Expr) []scalar.Expr {
	plain := make([]scalar.Expr, len(args))
	for i, a := range args {
		plain[i] = a.Expr
	}
	return plain
}

// Output translates a column of the answer: a literal without a type is text.
func (t *Translator) Output(n *pg.Node) (*Expr, *refuse.Refusal) {
	e, refusal := t.Expr(n)
	if refusal != nil {
		return nil, refusal
	}
	return t.Typed(e, policy.Text)
}

// Typed is an expression with this type where it has none, as a literal.
func (t *Translator) Typed(e *Expr, typ policy.Type) (*Expr, *refuse.Refusal) {
	if e.Type() != policy.Unknown {
		return e, nil
	}
	s, err := t.Env.Coerce(e.Expr, typ)
	if err != nil {
		return nil, ScalarRefusal(err, e.Pos)
	}
	typed := *e
	typed.Expr = s
	return &typed, nil
}

// Joined is the junction of two parts of which the first may be missing.
func (t *Translator) Joined(f Form, pos int, a, b *Expr) (*Expr, *refuse.Refusal) {
	if a == nil {
		return b, nil
	}
	return t.Junction(f, pos, a, b)
}

// Junction is AND or OR of translated parts, of which there is one at least.
func (t *Translator) Junction(f Form, pos int, parts ...*Expr) (*Expr, *refuse.Refusal) {
	if len(parts) == 1 {
		return parts[0], nil
	}
	join, op := scalar.And, "and"
	if f == FormOr {
		join, op = scalar.Or, "or"
	}
	s, err := join(scalars(parts)...)
	return Made(f, op, s, err, pos, parts...)
}
