package semantics

import (
	"slices"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Columns that a policy declares as char(n) are text without trailing blanks (policy/char.go). PostgreSQL compares them as char:
//
//	SELECT count(*) FROM sales WHERE store = 'BB ' OR store IN ('CC   ', 'DD') OR store = 'EE '::char(3)
//
// finds BB, CC, DD and EE, as a constant without a type becomes a char there, and its trailing blanks do not count. With what
// is text the column is compared as text, where 'BB'::char(3) is 'BB' and 'BB '::text is not. Patterns see the blanks: store LIKE
// 'BB' is not true of a char(3), and so do octet_length and concat. Other functions of text, || among them, do not. A choice whose first value is one
// (coalesce(store, 'none '), CASE, NULLIF) is a char, and a varchar is compared with one as a char; ARRAY['BB '] is of texts. What is chosen has the blanks that it had: concat(coalesce(store, 'a'), '|') is
// 'a|' where there is no store, and as a cell's value does not tell whence it came, it is refused.

// patterns are the operators that match a char with the blanks that fill it up.
var patterns = WordSet("~~ !~~ ~~* !~~* ~ !~ ~* !~*")

// fills are the functions that take a char as it is sent, with the blanks that fill it up.
var fills = WordSet("octet_length concat concat_ws")

// withoutBlanks leaves trailing blanks off what a char is compared with as a char: constants without a type, and any varchar, as in store = v.code. plain are the
// same arguments as package scalar has them.
func (t *Translator) withoutBlanks(args []*Expr, plain []scalar.Expr) *refuse.Refusal {
	varchar := func(e *Expr) bool { return e.Blanks == 0 && e.Type() == policy.Varchar }
	if !charOrUnknown(slices.DeleteFunc(slices.Clone(args), varchar)) {
		return nil
	}
	for i, e := range args {
		_, open := untyped(e)
		switch {
		case varchar(e) && !e.IsConstant():
			s, err := t.Env.Call("rtrim", e.Expr)
			if err != nil {
				return ScalarRefusal(err, e.Pos)
			}
			args[i], plain[i] = Node(FormOther, "rtrim", s, e.Pos, e), s
		case open || varchar(e):
			args[i] = shorter(e)
			plain[i] = args[i].Expr
		}
	}
	return nil
}

// shorter is a constant without the blanks at the end of its text.
func shorter(e *Expr) *Expr {
	text, ok := MustConstant(e).(string)
	if short := strings.TrimRight(text, " "); ok && short != text {
		c := ConstantExpr(short, e.Type(), e.Pos)
		c.Parameter = e.Parameter
		return c
	}
	return e
}

// charOf is the char that a choice among values is, as CASE and coalesce are; nil: it is none. PostgreSQL gives a choice the type of the first value that has one (of CASE that
// is ELSE's, where it has one: it is the one at first), as all texts become one another by themselves: coalesce(store, code) is a char, coalesce(code, store) what code is.
// The others lose their trailing blanks, which do not count then.
func (t *Translator) charOf(args []*Expr, plain []scalar.Expr, first int) (*Expr, *refuse.Refusal) {
	typed := func(e *Expr) bool { return e.Blanks > 0 || e.Type() != policy.Unknown }
	if !typed(args[first]) {
		if first = slices.IndexFunc(args, typed); first < 0 {
			return nil, nil
		}
	}
	if args[first].Blanks == 0 {
		return nil, nil
	}
	of := &Expr{Blanks: args[first].Blanks, Ragged: args[first].Ragged}
	for i, e := range args {
		switch {
		case e.Blanks > 0:
			of.Ragged = of.Ragged || e.Ragged || e.Blanks != of.Blanks
		case e.IsConstant() && MustConstant(e) == nil:
		case e.IsConstant():
			args[i] = shorter(e)
			plain[i], of.Ragged = args[i].Expr, true
		case e.Type().Textual():
			s, err := t.Env.Call("rtrim", e.Expr)
			if err != nil {
				return nil, ScalarRefusal(err, e.Pos)
			}
			args[i], plain[i] = Node(FormOther, "rtrim", s, e.Pos, e), s
			of.Ragged = true
		}
	}
	return of, nil
}

// is makes an expression the char that another one is; nil: none.
func (e *Expr) is(char *Expr) {
	if char != nil {
		e.Blanks, e.Ragged = char.Blanks, char.Ragged
	}
}

// charOrUnknown tells that all are chars, or constants without a type, and some is a char: with anything else PostgreSQL takes
// them for text.
func charOrUnknown(args []*Expr) bool {
	return slices.ContainsFunc(args, func(e *Expr) bool { return e.Blanks > 0 }) &&
		!slices.ContainsFunc(args, func(e *Expr) bool { return e.Blanks == 0 && e.Type() != policy.Unknown })
}

// untyped is the text of a constant that has no type yet.
func untyped(e *Expr) (string, bool) {
	if e.Type() != policy.Unknown || !e.IsConstant() {
		return "", false
	}
	v, err := e.Eval(nil)
	text, ok := v.(string)
	return text, err == nil && ok
}

// Filled is a char with the blanks that fill it up, as text; anything else is as it is.
func (t *Translator) Filled(e *Expr) (*Expr, *refuse.Refusal) {
	if e.Blanks == 0 {
		return e, nil
	}
	if e.Ragged {
		return nil, NoForm.At(e.Pos, "the blanks at the end of a choice among chars of several lengths, or of a char without one,")
	}
	length := ConstantExpr(int64(e.Blanks), policy.Int4, e.Pos)
	own, err := t.Env.Call("length", e.Expr)
	if err != nil {
		return nil, ScalarRefusal(err, e.Pos)
	}
	whole, err := t.Env.Call("greatest", own, length.Expr) // outside: other is no value of the type, and not cut
	if err != nil {
		return nil, ScalarRefusal(err, e.Pos)
	}
	s, err := t.Env.Call("rpad", e.Expr, whole)
	if err != nil {
		return nil, ScalarRefusal(err, e.Pos)
	}
	return Node(FormOther, "rpad", s, e.Pos, e, length), nil
}

// char reads a constant that is cast to char(n), which cuts it: 'gold  '::char(3) is 'gol'; nil: it is another cast. (Of
// what is no constant, and where it may be shown, with its blanks, it is refused.)
func (t *Translator) char(c *pg.TypeCast) *Expr {
	name := strings.TrimPrefix(ast.TypeName(c.TypeName), "pg_catalog.")
	s := c.Arg.GetAConst().GetSval()
	if name != "bpchar" || s == nil || len(c.TypeName.ArrayBounds) > 0 || t.Place != "WHERE" && t.Place != "FILTER" {
		return nil
	}
	length, ok := charLength(c.TypeName)
	if !ok {
		return nil
	}
	return charConstant(s.Sval, length, len(c.TypeName.Typmods) == 0, int(c.Location))
}

// charLength is n of char(n), and the longest where a char has none.
func charLength(typ *pg.TypeName) (length int, ok bool) {
	length = maxCharLength
	if len(typ.Typmods) == 1 {
		length = int(typ.Typmods[0].GetAConst().GetIval().GetIval())
	}
	return length, length >= 1 && length <= maxCharLength && len(typ.Typmods) <= 1
}

// charOfType makes a text the char of a modifier, of which all values are filled up; of one without a length that is not known.
func charOfType(e *Expr, typmod int32) *Expr {
	if e.Blanks = policy.CharLength(typmod); e.Blanks == 0 {
		e.Blanks, e.Ragged = maxCharLength, true
	}
	return e
}

// CharOf makes an expression the char that a column is one of.
func (e *Expr) CharOf(c *policy.Column) *Expr {
	e.Blanks, e.Ragged = c.Blanks, c.Ragged
	return e
}

// Worth is a value of what an expression is, as a constant.
func (e *Expr) Worth(v policy.Value, pos int) *Expr {
	t, typmod := e.Shown()
	return ValueExpr(v, t, typmod, pos)
}

// ValueExpr is a value of an answer's column, which may be a char.
func ValueExpr(v policy.Value, t policy.Type, typmod int32, pos int) *Expr {
	if t == policy.Bpchar {
		return charOfType(ConstantExpr(policy.Trimmed(t, v), policy.Text, pos), typmod)
	}
	return ConstantExpr(v, t, pos)
}

// Shown is the type that an expression has outside: what a leaf's column, an answer's and a client is told of it. A char, whose values are texts here, is one
// there; what is compared and computed here has Type.
func (e *Expr) Shown() (policy.Type, int32) {
	switch {
	case e.Blanks == 0:
		return e.Type(), e.Typmod()
	case e.Ragged:
		return policy.Bpchar, -1
	}
	return policy.Bpchar, policy.CharTypmod(e.Blanks)
}

// charConstant is a text as a char, which cuts it.
func charConstant(text string, length int, ragged bool, pos int) *Expr {
	if utf8.RuneCountInString(text) > length {
		text = string([]rune(text)[:length])
	}
	e := ConstantExpr(strings.TrimRight(text, " "), policy.Text, pos)
	e.Blanks, e.Ragged = length, ragged
	return e
}

// maxCharLength is PostgreSQL's bound of char(n).
const maxCharLength = 10485760
