package are

import (
	"slices"
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

// one is a character that stands for itself.
func (p *parser) one(c rune) *node {
	s := &set{}
	p.include(s, c, c)
	return p.node(node{kind: kindSet, set: s})
}

// include puts a range into a set, in both cases where case does not matter.
func (p *parser) include(s *set, low, high rune) {
	s.add(low, high)
	if !p.fold {
		return
	}
	if high >= 0x80 { // what the cases of these are is the locale's to say
		if high-low > 0 || unicode.ToLower(low) != low || unicode.ToUpper(low) != low {
			unsupported()
		}
		return
	}
	for c := low; c <= high; c++ {
		switch {
		case c >= 'a' && c <= 'z':
			s.add(c-32, c-32)
		case c >= 'A' && c <= 'Z':
			s.add(c+32, c+32)
		}
	}
}

// entries are the escapes that stand for one character.
var entries = map[rune]rune{'a': '\a', 'b': '\b', 'B': '\\', 'e': '\033', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

// classes are the escapes that stand for a class.
var classes = map[rune]string{'d': "digit", 's': "space", 'w': "word"}

// escape reads what follows a backslash.
func (p *parser) escape() *node {
	if p.at == len(p.text) {
		invalid()
	}
	c := p.text[p.at]
	if strings.ContainsRune("AZmMyY", c) {
		p.at++
		return p.node(node{kind: kindPlace, place: byte(c)})
	}
	if class := classes[unicode.ToLower(c)]; class != "" {
		p.at++
		return p.node(node{kind: kindSet, set: &set{classes: []class_{{name: class}}, not: unicode.IsUpper(c)}})
	}
	if c >= '1' && c <= '9' {
		from, n := p.at, 0
		for ; p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' && n < 100; p.at++ {
			n = n*10 + int(p.text[p.at]-'0')
		}
		if p.at > from+1 && n > p.groups { // of several digits, it may be a character
			p.at = from
			return p.one(p.entry())
		}
		if p.looking > 0 || p.bodies[n] == nil {
			invalid()
		}
		return p.node(node{kind: kindBack, group: n, subs: []*node{p.bodies[n]}})
	}
	return p.one(p.entry())
}

// entry reads an escape that is a character.
func (p *parser) entry() rune {
	c := p.text[p.at]
	p.at++
	if known, ok := entries[c]; ok {
		return known
	}
	hex := func(digits int, exact bool) rune {
		n, from := 0, p.at
		for ; p.at < len(p.text) && p.at-from < digits; p.at++ {
			d := strings.IndexRune("0123456789abcdef", unicode.ToLower(p.text[p.at]))
			if d < 0 {
				break
			}
			n = n*16 + d
		}
		if p.at == from || exact && p.at-from < digits || n > unicode.MaxRune || n == 0 {
			invalid()
		}
		return rune(n)
	}
	switch {
	case c == 'u':
		return hex(4, true)
	case c == 'U':
		return hex(8, true)
	case c == 'x':
		return hex(255, false)
	case c == 'c':
		if p.at == len(p.text) {
			invalid()
		}
		p.at++
		return p.text[p.at-1] & 0x1f
	case c >= '0' && c <= '9':
		unsupported() // octal, and the end of texts
	case c < 0x80 && (unicode.IsLetter(c)):
		invalid()
	}
	return c
}

// bracket reads a bracket expression behind its [.
func (p *parser) bracket() *node {
	s := &set{}
	if p.eat("^") {
		s.not = true
		if p.dotStops {
			defer s.add('\n', '\n')
		}
	}
	for first := true; ; first = false {
		if p.at >= len(p.text) {
			invalid()
		}
		c := p.text[p.at]
		if c == ']' && !first {
			p.at++
			return p.node(node{kind: kindSet, set: s})
		}
		if p.eat("[:") {
			name := p.upTo(":]")
			if !slices.Contains(classNames, name) {
				invalid()
			}
			if p.fold && (name == "upper" || name == "lower") {
				name = "alpha"
			}
			s.classes = append(s.classes, class_{name: name})
			continue
		}
		if p.next("[=") {
			p.at += 2
			if name := []rune(p.upTo("=]")); len(name) == 1 {
				p.include(s, name[0], name[0])
				continue
			}
			unsupported()
		}
		if c == '\\' && p.at+1 < len(p.text) {
			if class := classes[unicode.ToLower(p.text[p.at+1])]; class != "" {
				s.classes = append(s.classes, class_{name: class, not: unicode.IsUpper(p.text[p.at+1])})
				p.at += 2
				if p.next("-") && !p.next("-]") {
					invalid()
				}
				continue
			}
		}
		if c == '-' && !first && !p.next("-]") {
			unsupported() // a-z-9, which ranges begin and end where
		}
		low := p.member()
		high := low
		if p.next("-") && !p.next("-]") {
			p.at++
			if p.next("[:") || p.next("[=") {
				invalid()
			}
			if high = p.member(); high < low {
				invalid()
			}
		}
		p.include(s, low, high)
	}
}

// member reads one character of a bracket expression.
func (p *parser) member() rune {
	if p.at >= len(p.text) {
		invalid()
	}
	if p.eat("[.") {
		name := []rune(p.upTo(".]"))
		if len(name) != 1 {
			unsupported()
		}
		return name[0]
	}
	c := p.text[p.at]
	p.at++
	if c != '\\' {
		return c
	}
	if p.at == len(p.text) || strings.ContainsRune("AZmMyYdswDSW", p.text[p.at]) {
		invalid()
	}
	if p.text[p.at] >= '1' && p.text[p.at] <= '9' {
		unsupported()
	}
	return p.entry()
}

// upTo reads up to the end of a [: :] and its like.
func (p *parser) upTo(end string) string {
	rest := string(p.text[p.at:])
	name, _, ok := strings.Cut(rest, end)
	if !ok {
		invalid()
	}
	p.at += len([]rune(name)) + len(end)
	return name
}
