package are

import (
	"strings"
	"unicode"
)

// A pattern is read as PostgreSQL's manual describes: (?i)a\d+|[^b-d]* is two branches, of pieces that are quantified.

type kind int

const (
	kindSet    kind = iota // one character
	kindCat                // subs one after the other
	kindAlt                // one of subs
	kindRepeat             // subs[0], least to most times
	kindGroup              // subs[0], which is group
	kindBack               // what group has found
	kindLook               // subs[0] is there, or is not
	kindPlace              // a place in the text: place
)

// node is a piece of a pattern.
type node struct {
	kind   kind
	subs   []*node
	set    *set
	least  int
	most   int  // −1: any number
	prefer pref // of a repetition: what its quantifier wants
	group  int
	place  byte // one of A Z m M y Y, ^ and $ of lines
	behind bool
	not    bool
	id     int
}

// pref is whether of several matches the longest or the shortest is taken; 0 says nothing.
type pref int

const (
	longer pref = 1 + iota
	shorter
)

// parser reads a pattern.
type parser struct {
	options
	text    []rune
	at      int
	groups  int // opened so far
	bodies  map[int]*node
	looking int // inside look-around: groups capture nothing
	nodes   int
	depth   int
}

func (p *parser) node(n node) *node {
	if p.nodes++; p.nodes > 20_000 {
		panic(stop{ErrUnsupported})
	}
	n.id = p.nodes
	return &n
}

func invalid() { panic(stop{ErrInvalid}) }

func unsupported() { panic(stop{ErrUnsupported}) }

// next tells whether the pattern goes on with a text.
func (p *parser) next(text string) bool {
	return strings.HasPrefix(string(p.text[p.at:min(len(p.text), p.at+len(text))]), text)
}

func (p *parser) eat(text string) bool {
	if p.next(text) {
		p.at += len([]rune(text))
		return true
	}
	return false
}

// directors reads what may stand before an expression: ***= and ***:, and (?i).
func (p *parser) directors() {
	if p.literal {
		return
	}
	switch {
	case p.eat("***="):
		p.literal = true
		return
	case p.eat("***:"):
	case p.next("***"):
		invalid()
	}
	if p.next("(?") && p.at+2 < len(p.text) && unicode.IsLetter(p.text[p.at+2]) {
		for p.at += 2; p.at < len(p.text) && p.text[p.at] != ')'; p.at++ {
			if c := p.text[p.at]; c == 'b' || c == 'e' {
				unsupported()
			} else if !p.set(c) {
				invalid()
			}
		}
		if p.at == len(p.text) {
			invalid()
		}
		p.at++
	}
}

