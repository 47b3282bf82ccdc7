package outer

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/rewrite/are"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// LIKE and ILIKE are DuckDB's, with PostgreSQL's escape. Regular expressions are computed by package are, which the engine calls
// through pg_regexp: DuckDB reads them otherwise (ADR 79).
//
//	SELECT k FROM leaf_1 WHERE k LIKE 'a%' OR k ~ '^b'
//	⇒ SELECT "c1" AS "c1" FROM (SELECT "t1"."k" AS "c1" FROM "leaf_1" AS "t1" WHERE (("t1"."k" LIKE CAST('a%' AS VARCHAR)
//	  ESCAPE '\') OR CAST(pg_regexp('is', "t1"."k", CAST('^b' AS VARCHAR),
//	  CAST('' AS VARCHAR)) AS BOOLEAN))) AS "q2"

// like binds LIKE and ILIKE, with ESCAPE where one is given.
func (b *binder) like(op string, l expr, pattern *pg.Node, sc *scope) expr {
	if f := pattern.GetFuncCall(); f != nil {
		if names := identifiers(f.GetFuncname()); names[len(names)-1] == "like_escape" {
			escape := b.expr(f.GetArgs()[1], sc)
			b.toldByCall("like_escape", untyped(""), escape)
			character, known := literalText(escape)
			out := likeSQL(op, b.text(l), b.plainly(b.expr(f.GetArgs()[0], sc)))
			if isNull(escape) {
				return expr{sql: "(CASE WHEN " + out.sql + " THEN CAST(NULL AS BOOLEAN) END)", typed: boolType}
			}
			if !known || len(character) != 1 {
				cannot("this ESCAPE")
			}
			out.sql = strings.Replace(out.sql, ` ESCAPE '\'`, " ESCAPE "+dialect.QuoteText(character), 1)
			return out
		}
	}
	return likeSQL(op, b.text(l), b.plainly(b.expr(pattern, sc)))
}

func likeSQL(op string, l, r expr) expr {
	word := " LIKE "
	if strings.HasSuffix(op, "*") {
		word = " ILIKE "
	}
	return truth("("+l.sql+word+r.sql+` ESCAPE '\')`, strings.HasPrefix(op, "!"))
}

// InvalidRegexp is what an analyst is told of a pattern that is none.
const InvalidRegexp = "invalid regular expression"

// checked refuses, where a pattern is written in the query, what is no regular expression or not run here.
func checked(pattern, flags expr, rest ...expr) {
	if slices.ContainsFunc(rest, func(e expr) bool {
		return e.null || strings.HasPrefix(strings.ReplaceAll(e.sql, "CAST(CAST(", "CAST("), "CAST(NULL AS ")
	}) { // of which the answer is NULL, whatever the pattern is
		return
	}
	text, known := literalText(pattern)
	letters, flagged := literalText(flags)
	if !known || !flagged {
		return
	}
	f, err := are.ParseFlags(letters)
	if err == nil {
		_, err = are.Compile(text, f)
	}
	switch {
	case errors.Is(err, are.ErrFlag):
		wrong("22023", "invalid regular expression option", 0)
	case errors.Is(err, are.ErrInvalid):
		wrong("2201B", InvalidRegexp, 0)
	case err != nil:
		cannot(err.Error())
	}
}

// literalText is a text that is written in the query.
func literalText(e expr) (string, bool) {
	if e.literal != nil {
		return *e.literal, true
	}
	inner, ok := strings.CutPrefix(e.sql, "CAST('")
	if ok {
		inner, ok = strings.CutSuffix(inner, "' AS VARCHAR)")
	}
	text := strings.ReplaceAll(inner, "''", "'")
	return text, ok && quoted(text) == e.sql
}

// constantSQL tells a text that is written in the query, or NULL.
func constantSQL(e expr) bool {
	_, known := literalText(e)
	return known || isNull(e)
}

// isNull tells the NULL of no type, or of a text's.
func isNull(e expr) bool { return e.null || textLike(e.oid) && e.sql == "CAST(NULL AS VARCHAR)" }

// regexp writes a call of the sandbox's pg_regexp, which computes it with package are.
func (b *binder) regexp(op string, text, pattern, flags expr, rest ...expr) string {
	checked(pattern, flags, append(rest, text)...)
	sql := "pg_regexp('" + op + "', " + b.text(text).sql + ", " + b.plainly(pattern).sql + ", " + b.plainly(flags).sql
	for _, r := range rest {
		sql += ", " + b.cast(r, textType).sql
	}
	return sql + ")"
}

