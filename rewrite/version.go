package rewrite

import (
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Reading is the text of a query in which each table is read as `as` says of it and of its name. Of
// `spark_catalog`.`shop`.`visits` AS t it makes
//
//	`spark_catalog`.`shop`.`visits` VERSION AS OF 42 AS t
//
// where that is what `as` says; nothing else of the text changes. It is for the dialect Spark.
//
// Claim. What is replaced are the names of tables, each of them, and nothing else. Proof. A value of the policy or of
// the statement stands in such a text as a name in backquotes, within which a backquote stands twice, as hexadecimal
// digits, or as a checked literal; the last two have no backquote (dialect/spark.go). So the first backquote begins a
// name, which ends at the first one that is not one of two, and so on behind it: names are read as Spark's lexer reads
// them. Relations alone are three names with points between them that begin where no name is before them (measure.go).
func (q Query) Reading(as func(t *policy.Table, name string) string) string {
	tables := map[string]*policy.Table{}
	for _, t := range q.Tables() {
		tables[Named(t, q.Dialect())] = t
	}
	var b strings.Builder
	text := q.SQL()
	for {
		at := strings.IndexByte(text, '`')
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := at + names(text[at:])
		b.WriteString(text[:at])
		if t := tables[text[at:end]]; t != nil {
			b.WriteString(as(t, text[at:end]))
		} else {
			b.WriteString(text[at:end])
		}
		text = text[end:]
	}
}

// names is how long the names in backquotes are with which a text begins, with the points between them.
func names(text string) int {
	for at := 1; at < len(text); at++ {
		switch {
		case text[at] != '`':
		case strings.HasPrefix(text[at+1:], "`"): // it stands for one
			at++
		case strings.HasPrefix(text[at+1:], ".`"):
			at += 2
		default:
			return at + 1
		}
	}
	return len(text)
}

// Named is a table's relation as queries name it.
func Named(t *policy.Table, d dialect.Dialect) string {
	schema, name := Relation(t.Source, d)
	return dialect.Fill(d.Relation, d.QuoteAs(schema), d.QuoteAs(name))
}
