package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

func (t *translator) operator(a *pg.A_Expr) (*expr, *refuse.Refusal) {
	pos := int(a.Location)
	names := ast.Strings(a.Name)
	if len(names) == 2 && names[0] != "pg_catalog" || len(names) > 2 || len(names) == 0 {
		return nil, noOperator.At(pos, strings.Join(names, "."))
	}
	op := names[len(names)-1]
	if refusal := rowsCompared(op, a); refusal != nil {
		return nil, refusal
	}
	switch a.Kind {
	case pg.A_Expr_Kind_AEXPR_OP:
		if a.Lexpr == nil {
			return t.apply(op, pos, a.Rexpr)
		}
		return t.apply(op, pos, a.Lexpr, a.Rexpr)
	case pg.A_Expr_Kind_AEXPR_LIKE, pg.A_Expr_Kind_AEXPR_ILIKE:
		return t.like(op, a)
	case pg.A_Expr_Kind_AEXPR_IN:
		return t.in(a.Lexpr, a.Rexpr.GetList().GetItems(), op == "<>", pos)
	case pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN, pg.A_Expr_Kind_AEXPR_BETWEEN_SYM, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		return t.between(a)
	case pg.A_Expr_Kind_AEXPR_OP_ANY, pg.A_Expr_Kind_AEXPR_OP_ALL:
		return t.anyOf(op, a)
	case pg.A_Expr_Kind_AEXPR_DISTINCT, pg.A_Expr_Kind_AEXPR_NOT_DISTINCT:
		return t.distinct(a)
	case pg.A_Expr_Kind_AEXPR_NULLIF:
		args, plain, r := t.all([]*pg.Node{a.Lexpr, a.Rexpr})
		if r != nil {
			return nil, r
		}
		withoutBlanks(args, plain)
		s, err := t.env.NullIf(plain[0], plain[1])
		if err != nil {
			return nil, scalarRefusal(err, pos)
		}
		return node(formOther, "nullif", s, pos, args...), nil
	}
	return nil, noForm.At(pos, "SIMILAR TO")
}

// rowsCompared refuses a comparison of rows for equality, and says how to write it.
func rowsCompared(op string, a *pg.A_Expr) *refuse.Refusal {
	row := a.Lexpr.GetRowExpr()
	if row == nil || op != "=" && op != "<>" {
		return nil
	}
	same := "a = 1 AND b = 2"
	switch a.Kind {
	case pg.A_Expr_Kind_AEXPR_IN:
		same += " OR a = 3 AND b = 4"
	case pg.A_Expr_Kind_AEXPR_OP:
	default:
		return nil
	}
	if op == "<>" {
		same = "NOT (" + same + ")"
	}
	return noForm.At(int(row.Location), "a row expression").Hinting("Compare column by column: " + same + ".")
}

// apply translates the operands and calls the operator.
func (t *translator) apply(op string, pos int, nodes ...*pg.Node) (*expr, *refuse.Refusal) {
	args := make([]*expr, len(nodes))
	for i, n := range nodes {
		var r *refuse.Refusal
		if args[i], r = t.expr(n); r != nil {
			return nil, r
		}
	}
	return t.combine(op, pos, args...)
}

// combine makes an operation, whose operands are settled unless it is a sum itself, or compares two.
func (t *translator) combine(op string, pos int, args ...*expr) (*expr, *refuse.Refusal) {
	e, r := t.operation(op, pos, args...)
	if r != nil || t.settler == nil || len(e.cols) < 2 {
		return e, r
	}
	switch {
	case e.form == formCompare:
		if moved := t.settler.compared(t, e); moved != nil {
			return moved, nil
		}
	case e.op == "+" || e.op == "-" || e.op == "*":
		if e.affine, e.read = t.settler.reader().of(e), true; e.affine != nil || e.nodes <= mostProductNodes && linearOf(e) != nil {
			return e, nil
		}
	}
	if settled, changed := t.settler.all(args); changed {
		return t.operation(op, pos, settled...)
	}
	return e, nil
}

// mostProductNodes is how large an expression is looked at for a sum of products.
const mostProductNodes = 64

