package semantics

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

func (t *Translator) operator(a *pg.A_Expr) (*Expr, *refuse.Refusal) {
	pos := int(a.Location)
	names := ast.Strings(a.Name)
	if len(names) == 2 && names[0] != "pg_catalog" || len(names) > 2 || len(names) == 0 {
		return nil, NoOperator.At(pos, strings.Join(names, "."))
	}
	op := names[len(names)-1]
	if left := a.Lexpr.GetRowExpr(); left != nil {
		return t.rows(op, a, left)
	}
	switch a.Kind {
	case pg.A_Expr_Kind_AEXPR_OP:
		if a.Lexpr == nil {
			return t.apply(op, pos, a.Rexpr)
		}
		return t.apply(op, pos, a.Lexpr, a.Rexpr)
	case pg.A_Expr_Kind_AEXPR_LIKE, pg.A_Expr_Kind_AEXPR_ILIKE, pg.A_Expr_Kind_AEXPR_SIMILAR:
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
		args, plain, r := t.All([]*pg.Node{a.Lexpr, a.Rexpr})
		if r != nil {
			return nil, r
		}
		first := args[0] // which it returns as it is
		if r := t.withoutBlanks(args, plain); r != nil {
			return nil, r
		}
		if first.Type() == policy.Varchar && !first.IsConstant() && args[0] != first {
			return nil, NoForm.At(pos, "NULLIF of a varchar and a char")
		}
		s, err := t.Env.NullIf(plain[0], plain[1])
		if err != nil {
			return nil, ScalarRefusal(err, pos)
		}
		e := Node(FormOther, "nullif", s, pos, args...)
		if args[1].Blanks > 0 || args[1].Type() != policy.Text { // with a text it is compared as one, and is one
			e.is(args[0])
		}
		return e, nil
	}
	return nil, NoForm.At(pos, "this operation")
}

// apply translates the operands and calls the operator.
func (t *Translator) apply(op string, pos int, nodes ...*pg.Node) (*Expr, *refuse.Refusal) {
	args := make([]*Expr, len(nodes))
	for i, n := range nodes {
		var r *refuse.Refusal
		if args[i], r = t.Expr(n); r != nil {
			return nil, r
		}
	}
	return t.Combine(op, pos, args...)
}

// Combine makes an operation, whose operands are settled unless it is a sum itself, or compares two.
func (t *Translator) Combine(op string, pos int, args ...*Expr) (*Expr, *refuse.Refusal) {
	e, r := t.operation(op, pos, args...)
	if r != nil || t.Settler == nil || len(e.Cols) < 2 {
		return e, r
	}
	switch {
	case e.Form == FormCompare:
		if moved := t.Settler.compared(t, e); moved != nil {
			return moved, nil
		}
	case e.Op == "+" || e.Op == "-" || e.Op == "*":
		if e.affine, e.read = t.Settler.reader().of(e), true; e.affine != nil || e.Nodes <= maxProductNodes && LinearOf(e) != nil {
			return e, nil
		}
	}
	if settled, changed := t.Settler.all(args); changed {
		return t.operation(op, pos, settled...)
	}
	return e, nil
}

// maxProductNodes is how large an expression is looked at for a sum of products.
const maxProductNodes = 64

func (t *Translator) operation(op string, pos int, args ...*Expr) (*Expr, *refuse.Refusal) {
	if t.anyCoalesces(args) && (patterns[op] || op == "^@" || op == "=" || op == "<>" || op == "!=") {
		if e, r := t.coalesced(args, func(args []*Expr) (*Expr, *refuse.Refusal) { return t.operation(op, pos, args...) }); e != nil || r != nil {
			return e, r
		}
	}
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
		if r := t.withoutBlanks(args, plain); r != nil {
			return nil, r
		}
	}
	s, err := t.Env.Call(op, plain...)
	if err != nil {
		return nil, ScalarRefusal(err, pos)
	}
	if len(args) == 2 {
		t.Params.Note(args[0], args[1].Type())
		t.Params.Note(args[1], args[0].Type())
	}
	f := FormOther
	switch op {
	case "<", "<=", ">", ">=", "=", "<>", "!=":
		if f = FormCompare; op == "!=" {
			op = "<>"
		}
	}
	e := Node(f, op, s, pos, args...)
	e.order(t.Env, op)
	if refusal := t.folded(e); refusal != nil {
		return nil, refusal
	}
	return t.reading(e)
}

