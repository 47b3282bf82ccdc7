// Package mysql reads SELECTs that were written for MySQL and turns them into trees of PostgreSQL's grammar, which then
// go the way of every other statement. MySQL's grammar is github.com/sqlc-dev/marino's, TiDB's parser without its table
// generator (ADR 224). It is shown the tokens of a lexer of our own, after what it would read by trying has been
// bounded, and the names and constants of what it returns are held against those tokens. Each node is translated by an
// allow-list. Where the two databases mean different things (division, collation, NULL's place in an order, stddev,
// least) the tree says what MySQL means; where it cannot, the statement is refused. The package is pure and sees the
// policy alone.
package mysql

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/sqlc-dev/marino/ast"
	"github.com/sqlc-dev/marino/parser"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

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
	t := &translator{text: text, dataset: d}
	query, _ := t.query(statement, nil, true)
	if written(query.ProtoReflect(), map[proto.Message]int{}) > maxNodes {
		return nil, tooDeep(-1)
	}
	return statementNode(query), nil
}

// maxNodes bounds the nodes of a translation as it is printed. Some of MySQL's functions repeat an operand in
// PostgreSQL's words, so that each level of nesting doubles it.
const maxNodes = 50_000

// written returns how many messages a tree is printed from, or more than maxNodes: one that several nodes share is
// counted once for each of them.
func written(m protoreflect.Message, known map[proto.Message]int) int {
	key := m.Interface()
	if n, ok := known[key]; ok {
		return n
	}
	n := 1
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				n += written(v.List().Get(i).Message(), known)
			}
		default:
			n += written(v.Message(), known)
		}
		return n <= maxNodes
	})
	known[key] = min(n, maxNodes+1)
	return known[key]
}

// parse shows the parser the tokens of a text in their places, and holds the names and constants of what it returns
// against them.
func parse(text string, tokens []token) (ast.Node, *Refusal) {
	if refusal := tried(tokens); refusal != nil {
		return nil, refusal
	}
	statements, _, err := parser.New().ParseSQL(shownTo(text, tokens))
	if err != nil {
		return nil, syntaxError(err)
	}
	if len(statements) != 1 {
		return nil, refuse(Syntax, -1, "syntax error at or near \";\"", "")
	}
	switch n := statements[0].(type) {
	case *ast.SelectStmt, *ast.SetOprStmt:
		if lost := missing(tokens, n); lost != "" {
			return nil, refuse(Construct, -1, "\""+lost+"\" in this place", "MySQL's grammar, as far as it is read here, loses it: "+
				"leave it out, or write the statement for PostgreSQL and RESET dp.dialect.")
		}
		return n, nil
	}
	return nil, refuse(Construct, 0, "this statement", "Only SELECT is read in MySQL's dialect.")
}

// syntaxError relays where the parser stopped.
func syntaxError(err error) *Refusal {
	_, near, _ := strings.Cut(err.Error(), ` near "`)
	near, _, _ = strings.Cut(strings.TrimSpace(near), " ")
	near, _, _ = strings.Cut(near, `"`)
	if near == "" {
		return refuse(Syntax, -1, "syntax error at the end", "")
	}
	return refuse(Syntax, -1, fmt.Sprintf("syntax error at or near \"%s\"", near), "")
}
