package parse

import (
	"strings"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/planner/mysql"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// tokenKind is what the limits need to know of a token.
type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenQuoted // "name"
	tokenLiteral
	tokenOperator
	tokenOpen    // ( or [
	tokenClose   // ) or ]
	tokenComma   // ,
	tokenSemi    // ;
	tokenOther   // . : and whatever else is a token alone
	tokenInvalid // an unterminated string or comment: the grammar will say so
)

// token is one lexical element: text[from:to].
type token struct {
	kind     tokenKind
	from, to int
}

// lexer walks PostgreSQL's lexical structure (standard_conforming_strings on). It exists because the grammar's own
// scanner is C code that must not see text of unbounded size or depth; a test holds the two token counts equal.
//
// It reads each byte a bounded number of times: what looks ahead (an operator for its end, a string for its
// continuation) looks no further than the next token, or keeps what it saw.
type lexer struct {
	text  string
	at    int
	run   operatorRun
	block bool // a block comment is before the last token
}

// operatorRun is the operator characters that a token begins in: text[:end], and what of them is decided by all of
// them.
type operatorRun struct {
	end     int
	last    int  // of the characters other than + and −
	special bool // one of ~ ! @ # % ^ & | ` ?
}

func (l *lexer) next() token {
	l.block = false
	if !l.skip() {
		from := l.at
		l.at = len(l.text)
		return token{tokenInvalid, from, l.at}
	}
	from := l.at
	if from >= len(l.text) {
		return token{tokenEnd, from, from}
	}
	kind := l.scan(l.text[from])
	return token{kind, from, l.at}
}

// skip passes white space and comments; false means an unterminated comment.
func (l *lexer) skip() bool {
	for l.at < len(l.text) {
		c := l.text[l.at]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
			l.at++
		case c == '-' && l.peek(1) == '-':
			end := strings.IndexAny(l.text[l.at:], "\n\r")
			if end < 0 {
				l.at = len(l.text)
				return true
			}
			l.at += end
		case c == '/' && l.peek(1) == '*':
			if !l.comment() {
				return false
			}
		default:
			return true
		}
	}
	return true
}

// comment passes a nested block comment.
func (l *lexer) comment() bool {
	from, depth := l.at, 0
	l.block = true
	for l.at < len(l.text) {
		switch {
		case l.text[l.at] == '/' && l.peek(1) == '*':
			depth++
			l.at += 2
		case l.text[l.at] == '*' && l.peek(1) == '/':
			depth--
			l.at += 2
			if depth == 0 {
				return true
			}
		default:
			l.at++
		}
	}
	l.at = from
	return false
}

func (l *lexer) peek(n int) byte {
	if l.at+n < len(l.text) {
		return l.text[l.at+n]
	}
	return 0
}

// punctuation are the bytes that are a token each.
var punctuation = [256]tokenKind{'(': tokenOpen, '[': tokenOpen, ')': tokenClose, ']': tokenClose, ',': tokenComma, ';': tokenSemi}

func (l *lexer) scan(c byte) tokenKind {
	switch {
	case c == '\'':
		return l.quoted('\'', false)
	case c == '"':
		l.quoted('"', false)
		return tokenQuoted
	case c == '$':
		return l.dollar()
	case IsWordStart(c):
		return l.word(c)
	case isDigit(c) || c == '.' && isDigit(l.peek(1)):
		return l.number()
	case punctuation[c] != tokenEnd:
		l.at++
		return punctuation[c]
	case c == ':' && l.peek(1) == ':':
		l.at += 2
		return tokenOperator
	case strings.IndexByte(operatorBytes, c) >= 0:
		return l.operator()
	case c == ':' && l.peek(1) == '=' || c == '.' && l.peek(1) == '.':
		l.at += 2
		return tokenOther
	}
	l.at++
	return tokenOther
}

// word scans an identifier or keyword, or a string or name with a letter before its quote.
func (l *lexer) word(c byte) tokenKind {
	next := l.peek(1)
	switch {
	case (c == 'e' || c == 'E') && next == '\'':
		l.at++
		return l.quoted('\'', true)
	case strings.IndexByte("bBxX", c) >= 0 && next == '\'':
		l.at++
		return l.bits()
	case (c == 'u' || c == 'U') && next == '&' && (l.peek(2) == '\'' || l.peek(2) == '"'):
		l.at += 2
		if l.quoted(l.text[l.at], false); l.text[l.at-1] == '"' {
			return tokenQuoted
		}
		return tokenLiteral
	}
	for l.at < len(l.text) && isIdentPart(l.text[l.at]) {
		l.at++
	}
	return tokenWord
}

// quoted scans from a quote to its end; a doubled quote means itself. Two 'strings' with a line break between them
// are one constant.
func (l *lexer) quoted(quote byte, escapes bool) tokenKind {
	l.at++
	for l.at < len(l.text) {
		switch c := l.text[l.at]; {
		case c == '\\' && escapes:
			l.at = min(l.at+2, len(l.text))
		case c != quote:
			l.at++
		case l.peek(1) == quote:
			l.at += 2
		default:
			l.at++
			if quote == '\'' && l.continued() {
				continue
			}
			return tokenLiteral
		}
	}
	return tokenInvalid
}

// bits scans B'…' or X'…', in which a doubled quote is an end and a new beginning.
func (l *lexer) bits() tokenKind {
	l.at++
	for {
		end := strings.IndexByte(l.text[l.at:], '\'')
		if end < 0 {
			l.at = len(l.text)
			return tokenInvalid
		}
		if l.at += end + 1; !l.continued() {
			return tokenLiteral
		}
	}
}

