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
	if ast.Aggregates[name] || ast.HasAggregateClause(f) {
		return nil, refuse.AggregateIn.At(pos, t.Place)
	}
	if argument := ast.NamedArgument(f); argument != "" {
		return nil, noArgument(name, argument, pos)
	}
	if name == "width_bucket" && len(f.Args) == 2 {
		return t.thresholds(f, pos)
	}
	args, _, r := t.All(f.Args)
	if r != nil {
		return nil, r
	}
	if len(args) > 0 && (name == "extract" || name == "date_part" || name == "date_trunc") {
		t.Params.Note(args[0], policy.Text)
	}
	t.noteArguments(name, args)
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
		if field == "epoch" && args[1].Type() == policy.TimeT {
			e.within = args[1].within
		}
		if granules[field] != "" && (args[1].Monotone || args[1].within != nil) {
			e.Form, e.Want = formExtract, granules[field]
		}
	}
	if name == "to_char" && len(args) == 2 && (args[0].Monotone && IsMoment(args[0].Type()) ||
		args[0].Type() == policy.TimeT && isDayTime(args[0])) && args[1].Form == formConstant &&
		MustConstant(args[1]) != nil {
		if unit := scalar.TemplateUnit(predicate.Text(MustConstant(args[1]))); unit != "" {
			e.Form, e.Want = formExtract, unit
		}
	}
	return e, nil
}

// thresholds are width_bucket(age, ARRAY[18, 30, 65]): in order, they are a step at each, as CASE is.
func (t *Translator) thresholds(f *pg.FuncCall, pos int) (*Expr, *refuse.Refusal) {
	nodes, ok := ast.ArrayElements(f.Args[1])
	if !ok {
		return nil, NoForm.At(pos, "width_bucket of an array that is not written out")
	}
	args, _, r := t.All(append([]*pg.Node{f.Args[0]}, nodes...))
	if r != nil {
		return nil, r
	}
	if slices.ContainsFunc(args, func(e *Expr) bool { return e.Type() == policy.Bpchar }) { // chars would be compared without their blanks, and texts are not
		return nil, NoForm.At(pos, "width_bucket of a char").Hinting("width_bucket(x::text, ARRAY[…]) compares as text.")
	}
	plain := scalars(args)
	if f.Args[1].GetAArrayExpr() != nil {
		plain = append(plain[:1:1], t.Env.Elements(plain[1:])...)
	}
	s, err := t.Env.Call(scalar.WidthBucketOf, plain...)
	if err != nil {
		return nil, ScalarRefusal(err, pos)
	}
	e, r := t.reading(Node(FormOther, "width_bucket", s, pos, args...))
	if r != nil {
		return nil, r
	}
	ordered := true
	for i := 2; i < len(args) && ordered; i++ {
		step, err := t.Env.Call("<=", args[i-1].Expr, args[i].Expr)
		ordered = err == nil && args[i-1].IsConstant() && args[i].IsConstant()
		if ordered {
			v, err := step.Eval(nil)
			ordered = err == nil && v == true
		}
	}
	if ordered {
		e.order(t.Env, "width_bucket")
	}
	return e, nil
}

// noArgument refuses an argument that no form of the function has; package parse has put the others into their places.
func noArgument(function, argument string, pos int) *refuse.Refusal {
	r := refuse.UnknownFunction.At(pos, function+" with an argument "+argument)
	for _, form := range scalar.Arguments(function) {
		var names []string
		for _, a := range form {
			names = append(names, a.Name)
		}
		r.Hint = "The arguments of " + function + " are " + strings.Join(names, ", ") + "."
	}
	return r
}

// noteArguments gives parameters the types that a function takes them as.
func (t *Translator) noteArguments(name string, args []*Expr) {
	in := make([]policy.Type, len(args))
	any := false
	for i, a := range args {
		in[i] = a.Type()
		any = any || a.Parameter > 0 && in[i] == policy.Unknown
	}
	if !any {
		return
	}
	for i, want := range t.Env.Wants(name, in...) {
		t.Params.Note(args[i], want)
	}
}

func (t *Translator) named(name string, pos int, args []*Expr) (*Expr, *refuse.Refusal) {
	if refusal := caseOfCollated(name, pos, args); refusal != nil {
		return nil, refusal
	}
	if fills[name] {
		args = slices.Clone(args)
		for i := range args {
			var r *refuse.Refusal
			if args[i], r = t.Filled(args[i]); r != nil {
				return nil, r
			}
		}
	}
	s, err := t.Env.Call(name, scalars(args)...)
	if err != nil {
		if r := notOverRows(t.Env, name, pos); r != nil {
			return nil, r
		}
		return nil, ScalarRefusal(err, pos)
	}
	return t.reading(Node(FormOther, name, s, pos, args...))
}

// MustConstant is the value of a constant, which cannot fail.
func MustConstant(e *Expr) policy.Value {
	v, _ := e.Eval(nil)
	return v
}

func (t *Translator) sqlValue(f *pg.SQLValueFunction) (*Expr, *refuse.Refusal) {
	pos := int(f.Location)
	now := ConstantExpr(policy.Timestamptz(t.Env.Clock().UnixMicro()), policy.TimestampTZ, pos)
	target, typmod := policy.TimestampTZ, int32(-1)
	switch f.Op {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N:
		return now, nil
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
		target = policy.DateType
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP, pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:
		target = policy.TimestampT
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIME, pg.SQLValueFunctionOp_SVFOP_LOCALTIME_N:
		target, typmod = policy.TimeT, f.Typmod
	default:
		return nil, NoForm.At(pos, "a function of the session")
	}
	s, err := t.Env.Cast(now.Expr, target, typmod)
	return Made(FormOther, "now:"+target.Name()+":"+strconv.Itoa(int(typmod)), s, err, pos, now)
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
	return s != nil && len(s.FromClause)+len(s.WindowClause) == 0 && s.WhereClause == nil && ast.IsRowByRow(s)
}