func (t *Translator) like(op string, a *pg.A_Expr) (*Expr, *refuse.Refusal) {
	pos := int(a.Location)
	left, r := t.Expr(a.Lexpr)
	if r != nil {
		return nil, r
	}
	t.Params.Note(left, policy.Text)
	right, r := t.Expr(a.Rexpr)
	if r != nil {
		return nil, r
	}
	t.Params.Note(right, policy.Text)
	return t.Combine(op, pos, left, right)
}

func (t *Translator) in(left *pg.Node, items []*pg.Node, negated bool, pos int) (*Expr, *refuse.Refusal) {
	subject, r := t.Expr(left)
	if r != nil {
		return nil, r
	}
	subject = t.Settler.Settled(subject)
	args, plain, r := t.All(items)
	if r != nil {
		return nil, r
	}
	for _, a := range args {
		t.Params.Note(a, subject.Type())
		t.Params.Note(subject, a.Type())
	}
	if all := append([]*Expr{subject}, args...); slices.ContainsFunc(all, func(e *Expr) bool { return e.Blanks > 0 }) && !charOrUnknown(all) {
		return t.among(subject, args, negated, pos)
	}
	return t.Member(subject, args, plain, negated, pos)
}

// among is membership in a list of chars and other texts: each is compared as it would be alone, but for several constants, which PostgreSQL makes chars of if the subject is one:
//
//	store IN ('BB '::text, 'CC')   finds BB, and store = 'BB '::text does not
func (t *Translator) among(subject *Expr, args []*Expr, negated bool, pos int) (*Expr, *refuse.Refusal) {
	if len(args) > maxOperations {
		return nil, NoForm.At(pos, "this list of chars and other texts of more than "+strconv.Itoa(maxOperations)+" elements")
	}
	constants := 0
	for _, e := range args {
		if e.IsConstant() {
			constants++
		}
	}
	parts := make([]*Expr, len(args))
	for i, e := range args {
		if subject.Blanks > 0 && constants > 1 && e.IsConstant() {
			e = shorter(e)
		}
		var r *refuse.Refusal
		if parts[i], r = t.Combine("=", pos, subject, e); r != nil {
			return nil, r
		}
	}
	e, r := joined(parts, false, pos)
	if r != nil || !negated {
		return e, r
	}
	return t.Not(e)
}

// joined is an OR of conditions, or an AND.
func joined(args []*Expr, all bool, pos int) (*Expr, *refuse.Refusal) {
	if len(args) == 1 {
		return args[0], nil
	}
	plain := make([]scalar.Expr, len(args))
	for i, e := range args {
		plain[i] = e.Expr
	}
	join, form, word := scalar.Or, FormOr, "or"
	if all {
		join, form, word = scalar.And, FormAnd, "and"
	}
	s, err := join(plain...)
	if err != nil {
		return nil, ScalarRefusal(err, pos)
	}
	return Node(form, word, s, pos, args...), nil
}

func (t *Translator) Member(subject *Expr, args []*Expr, plain []scalar.Expr, negated bool, pos int) (*Expr, *refuse.Refusal) {
	all := append([]*Expr{subject}, args...)
	if t.anyCoalesces(all[:1]) {
		if e, r := t.coalesced(all, func(all []*Expr) (*Expr, *refuse.Refusal) {
			items := make([]scalar.Expr, len(all)-1)
			for i, a := range all[1:] {
				items[i] = a.Expr
			}
			return t.Member(all[0], all[1:], items, false, pos)
		}); e != nil || r != nil {
			if r == nil && negated {
				return t.Not(e)
			}
			return e, r
		}
	}
	if r := t.withoutBlanks(all, append([]scalar.Expr{subject.Expr}, plain...)); r != nil {
		return nil, r
	}
	subject = all[0]
	for i, e := range all[1:] {
		plain[i] = e.Expr
	}
	s, err := t.Env.In(subject.Expr, plain)
	if err != nil {
		return nil, ScalarRefusal(err, pos)
	}
	e := Node(formIn, "in", s, pos, all...)
	if refusal := t.folded(e); refusal != nil {
		return nil, refusal
	}
	if negated {
		return t.Not(e)
	}
	return e, nil
}