func (t *translator) operation(op string, pos int, args ...*expr) (*expr, *refuse.Refusal) {
	args = slices.Clone(args)
	if patterns[op] && len(args) == 2 {
		var r *refuse.Refusal
		if args[0], r = t.filled(args[0]); r != nil {
			return nil, r
		}
	}
	plain := make([]scalar.Expr, len(args))
	for i, a := range args {
		plain[i] = a.Expr
	}
	switch op {
	case "<", "<=", ">", ">=", "=", "<>", "!=":
		withoutBlanks(args, plain)
	}
	s, err := t.env.Call(op, plain...)
	if err != nil {
		return nil, scalarRefusal(err, pos)
	}
	if len(args) == 2 {
		t.params.note(args[0], args[1].Type())
		t.params.note(args[1], args[0].Type())
	}
	f := formOther
	switch op {
	case "<", "<=", ">", ">=", "=", "<>", "!=":
		if f = formCompare; op == "!=" {
			op = "<>"
		}
	}
	e := node(f, op, s, pos, args...)
	e.order(t.env, op)
	return e, nil
}

func (t *translator) like(op string, a *pg.A_Expr) (*expr, *refuse.Refusal) {
	pos := int(a.Location)
	left, r := t.expr(a.Lexpr)
	if r != nil {
		return nil, r
	}
	t.params.note(left, policy.Text)
	right, r := t.expr(a.Rexpr)
	if r != nil {
		return nil, r
	}
	t.params.note(right, policy.Text)
	return t.combine(op, pos, left, right)
}

func (t *translator) in(left *pg.Node, items []*pg.Node, negated bool, pos int) (*expr, *refuse.Refusal) {
	subject, r := t.expr(left)
	if r != nil {
		return nil, r
	}
	subject = t.settler.settled(subject)
	args, plain, r := t.all(items)
	if r != nil {
		return nil, r
	}
	for _, a := range args {
		t.params.note(a, subject.Type())
		t.params.note(subject, a.Type())
	}
	return t.member(subject, args, plain, negated, pos)
}

func (t *translator) member(subject *expr, args []*expr, plain []scalar.Expr, negated bool, pos int) (*expr, *refuse.Refusal) {
	all := append([]*expr{subject}, args...)
	withoutBlanks(all, append([]scalar.Expr{subject.Expr}, plain...))
	for i, e := range all[1:] {
		plain[i] = e.Expr
	}
	s, err := t.env.In(subject.Expr, plain)
	if err != nil {
		return nil, scalarRefusal(err, pos)
	}
	e := node(formIn, "in", s, pos, all...)
	if negated {
		return t.not(e)
	}
	return e, nil
}

// between is a AND of two comparisons, as the grammar of PostgreSQL has it.
func (t *translator) between(a *pg.A_Expr) (*expr, *refuse.Refusal) {
	pos := int(a.Location)
	bounds := a.Rexpr.GetList().GetItems()
	if len(bounds) != 2 {
		return nil, noForm.At(pos, "BETWEEN")
	}
	within := func(low, high *pg.Node) (*expr, *refuse.Refusal) {
		from, r := t.apply(">=", pos, a.Lexpr, low)
		if r != nil {
			return nil, r
		}
		to, r := t.apply("<=", pos, a.Lexpr, high)
		if r != nil {
			return nil, r
		}
		return t.junction(formAnd, pos, from, to)
	}
	e, r := within(bounds[0], bounds[1])
	if r != nil {
		return nil, r
	}
	if a.Kind == pg.A_Expr_Kind_AEXPR_BETWEEN_SYM || a.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM {
		other, r := within(bounds[1], bounds[0])
		if r != nil {
			return nil, r
		}
		if e, r = t.junction(formOr, pos, e, other); r != nil {
			return nil, r
		}
	}
	if a.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN || a.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM {
		return t.not(e)
	}
	return e, nil
}

// junction is AND or OR of two translated parts.
func (t *translator) junction(f form, pos int, a, b *expr) (*expr, *refuse.Refusal) {
	join, op := scalar.And, "and"
	if f == formOr {
		join, op = scalar.Or, "or"
	}
	s, err := join(a.Expr, b.Expr)
	if err != nil {
		return nil, scalarRefusal(err, pos)
	}
	return node(f, op, s, pos, a, b), nil
}

