package mysql

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sqlc-dev/marino/ast"
	"github.com/sqlc-dev/marino/format"
)

// Limits on one statement. The tree that comes out is read by C code, so its depth is bounded by that of the text.
const (
	maxTokens = 10_000
	maxDepth  = 100 // nesting and chains of the parser's tree; a level makes at most four of PostgreSQL's
)

// Piece is one statement of a text.
type Piece struct {
	Text string
	From int // byte offset in the whole text
}

// Split cuts a text at the semicolons of MySQL's lexical structure. A piece begins with its first token; what comes
// after a place that cannot be read is one piece.
func Split(text string) []Piece {
	var out []Piece
	lex := lexer{text: text}
	from := -1
	for {
		at := lex.at
		t, refusal := lex.next()
		end := refusal != nil || t.kind == tokenEnd
		switch {
		case end || t.sign(";"):
			to := t.from
			if end {
				to = len(text)
			}
			if refusal != nil && from < 0 {
				from = at + len(text[at:]) - len(strings.TrimLeft(text[at:], " \t\r\n\f\v"))
			}
			if from >= 0 {
				out = append(out, Piece{strings.TrimSpace(text[from:to]), from})
			}
			if from = -1; end {
				return out
			}
		case from < 0:
			from = t.from
		}
	}
}

// First is the first word of a statement in lower case, or its first mark; at is its offset.
func First(text string) (word string, at int) {
	lex := lexer{text: text}
	t, refusal := lex.next()
	if refusal != nil {
		return "", 0
	}
	return strings.ToLower(t.value), t.from
}

// Closing finds the parenthesis that closes the one at a place: the end of the text where none does.
func Closing(text string, open int) int {
	lex := lexer{text: text, at: open}
	for depth := 0; ; {
		t, refusal := lex.next()
		switch {
		case refusal != nil || t.kind == tokenEnd:
			return len(text)
		case t.sign("("):
			depth++
		case t.sign(")"):
			if depth--; depth == 0 {
				return t.from
			}
		}
	}
}

// Query finds where the query that a statement holds begins, behind the options of an EXPLAIN and their like; −1 where
// it holds none.
func Query(text string) int {
	lex := lexer{text: text}
	depth := 0
	for {
		t, refusal := lex.next()
		switch {
		case refusal != nil || t.kind == tokenEnd:
			return -1
		case t.sign("("):
			if after := lex; depth == 0 {
				if n, r := after.next(); r == nil && (n.is("select") || n.is("with") || n.sign("(")) {
					return t.from
				}
			}
			depth++
		case t.sign(")"):
			depth--
		case depth == 0 && (t.is("select") || t.is("with") && !holds(lex)):
			return t.from
		}
	}
}

// holds reports whether HOLD comes next, as in DECLARE c CURSOR WITH HOLD FOR SELECT 1.
func holds(lex lexer) bool {
	next, refusal := lex.next()
	return refusal == nil && next.is("hold")
}

// scan reads the tokens of one statement.
func scan(text string) ([]token, *Refusal) {
	if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
		return nil, refuse(Syntax, -1, "the statement is not valid UTF-8 text", "")
	}
	var tokens []token
	lex := lexer{text: text}
	for depth := 0; ; {
		t, refusal := lex.next()
		switch {
		case refusal != nil:
			return nil, refusal
		case t.kind == tokenEnd:
			return tokens, nil
		case len(tokens) >= maxTokens:
			return nil, refuse(TooDeep, t.from, "a statement of more than "+strconv.Itoa(maxTokens)+" tokens", "Shorten lists of values, or split the statement.")
		case t.sign("("):
			if depth++; depth > maxDepth {
				return nil, tooDeep(t.from)
			}
		case t.sign(")"):
			depth--
		}
		tokens = append(tokens, t)
	}
}

func tooDeep(at int) *Refusal {
	return refuse(TooDeep, at, "a statement nested or chained deeper than "+strconv.Itoa(maxDepth)+" levels", "Write it with fewer parentheses, sub-queries or operators in a row.")
}

// maxTried bounds how deep sub-queries in several parentheses are nested: the parser reads each of them once for every
// parenthesis.
const maxTried = 5

