package mysql

import (
	"regexp"
	"slices"
	"strings"
)

// lexical matches a token of a view's text as the server prints it: a name in quotes, with the blanks before it, a
// text, a word, or a sign.
var lexical = regexp.MustCompile("`(?:[^`]|``)*`|'(?:[^'\\\\]|''|\\\\.)*'|\"(?:[^\"\\\\]|\"\"|\\\\.)*\"|[\\pL\\pN_$@]+|\\S")

// besides are the words that follow FROM and JOIN, or a parenthesis after these, and are no relation of a schema; a
// function is none either, whose name is followed by a parenthesis: JSON_TABLE, and what EXTRACT and TRIM are from.
var besides = []string{"select", "with", "values", "dual", "lateral"}

// ViewReads lists the relations that a view reads, each as its schema and name in small letters, by the text that the
// server keeps of it:
//
//	select `p`.`id` AS `id` from (`shop`.`people` `p` join `shop`.`visits` on(…))     shop.people, shop.visits
//
// There each relation is in full behind FROM or JOIN, perhaps behind parentheses; commas between relations are
// printed as JOIN. whole is false where it may read others: it calls a stored function, or names what is none of these.
func ViewReads(text string) (relations []string, whole bool) {
	tokens := lexical.FindAllString(text, -1)
	at := func(i int) string {
		if i < 0 || i >= len(tokens) {
			return ""
		}
		return tokens[i]
	}
	quoted := func(i int) bool { return strings.HasPrefix(at(i), "`") }
	qualified := func(i int) bool { return quoted(i) && at(i+1) == "." && quoted(i+2) }
	name := func(i int) string {
		return strings.ToLower(strings.ReplaceAll(strings.Trim(at(i), "`"), "``", "`"))
	}
	whole = len(tokens) > 0
	with := slices.ContainsFunc(tokens, func(token string) bool { return strings.EqualFold(token, "with") })
	for i := range tokens {
		if qualified(i) && at(i+3) == "(" && at(i-1) != "." {
			whole = false
		}
		if !slices.Contains([]string{"from", "join", "straight_join"}, strings.ToLower(at(i))) {
			continue
		}
		next := i + 1
		for at(next) == "(" {
			next++
		}
		switch {
		case qualified(next):
			relations = append(relations, name(next)+"."+name(next+2))
		case quoted(next):
			whole = whole && with // it is what WITH calls so, or a column of what TRIM and EXTRACT are from
		case slices.Contains(besides, strings.ToLower(at(next))), at(next+1) == "(", strings.HasSuffix(at(next), "'"):
		default:
			whole = false
		}
	}
	return relations, whole
}