// continued reports whether a string goes on after white space with a line break, and passes on to its inside.
func (l *lexer) continued() bool {
	at, broken := l.at, false
	for at < len(l.text) {
		c := l.text[at]
		if c == '\n' || c == '\r' {
			broken = true
		} else if c == '-' && at+1 < len(l.text) && l.text[at+1] == '-' {
			end := strings.IndexAny(l.text[at:], "\n\r")
			if end < 0 {
				return false
			}
			at += end
			continue
		} else if c != ' ' && c != '\t' && c != '\f' && c != '\v' {
			break
		}
		at++
	}
	if broken && at < len(l.text) && l.text[at] == '\'' {
		l.at = at + 1
		return true
	}
	return false
}

// dollar scans $1, $tag$…$tag$ or a lone dollar.
func (l *lexer) dollar() tokenKind {
	at := l.at + 1
	if at < len(l.text) && isDigit(l.text[at]) {
		for at < len(l.text) && isDigit(l.text[at]) {
			at++
		}
		l.at = at
		return tokenLiteral
	}
	for at < len(l.text) && isIdentPart(l.text[at]) && l.text[at] != '$' && !(at == l.at+1 && isDigit(l.text[at])) {
		at++
	}
	if at >= len(l.text) || l.text[at] != '$' {
		l.at++
		return tokenOther
	}
	tag := l.text[l.at : at+1]
	end := strings.Index(l.text[at+1:], tag)
	if end < 0 {
		l.at = len(l.text)
		return tokenInvalid
	}
	l.at = at + 1 + end + len(tag)
	return tokenLiteral
}

func (l *lexer) number() tokenKind {
	if l.text[l.at] == '0' && strings.IndexByte("xXoObB", l.peek(1)) >= 0 && l.peek(1) != 0 {
		l.at += 2
		for l.at < len(l.text) && (isIdentPart(l.text[l.at]) && l.text[l.at] != '$') {
			l.at++
		}
		return tokenLiteral
	}
	l.digits()
	if l.peek(0) == '.' && l.peek(1) != '.' {
		l.at++
		l.digits()
	}
	if c := l.peek(0); c == 'e' || c == 'E' {
		n := 1
		if s := l.peek(1); s == '+' || s == '-' {
			n = 2
		}
		if isDigit(l.peek(n)) {
			l.at += n
			l.digits()
		}
	}
	return tokenLiteral
}

func (l *lexer) digits() {
	for l.at < len(l.text) && (isDigit(l.text[l.at]) || l.text[l.at] == '_' && isDigit(l.peek(1))) {
		l.at++
	}
}

const operatorBytes = "+-*/<>=~!@#%^&|`?"

// operator scans the longest operator, as PostgreSQL does: it ends before a comment, and a trailing + or − is given
// back unless the operator has one of ~ ! @ # % ^ & | ` ?. So 'a * - - 1' written without spaces is three operators in
// one run.
func (l *lexer) operator() tokenKind {
	if l.at >= l.run.end {
		l.run = operatorRun{end: l.at, last: -1}
		for ; l.run.end < len(l.text); l.run.end++ {
			rest := l.text[l.run.end:]
			if strings.IndexByte(operatorBytes, rest[0]) < 0 || l.run.end > l.at && (strings.HasPrefix(rest, "--") || strings.HasPrefix(rest, "/*")) {
				break
			}
			if rest[0] != '+' && rest[0] != '-' {
				l.run.last = l.run.end
			}
			l.run.special = l.run.special || strings.IndexByte("~!@#%^&|`?", rest[0]) >= 0
		}
	}
	if l.run.special {
		l.at = l.run.end
	} else {
		l.at = max(l.at, l.run.last) + 1
	}
	return tokenOperator
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// IsWordStart reports whether a byte begins a word: a letter, _, or part of what is not ASCII.
func IsWordStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}

func isIdentPart(c byte) bool { return IsWordStart(c) || isDigit(c) || c == '$' }

// Dialect is the SQL that a text is written in.
type Dialect uint8

// The dialects. The zero value is PostgreSQL's, as everywhere else.
const (
	PostgreSQL Dialect = iota
	MySQL
)

// Dialects are the names of the dialects in settings and flags.
var Dialects = []string{"postgres", "mysql"}

func (d Dialect) String() string { return Dialects[d] }

// ParseDialect reads the name of a dialect; PostgreSQL's is what any other text names.
func ParseDialect(name string) Dialect {
	if strings.EqualFold(name, Dialects[MySQL]) {
		return MySQL
	}
	return PostgreSQL
}

// Piece is one statement of a text, without its semicolon.
type Piece = mysql.Piece

// Split cuts a text into statements by the dialect's lexical structure, without parsing them. Pieces without a token
// are left out. What cannot be read is part of the last piece.
func Split(text string, d Dialect) []Piece {
	if d == MySQL {
		return mysql.Split(text)
	}
	var out []Piece
	lex, from := lexer{text: text}, -1
	for {
		t := lex.next()
		switch {
		case t.kind == tokenInvalid || t.kind == tokenEnd:
			if t.kind == tokenInvalid && from < 0 {
				from = t.from
			}
			if from >= 0 {
				out = append(out, Piece{Text: strings.TrimSpace(text[from:]), From: from})
			}
			return out
		case t.kind == tokenSemi:
			if from >= 0 {
				out = append(out, Piece{Text: strings.TrimSpace(text[from:t.from]), From: from})
			}
			from = -1
		case from < 0:
			from = t.from
		}
	}
}

// ParseAs splits and parses the text of one message in a dialect. Names in MySQL's are looked up in the dataset, which
// may be nil.
func ParseAs(text string, dialect Dialect, d *policy.Dataset) ([]Statement, *refuse.Refusal) {
	if dialect == MySQL {
		return parseMySQL(text, d)
	}
	return Parse(text)
}
