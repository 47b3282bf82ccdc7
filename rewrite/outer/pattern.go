package outer

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
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

// extracted binds substring(text FROM pattern) and regexp_match: what a constant pattern finds, where there is one way to find it.
func (b *binder) extracted(name string, text, pattern expr) expr {
	result := textType
	if name == "regexp_match" {
		result = of(typeTextArr)
	}
	if isNull(pattern) {
		return b.keeping(expr{sql: "CAST(NULL AS " + Storage(result.oid) + ")", typed: result}, text)
	}
	constant := constantText(pattern)
	found := b.matches("~", text, pattern)
	tree, err := syntax.Parse(constant, syntax.Perl|syntax.DotNL)
	if err != nil || !oneWay(tree) {
		cannot("this regular expression")
	}
	group := func(i int) string {
		return "regexp_extract(" + b.text(text).sql + ", " + dialect.QuoteText(constant) + ", " + strconv.Itoa(i) + ", 's')"
	}
	out := group(min(tree.MaxCap(), 1))
	if name == "regexp_match" {
		parts := []string{}
		for i := min(tree.MaxCap(), 1); i <= tree.MaxCap(); i++ {
			parts = append(parts, group(i))
		}
		out = "[" + strings.Join(parts, ", ") + "]"
	}
	return expr{sql: "(CASE WHEN " + found.sql + " THEN " + out + " END)", typed: result}
}

// oneWay tells a pattern of which PostgreSQL, which takes the longest match, and RE2, which takes the first that it finds when
// each repetition takes what it can, find the same: single characters, repeated or not, and groups of them that are not.
func oneWay(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpConcat, syntax.OpCapture:
		return !slices.ContainsFunc(re.Sub, func(part *syntax.Regexp) bool { return !oneWay(part) })
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return re.Flags&syntax.NonGreedy == 0 && oneCharacter(re.Sub[0])
	case syntax.OpAlternate: // of words none of which begins another
		first := map[rune]bool{}
		for _, word := range re.Sub {
			if word.Op != syntax.OpLiteral || first[word.Rune[0]] {
				return false
			}
			first[word.Rune[0]] = true
		}
		return true
	case syntax.OpLiteral, syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine:
		return true
	}
	return oneCharacter(re)
}

func oneCharacter(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune) == 1
	case syntax.OpCharClass, syntax.OpAnyChar:
		return true
	}
	return false
}

// constantText is the text of a constant pattern, typed or not: what came as a parameter has been given a type.
func constantText(e expr) string {
	if e.literal != nil {
		return *e.literal
	}
	if inner, ok := strings.CutPrefix(e.sql, "CAST('"); ok && textLike(e.oid) && e.oid != typeBpchar {
		if inner, ok = strings.CutSuffix(inner, "' AS VARCHAR)"); ok {
			if text := strings.ReplaceAll(inner, "''", "'"); quoted(text) == e.sql {
				return text
			}
		}
	}
	cannot("a regular expression that is not a constant")
	return ""
}

// constantSQL tells a text that is written in the query.
func constantSQL(e expr) bool {
	inner, ok := strings.CutPrefix(e.sql, "CAST('")
	if ok {
		inner, ok = strings.CutSuffix(inner, "' AS VARCHAR)")
	}
	return ok && quoted(strings.ReplaceAll(inner, "''", "'")) == e.sql || isNull(e)
}

// isNull tells the NULL of no type, or of a text's.
func isNull(e expr) bool { return e.null || textLike(e.oid) && e.sql == "CAST(NULL AS VARCHAR)" }

// plainClass is a class of characters that stand for themselves or for a range.
var plainClass = regexp.MustCompile(`\[\^?[^\[\]\\]+\]`)

// matches binds the operators of regular expressions, for constant patterns that mean the same in RE2.
func (b *binder) matches(op string, l, r expr) expr {
	if isNull(r) {
		return expr{sql: "CAST(NULL AS BOOLEAN)", typed: boolType}
	}
	constant := constantText(r)
	if strings.Contains(constant, "[[") || strings.Contains(strings.ToLower(constant), `\w`) { // what is a letter is the locale's to say
		cannot("this regular expression")
	}
	if foreignRegexp.MatchString(plainClass.ReplaceAllString(constant, "x")) {
		cannot("this regular expression")
	}
	if _, err := regexp.Compile(constant); err != nil {
		wrong("2201B", "invalid regular expression", 0)
	}
	flags := "s"
	if strings.HasSuffix(op, "*") {
		flags = "si"
	}
	return truth("regexp_matches("+b.text(l).sql+", "+dialect.QuoteText(constant)+", '"+flags+"')", strings.HasPrefix(op, "!"))
}
