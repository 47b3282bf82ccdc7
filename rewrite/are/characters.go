package are

import (
	"slices"
	"strings"
	"unicode"
)

// The parts of a pattern that stand for characters: x for itself, \d and \u00e9 after a backslash, [^b-d[:space:]] in brackets.

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
	if name := classes[unicode.ToLower(c)]; name != "" {
		p.at++
		return p.node(node{kind: kindSet, set: &set{classes: []class{{name: name}}, not: unicode.IsUpper(c)}})
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
			s.classes = append(s.classes, class{name: name})
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
			if name := classes[unicode.ToLower(p.text[p.at+1])]; name != "" {
				s.classes = append(s.classes, class{name: name, not: unicode.IsUpper(p.text[p.at+1])})
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
