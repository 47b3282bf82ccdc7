package outer

import (
	"regexp"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// LIKE and ILIKE are DuckDB's, with PostgreSQL's escape. Regular expressions are DuckDB's where both read the pattern alike, and
// refused where they do not or where the pattern is not a constant.
//
//	SELECT k FROM leaf_1 WHERE k LIKE 'a%' OR k ~ '^b'
//	⇒ SELECT "c1" AS "c1" FROM (SELECT "t1"."k" AS "c1" FROM "leaf_1" AS "t1" WHERE (("t1"."k" LIKE CAST('a%' AS VARCHAR)
//	  ESCAPE '\') OR regexp_matches("t1"."k", '^b', 's'))) AS "q2"

// like binds LIKE and ILIKE, with ESCAPE where one is given.
func (b *binder) like(op string, l expr, pattern *pg.Node, sc *scope) expr {
	if f := pattern.GetFuncCall(); f != nil {
		if names := identifiers(f.GetFuncname()); names[len(names)-1] == "like_escape" {
			escape := b.expr(f.GetArgs()[1], sc)
			if escape.literal == nil || len(*escape.literal) != 1 {
				cannot("this ESCAPE")
			}
			out := likeSQL(op, b.text(l), b.text(b.expr(f.GetArgs()[0], sc)))
			out.sql = strings.Replace(out.sql, ` ESCAPE '\'`, " ESCAPE "+dialect.QuoteText(*escape.literal), 1)
			return out
		}
	}
	return likeSQL(op, b.text(l), b.text(b.expr(pattern, sc)))
}

func likeSQL(op string, l, r expr) expr {
	word := " LIKE "
	if strings.HasSuffix(op, "*") {
		word = " ILIKE "
	}
	return truth("("+l.sql+word+r.sql+` ESCAPE '\')`, strings.HasPrefix(op, "!"))
}

// foreignRegexp finds what PostgreSQL's regular expressions and RE2 read differently.
var foreignRegexp = regexp.MustCompile(`\\[^.\\$^*+?()\[\]{}|/\-_ dswDSW]|\(\?|^\*\*\*|\[\[|\[\.|\[=|\{,`)

// matches binds the operators of regular expressions, for constant patterns that mean the same in RE2.
func (b *binder) matches(op string, l, r expr) expr {
	if r.literal == nil {
		if r.null {
			return expr{sql: "CAST(NULL AS BOOLEAN)", typed: boolType}
		}
		cannot("a regular expression that is not a constant")
	}
	if foreignRegexp.MatchString(*r.literal) {
		cannot("this regular expression")
	}
	if _, err := regexp.Compile(*r.literal); err != nil {
		wrong("2201B", "invalid regular expression", 0)
	}
	flags := "s"
	if strings.HasSuffix(op, "*") {
		flags = "si"
	}
	return truth("regexp_matches("+b.text(l).sql+", "+dialect.QuoteText(*r.literal)+", '"+flags+"')", strings.HasPrefix(op, "!"))
}