// anyOf is e = ANY (array) or e <> ALL (array), the array being a constructor, a literal or a parameter.
func (t *translator) anyOf(op string, a *pg.A_Expr) (*expr, *refuse.Refusal) {
	pos := int(a.Location)
	negated := a.Kind == pg.A_Expr_Kind_AEXPR_OP_ALL && op == "<>"
	if !(a.Kind == pg.A_Expr_Kind_AEXPR_OP_ANY && op == "=") && !negated {
		return nil, noForm.At(pos, "this comparison with an array")
	}
	array := a.Rexpr
	for array.GetTypeCast() != nil && len(array.GetTypeCast().TypeName.ArrayBounds) > 0 {
		array = array.GetTypeCast().Arg
	}
	if list := array.GetAArrayExpr(); list != nil {
		return t.in(a.Lexpr, list.Elements, negated, pos)
	}
	subject, r := t.expr(a.Lexpr)
	if r != nil {
		return nil, r
	}
	subject = t.settler.settled(subject)
	if p := array.GetParamRef(); p != nil {
		return t.inParameter(subject, p, negated, pos)
	}
	literal := array.GetAConst().GetSval()
	if literal == nil {
		return nil, noForm.At(pos, "this comparison with an array")
	}
	elements, ok := splitArray(literal.Sval)
	if !ok {
		r := evaluation.At(ast.Location(array), "malformed array literal")
		r.SQLState = "22P02"
		return nil, r
	}
	args, plain := make([]*expr, len(elements)), make([]scalar.Expr, len(elements))
	for i, v := range elements {
		args[i] = constantExpr(v, policy.Unknown, pos)
		plain[i] = args[i].Expr
	}
	return t.member(subject, args, plain, negated, pos)
}

// inParameter is e = ANY ($n).
func (t *translator) inParameter(subject *expr, p *pg.ParamRef, negated bool, pos int) (*expr, *refuse.Refusal) {
	n := int(p.Number)
	list, r := t.params.constant(n, t.env, pos)
	if r != nil {
		return nil, r
	}
	t.params.note(list, ast.ArrayTypes[subject.Type()])
	var values []policy.Value
	if !t.params.describing {
		switch v := t.params.values[n-1].(type) {
		case []policy.Value:
			values = v
		case string:
			elements, ok := splitArray(v)
			if !ok {
				return nil, noForm.At(pos, "this array parameter")
			}
			values = elements
		}
	}
	args, plain := make([]*expr, len(values)), make([]scalar.Expr, len(values))
	for i, v := range values {
		if args[i] = constantExpr(nil, policy.Unknown, pos); v != nil {
			args[i] = constantExpr(plainText(t.env, v), policy.Unknown, pos)
		}
		plain[i] = args[i].Expr
	}
	if len(args) == 0 || t.params.describing {
		return constantExpr(negated, policy.Bool, pos), nil
	}
	return t.member(subject, args, plain, negated, pos)
}

func (t *translator) distinct(a *pg.A_Expr) (*expr, *refuse.Refusal) {
	args, plain, r := t.all([]*pg.Node{a.Lexpr, a.Rexpr})
	if r != nil {
		return nil, r
	}
	t.params.note(args[0], args[1].Type())
	t.params.note(args[1], args[0].Type())
	same := a.Kind == pg.A_Expr_Kind_AEXPR_NOT_DISTINCT
	for i, other := range []*expr{args[1], args[0]} {
		if other.form != formConstant || other.parameter > 0 || mustConstant(other) != nil {
			continue
		}
		e := node(formIsNull, "isnull", scalar.IsNull(plain[i]), int(a.Location), args[i])
		if same {
			return e, nil
		}
		return t.not(e)
	}
	withoutBlanks(args, plain)
	s, err := t.env.IsDistinct(plain[0], plain[1])
	if err != nil {
		return nil, scalarRefusal(err, int(a.Location))
	}
	e := node(formOther, "isdistinct", s, int(a.Location), args...)
	if same {
		return t.not(e)
	}
	return e, nil
}

