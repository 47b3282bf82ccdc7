package mysql

import (
	"strings"
	"unicode/utf8"
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

// name reads a name in backquotes; a doubled one stands for itself.
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
