package are

// tree is how PostgreSQL divides a match: a chunk is only matched as a whole, other nodes have parts that are found one after
// the other, the first as long (or as short) as it can be. Only what has groups, or wants the longest here and the shortest
// there, is divided; '(a|b)c*d' is the alternation, in a group, and the chunk 'c*d'.
type tree struct {
	kind   treeKind
	prefer pref
	node   *node // what all of it must look like
	parts  []*tree
	group  int // which it is, 0: none
	to     int // of a back reference: the group
	least  int
	most   int
	messy  bool // has groups, back references or both preferences
}

type treeKind int

const (
	chunk treeKind = iota
	both           // parts[0], then parts[1]
	either
	again
	back
)

// first is the preference of the one or else of the other.
func first(a, b pref) pref {
	if a != 0 {
		return a
	}
	return b
}

// divided makes the tree of a piece of a pattern.
func (p *parser) divided(n *node) *tree {
	switch n.kind {
	case kindAlt:
		t := &tree{kind: either, prefer: longer, node: n}
		for _, sub := range n.subs {
			part := p.divided(sub)
			t.parts = append(t.parts, part)
			t.messy = t.messy || part.messy || part.prefer == shorter
		}
		if t.refers() { // PostgreSQL and this package may differ
			unsupported()
		}
		if !t.messy {
			return &tree{kind: chunk, prefer: longer, node: n}
		}
		return t
	case kindCat:
		return p.branchTree(n.subs)
	}
	return p.branchTree([]*node{n})
}

// branchTree divides a branch: what comes before the first piece that is messy, that piece, and the rest.
func (p *parser) branchTree(pieces []*node) *tree {
	prefix, prefer := p.node(node{kind: kindCat}), pref(0)
	for i, piece := range pieces {
		atom, least, most, wants := piece, 1, 1, pref(0)
		if piece.kind == kindRepeat {
			atom, least, most, wants = piece.subs[0], piece.least, piece.most, piece.prefer
		}
		var t *tree
		switch atom.kind {
		case kindGroup:
			inner := p.divided(atom.subs[0])
			if most == 0 {
				unsupported()
			}
			if inner.group > 0 { // ((a)): one node cannot be two groups
				inner = &tree{kind: both, prefer: inner.prefer, node: inner.node, messy: true, parts: []*tree{{kind: chunk, node: p.node(node{kind: kindCat})}, inner}}
			}
			inner.group, inner.messy = atom.group, true
			t = inner
		case kindBack:
			if least == 0 { // a reference that may be left out: they may differ, too
				unsupported()
			}
			t = &tree{kind: back, node: piece, to: atom.group, least: least, most: most, prefer: wants, messy: true}
		case kindAlt, kindCat:
			if t = p.divided(atom); most == 0 && t.captures() {
				unsupported()
			}
		default:
			t = &tree{kind: chunk, node: atom}
		}
		mixed := func(a, b, c pref) bool {
			return (a == longer || b == longer || c == longer) && (a == shorter || b == shorter || c == shorter)
		}
		if !t.messy && !mixed(prefer, wants, t.prefer) {
			prefix.subs = append(prefix.subs, piece)
			prefer = first(first(prefer, wants), t.prefer)
			continue
		}
		q := p.quantified(t, piece, least, most, wants)
		if rest := pieces[i+1:]; len(rest) > 0 {
			after := p.branchTree(rest)
			q = p.joined(q, after)
		}
		if len(prefix.subs) > 0 {
			q = p.joined(&tree{kind: chunk, prefer: prefer, node: prefix}, q)
		}
		return q
	}
	return &tree{kind: chunk, prefer: prefer, node: prefix}
}

// joined is one tree after another.
func (p *parser) joined(a, b *tree) *tree {
	return &tree{kind: both, prefer: first(a.prefer, b.prefer), messy: true, node: p.node(node{kind: kindCat, subs: []*node{a.node, b.node}}), parts: []*tree{a, b}}
}

// quantified puts a quantifier around a messy tree.
func (p *parser) quantified(t *tree, piece *node, least, most int, wants pref) *tree {
	switch {
	case t.kind == back && piece.kind == kindRepeat || piece.kind != kindRepeat:
		return t
	case least == 1 && most == 1 && (wants == 0 || t.prefer == 0 || wants == t.prefer):
		return t
	case !t.captures():
		return &tree{kind: chunk, prefer: first(wants, t.prefer), node: piece}
	case least > 0 && !t.refers():
		// x{m,n} is x{m-1,n-1} and then x, whose groups are those of the last time.
		before := node{kind: kindRepeat, subs: piece.subs, least: least - 1, most: most, prefer: wants}
		if most > 0 {
			before.most = most - 1
		}
		prefer := first(wants, t.prefer)
		return &tree{kind: both, prefer: prefer, messy: true, node: piece, parts: []*tree{{kind: chunk, prefer: prefer, node: p.node(before)}, t}}
	}
	return &tree{kind: again, prefer: first(wants, t.prefer), messy: true, node: piece, parts: []*tree{t}, least: least, most: most}
}

// captures tells whether a tree has groups or back references.
func (t *tree) captures() bool {
	if t.group != 0 {
		return true
	}
	for _, part := range t.parts {
		if part.captures() {
			return true
		}
	}
	return false
}

// refers tells whether a tree has back references.
func (t *tree) refers() bool {
	if t.kind == back {
		return true
	}
	for _, part := range t.parts {
		if part.refers() {
			return true
		}
	}
	return false
}