// skip passes over comments, and over blanks where the syntax is expanded.
func (p *parser) skip() {
	for p.at < len(p.text) {
		switch {
		case p.next("(?#"):
			for p.at < len(p.text) && p.text[p.at] != ')' {
				p.at++
			}
			if p.at == len(p.text) {
				invalid()
			}
			p.at++
		case p.expanded && strings.ContainsRune(" \t\n\v\f\r", p.text[p.at]):
			p.at++
		case p.expanded && p.text[p.at] == '#':
			for p.at < len(p.text) && p.text[p.at] != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

// alternatives reads branches up to the end or the ) of a group.
func (p *parser) alternatives(inside int) *node {
	if p.depth++; p.depth > 100 {
		unsupported()
	}
	defer func() { p.depth-- }()
	branches := []*node{p.branch()}
	for p.eat("|") {
		branches = append(branches, p.branch())
	}
	if inside > 0 && !p.eat(")") {
		invalid()
	}
	if len(branches) == 1 {
		return branches[0]
	}
	return p.node(node{kind: kindAlt, subs: branches})
}

// branch reads pieces one after the other; there may be none.
func (p *parser) branch() *node {
	out := p.node(node{kind: kindCat})
	for p.skip(); p.at < len(p.text) && p.text[p.at] != '|' && p.text[p.at] != ')'; p.skip() {
		out.subs = append(out.subs, p.piece())
	}
	return out
}

// piece reads an atom with its quantifier, or a constraint, which has none.
func (p *parser) piece() *node {
	atom := p.atom()
	p.skip()
	if atom.kind == kindPlace || atom.kind == kindLook {
		if p.quantifier() {
			invalid()
		}
		return atom
	}
	if !p.quantifier() {
		return atom
	}
	r := node{kind: kindRepeat, subs: []*node{atom}, least: 0, most: -1, prefer: longer}
	fixed := false
	switch c := p.text[p.at]; c {
	case '*', '+', '?':
		p.at++
		if c == '+' {
			r.least = 1
		} else if c == '?' {
			r.most = 1
		}
	default:
		p.at++
		r.least = p.number()
		switch {
		case !p.eat(","):
			r.most, fixed = r.least, true
		case p.at < len(p.text) && p.text[p.at] != '}':
			if r.most = p.number(); r.most < r.least {
				invalid()
			}
		}
		if !p.eat("}") {
			invalid()
		}
	}
	if p.eat("?") {
		r.prefer = shorter
	}
	if fixed {
		r.prefer = 0
	}
	if p.skip(); p.quantifier() {
		invalid()
	}
	return p.node(r)
}

// quantifier tells whether one begins here.
func (p *parser) quantifier() bool {
	if p.at >= len(p.text) {
		return false
	}
	c := p.text[p.at]
	return c == '*' || c == '+' || c == '?' || c == '{' && p.at+1 < len(p.text) && p.text[p.at+1] >= '0' && p.text[p.at+1] <= '9'
}

// number reads a number up to 255.
func (p *parser) number() int {
	n, digits := 0, 0
	for ; p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9'; p.at++ {
		if n, digits = n*10+int(p.text[p.at]-'0'), digits+1; n > 255 {
			invalid()
		}
	}
	if digits == 0 {
		invalid()
	}
	return n
}

func (p *parser) atom() *node {
	c := p.text[p.at]
	switch {
	case p.quantifier():
		invalid()
	case p.eat("(?:"):
		return p.alternatives(1)
	case p.eat("(?="):
		return p.look(false, false)
	case p.eat("(?!"):
		return p.look(false, true)
	case p.eat("(?<="):
		return p.look(true, false)
	case p.eat("(?<!"):
		return p.look(true, true)
	case p.next("(?"):
		invalid()
	case c == '(':
		p.at++
		if p.looking > 0 {
			return p.alternatives(1)
		}
		p.groups++
		n := p.groups
		body := p.alternatives(1)
		if p.bodies == nil {
			p.bodies = map[int]*node{}
		}
		p.bodies[n] = body
		return p.node(node{kind: kindGroup, group: n, subs: []*node{body}})
	case p.eat("[[:<:]]"):
		return p.node(node{kind: kindPlace, place: 'm'})
	case p.eat("[[:>:]]"):
		return p.node(node{kind: kindPlace, place: 'M'})
	case c == '[':
		p.at++
		return p.bracket()
	case c == '\\':
		p.at++
		return p.escape()
	case c == '.':
		p.at++
		s := &set{not: true}
		if p.dotStops {
			s.add('\n', '\n')
		}
		return p.node(node{kind: kindSet, set: s})
	case c == '^', c == '$':
		p.at++
		place := map[rune]byte{'^': 'A', '$': 'Z'}[c]
		if p.anchorsAtBreaks {
			place = byte(c)
		}
		return p.node(node{kind: kindPlace, place: place})
	}
	p.at++
	return p.one(c)
}

func (p *parser) look(behind, not bool) *node {
	p.looking++
	sub := p.alternatives(1)
	p.looking--
	return p.node(node{kind: kindLook, behind: behind, not: not, subs: []*node{sub}})
}