// between is a AND of two comparisons, as the grammar of PostgreSQL has it.
func (t *Translator) between(a *pg.A_Expr) (*Expr, *refuse.Refusal) {
	pos := int(a.Location)
	bounds := a.Rexpr.GetList().GetItems()
	if len(bounds) != 2 {
		return nil, NoForm.At(pos, "BETWEEN")
	}
	within := func(low, high *pg.Node) (*Expr, *refuse.Refusal) {
		from, r := t.apply(">=", pos, a.Lexpr, low)
		if r != nil {
			return nil, r
		}
		to, r := t.apply("<=", pos, a.Lexpr, high)
		if r != nil {
			return nil, r
		}
		return t.Junction(FormAnd, pos, from, to)
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
		if e, r = t.Junction(FormOr, pos, e, other); r != nil {
			return nil, r
		}
	}
	if a.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN || a.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM {
		return t.Not(e)
	}
	return e, nil
}

// Junction is AND or OR of two translated parts.
func (t *Translator) Junction(f Form, pos int, a, b *Expr) (*Expr, *refuse.Refusal) {
	join, op := scalar.And, "and"
	if f == FormOr {
		join, op = scalar.Or, "or"
	}
	s, err := join(a.Expr, b.Expr)
	if err != nil {
		return nil, ScalarRefusal(err, pos)
	}
	return Node(f, op, s, pos, a, b), nil
}

// anyOf is e op ANY (array) or e op ALL (array), the array being a constructor, a literal or a parameter: e IN (…), e NOT IN (…), or, as in
//
//	note LIKE ANY (ARRAY['%late%', '%lost%'])
//
// an OR, or an AND, of as many operations.
func (t *Translator) anyOf(op string, a *pg.A_Expr) (*Expr, *refuse.Refusal) {
	pos, all := int(a.Location), a.Kind == pg.A_Expr_Kind_AEXPR_OP_ALL
	subject, r := t.Expr(a.Lexpr)
	if r != nil {
		return nil, r
	}
	subject = t.Settler.Settled(subject)
	args, r := t.elements(a.Rexpr, subject, pos)
	if r != nil {
		return nil, r
	}
	if args == nil && (t.Params == nil || !t.Params.Describing) { // of an array that is NULL so is the comparison, whatever stands beside it
		return ConstantExpr(nil, policy.Bool, pos), nil
	}
	if op == "=" && !all || op == "<>" && all {
		if len(args) == 0 {
			return ConstantExpr(all, policy.Bool, pos), nil
		}
		plain := make([]scalar.Expr, len(args))
		for i, e := range args {
			plain[i] = e.Expr
		}
		return t.Member(subject, args, plain, all, pos)
	}
	if len(args) > maxOperations {
		return nil, NoForm.At(pos, "this comparison with an array of more than "+strconv.Itoa(maxOperations)+" elements")
	}
	for i, e := range args {
		switch {
		case e.IsConstant() && e.Parameter == 0 && MustConstant(e) == nil: // of NULL every comparison is NULL
			args[i] = ConstantExpr(nil, policy.Bool, pos)
		default:
			if args[i], r = t.Combine(op, pos, subject, e); r != nil {
				return nil, r
			}
		}
		if args[i].Type() != policy.Bool {
			return nil, NoForm.At(pos, "this comparison with an array")
		}
	}
	if len(args) == 0 {
		return ConstantExpr(all, policy.Bool, pos), nil
	}
	return joined(args, all, pos)
}

// maxOperations bounds the elements of an array that are operated on one by one.
const maxOperations = 256

