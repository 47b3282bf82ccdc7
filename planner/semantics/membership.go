package semantics

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Comparisons with each of several values: age IN (30, 31), and age = ANY ('{30,31}'), which is the same. A driver's
// parameter may be such an array.

func (t *Translator) in(left *pg.Node, items []*pg.Node, negated bool, pos int) (*Expr, *refuse.Refusal) {
	subject, r := t.Expr(left)
	if r != nil {
		return nil, r
	}
	subject = t.Settler.Settled(subject)
	args, _, r := t.All(items)
	if r != nil {
		return nil, r
	}
	t.noteMembers(subject, args)
	return t.Member(subject, args, negated, pos)
}

// noteMembers notes the types of parameters in a list: several constants are brought to one type, which is the
// subject's too; what is alone is compared as it is.
func (t *Translator) noteMembers(subject *Expr, args []*Expr) {
	if t.Params == nil || !t.Params.Describing {
		return
	}
	constants, types := []*Expr{subject}, []policy.Type{subject.Type()}
	for _, a := range args {
		if a.IsConstant() {
			constants, types = append(constants, a), append(types, a.Type())
		}
	}
	if common, ok := t.Env.Common(types...); ok && len(constants) > 2 {
		for _, e := range constants {
			t.Params.Note(e, common)
		}
	}
	for _, a := range args {
		t.noteOperands("=", []*Expr{subject, a})
	}
}

// Member is subject IN (args), or NOT IN.
func (t *Translator) Member(subject *Expr, args []*Expr, negated bool, pos int) (*Expr, *refuse.Refusal) {
	all := append([]*Expr{subject}, args...)
	if t.anyCoalesces(all[:1]) {
		if e, r := t.coalesced(all, func(all []*Expr) (*Expr, *refuse.Refusal) {
			return t.Member(all[0], all[1:], false, pos)
		}); e != nil || r != nil {
			if r == nil && negated {
				return t.Not(e)
			}
			return e, r
		}
	}
	plain := scalars(all)
	s, err := t.Env.In(plain[0], plain[1:])
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

// anyOf is e op ANY (array) or e op ALL (array), the array being a constructor, a literal or a parameter: e IN (…), e
// NOT IN (…), or, as in
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
	if list := t.elsewhere(a.Rexpr, true, r); list != nil {
		args, r = list, nil
	}
	if r != nil {
		return nil, r
	}
	if cast := a.Rexpr.GetTypeCast(); cast != nil && subject.Parameter > 0 {
		t.noteOperands(op, []*Expr{subject, ConstantExpr(nil, ast.TypeNames[strings.TrimPrefix(ast.TypeName(cast.TypeName), "pg_catalog.")], pos)})
	}
	if args == nil && (t.Params == nil || !t.Params.Describing) { // of an array that is NULL so is the comparison, whatever is beside it
		return ConstantExpr(nil, policy.Bool, pos), nil
	}
	if len(args) == 0 {
		return ConstantExpr(all, policy.Bool, pos), nil
	}
	if op == "=" && !all || op == "<>" && all {
		return t.Among(subject, args, all, pos)
	}
	return t.withEach(op, subject, args, all, pos)
}

// withEach is the AND (all), or the OR, of an operation with each element of an array, which it replaces in the list.
func (t *Translator) withEach(op string, subject *Expr, list []*Expr, all bool, pos int) (*Expr, *refuse.Refusal) {
	if len(list) > maxOperations {
		return nil, NoForm.At(pos, "this comparison with an array of more than "+strconv.Itoa(maxOperations)+" elements")
	}
	for i, e := range list {
		if e.IsConstant() && e.Parameter == 0 && MustConstant(e) == nil { // of NULL every comparison is NULL
			list[i] = ConstantExpr(nil, policy.Bool, pos)
			continue
		}
		var r *refuse.Refusal
		if list[i], r = t.Combine(op, pos, subject, e); r != nil {
			return nil, r
		}
		if list[i].Type() != policy.Bool {
			return nil, NoForm.At(pos, "this comparison with an array")
		}
	}
	if all {
		return t.Junction(FormAnd, pos, list...)
	}
	return t.Junction(FormOr, pos, list...)
}

