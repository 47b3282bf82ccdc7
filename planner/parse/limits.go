package parse

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/planner/refuse"
)

// Limits on the text of one message. The grammar's C library recurses over the tree it builds and dies, beyond
// recovery, when the tree is too deep for the stack; so depth is bounded here, from the tokens alone, before it sees
// the text. The self-test at start parses DeepestAdmitted.
const (
	MaxBytes   = 64 << 10
	MaxTokens  = 10_000
	maxNesting = 200  // ( [ and CASE
	maxChain   = 200  // operators, casts, NOT, IS … between two commas, clause words, AND or OR, with what hangs below
	maxDepth   = 500  // all of them along one path of the tree
	maxUnions  = 35   // set operations at one level: as many as pgAdmin's search for an object has, the most of the clients recorded
	maxJoins   = 200  // joins at one level
	maxList    = 1000 // values after IN
	maxName    = 63
)

// level is one open bracket or CASE, with bounds on the depth of the tree that its tokens can build.
type level struct {
	isCase bool
	isList bool // opened after IN
	items  int
	chain  int // operators since the last separator
	below  int // deepest closed bracket since the last separator
	deep   int // deepest segment so far
	unions int
	joins  int
}

// depth bounds the tree depth of everything in the level.
func (l *level) depth() int { return max(l.deep, l.chain+l.below) + l.unions + l.joins }

func (l *level) separate() {
	l.deep = max(l.deep, l.chain+l.below)
	l.chain, l.below = 0, 0
}

// checkLimits refuses text that is too long, too deep or not text, in one pass and constant space.
func checkLimits(text string) *refuse.Refusal {
	if len(text) > MaxBytes {
		return tooLong.At(-1, len(text), MaxBytes)
	}
	if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
		return badEncoding.At(-1)
	}
	m := meter{levels: make([]level, 1, 16)}
	lex := lexer{text: text}
	for tokens := 0; ; tokens++ {
		t := lex.next()
		if t.kind == tokenEnd || t.kind == tokenInvalid {
			return nil
		}
		if tokens >= MaxTokens {
			return tooMany.At(t.from, MaxTokens)
		}
		if r := m.take(t, text[t.from:t.to]); r != nil {
			return r
		}
	}
}

// admitted checks the limits and blanks out the comments, after which the grammar's C code may see the text. Its
// scanner gives back, one by one, what is behind each mark of a comment: 60,000 bytes of opening marks took it half
// a minute.
func admitted(text string) (string, *refuse.Refusal) {
	if r := checkLimits(text); r != nil {
		return "", r
	}
	return withoutComments(text)
}

// withoutComments writes spaces for comments, so that every place in the text stays where it is. Line breaks beside a
// block comment are blanked too: without them "'a' /* */ ⏎ 'b'" would become one string, which it is not in PostgreSQL.
func withoutComments(text string) (string, *refuse.Refusal) {
	if !strings.Contains(text, "--") && !strings.Contains(text, "/*") {
		return text, nil
	}
	blank := []byte(text)
	for lex, from := (lexer{text: text}), 0; ; from = lex.at {
		t := lex.next()
		if t.kind == tokenInvalid && strings.HasPrefix(text[t.from:], "/*") {
			return "", refuse.Syntax.At(t.from, "unterminated /* comment at or near \""+text[t.from:]+"\"")
		}
		for i := from; i < t.from; i++ {
			if lex.block || text[i] != '\n' && text[i] != '\r' {
				blank[i] = ' '
			}
		}
		if t.kind == tokenEnd || t.kind == tokenInvalid {
			return string(blank), nil
		}
	}
}

// maxParameter is the largest $n that the protocol can bind a value to.
const maxParameter = 1<<16 - 1

// meter follows nesting and chains over the tokens of a text.
type meter struct {
	levels []level
	last   string // the last word in lower case, or "" after any other token
	dotted bool   // the last token was a dot: a keyword after it is a name
}

func (m *meter) top() *level { return &m.levels[len(m.levels)-1] }

