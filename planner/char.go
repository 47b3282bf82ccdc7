package planner

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
// 'BB' is not true of a char(3). Functions of text, || among them, do not.

// patterns are the operators that match a char with the blanks that fill it up.
var patterns = wordSet("~~ !~~ ~~* !~~* ~ !~ ~* !~*")

// withoutBlanks leaves trailing blanks off the untyped constants that a char is compared with.
func withoutBlanks(args []*expr, plain []scalar.Expr) {
	if !charOrUnknown(args) {
		return
	}
	for i, e := range args {
		if text, ok := untyped(e); ok {
			if short := strings.TrimRight(text, " "); short != text {
				args[i] = constantExpr(short, policy.Unknown, e.pos)
				args[i].parameter, plain[i] = e.parameter, args[i].Expr
			}
		}
	}
}

// charOrUnknown tells that all are chars, or constants without a type, and some is a char: with anything else PostgreSQL takes
// them for text.
func charOrUnknown(args []*expr) bool {
	return slices.ContainsFunc(args, func(e *expr) bool { return e.blanks > 0 }) &&
		!slices.ContainsFunc(args, func(e *expr) bool { return e.blanks == 0 && e.Type() != policy.Unknown })
}

// untyped is the text of a constant that has no type yet.
func untyped(e *expr) (string, bool) {
	if e.Type() != policy.Unknown || !e.isConstant() {
		return "", false
	}
	v, err := e.Eval(nil)
	text, ok := v.(string)
	return text, err == nil && ok
}

// filled is a char with the blanks that fill it up, as text; anything else is as it is.
func (t *translator) filled(e *expr) (*expr, *refuse.Refusal) {
	if e.blanks == 0 {
		return e, nil
	}
	length := constantExpr(int64(e.blanks), policy.Int4, e.pos)
	s, err := t.env.Call("rpad", e.Expr, length.Expr)
	if err != nil {
		return nil, scalarRefusal(err, e.pos)
	}
	return node(formOther, "rpad", s, e.pos, e, length), nil
}

// char reads a constant that is cast to char(n), which cuts it: 'gold  '::char(3) is 'gol'; nil: it is another cast. (Of
// what is no constant, and where it may be shown, with its blanks, it is refused.)
func (t *translator) char(c *pg.TypeCast) *expr {
	name := strings.TrimPrefix(ast.TypeName(c.TypeName), "pg_catalog.")
	s := c.Arg.GetAConst().GetSval()
	if name != "bpchar" || s == nil || len(c.TypeName.ArrayBounds) > 0 || t.place != "WHERE" && t.place != "FILTER" {
		return nil
	}
	text, length := s.Sval, mostCharLength
	if len(c.TypeName.Typmods) == 1 {
		length = int(c.TypeName.Typmods[0].GetAConst().GetIval().GetIval())
	}
	if length < 1 || length > mostCharLength || len(c.TypeName.Typmods) > 1 {
		return nil
	}
	if utf8.RuneCountInString(text) > length {
		text = string([]rune(text)[:length])
	}
	e := constantExpr(strings.TrimRight(text, " "), policy.Text, int(c.Location))
	e.blanks = length
	return e
}

// mostCharLength is PostgreSQL's bound of char(n).
const mostCharLength = 10485760
