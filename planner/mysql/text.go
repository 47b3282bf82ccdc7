package mysql

import (
	"strconv"
	"strings"
	"unicode/utf8"
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
				if n, r := after.next(); r == nil && (n.is("select") || n.sign("(")) {
					return t.from
				}
			}
			depth++
		case t.sign(")"):
			depth--
		case t.is("select") && depth == 0:
			return t.from
		}
	}
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

// rollup stands in the parser's text for WITH ROLLUP, which its grammar lacks. No name of an analyst's can hold a NUL.
const rollup = "\x00rollup"

// mid is MySQL's other name of SUBSTR and SUBSTRING, of which the parser's grammar takes a column alone.
const mid = "mid"

// beforeString are the reserved words after which a string is an operand or an alias, as the parser takes it. Behind
// any other word MySQL may see a typed literal (DATE '…', _utf8'…', N'…') where the parser sees an alias.
var beforeString = set(`and as between by case div else escape from having if in is like limit mod not on or rlike regexp select then when where
	distinct binary separator`)

var typedLiterals = map[string]string{"date": "date", "timestamp": "timestamp"}

// extractFields are the units of EXTRACT that are functions too.
var extractFields = set("year quarter month week day hour minute second")

// written is the text that the parser is shown. Comments are gone, strings and names have one form, and four forms that
// its grammar lacks are written as calls: WITH ROLLUP, typed literals, EXTRACT, SUBSTRING with its FROM and FOR.
func written(tokens []token) (string, *Refusal) {
	var b strings.Builder
	var open []bool // of each parenthesis that is open: it is SUBSTRING's
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		peek := func(n int) token {
			if i+n < len(tokens) {
				return tokens[i+n]
			}
			return token{}
		}
		switch next := peek(1); {
		case t.kind == tokenWord && next.kind == tokenString && typedLiterals[strings.ToLower(t.value)] != "":
			b.WriteString(typedLiterals[strings.ToLower(t.value)] + " ( " + quoteString(next.value) + " )")
			i++
		case t.kind == tokenWord && next.kind == tokenString && !beforeString[strings.ToLower(t.value)]:
			return "", refuse(Construct, t.from, strings.ToUpper(t.value)+" before a string", "Write AS before an alias. Character sets and literals of type TIME are not read.")
		case t.kind == tokenString && next.kind == tokenString:
			return "", refuse(Construct, next.from, "a string behind a string", "Write both as one string, or AS before an alias.")
		case t.is("extract") && next.sign("(") && extractFields[strings.ToLower(peek(2).value)] && peek(3).is("from"):
			b.WriteString(strings.ToLower(peek(2).value) + " (")
			i += 3
		case t.is("with") && next.is("rollup"):
			b.WriteString(", `" + rollup + "` ( )")
			i++
		case (t.is("substr") || t.is("substring") || t.is(mid)) && next.sign("("):
			b.WriteString(mid + " (")
			open = append(open, true)
			i++
		case len(open) > 0 && open[len(open)-1] && (t.is("from") || t.is("for")):
			b.WriteByte(',')
		default:
			switch {
			case t.sign("("):
				open = append(open, false)
			case t.sign(")") && len(open) > 0:
				open = open[:len(open)-1]
			}
			b.WriteString(t.written())
		}
		b.WriteByte(' ')
	}
	return b.String(), nil
}

// written is a token in the one form that the parser is shown.
func (t token) written() string {
	switch t.kind {
	case tokenString:
		return quoteString(t.value)
	case tokenName:
		return quoteName(t.value)
	case tokenParam:
		return ":p" + t.value
	case tokenWord:
		if strings.IndexFunc(t.value, func(c rune) bool { return c >= utf8.RuneSelf }) >= 0 {
			return quoteName(t.value)
		}
	}
	return t.value
}

func quoteString(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}

func quoteName(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

// noise are the words that the parser's printer adds or leaves out, all of which are known to change nothing or are
// checked as nodes.
var noise = set(`as asc inner outer cross distinct offset limit desc null true false straight_join join union all select from where group by
	having order and or not in is like between regexp rlike div mod on using case when then else end exists interval dual left right natural
	sql_no_cache sql_cache use ignore force index with rollup extract timestamp date integer binary for update lock share mode convert cast
	substr substring current_timestamp localtime localtimestamp current_date`)

// missing compares the names and constants of a text with those of the parser's tree, and returns one that was lost.
func missing(tokens []token, printed string) string {
	count := map[string]int{}
	content := func(t token) (string, bool) {
		switch t.kind {
		case tokenWord, tokenName:
			low := strings.ToLower(t.value)
			return low, !noise[low] && low != rollup
		case tokenString, tokenNumber, tokenParam:
			return t.value, true
		}
		return "", false
	}
	lex := lexer{text: printed, binds: true}
	for {
		t, refusal := lex.next()
		if refusal != nil || t.kind == tokenEnd {
			break
		}
		if c, ok := content(t); ok {
			count[c]++
		}
	}
	for _, t := range tokens {
		if c, ok := content(t); ok {
			if count[c]--; count[c] < 0 {
				return c
			}
		}
	}
	return ""
}

// labels are the texts of the items of the first SELECT, which MySQL takes for the names of columns without an alias.
func labels(text string, tokens []token) []string {
	i := 0
	for i < len(tokens) && !tokens[i].is("select") {
		i++
	}
	for i++; i < len(tokens) && (tokens[i].is("distinct") || tokens[i].is("sql_no_cache") || tokens[i].is("sql_cache") || tokens[i].is("straight_join")); i++ {
	}
	var out []string
	from, depth := i, 0
	for ; ; i++ {
		end := i >= len(tokens) || depth == 0 && (tokens[i].sign(")") || endsItems[strings.ToLower(tokens[i].value)] && tokens[i].kind == tokenWord)
		if end || depth == 0 && tokens[i].sign(",") {
			if i > from {
				out = append(out, text[tokens[from].from:tokens[i-1].to])
			}
			if from = i + 1; end {
				return out
			}
			continue
		}
		if tokens[i].sign("(") {
			depth++
		} else if tokens[i].sign(")") {
			depth--
		}
	}
}

var endsItems = set("from where group having order limit union for lock")

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}