// Among is subject = ANY (args), or <> ALL: of an array or a sub-query, whose elements have a type of their own. With
// texts a char is a text then, and with chars a varchar is a char. (A list has one type with its subject: see Member.)
func (t *Translator) Among(subject *Expr, args []*Expr, negated bool, pos int) (*Expr, *refuse.Refusal) {
	at := slices.IndexFunc(args, func(e *Expr) bool { return e.Type() != policy.Unknown })
	if at >= 0 && (subject.Type() == policy.Bpchar || args[at].Type() == policy.Bpchar) {
		if want := t.Env.Wants("=", subject.Type(), args[at].Type()); want != nil && want[0] != subject.Type() {
			var r *refuse.Refusal
			if subject, r = t.As(subject, want[0], -1, pos); r != nil {
				return nil, r
			}
		}
	}
	return t.Member(subject, args, negated, pos)
}

// maxOperations bounds the elements of an array that are operated on one by one.
const maxOperations = 256

// elements are those of an array: constructed, a literal or a parameter; nil means the array is NULL.
func (t *Translator) elements(array *pg.Node, subject *Expr, pos int) ([]*Expr, *refuse.Refusal) {
	if cast := array.GetTypeCast(); cast != nil && len(cast.TypeName.ArrayBounds) > 0 {
		inner, first := cast.Arg, cast.TypeName
		for inner.GetTypeCast() != nil && len(inner.GetTypeCast().TypeName.ArrayBounds) > 0 { // the outermost one decides
			if strings.HasSuffix(ast.TypeName(inner.GetTypeCast().TypeName), "bpchar") { // which takes the blanks off that the next one keeps
				return nil, refuse.BlankPadded.At(pos)
			}
			inner, first = inner.GetTypeCast().Arg, inner.GetTypeCast().TypeName
		}
		t.noteArray(inner, first)
		switch name := ast.TypeName(cast.TypeName); {
		case t.parameterType(inner) == ast.BpcharArray && !strings.HasSuffix(name, "bpchar"): // likewise
			return nil, refuse.BlankPadded.At(pos)
		case strings.HasSuffix(name, "bpchar"):
			return t.elementsAsChars(inner, subject, cast.TypeName, pos)
		case !strings.HasSuffix(name, "text"):
			if nodes, ok := ast.ArrayElements(array); ok { // each is cut to the length that a varchar has
				args, _, r := t.All(nodes)
				return args, r
			}
			if strings.HasSuffix(name, "varchar") && len(cast.TypeName.Typmods) > 0 {
				return nil, NoForm.At(pos, "a cast of an array that is not written out to one of varchar with a length")
			}
			return t.elementsAs(inner, subject, policy.Unknown, cast.TypeName, pos)
		}
		return t.elementsAs(inner, subject, policy.Text, cast.TypeName, pos)
	}
	if t.parameterType(array) == ast.BpcharArray {
		return t.elementsAsChars(array, subject, &pg.TypeName{}, pos)
	}
	texts := policy.Unknown
	if array.GetAArrayExpr() != nil || t.parameterType(array) == ast.ArrayTypes[policy.Text] {
		texts = policy.Text
	}
	return t.elementsOf(array, subject, texts, pos)
}

// noteArray gives a parameter that is cast to an array that type: $1::text[].
func (t *Translator) noteArray(n *pg.Node, typ *pg.TypeName) {
	p := n.GetParamRef()
	if p == nil || t.Params == nil {
		return
	}
	name := strings.TrimPrefix(ast.TypeName(typ), "pg_catalog.")
	array := ast.ArrayTypes[ast.TypeNames[name]]
	if name == "bpchar" {
		array = ast.BpcharArray
	}
	t.Params.Note(&Expr{Parameter: int(p.Number)}, array)
}

// parameterType is the type of a parameter, or 0 of another node and while it is not known.
func (t *Translator) parameterType(n *pg.Node) policy.Type {
	p := n.GetParamRef()
	if p == nil || t.Params == nil {
		return 0
	}
	return t.Params.TypeOf(int(p.Number))
}

// elementsAs are the elements of an array that is cast to another type than char(n)[], each cast so: of $1::date[] those
// are days. What is cast to texts is as it is, but for chars.
func (t *Translator) elementsAs(
	array *pg.Node, subject *Expr, texts policy.Type, typ *pg.TypeName, pos int,
) ([]*Expr, *refuse.Refusal) {
	of, typmod, _, r := ast.ScalarType(typ)
	if r != nil {
		return nil, r
	}
	args, r := t.elementsOf(array, subject, texts, pos)
	for i, e := range args {
		if r == nil && (!of.Textual() || e.Type() == policy.Bpchar) {
			args[i], r = t.As(e, of, typmod, pos)
		}
	}
	return args, r
}

