package are

import (
	"math/bits"
	"unicode"
)

// A match is found in two steps: where it may end, which ends(node, place) says for each piece of the pattern and each place of
// the text, and how what lies between is divided among the groups.

// Span is a part of a text, in characters from 0; Start is −1 where a group has found nothing.
type Span struct{ Start, End int }

// maxWork is how much work the matches of one text may be: about a tenth of a second.
const maxWork = 2_000_000

// matcher matches one text.
type matcher struct {
	e     *Expression
	text  []rune
	known map[[2]int]places
	work  *int
	found []Span // of the groups; [0] is not used
	fold  bool
}

// places is a set of places of a text.
type places []uint64

func (m *matcher) none() places {
	m.did(len(m.text)/64 + 1)
	return make(places, len(m.text)/64+1)
}
func (s places) put(i int)      { s[i/64] |= 1 << (i % 64) }
func (s places) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s places) join(o places) (grew bool) {
	for i := range s {
		if n := s[i] | o[i]; n != s[i] {
			s[i], grew = n, true
		}
	}
	return grew
}

// each calls f with every place in order.
func (s places) each(f func(int)) {
	for i, word := range s {
		for word != 0 {
			at := bits.TrailingZeros64(word)
			word &^= 1 << at
			f(i*64 + at)
		}
	}
}

func (m *matcher) did(n int) {
	if *m.work += n; *m.work > maxWork {
		panic(stop{ErrWork})
	}
}

// ends are the places where a piece may end that begins at a place.
func (m *matcher) ends(n *node, at int) places {
	key := [2]int{n.id, at}
	if s, ok := m.known[key]; ok {
		return s
	}
	m.did(1)
	out := m.none()
	switch n.kind {
	case kindSet:
		if at < len(m.text) && n.set.has(m.text[at]) {
			out.put(at + 1)
		}
	case kindCat:
		out.put(at)
		for _, sub := range n.subs {
			next := m.none()
			out.each(func(i int) { next.join(m.ends(sub, i)) })
			out = next
		}
	case kindAlt:
		for _, sub := range n.subs {
			out.join(m.ends(sub, at))
		}
	case kindGroup:
		out = m.ends(n.subs[0], at)
	case kindBack: // it can be no more than what the group looks like
		out = m.ends(n.subs[0], at)
	case kindRepeat:
		out = m.repeated(n, at)
	case kindLook, kindPlace:
		if m.holds(n, at) {
			out.put(at)
		}
	}
	m.known[key] = out
	return out
}

func (m *matcher) repeated(n *node, at int) places {
	now := m.none()
	now.put(at)
	step := func(from places) places {
		to := m.none()
		from.each(func(i int) { to.join(m.ends(n.subs[0], i)) })
		return to
	}
	for range n.least {
		now = step(now)
	}
	out := m.none()
	out.join(now)
	for k := n.least; n.most < 0 || k < n.most; k++ {
		now = step(now)
		if !out.join(now) {
			break
		}
	}
	return out
}

// holds tells whether a constraint does.
func (m *matcher) holds(n *node, at int) bool {
	if n.kind == kindLook {
		there := false
		if !n.behind {
			m.ends(n.subs[0], at).each(func(int) { there = true })
		}
		for k := 0; n.behind && k <= at && !there; k++ {
			there = m.ends(n.subs[0], k).has(at)
		}
		return there != n.not
	}
	word := func(i int) bool { return i >= 0 && i < len(m.text) && member("word", m.text[i]) }
	before, after := false, false
	if n.place != 'A' && n.place != 'Z' && n.place != '^' && n.place != '$' {
		before, after = word(at-1), word(at)
	}
	switch n.place {
	case 'A':
		return at == 0
	case 'Z':
		return at == len(m.text)
	case '^':
		return at == 0 || m.text[at-1] == '\n'
	case '$':
		return at == len(m.text) || m.text[at] == '\n'
	case 'm':
		return !before && after
	case 'M':
		return before && !after
	case 'y':
		return before != after
	}
	return before == after
}

// Text is a text that is searched more than once.
type Text struct{ m *matcher }

// In prepares a text.
func (e *Expression) In(text string) *Text {
	return &Text{&matcher{e: e, text: []rune(text), known: map[[2]int]places{}, work: new(int), fold: e.fold}}
}

