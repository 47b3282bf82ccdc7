package semantics

import (
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Columns that a policy declares as char(n) are text without trailing blanks (policy/char.go). PostgreSQL compares them
// as char:
//
//	SELECT count(*) FROM sales WHERE store = 'BB ' OR store IN ('CC   ', 'DD') OR store = 'EE '::char(3)
//
// finds BB, CC, DD and EE, as a constant without a type becomes a char there, and its trailing blanks do not count.
// With what is text the column is compared as text, where 'BB'::char(3) is 'BB' and 'BB '::text is not. Patterns see
// the blanks: store LIKE 'BB' is not true of a char(3), and so do octet_length and concat. Other functions of text, ||
// among them, do not. A choice whose first value is one (coalesce(store, 'none '), CASE, NULLIF) is a char, and a
// varchar is compared with one as a char; ARRAY['BB '] is of texts. What is chosen has the blanks that it had:
// concat(coalesce(store, 'a'), '|') is 'a|' where there is no store, and as a cell's value does not tell whence it
// came, it is refused.

// patterns are the operators that match a char with the blanks that fill it up.
var patterns = WordSet("~~ !~~ ~~* !~~* ~ !~ ~* !~*")

// fills are the functions that take a char as it is sent, with the blanks that fill it up.
var fills = WordSet("octet_length concat concat_ws")

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
	if e.Type() != policy.Bpchar {
		return e, nil
	}
	if e.Ragged() {
		return nil, NoForm.At(e.Pos, "the blanks at the end of a choice among chars of several lengths, or of a char without one,")
	}
	length := ConstantExpr(int64(policy.CharLength(e.Typmod())), policy.Int4, e.Pos)
	own, err := t.Env.Call("length", e.Expr)
	if err != nil {
		return nil, ScalarRefusal(err, e.Pos)
	}
	whole, err := t.Env.Call("greatest", own, length.Expr) // outside: other is no value of the type, and not cut
	if err != nil {
		return nil, ScalarRefusal(err, e.Pos)
	}
	s, err := t.Env.Call("rpad", e.Expr, whole)
	return Made(FormOther, "rpad", s, err, e.Pos, e, length)
}

// char reads a constant that is cast to char(n), which cuts it: 'gold '::char(3) is 'gol'; nil means it is another
// cast. (Of what is no constant, and where it may be shown, with its blanks, it is refused.)
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

// Ragged reports whether e is a char of which values may be shorter, and are then not filled up: one of no length.
func (e *Expr) Ragged() bool { return e.Type() == policy.Bpchar && policy.CharLength(e.Typmod()) == 0 }

// Worth is a value of what an expression is, as a constant.
func (e *Expr) Worth(v policy.Value, pos int) *Expr { return ValueExpr(v, e.Type(), e.Typmod(), pos) }

// charConstant is a text as a char, which cuts it.
func charConstant(text string, length int, ragged bool, pos int) *Expr {
	if utf8.RuneCountInString(text) > length {
		text = string([]rune(text)[:length])
	}
	if ragged {
		return ConstantExpr(text, policy.Bpchar, pos)
	}
	return ValueExpr(text, policy.Bpchar, policy.CharTypmod(length), pos)
}

// maxCharLength is PostgreSQL's bound of char(n).
const maxCharLength = 10485760