// elementsAsChars are those of an array that is cast to char(n)[].
func (t *Translator) elementsAsChars(array *pg.Node, subject *Expr, typ *pg.TypeName, pos int) ([]*Expr, *refuse.Refusal) {
	args, r := t.elementsOf(array, subject, policy.Unknown, pos)
	for i := range args {
		if r == nil {
			args[i], r = elementAsChar(args[i], typ)
		}
	}
	return args, r
}

// elementsOf are those of an array without its casts. If its elements are texts (texts is policy.Text), they are none
// of another type: a char is compared with them as a text, a number with none.
func (t *Translator) elementsOf(array *pg.Node, subject *Expr, texts policy.Type, pos int) ([]*Expr, *refuse.Refusal) {
	element := policy.Unknown
	if subject.Type() == policy.Bpchar || subject.Type() != policy.Unknown && !subject.Type().Textual() {
		element = texts
	}
	if list := array.GetAArrayExpr(); list != nil {
		args, _, r := t.All(list.Elements)
		if at := slices.IndexFunc(args, func(e *Expr) bool { return e.Type() != policy.Unknown }); r == nil && at >= 0 { // whose type the array has
			is := args[at].Type()
			if is == policy.Varchar {
				element = policy.Unknown
			}
			for i, e := range args {
				if r == nil && is.Textual() && e.Type() != is && (e.Type().Textual() || is == policy.Bpchar && e.IsConstant()) {
					args[i], r = t.As(e, is, -1, pos)
				}
			}
			if r != nil {
				return nil, r
			}
		}
		if subject.Type() != policy.Bpchar && slices.ContainsFunc(args, func(e *Expr) bool { return e.Parameter > 0 || e.Type() != policy.Unknown }) { // whose type a literal beside it has
			element = policy.Unknown
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
		return t.parameterElements(subject, p, element, pos)
	}
	if array.GetAConst().GetIsnull() {
		return nil, nil
	}
	literal := array.GetAConst().GetSval()
	if literal == nil {
		return nil, NoForm.At(pos, "this comparison with an array")
	}
	elements, ok := ast.SplitArray(literal.Sval)
	if !ok {
		r := Evaluation.At(ast.Location(array), "malformed array literal")
		r.SQLState = "22P02"
		return nil, r
	}
	args := make([]*Expr, len(elements))
	for i, v := range elements {
		if args[i] = ConstantExpr(v, element, pos); v != nil && element == policy.Unknown {
			args[i] = t.literal(v.(string), pos)
		}
	}
	return args, nil
}

// parameterElements are those of an array that is a parameter; nil means it is NULL, or its value is not there yet.
func (t *Translator) parameterElements(subject *Expr, p *pg.ParamRef, element policy.Type, pos int) ([]*Expr, *refuse.Refusal) {
	n := int(p.Number)
	list, r := t.Params.constant(n, t.Env, pos)
	if r != nil {
		return nil, r
	}
	array := ast.ArrayTypes[subject.Type()]
	if want := t.Env.Wants("=", subject.Type(), policy.Unknown); want != nil {
		array = ast.ArrayTypes[want[1]]
	}
	if subject.Type() == policy.Bpchar {
		array = ast.BpcharArray
	}
	t.Params.Note(list, array)
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
		elements, ok := ast.SplitArray(v)
		if !ok {
			return nil, NoForm.At(pos, "this array parameter")
		}
		values = elements
	}
	args := make([]*Expr, len(values))
	for i, v := range values {
		if args[i] = ConstantExpr(nil, element, pos); v != nil {
			args[i] = ConstantExpr(PlainText(t.Env, v), element, pos)
		}
	}
	return args, nil
}

// elementAsChar is an element of an array that is cast to char(n)[], as it is of ARRAY['BB '::char(3)].
func elementAsChar(e *Expr, typ *pg.TypeName) (*Expr, *refuse.Refusal) {
	length, ok := charLength(typ)
	if !ok {
		return nil, refuse.BlankPadded.At(e.Pos)
	}
	if e.IsConstant() {
		switch v := MustConstant(e).(type) {
		case nil:
			return e, nil
		case string:
			return charConstant(v, length, len(typ.Typmods) == 0, e.Pos), nil
		}
	} else if e.Type() == policy.Bpchar && (len(typ.Typmods) == 0 || e.Typmod() == policy.CharTypmod(length)) {
		return e, nil
	}
	return nil, refuse.BlankPadded.At(e.Pos)
}
