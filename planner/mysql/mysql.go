// Package mysql reads SELECTs that were written for MySQL and turns them into trees of PostgreSQL's grammar, which then go
// the way of every other statement. MySQL's grammar is github.com/xwb1989/sqlparser's; since that parses some texts
// wrongly, it is only shown a text that is written anew from the tokens of a lexer of our own, and what it returns is
// held against those tokens. Each node is translated by an allow-list. Where the two databases mean different things
// (division, collation, NULL's place in an order, stddev, least) the tree says what MySQL means; where it cannot, the
// statement is refused. The package is pure and sees the policy alone.
package mysql

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/xwb1989/sqlparser"

	"github.com/dpproxy/dpproxy/policy"
)

// Reason says why a text is not translated; the planner's catalogue has the words.
type Reason uint8

// The reasons. The zero value is invalid.
const (
	Syntax    Reason = 1 + iota // MySQL's grammar, as far as it is known here, does not have this
	Construct                   // it has, but it is not translated
	Collation                   // a comparison of texts whose outcome depends on MySQL's collation
	Untyped                     // its meaning depends on a type that is not known here
	Temporal                    // a date or time in a form that PostgreSQL reads differently or not at all
	Ambiguous                   // a name that may mean an alias or a column
	TooDeep                     // nested deeper than is translated
)

// Refusal is why a text is not translated. What and Hint quote the analyst's own text alone.
type Refusal struct {
	Reason Reason
	At     int // byte offset in the text, −1: unknown
	What   string
	Hint   string
}

func refuse(reason Reason, at int, what, hint string) *Refusal {
	return &Refusal{Reason: reason, At: at, What: what, Hint: hint}
}

// Translate reads one SELECT without its semicolon and returns it as a tree of PostgreSQL's grammar. Names are looked up
// in the dataset, which may be nil.
func Translate(text string, d *policy.Dataset) (node *pg.Node, refusal *Refusal) {
	defer func() {
		if r := recover(); r != nil {
			bail, ok := r.(*Refusal)
			if !ok { // a fault of the parser or of ours: nothing is answered
				bail = refuse(Construct, -1, fmt.Sprintf("this statement (%T while it was read)", r), "Write it more simply.")
			}
			node, refusal = nil, bail
		}
	}()
	tokens, refusal := scan(text)
	if refusal != nil {
		return nil, refusal
	}
	statement, refusal := parse(text, tokens)
	if refusal != nil {
		return nil, refusal
	}
	t := &translator{dataset: d, labels: labels(text, tokens)}
	query, _ := t.query(statement, nil, true)
	return &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: query}}, nil
}

// parse shows the parser a text made of the tokens, and holds what it returns against them.
func parse(text string, tokens []token) (sqlparser.SelectStatement, *Refusal) {
	shown, refusal := written(tokens)
	if refusal != nil {
		return nil, refusal
	}
	tokenizer := sqlparser.NewStringTokenizer(shown)
	tree, err := sqlparser.ParseNext(tokenizer)
	if err != nil {
		return nil, syntaxError(err, text, tokens)
	}
	statement, ok := tree.(sqlparser.SelectStatement)
	if !ok {
		return nil, refuse(Construct, 0, "this statement", "Only SELECT is read in MySQL's dialect.")
	}
	if lost := missing(tokens, sqlparser.String(statement)); lost != "" {
		return nil, refuse(Construct, -1, "\""+lost+"\" in this place", "MySQL's grammar, as far as it is read here, loses it: leave it out, or write the statement for PostgreSQL and RESET dp.dialect.")
	}
	return statement, nil
}

// syntaxError relays where the parser stopped. It has neither WITH queries nor window functions.
func syntaxError(err error, text string, tokens []token) *Refusal {
	for _, t := range tokens {
		if t.is("over") || t.is("with") || t.is("lateral") || t.is("window") {
			return refuse(Construct, t.from, strings.ToUpper(t.value), "The grammar for MySQL has no WITH queries and no window functions: write the statement for PostgreSQL, and RESET dp.dialect.")
		}
	}
	message := err.Error()
	near := ""
	if _, after, ok := strings.Cut(message, " near '"); ok {
		near = strings.TrimSuffix(after, "'")
	}
	what := "syntax error"
	if near != "" {
		what += fmt.Sprintf(" at or near \"%s\"", near)
	} else {
		what += " at the end"
	}
	return refuse(Syntax, -1, what, "")
}
