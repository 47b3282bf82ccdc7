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
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/sqlc-dev/marino/ast"
	"github.com/sqlc-dev/marino/parser"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/policy"
)

// tokenKind is what the reading of MySQL's text needs to know of a token.
type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenName   // `name`
	tokenString // 'text' or "text", its escapes undone
	tokenNumber
	tokenParam // $1
	tokenSign  // an operator or a punctuation mark
)

// token is one lexical element: text[from:to]. value is what it means: the inside of a string or name, a word as
// written.
type token struct {
	kind     tokenKind
	value    string
	from, to int
}

func (t token) is(word string) bool { return t.kind == tokenWord && strings.EqualFold(t.value, word) }

func (t token) sign(s string) bool { return t.kind == tokenSign && t.value == s }

// lexer walks MySQL's lexical structure under its default modes: double quotes make strings, backslashes escape. What
// the grammar behind it would take for something else is refused here.
type lexer struct {
	text    string
	at      int
	printed bool // the text is the parser's own, in which a parameter is ?
}

// signs are the operators and marks that are known, the longer ones first.
var signs = []string{"<=>", "<<", ">>", "<=", ">=", "<>", "!=", "||", "&&", "->", ":=", "(", ")", ",", ";", ".", "+", "-", "*", "/", "%", "=", "<", ">", "!", "~", "^", "&", "|"}

func (l *lexer) next() (token, *Refusal) {
	if refusal := l.skip(); refusal != nil {
		return token{}, refusal
	}
	from := l.at
	if from >= len(l.text) {
		return token{from: from, to: from}, nil
	}
	t := token{from: from}
	var refusal *Refusal
	switch c := l.text[from]; {
	case c == '\'' || c == '"':
		t.kind = tokenString
		t.value, refusal = l.quoted(c)
	case c == '`':
		t.kind = tokenName
		t.value, refusal = l.name()
	case isDigit(c) || c == '.' && isDigit(l.peek(1)):
		t.kind = tokenNumber
		t.value, refusal = l.number()
	case c == '$' && isDigit(l.peek(1)):
		l.at++
		l.digits()
		t.kind, t.value = tokenParam, l.text[from+1:l.at]
	case c == '?' && l.printed:
		l.at++
		t.kind = tokenParam
	case isWordStart(c):
		for isWordStart(l.peek(0)) || isDigit(l.peek(0)) {
			l.at++
		}
		t.kind, t.value = tokenWord, l.text[from:l.at]
	default:
		t.kind = tokenSign
		t.value, refusal = l.sign()
	}
	t.to = l.at
	return t, refusal
}

// skip passes white space and comments. A comment that MySQL runs is refused.
func (l *lexer) skip() *Refusal {
	for l.at < len(l.text) {
		c := l.text[l.at]
		switch {
		case c == ' ' || c >= '\t' && c <= '\r':
			l.at++
		case c == '#', c == '-' && l.peek(1) == '-' && (l.at+2 >= len(l.text) || l.text[l.at+2] <= ' '):
			if end := strings.IndexByte(l.text[l.at:], '\n'); end >= 0 {
				l.at += end
			} else {
				l.at = len(l.text)
			}
		case c == '/' && l.peek(1) == '*':
			if l.peek(2) == '!' || l.peek(2) == 'M' && l.peek(3) == '!' {
				return refuse(Construct, l.at, "a comment that MySQL runs (/*! … */)", "Write its inside as it is, or leave it out.")
			}
			end := strings.Index(l.text[l.at+2:], "*/")
			if end < 0 {
				return refuse(Syntax, l.at, "a comment does not end", "")
			}
			l.at += end + 4
		default:
			return nil
		}
	}
	return nil
}

func (l *lexer) peek(n int) byte {
	if l.at+n < len(l.text) {
		return l.text[l.at+n]
	}
	return 0
}

// quoted reads a string and undoes its escapes. \% and \_ keep their backslash, as in MySQL.
func (l *lexer) quoted(quote byte) (string, *Refusal) {
	from := l.at
	var b strings.Builder
	for l.at++; l.at < len(l.text); l.at++ {
		c := l.text[l.at]
		switch {
		case c == quote && l.peek(1) == quote:
			l.at++
		case c == quote:
			l.at++
			if strings.IndexByte(b.String(), 0) >= 0 {
				return "", refuse(Construct, from, `a NUL in a string`, "No text here holds one: leave it out.")
			}
			return b.String(), nil
		case c == '\\' && l.at+1 < len(l.text):
			l.at++
			switch e := l.text[l.at]; e {
			case '0', 'b', 'n', 'r', 't', 'Z':
				c = map[byte]byte{'0': 0, 'b': '\b', 'n': '\n', 'r': '\r', 't': '\t', 'Z': 26}[e]
			case '%', '_':
				b.WriteByte('\\')
				c = e
			default:
				c = e
			}
		}
		b.WriteByte(c)
	}
	return "", refuse(Syntax, from, "a string does not end", "")
}

// name reads a name in backquotes; a doubled one means itself.
func (l *lexer) name() (string, *Refusal) {
	from := l.at
	var b strings.Builder
	for l.at++; l.at < len(l.text); l.at++ {
		c := l.text[l.at]
		if c == '`' {
			if l.peek(1) != '`' {
				l.at++
				if b.Len() == 0 {
					return "", refuse(Syntax, from, "a name is empty", "")
				}
				return b.String(), nil
			}
			l.at++
		}
		b.WriteByte(c)
	}
	return "", refuse(Syntax, from, "a name in backquotes does not end", "")
}

// digits passes those that follow.
func (l *lexer) digits() {
	for isDigit(l.peek(0)) {
		l.at++
	}
}

// number reads digits[.digits][e[±]digits]. What runs into letters is a name in MySQL, or an error.
func (l *lexer) number() (string, *Refusal) {
	from := l.at
	l.digits()
	if l.peek(0) == '.' {
		l.at++
		l.digits()
	}
	if c := l.peek(0); c == 'e' || c == 'E' {
		sign := 0
		if s := l.peek(1); s == '+' || s == '-' {
			sign = 1
		}
		if isDigit(l.peek(1 + sign)) {
			l.at += 1 + sign
			l.digits()
		}
	}
	if c := l.peek(0); l.at < len(l.text) && (isWordStart(c) || c == '.' || c == '$') {
		return "", refuse(Construct, from, "a number that runs into a name", "Hexadecimal and bit literals are not read; put names that begin with digits in backquotes.")
	}
	if l.at-from > maxPrecision+1 {
		return "", refuse(Construct, from, "a number of so many digits", "MySQL keeps 65 digits.")
	}
	return l.text[from:l.at], nil
}

func (l *lexer) sign() (string, *Refusal) {
	for _, s := range signs {
		if !strings.HasPrefix(l.text[l.at:], s) {
			continue
		}
		if s == "->" || s == ":=" {
			break
		}
		l.at += len(s)
		return s, nil
	}
	switch l.text[l.at] {
	case '@':
		return "", refuse(Construct, l.at, "a variable of MySQL's (@ and @@)", "SHOW and SET read and set this session's variables.")
	case '?':
		return "", refuse(Construct, l.at, "a parameter written ?", "The protocol's parameters are written $1, $2, ….")
	}
	_, size := utf8.DecodeRuneInString(l.text[l.at:])
	what := l.text[l.at : l.at+size]
	if strings.HasPrefix(l.text[l.at:], "->") {
		what = "->"
	}
	return "", refuse(Syntax, l.at, "\""+what+"\" is not expected", "")
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}

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