// alone refuses a token for itself: a parameter that no value can be bound to, or a long name.
func (t token) alone(s string) *refuse.Refusal {
	switch t.kind {
	case tokenLiteral:
		if len(s) > 1 && s[0] == '$' && isDigit(s[1]) {
			if n, err := strconv.Atoi(s[1:]); err != nil || n > maxParameter {
				return refuse.UnknownParam.At(t.from, min(n, math.MaxInt32))
			}
		}
	case tokenWord:
		if len(s) > maxName {
			return nameLong.At(t.from, len(s), maxName)
		}
	case tokenQuoted:
		if name := strings.ReplaceAll(strings.TrimLeft(s, "uU&"), `""`, `"`); len(name) > maxName+2 && s[0] == '"' {
			return nameLong.At(t.from, len(name)-2, maxName)
		}
	}
	return nil
}

func (m *meter) take(t token, s string) *refuse.Refusal {
	if refusal := t.alone(s); refusal != nil {
		return refusal
	}
	last, dotted := m.last, m.dotted
	m.last, m.dotted = "", false
	switch t.kind {
	case tokenOpen:
		return m.push(t, level{isList: last == "in"})
	case tokenClose:
		for len(m.levels) > 1 && m.top().isCase { // no complete statement has them, but the count must stay sound
			m.close()
		}
		return m.pop(t)
	case tokenComma:
		m.top().separate()
		if m.top().items++; m.top().isList && m.top().items >= maxList {
			return listLong.At(t.from, maxList)
		}
	case tokenSemi:
		m.levels = append(m.levels[:0], level{})
	case tokenOperator:
		return m.link(t)
	case tokenWord:
		if m.last = strings.ToLower(s); !dotted && last != "as" {
			return m.word(t, m.last)
		}
	case tokenOther:
		m.dotted = s == "."
	}
	return nil
}

func (m *meter) word(t token, word string) *refuse.Refusal {
	switch word {
	case "case":
		return m.push(t, level{isCase: true})
	case "end":
		if m.top().isCase {
			return m.pop(t)
		}
	case "union", "intersect", "except":
		m.top().separate()
		if m.top().unions++; m.top().unions > maxUnions {
			return tooUnions.At(t.from, maxUnions)
		}
	case "join":
		m.top().separate()
		if m.top().joins++; m.top().joins > maxJoins {
			return chainLong.At(t.from, maxJoins)
		}
	case "and", "or", "select", "from", "where", "group", "having", "order", "limit", "offset", "on", "when", "then", "else", "values":
		m.top().separate()
	case "not", "is", "isnull", "notnull", "collate", "at", "like", "ilike", "similar", "between", "in", "any", "all", "some", "escape", "operator", "overlaps", "symmetric", "local":
		return m.link(t)
	}
	return nil
}

// link counts one operator of a chain.
func (m *meter) link(t token) *refuse.Refusal {
	if m.top().chain++; m.top().chain > maxChain || m.top().chain+m.top().below > maxDepth {
		return chainLong.At(t.from, maxChain)
	}
	return nil
}

func (m *meter) push(t token, l level) *refuse.Refusal {
	if len(m.levels) > maxNesting {
		return tooDeep.At(t.from, maxNesting)
	}
	m.levels = append(m.levels, l)
	return nil
}

// pop closes a level, if there is one.
func (m *meter) pop(t token) *refuse.Refusal {
	if len(m.levels) > 1 && m.close() > maxDepth {
		return tooDeep.At(t.from, maxNesting)
	}
	return nil
}

// close closes a level and returns its depth, by which the level around it is deeper.
func (m *meter) close() (depth int) {
	depth = m.top().depth() + 1
	m.levels = m.levels[:len(m.levels)-1]
	m.top().below = max(m.top().below, depth)
	return depth
}

// DeepestAdmitted returns a SELECT that builds about the deepest tree that the limits admit. A start-up self-test has
// it parsed in a child process: where that dies, so could a session.
func DeepestAdmitted() string {
	inner := "SELECT 1 FROM t" + strings.Repeat(" CROSS JOIN t", maxJoins) + strings.Repeat(" UNION SELECT 1", maxUnions)
	nested := strings.Repeat("(SELECT ", maxNesting-1) + "(" + inner + ")" + strings.Repeat(")", maxNesting-1)
	return "SELECT " + nested + strings.Repeat(" + 1", min(maxChain, maxDepth-maxNesting-maxJoins-maxUnions))
}