// listOf reads the text in which pg_regexp gives a list.
func (b *binder) listOf(sql string) string {
	const x = "x__" // equal expressions have equal texts: GROUP BY compares them
	return "list_transform(list_filter(string_split(" + sql + ", chr(31)), lambda " + x + " : " + x + " <> ''), lambda " + x +
		" : (CASE WHEN " + x + " <> '-' THEN substr(" + x + ", 2) END))"
}

// matches binds the operators of regular expressions.
func (b *binder) matches(op string, l, r expr) expr {
	flags := untyped("")
	if strings.HasSuffix(op, "*") {
		flags = untyped("i")
	}
	return truth("CAST("+b.regexp("is", l, r, flags)+" AS BOOLEAN)", strings.HasPrefix(op, "!"))
}

// similarTo binds SIMILAR TO: its pattern is similar_to_escape(pattern) or similar_to_escape(pattern, escape).
func (b *binder) similarTo(n *pg.A_Expr, sc *scope) expr {
	args := b.exprs(n.GetRexpr().GetFuncCall().GetArgs(), sc)
	escape := untyped(`\`)
	if len(args) > 1 {
		escape = args[1]
	}
	if len(args) == 0 {
		return cannot("this SIMILAR TO")
	}
	text := b.text(b.expr(n.GetLexpr(), sc)).sql
	sql := "CAST(pg_regexp('similar', " + text + ", " + b.plainly(args[0]).sql + ", '', " + b.plainly(escape).sql + ") AS BOOLEAN)"
	return truth(sql, lastName(n.GetName()) == "!~")
}

// regexpFunction binds the functions of regular expressions that return one value; false: it is none of them.
func (b *binder) regexpFunction(name string, args []expr) (expr, bool) {
	op, least, most := "", 2, 3
	switch name {
	case "regexp_match", "regexp_like", "regexp_split_to_array":
		op = map[string]string{"regexp_match": "match", "regexp_like": "is", "regexp_split_to_array": "split"}[name]
	case "regexp_replace":
		op, least, most = "replace", 3, 6
	case "regexp_count":
		op, most = "count", 4
	case "regexp_substr":
		op, most = "substr", 6
	case "regexp_instr":
		op, most = "instr", 7
	default:
		return expr{}, false
	}
	takes(name, args, least, most)
	args[0] = b.plainly(args[0])
	at := func(i int, otherwise expr) expr {
		if i < len(args) {
			return args[i]
		}
		return otherwise
	}
	whole := func(i, otherwise int) expr {
		return b.cast(at(i, expr{sql: "CAST(" + strconv.Itoa(otherwise) + " AS INTEGER)", typed: int4Type}), int4Type)
	}
	none := untyped("")
	switch op {
	case "match", "split":
		return expr{sql: b.listOf(b.regexp(op, args[0], args[1], at(2, none))), typed: of(typeTextArr)}, true
	case "is":
		return expr{sql: "CAST(" + b.regexp(op, args[0], args[1], at(2, none)) + " AS BOOLEAN)", typed: boolType}, true
	case "replace":
		if len(args) > 4 || len(args) == 4 && args[3].oid.Integer() {
			rest := []expr{args[2], whole(3, 1)}
			if len(args) > 4 {
				rest = append(rest, whole(4, 1))
			}
			return expr{sql: b.regexp(op, args[0], args[1], at(5, none), rest...), typed: textType}, true
		}
		return expr{sql: b.regexp(op, args[0], args[1], at(3, none), args[2]), typed: textType}, true
	case "count":
		return expr{sql: "CAST(" + b.regexp(op, args[0], args[1], at(3, none), whole(2, 1)) + " AS INTEGER)", typed: int4Type}, true
	case "substr":
		return expr{sql: b.regexp(op, args[0], args[1], at(4, none), whole(2, 1), whole(3, 1), whole(len(args), 0), whole(5, 0)), typed: textType}, true
	}
	return expr{sql: "CAST(" + b.regexp(op, args[0], args[1], at(5, none), whole(2, 1), whole(3, 1), whole(4, 0), whole(6, 0)) + " AS INTEGER)", typed: int4Type}, true
}