// Find finds the first match that begins at a place or behind it: its span and those of its groups; nil, there is none.
func (t *Text) Find(from int) (found []Span, err error) {
	defer catch(&err)
	m := t.m
	for begin := from; begin <= len(m.text); begin++ {
		ends := m.ends(m.e.top.node, begin)
		var order []int
		ends.each(func(i int) { order = append(order, i) })
		for k := range order {
			end := order[k]
			if m.e.top.prefer != shorter {
				end = order[len(order)-1-k]
			}
			m.found = make([]Span, m.e.groups+1)
			for g := range m.found {
				m.found[g] = Span{-1, -1}
			}
			if m.divide(m.e.top, begin, end) {
				m.found[0] = Span{begin, end}
				return m.found, nil
			}
		}
	}
	return nil, nil
}

// divide finds what the groups of a tree are in a span, all of which it must match.
func (m *matcher) divide(t *tree, begin, end int) bool {
	m.did(1)
	if !m.inside(t, begin, end) {
		return false
	}
	if t.group > 0 {
		m.found[t.group] = Span{begin, end}
	}
	return true
}

func (m *matcher) inside(t *tree, begin, end int) bool {
	if t.kind != back && !m.ends(t.node, begin).has(end) {
		return false
	}
	switch t.kind {
	case both:
		return m.candidates(t.parts[0], begin, end, func(middle int) bool {
			if !m.ends(t.parts[1].node, middle).has(end) {
				return false
			}
			saved := append([]Span(nil), m.found...)
			if m.divide(t.parts[0], begin, middle) && m.divide(t.parts[1], middle, end) {
				return true
			}
			copy(m.found, saved)
			return false
		})
	case either:
		for _, part := range t.parts {
			saved := append([]Span(nil), m.found...)
			if m.ends(part.node, begin).has(end) && m.divide(part, begin, end) {
				return true
			}
			copy(m.found, saved)
		}
		return false
	case again:
		return m.iterate(t, begin, end)
	case back:
		return m.same(t, begin, end)
	}
	return true
}

// candidates tries the ends of a tree up to a limit, in the order that it prefers.
func (m *matcher) candidates(t *tree, begin, limit int, try func(int) bool) bool {
	var order []int
	m.ends(t.node, begin).each(func(i int) {
		if i <= limit {
			order = append(order, i)
		}
	})
	m.did(len(order))
	for k := range order {
		at := order[k]
		if t.prefer != shorter {
			at = order[len(order)-1-k]
		}
		if try(at) {
			return true
		}
	}
	return false
}

// iterate divides a span among repetitions of a tree with groups, each of them as long or as short as it can be. None is empty
// unless the least number of them needs it.
func (m *matcher) iterate(t *tree, begin, end int) bool {
	body := t.parts[0]
	if body.prefer == shorter && t.least == 0 && begin == end {
		return true
	}
	least := max(t.least, 1)
	most := end - begin
	if t.most >= 0 {
		most = min(most, t.most)
	}
	most = max(most, least)
	cuts := []int{begin}
	var next func() bool
	next = func() bool {
		k := len(cuts) // the number of this repetition
		if k > most {
			return false
		}
		from := cuts[k-1]
		return m.candidates(body, from, end, func(to int) bool {
			if to == from && to != end && (k >= least || least-k < end-to) {
				return false
			}
			cuts = append(cuts, to)
			if to == end && k >= least {
				saved := append([]Span(nil), m.found...)
				all := true
				for i := 1; i < len(cuts) && all; i++ {
					m.forget(body)
					all = m.divide(body, cuts[i-1], cuts[i])
				}
				if all {
					return true
				}
				copy(m.found, saved)
			} else if to != end || k < least {
				if next() {
					return true
				}
			}
			cuts = cuts[:k]
			return false
		})
	}
	if next() {
		return true
	}
	m.forget(body)
	return t.least == 0 && begin == end
}

// forget makes the groups of a tree empty.
func (m *matcher) forget(t *tree) {
	if t.group > 0 {
		m.found[t.group] = Span{-1, -1}
	}
	for _, part := range t.parts {
		m.forget(part)
	}
}

// same tells whether a span is what a group has found, as often as a back reference wants.
func (m *matcher) same(t *tree, begin, end int) bool {
	group := m.found[t.to]
	if group.Start < 0 {
		return false
	}
	size := group.End - group.Start
	if size == 0 {
		return begin == end
	}
	times := (end - begin) / size
	if (end-begin)%size != 0 || times < t.least || t.most >= 0 && times > t.most {
		return false
	}
	for i := begin; i < end; i++ {
		a, b := m.text[i], m.text[group.Start+(i-begin)%size]
		if a != b && !(m.fold && (a < 0x80 || b < 0x80) && unicode.ToLower(a) == unicode.ToLower(b)) {
			if m.fold && a >= 0x80 && b >= 0x80 {
				unsupported()
			}
			return false
		}
		m.did(1)
	}
	return true
}