// tried refuses what the parser reads by trying one production and then another, where nesting would double its work
// with each level. INTERVAL must be followed by a constant and its unit, so that the first production it tries is the
// one. It refuses a RIGHT JOIN in parentheses too, which the parser may turn round, changing the order of *.
func tried(tokens []token) *Refusal {
	type bracket struct{ query, doubled bool }
	var open []bracket
	depth := 0
	peek := func(i int) token {
		if i < len(tokens) {
			return tokens[i]
		}
		return token{}
	}
	for i, t := range tokens {
		next := peek(i + 1)
		switch {
		case t.is("interval"):
			if next.sign("-") || next.sign("+") {
				i++
			}
			k, unit := peek(i+1).kind, peek(i+2)
			_, known := intervals[strings.ToLower(unit.value)]
			if k != tokenNumber && k != tokenString && k != tokenParam || unit.kind != tokenWord || !known {
				return refuse(Construct, t.from, "INTERVAL before what is no constant with a unit",
					"Write INTERVAL 7 DAY, with SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER or YEAR; for the function INTERVAL, CASE WHEN n < 1 THEN 0 WHEN n < 10 THEN 1 ELSE 2 END.")
			}
		case t.is("json_value") && next.sign("("):
			return refuse(Construct, t.from, "JSON_VALUE", "Columns of JSON are not read.")
		case t.is("right") && !next.sign("(") && len(open) > 0 && !open[len(open)-1].query:
			return refuse(Construct, t.from, "RIGHT JOIN in parentheses", "Write LEFT JOIN with the tables changed round.")
		case t.sign("("):
			inner := i
			for peek(inner).sign("(") {
				inner++
			}
			b := bracket{query: next.is("select") || next.is("with")}
			if b.doubled = inner > i+1 && (peek(inner).is("select") || peek(inner).is("with")); b.doubled {
				if depth++; depth > maxTried {
					return refuse(TooDeep, t.from, "sub-queries nested in several parentheses each",
						"Write each in one pair of parentheses.")
				}
			}
			open = append(open, b)
		case t.sign(")") && len(open) > 0:
			if open[len(open)-1].doubled {
				depth--
			}
			open = open[:len(open)-1]
		}
	}
	return nil
}

// shownTo is the text that the parser is shown: every token in its place, spaces for comments, and ? for parameters.
func shownTo(text string, tokens []token) string {
	out := []byte(strings.Repeat(" ", len(text)))
	for _, t := range tokens {
		if t.kind == tokenParam {
			out[t.from] = '?'
		} else {
			copy(out[t.from:], text[t.from:t.to])
		}
	}
	return string(out)
}

// noise are the words that the parser's printer adds or leaves out, all of which are known to change nothing or are
// checked as nodes.
var noise = set(`as asc inner outer cross distinct distinctrow offset limit desc null unknown straight_join join
	union all select from where group by having order and or not in is like between regexp rlike div mod on using case
	when then else end exists interval dual left right sql_no_cache sql_cache index with rollup integer for update lock
	share mode character`)

// content returns a name or constant as it is compared, and whether the token is one.
func content(t token) (token, bool) {
	word := strings.ToLower(t.value)
	switch t.kind {
	case tokenWord, tokenName:
		word = cmp.Or(populations[word], word)
		return token{kind: tokenWord, value: word}, t.kind == tokenName || !noise[word]
	case tokenNumber:
		f, _ := strconv.ParseFloat(t.value, 64)
		return token{kind: tokenNumber, value: strconv.FormatFloat(f, 'g', -1, 64)}, true
	case tokenString:
		return token{kind: tokenString, value: t.value}, true
	case tokenParam:
		return token{kind: tokenParam}, true
	}
	return token{}, false
}

// missing compares the names and constants of a text with those of the parser's tree, and returns one that was lost.
func missing(tokens []token, tree ast.Node) string {
	var b strings.Builder
	flags := format.DefaultRestoreFlags | format.RestoreStringEscapeBackslash | format.RestoreStringWithoutCharset
	if err := tree.Restore(format.NewRestoreCtx(flags, &b)); err != nil {
		return "what MySQL's grammar does not print"
	}
	count := map[token]int{}
	for lex := (lexer{text: b.String(), printed: true}); ; {
		t, refusal := lex.next()
		if refusal != nil || t.kind == tokenEnd {
			break
		}
		if c, ok := content(t); ok {
			count[c]++
		}
	}
	for _, t := range tokens {
		c, ok := content(t)
		if t.kind == tokenString && count[c] == 0 { // an alias, which is printed as a name: COUNT(*) 'all of them'
			c = token{kind: tokenWord, value: strings.ToLower(t.value)}
		}
		if ok {
			if count[c]--; count[c] < 0 {
				return t.value
			}
		}
	}
	return ""
}

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}
