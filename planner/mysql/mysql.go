// Package mysql reads SELECTs that were written for MySQL and turns them into trees of PostgreSQL's grammar, which then
// go the way of every other statement. MySQL's grammar is github.com/xwb1989/sqlparser's; since that parses some texts
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

// Translate reads one SELECT without its semicolon and returns it as a tree of PostgreSQL's grammar. Names are looked
// up in the dataset, which may be nil.
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

// syntaxError relays where the parser stopped, or names what its grammar lacks: WITH queries, window functions, XOR,
// the function INTERVAL, a comparison of a comparison.
func syntaxError(err error, text string, tokens []token) *Refusal {
	for _, t := range tokens {
		if t.is("over") || t.is("with") || t.is("lateral") || t.is("window") {
			return refuse(Construct, t.from, strings.ToUpper(t.value), "The grammar for MySQL has no WITH queries and no window functions: write the statement for PostgreSQL, and RESET dp.dialect.")
		}
	}
	for i, t := range tokens {
		if t.is("xor") {
			return refuse(Construct, t.from, "XOR", "a XOR b is (a AND NOT b) OR (b AND NOT a).")
		}
		if t.is("interval") && i+1 < len(tokens) && tokens[i+1].sign("(") {
			return refuse(Construct, t.from, "the function INTERVAL", "Write it as CASE WHEN n < 1 THEN 0 WHEN n < 10 THEN 1 ELSE 2 END.")
		}
	}
	if at := comparedAgain(tokens); at >= 0 {
		return refuse(Construct, at, "a comparison of a comparison", "Join comparisons by AND, or compare the number that one is: CASE WHEN a = b THEN 1 ELSE 0 END = c.")
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

// comparisons are the operators that compare, and operandEnds the words behind which another operand begins.
var (
	comparisons = set("= <=> < > <= >= <> !=")
	operandEnds = set("select from where having on and or not when then else end case by limit as union")
)

// comparedAgain is where the outcome of a comparison is compared, as in 3 = 3 = 1; −1: nowhere.
func comparedAgain(tokens []token) int {
	type level struct{ compared, operand bool } // since the last connective: there is a comparison, and an operand behind it
	open := []level{{}}
	for _, t := range tokens {
		here := &open[len(open)-1]
		switch {
		case t.sign("("):
			here.operand = here.compared
			open = append(open, level{})
		case t.sign(")") && len(open) > 1:
			open = open[:len(open)-1]
		case t.kind == tokenSign && comparisons[t.value]:
			if here.operand {
				return t.from
			}
			here.compared = true
		case t.sign(","), t.sign("&&"), t.sign("||"), t.kind == tokenWord && operandEnds[strings.ToLower(t.value)]:
			*here = level{}
		default:
			here.operand = here.compared
		}
	}
	return -1
}