// call translates a function call that is not an aggregate.
func (t *translator) call(f *pg.FuncCall) (*expr, *refuse.Refusal) {
	pos := int(f.Location)
	name, r := ast.FunctionName(f)
	if r != nil {
		return nil, r
	}
	if f.Over != nil {
		return nil, windowIn.At(pos, t.place)
	}
	if ast.Aggregates[name] || f.AggStar || f.AggDistinct || f.AggFilter != nil || len(f.AggOrder) > 0 || f.AggWithinGroup {
		return nil, refuse.AggregateIn.At(pos, t.place)
	}
	args, plain, r := t.all(f.Args)
	if r != nil {
		return nil, r
	}
	if len(args) > 0 && (name == "extract" || name == "date_part" || name == "date_trunc") {
		t.params.note(args[0], policy.Text)
	}
	if e := toTime(t.env, name, args, pos); e != nil {
		return e, nil
	}
	s, err := t.env.Call(name, plain...)
	if err != nil {
		if r := notOverRows(t.env, name, pos); r != nil {
			return nil, r
		}
		return nil, scalarRefusal(err, pos)
	}
	e := node(formOther, name, s, pos, args...)
	e.order(t.env, name)
	if (name == "extract" || name == "date_part") && len(args) == 2 && args[0].form == formConstant {
		field := strings.ToLower(predicate.Text(mustConstant(args[0])))
		elapsed := args[1].Type() == policy.IntervalT // between two moments: whole days, and the rest of one
		if e.monotone = args[1].monotone && (field == "epoch" || field == "year" || field == "day" && elapsed); e.monotone && args[1].Type() == policy.TimestampTZ {
			e.setClock(t.env.Zone, args[1])
		}
		if granules[field] != "" && args[1].monotone {
			e.form, e.want = formExtract, granules[field]
		}
	}
	if name == "to_char" && len(args) == 2 && args[0].monotone && isDated(args[0].Type()) && args[1].form == formConstant && mustConstant(args[1]) != nil {
		if unit := scalar.TemplateUnit(predicate.Text(mustConstant(args[1]))); unit != "" {
			e.form, e.want = formExtract, unit
		}
	}
	return e, nil
}

// isDated tells the types that name a day.
func isDated(t policy.Type) bool {
	return t == policy.DateType || t == policy.TimestampT || t == policy.TimestampTZ
}

// mustConstant is the value of a constant, which cannot fail.
func mustConstant(e *expr) policy.Value {
	v, _ := e.Eval(nil)
	return v
}

func (t *translator) sqlValue(f *pg.SQLValueFunction) (*expr, *refuse.Refusal) {
	pos := int(f.Location)
	now := constantExpr(policy.Timestamptz(t.env.Clock().UnixMicro()), policy.TimestampTZ, pos)
	target := policy.TimestampTZ
	switch f.Op {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N:
		return now, nil
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
		target = policy.DateType
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP, pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:
		target = policy.TimestampT
	default:
		return nil, noForm.At(pos, "a function of the session")
	}
	s, err := t.env.Cast(now.Expr, target, -1)
	if err != nil {
		return nil, scalarRefusal(err, pos)
	}
	return node(formOther, "now:"+target.Name(), s, pos, now), nil
}

// subLink takes (SELECT constant) for its constant; any other sub-query is not a function of one row.
func (t *translator) subLink(s *pg.SubLink) (*expr, *refuse.Refusal) {
	sel := s.Subselect.GetSelectStmt()
	if s.SubLinkType == pg.SubLinkType_EXPR_SUBLINK && isBareSelect(sel) && len(sel.TargetList) == 1 {
		return t.expr(sel.TargetList[0].GetResTarget().Val)
	}
	return nil, rowSubquery.At(int(s.Location))
}

// isBareSelect tells SELECT expressions without anything else.
func isBareSelect(s *pg.SelectStmt) bool {
	return s != nil && len(s.FromClause) == 0 && s.WhereClause == nil && len(s.GroupClause) == 0 && s.HavingClause == nil && len(s.ValuesLists) == 0 &&
		s.WithClause == nil && s.Larg == nil && s.LimitCount == nil && s.LimitOffset == nil && len(s.DistinctClause) == 0 && len(s.SortClause) == 0 &&
		s.IntoClause == nil && len(s.LockingClause) == 0 && len(s.WindowClause) == 0
}