// elements are those of an array: constructed, a literal or a parameter; nil: the array is NULL.
func (t *Translator) elements(array *pg.Node, subject *Expr, pos int) ([]*Expr, *refuse.Refusal) {
	texts := array.GetAArrayExpr() != nil // which a char is compared with as a text
	for array.GetTypeCast() != nil && len(array.GetTypeCast().TypeName.ArrayBounds) > 0 {
		name := ast.TypeName(array.GetTypeCast().TypeName)
		texts = !strings.HasSuffix(name, "bpchar") && !strings.HasSuffix(name, "varchar")
		array = array.GetTypeCast().Arg
	}
	element := policy.Unknown
	if texts && subject.Blanks > 0 {
		element = policy.Text
	}
	if list := array.GetAArrayExpr(); list != nil {
		args, _, r := t.All(list.Elements)
		if at := slices.IndexFunc(args, func(e *Expr) bool { return e.Blanks > 0 || e.Type() != policy.Unknown }); at >= 0 { // whose type the array has
			switch first := args[at]; {
			case first.Blanks > 0:
				for i, e := range args {
					if e.IsConstant() {
						args[i] = shorter(e)
					}
				}
			case first.Type() == policy.Varchar:
				element = policy.Unknown
			}
		}
		for i, e := range args {
			if text, ok := untyped(e); ok && element != policy.Unknown {
				args[i] = ConstantExpr(text, element, e.Pos)
				args[i].Parameter = e.Parameter
			}
		}
		for _, e := range args {
			t.Params.Note(e, subject.Type())
			t.Params.Note(subject, e.Type())
		}
		return args, r
	}
	if p := array.GetParamRef(); p != nil {
		return t.parameterElements(subject, p, pos)
	}
	if array.GetAConst().GetIsnull() {
		return nil, nil
	}
	literal := array.GetAConst().GetSval()
	if literal == nil {
		return nil, NoForm.At(pos, "this comparison with an array")
	}
	elements, ok := SplitArray(literal.Sval)
	if !ok {
		r := Evaluation.At(ast.Location(array), "malformed array literal")
		r.SQLState = "22P02"
		return nil, r
	}
	args := make([]*Expr, len(elements))
	for i, v := range elements {
		args[i] = ConstantExpr(v, element, pos)
	}
	return args, nil
}

// parameterElements are those of an array that is a parameter; nil: it is NULL, or its value is not there yet.
func (t *Translator) parameterElements(subject *Expr, p *pg.ParamRef, pos int) ([]*Expr, *refuse.Refusal) {
	n := int(p.Number)
	list, r := t.Params.constant(n, t.Env, pos)
	if r != nil {
		return nil, r
	}
	t.Params.Note(list, ast.ArrayTypes[subject.Type()])
	if t.Params.Describing {
		return nil, nil
	}
	var values []policy.Value
	switch v := t.Params.Values[n-1].(type) {
	case nil:
		return nil, nil
	case []policy.Value:
		values = v
	case string:
		elements, ok := SplitArray(v)
		if !ok {
			return nil, NoForm.At(pos, "this array parameter")
		}
		values = elements
	}
	args := make([]*Expr, len(values))
	for i, v := range values {
		if args[i] = ConstantExpr(nil, policy.Unknown, pos); v != nil {
			args[i] = ConstantExpr(PlainText(t.Env, v), policy.Unknown, pos)
		}
	}
	return args, nil
}

func (t *Translator) distinct(a *pg.A_Expr) (*Expr, *refuse.Refusal) {
	args, plain, r := t.All([]*pg.Node{a.Lexpr, a.Rexpr})
	if r != nil {
		return nil, r
	}
	t.Params.Note(args[0], args[1].Type())
	t.Params.Note(args[1], args[0].Type())
	same := a.Kind == pg.A_Expr_Kind_AEXPR_NOT_DISTINCT
	for i, other := range []*Expr{args[1], args[0]} {
		if other.Form != formConstant || other.Parameter > 0 || MustConstant(other) != nil {
			continue
		}
		e := Node(FormIsNull, "isnull", scalar.IsNull(plain[i]), int(a.Location), args[i])
		if same {
			return e, nil
		}
		return t.Not(e)
	}
	if r := t.withoutBlanks(args, plain); r != nil {
		return nil, r
	}
	s, err := t.Env.IsDistinct(plain[0], plain[1])
	if err != nil {
		return nil, ScalarRefusal(err, int(a.Location))
	}
	e := Node(FormOther, "isdistinct", s, int(a.Location), args...)
	if same {
		return t.Not(e)
	}
	return e, nil
}

