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
// 'BB' is not true of a char(3), and so do octet_length and concat. Other functions of text, || among them, do not. What is a char or a constant without a type
// (coalesce(store, 'none '), CASE, NULLIF) is a char, and a varchar is compared with one as a char; ARRAY['BB '] is of texts.

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
		text, ok := untyped(e)
		switch {
		case varchar(e) && !e.IsConstant():
			s, err := t.Env.Call("rtrim", e.Expr)
			if err != nil {
				return ScalarRefusal(err, e.Pos)
			}
			args[i], plain[i] = Node(FormOther, "rtrim", s, e.Pos, e), s
			continue
		case varchar(e):
			v, err := e.Eval(nil)
			if text, ok = v.(string); err != nil {
				ok = false
			}
		}
		if short := strings.TrimRight(text, " "); ok && short != text {
			args[i] = ConstantExpr(short, e.Type(), e.Pos)
			args[i].Parameter, plain[i] = e.Parameter, args[i].Expr
		}
	}
	return nil
}

// charOf is the length of the char that a choice among values is, as CASE and coalesce are, whose constants lose their trailing blanks; 0: it is no char.
func (t *Translator) charOf(args []*Expr, plain []scalar.Expr) (length int, refusal *refuse.Refusal) {
	if !charOrUnknown(args) {
		return 0, nil
	}
	if refusal := t.withoutBlanks(args, plain); refusal != nil {
		return 0, refusal
	}
	return args[slices.IndexFunc(args, func(a *Expr) bool { return a.Blanks > 0 })].Blanks, nil
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

// filled is a char with the blanks that fill it up, as text; anything else is as it is.
func (t *Translator) filled(e *Expr) (*Expr, *refuse.Refusal) {
	if e.Blanks == 0 {
		return e, nil
	}
	length := ConstantExpr(int64(e.Blanks), policy.Int4, e.Pos)
	s, err := t.Env.Call("rpad", e.Expr, length.Expr)
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
	text, length := s.Sval, maxCharLength
	if len(c.TypeName.Typmods) == 1 {
		length = int(c.TypeName.Typmods[0].GetAConst().GetIval().GetIval())
	}
	if length < 1 || length > maxCharLength || len(c.TypeName.Typmods) > 1 {
		return nil
	}
	if utf8.RuneCountInString(text) > length {
		text = string([]rune(text)[:length])
	}
	e := ConstantExpr(strings.TrimRight(text, " "), policy.Text, int(c.Location))
	e.Blanks = length
	return e
}

// maxCharLength is PostgreSQL's bound of char(n).
const maxCharLength = 10485760
