// Package are computes PostgreSQL's regular expressions: its advanced syntax, with back references, look-around and both kinds
// of greediness, and what they find. RE2 and Go's package regexp read much of the syntax otherwise, and of several matches that
// begin at one place take the first that they come upon where PostgreSQL takes the longest, or the shortest: of 'xfoobarx',
// '(?:fo|foob)(a?)' is 'fooba' with the group 'a' to one and 'fo' with an empty group to the other.
//
// Compile reads a pattern into a tree (parse.go), which is put together twice: as what a text must look like, and as PostgreSQL
// divides a match among the groups (tree.go). Match finds a match (match.go). What hangs on a locale is answered as glibc's
// C.UTF-8 does, or not at all. Work is counted, and what takes too much ends with ErrWork.
package are

import "errors"

// Expression is a compiled pattern.
type Expression struct {
	top    *tree
	groups int
	fold   bool
	plain  bool
}

// Groups is how many groups the expression captures.
func (e *Expression) Groups() int { return e.groups }

// Literal tells whether the pattern is a text that stands for itself.
func (e *Expression) Literal() bool { return e.plain }

// The ways in which a pattern is read, as the letters of PostgreSQL's flags.
type options struct {
	fold, expanded, literal   bool
	dotStops, anchorsAtBreaks bool // n, p and w
}

// ErrUnsupported is of what PostgreSQL would answer and this package does not.
var ErrUnsupported = errors.New("this regular expression")

// ErrWork is of a match that takes too long to find.
var ErrWork = errors.New("a regular expression over this text")

// ErrInvalid is of what is no regular expression to PostgreSQL either.
var ErrInvalid = errors.New("invalid regular expression")

// ErrFlag is of a flag that PostgreSQL does not know.
var ErrFlag = errors.New("invalid regular expression option")

// stop carries an error up from the depth of a parse or a match.
type stop struct{ err error }

func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case stop:
		*err = r.err
	default:
		panic(r)
	}
}

// Flags are what a function's last argument says: global is the g, which is no part of the expression.
type Flags struct {
	options
	Global bool
}

// ParseFlags reads flags as regexp_replace(…, 'gi') takes them.
func ParseFlags(text string) (f Flags, err error) {
	for _, c := range text {
		switch c {
		case 'g':
			f.Global = true
		case 'b', 'e':
			return f, ErrUnsupported // the older syntaxes
		default:
			if !f.set(c) {
				return f, ErrFlag
			}
		}
	}
	return f, nil
}

// set sets one option.
func (o *options) set(c rune) bool {
	switch c {
	case 'c':
		o.fold = false
	case 'i':
		o.fold = true
	case 'm', 'n':
		o.dotStops, o.anchorsAtBreaks = true, true
	case 'p':
		o.dotStops, o.anchorsAtBreaks = true, false
	case 's':
		o.dotStops, o.anchorsAtBreaks = false, false
	case 'w':
		o.dotStops, o.anchorsAtBreaks = false, true
	case 't':
		o.expanded = false
	case 'x':
		o.expanded = true
	case 'q':
		o.literal = true
	default:
		return false
	}
	return true
}

// longest is how long a pattern may be, in characters.
const longest = 2000

// Compile reads a pattern.
func Compile(pattern string, f Flags) (e *Expression, err error) {
	defer catch(&err)
	p := &parser{text: []rune(pattern), options: f.options}
	if len(p.text) > longest {
		return nil, ErrUnsupported
	}
	p.directors()
	var top *node
	if p.literal {
		top = p.node(node{kind: kindCat})
		for _, c := range p.text[p.at:] {
			top.subs = append(top.subs, p.one(c))
		}
	} else {
		top = p.alternatives(0)
		if p.at < len(p.text) { // a ) that closes nothing
			return nil, ErrInvalid
		}
	}
	return &Expression{top: p.divided(top), groups: p.groups, fold: p.fold, plain: p.literal}, nil
}