// call translates a function call that is not an aggregate.
func (t *Translator) call(f *pg.FuncCall) (*Expr, *refuse.Refusal) {
	pos := int(f.Location)
	name, r := ast.FunctionName(f)
	if r != nil {
		return nil, r
	}
	if f.Over != nil {
		return nil, WindowIn.At(pos, t.Place)
	}
	if ast.Aggregates[name] || f.AggStar || f.AggDistinct || f.AggFilter != nil || len(f.AggOrder) > 0 || f.AggWithinGroup {
		return nil, refuse.AggregateIn.At(pos, t.Place)
	}
	args, _, r := t.All(f.Args)
	if r != nil {
		return nil, r
	}
	if len(args) > 0 && (name == "extract" || name == "date_part" || name == "date_trunc") {
		t.Params.Note(args[0], policy.Text)
	}
	if e := toTime(t.Env, name, args, pos); e != nil {
		return e, nil
	}
	if t.anyCoalesces(args) {
		if e, r := t.coalesced(args, func(args []*Expr) (*Expr, *refuse.Refusal) { return t.named(name, pos, args) }); e != nil || r != nil {
			return e, r
		}
	}
	e, r := t.named(name, pos, args)
	if r != nil || e.Op != name {
		return e, r
	}
	e.order(t.Env, name)
	if (name == "extract" || name == "date_part") && len(args) == 2 && args[0].Form == formConstant {
		field := strings.ToLower(predicate.Text(MustConstant(args[0])))
		elapsed := args[1].Type() == policy.IntervalT // between two moments: whole days, and the rest of one
		if e.Monotone = args[1].Monotone && (field == "epoch" || field == "year" || field == "day" && elapsed); e.Monotone && args[1].Type() == policy.TimestampTZ {
			e.setClock(t.Env.Zone, args[1])
		}
		if granules[field] != "" && args[1].Monotone {
			e.Form, e.Want = formExtract, granules[field]
		}
	}
	if name == "to_char" && len(args) == 2 && args[0].Monotone && isDated(args[0].Type()) && args[1].Form == formConstant && MustConstant(args[1]) != nil {
		if unit := scalar.TemplateUnit(predicate.Text(MustConstant(args[1]))); unit != "" {
			e.Form, e.Want = formExtract, unit
		}
	}
	return e, nil
}

// named calls a function.
func (t *Translator) named(name string, pos int, args []*Expr) (*Expr, *refuse.Refusal) {
	if fills[name] {
		args = slices.Clone(args)
		for i := range args {
			var r *refuse.Refusal
			if args[i], r = t.filled(args[i]); r != nil {
				return nil, r
			}
		}
	}
	plain := make([]scalar.Expr, len(args))
	for i, a := range args {
		plain[i] = a.Expr
	}
	s, err := t.Env.Call(name, plain...)
	if err != nil {
		if r := notOverRows(t.Env, name, pos); r != nil {
			return nil, r
		}
		return nil, ScalarRefusal(err, pos)
	}
	return t.reading(Node(FormOther, name, s, pos, args...))
}

// isDated tells the types that name a day.
func isDated(t policy.Type) bool {
	return t == policy.DateType || t == policy.TimestampT || t == policy.TimestampTZ
}

// MustConstant is the value of a constant, which cannot fail.
func MustConstant(e *Expr) policy.Value {
	v, _ := e.Eval(nil)
	return v
}

func (t *Translator) sqlValue(f *pg.SQLValueFunction) (*Expr, *refuse.Refusal) {
	pos := int(f.Location)
	now := ConstantExpr(policy.Timestamptz(t.Env.Clock().UnixMicro()), policy.TimestampTZ, pos)
	target := policy.TimestampTZ
	switch f.Op {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N:
		return now, nil
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
		target = policy.DateType
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP, pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:
		target = policy.TimestampT
	default:
		return nil, NoForm.At(pos, "a function of the session")
	}
	s, err := t.Env.Cast(now.Expr, target, -1)
	if err != nil {
		return nil, ScalarRefusal(err, pos)
	}
	return Node(FormOther, "now:"+target.Name(), s, pos, now), nil
}

// subLink takes (SELECT constant) for its constant; any other sub-query is not a function of one row.
func (t *Translator) subLink(s *pg.SubLink) (*Expr, *refuse.Refusal) {
	sel := s.Subselect.GetSelectStmt()
	if s.SubLinkType == pg.SubLinkType_EXPR_SUBLINK && IsBareSelect(sel) && len(sel.TargetList) == 1 {
		return t.Expr(sel.TargetList[0].GetResTarget().Val)
	}
	return nil, RowSubquery.At(int(s.Location))
}

// IsBareSelect tells SELECT expressions without anything else.
func IsBareSelect(s *pg.SelectStmt) bool {
	return s != nil && len(s.FromClause) == 0 && s.WhereClause == nil && len(s.GroupClause) == 0 && s.HavingClause == nil && len(s.ValuesLists) == 0 &&
		s.WithClause == nil && s.Larg == nil && s.LimitCount == nil && s.LimitOffset == nil && len(s.DistinctClause) == 0 && len(s.SortClause) == 0 &&
		s.IntoClause == nil && len(s.LockingClause) == 0 && len(s.WindowClause) == 0
}
