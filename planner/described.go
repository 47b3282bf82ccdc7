package planner

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// heldMeasure is a measure read back from its description: what each counter counts or adds up, by the cells of some
// columns.
type heldMeasure struct {
	*solved
	kind   string
	name   string
	shared bool
	adds   []string // by counter: the encoding of what is added up, empty: rows are counted; "?": neither, it cannot be read
	digest Digest
	body   []byte // what the digest is of
}

// isPlain tells a count of every row by cells.
func (m *heldMeasure) isPlain() bool {
	return m.filter == nil && len(m.counts) == 1 && m.counts[0] == nil && m.adds[0] == "" && !slices.ContainsFunc(m.parts, func(p *part) bool { return p.masks[0] != nil })
}

// copied is a copy that can be changed.
func (m *heldMeasure) copied() *heldMeasure {
	own, counts := *m, *m.solved
	own.solved = &counts
	return &own
}

// plain is what it counts, where that is every row.
func (m *heldMeasure) plain() *solved {
	if !m.isPlain() {
		return nil
	}
	return m.solved
}

// held is the measure as it was bought.
func (m *heldMeasure) held() *Measure {
	out := m.measure(m.kind, m.name)
	out.Digest, out.described, out.Shared = m.digest, m.body, m.shared
	return out
}

// describedHead reads what a description says before its meaning. It is not ok when the digest is of another meaning.
func describedHead(h Holding) (shared bool, kind, name string, ok bool) {
	r := reader{b: h.Described}
	version := r.byte()
	shared, kind, name = r.byte() == 1, r.text(), r.text()
	return shared, kind, name, !r.failed && version == describedVersion && Digest(sha256.Sum256(r.b)) == h.Digest
}

// readDescribed is readHeld for counts of every row.
func readDescribed(h Holding, t *policy.Table) *heldMeasure {
	if m := readHeld(h, t); m != nil && m.isPlain() {
		return m
	}
	return nil
}

// readHeld rebuilds a measure over t from a holding. It is nil when the holding means something else now: its table's
// meaning has changed, its digest disagrees with its description, or what it counts cannot be read back.
func readHeld(h Holding, t *policy.Table) *heldMeasure {
	r := reader{b: h.Described, t: t}
	if r.byte() != describedVersion {
		return nil
	}
	m := &heldMeasure{shared: r.byte() == 1, digest: h.Digest}
	m.kind, m.name, m.body = r.text(), r.text(), r.b
	if r.failed || Digest(sha256.Sum256(r.b)) != h.Digest || r.text() != knownOf(t).fingerprint {
		return nil
	}
	s := &solved{question: &question{table: t}, cells: 1}
	if s.filter = r.pred(); r.failed {
		return nil
	}
	n := r.number()
	if r.failed || n != h.Spec.Counters || !mechanisms.Is[*mechanisms.Counts](h.Spec) {
		return nil
	}
	for range n {
		s.counts = append(s.counts, r.pred())
	}
	for k := r.number(); k > 0 && !r.failed; k-- {
		p := r.part(n)
		if p == nil {
			return nil
		}
		s.parts = append(s.parts, p)
		s.grain = append(s.grain, p.columns...)
		if s.cells *= p.classes; s.cells > maxCells || s.cells == 0 {
			return nil
		}
	}
	if len(r.b) == 1 && r.b[0] == 'g' {
		s.grows, r.b = true, nil
	}
	s.sums, s.values, m.adds = make([]*summand, n), make([]*values, n), make([]string, n)
	m.solved = s
	if m.readSums(&r); r.failed || s.cells != h.Spec.Cells {
		return nil
	}
	return m
}

// readSums reads what the counters add up: products of factors; weights and values are noted and not read.
func (m *heldMeasure) readSums(r *reader) {
	for len(r.b) > 0 && !r.failed {
		if r.b[0] == 'm' {
			r.marginals()
			continue
		}
		sign, c := r.byte(), r.number()
		if c >= len(m.counts) || sign != '+' {
			for i := range m.adds {
				m.adds[i] = "?"
			}
			r.b = nil
			return
		}
		before := r.b
		sum, kind := &summand{}, r.byte()
		if kind == 'q' {
			sum.over, kind = r.signed(), r.byte()
		}
		switch kind {
		case 's':
			if factors := r.factors(); len(factors) > 0 {
				sum.terms = one(factors)
			}
		case 'l':
			for n := r.number(); n > 0 && !r.failed; n-- {
				sum.terms = append(sum.terms, SumTerm{Times: r.signed(), Factors: r.factors()})
			}
		default:
			r.failed = true
			return
		}
		sum.bound = mechanisms.Bound{Low: r.signed(), High: r.signed()}
		if len(sum.terms) == 0 { // weights by cells
			for i := range m.adds {
				m.adds[i] = "?"
			}
			r.b = nil
			return
		}
		m.sums[c], m.adds[c] = sum, string(before[:len(before)-len(r.b)])
	}
}

// reader walks a description; after the first fault all it reads is zero.
type reader struct {
	b      []byte
	t      *policy.Table
	failed bool
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.failed = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) number() int {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > 1<<31 {
		r.failed = true
		return 0
	}
	r.b = r.b[size:]
	return int(n)
}

func (r *reader) signed() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.failed = true
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) text() string {
	n := r.number()
	if n > len(r.b) {
		r.failed = true
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// mostNested bounds the depth of a predicate that is read back.
const mostNested = 16

// pred reads a predicate.
func (r *reader) pred() predicate.Pred { return r.nested(mostNested) }

func (r *reader) nested(depth int) predicate.Pred {
	if r.failed = r.failed || depth == 0; r.failed {
		return nil
	}
	switch r.byte() {
	case 't':
		return nil
	case 'n':
		return predicate.Never{}
	case 'a':
		return predicate.AllOf(r.several(depth))
	case 'o':
		return predicate.AnyOf(r.several(depth))
	case 'i':
		c := r.column()
		var spans []mechanisms.Span
		for n := r.number(); n > 0 && !r.failed; n-- {
			spans = append(spans, mechanisms.Span{From: r.number(), To: r.number()})
		}
		return predicate.InCells{Column: c, Spans: spans}
	case 'c':
		c, op, text := r.column(), r.text(), r.text()
		if r.failed {
			return nil
		}
		v, err := policy.ParseValue(c.Type, text)
		if r.failed = err != nil || predicate.Opposite[op] == "" || predicate.Text(predicate.CanonicalValue(v)) != text; r.failed {
			return nil
		}
		return predicate.Compare{Column: c, Op: op, Value: v}
	}
	r.failed = true
	return nil
}

func (r *reader) several(depth int) (list []predicate.Pred) {
	for n := r.number(); n > 0 && !r.failed; n-- {
		list = append(list, r.nested(depth-1))
	}
	return list
}

func (r *reader) column() *policy.Column {
	c := r.t.Column(r.text())
	if c == nil || c.Domain == nil {
		r.failed = true
	}
	return c
}

// marginals reads over which sets marginals were wanted: their spec says what can be read.
func (r *reader) marginals() {
	r.byte()
	for n := r.number(); n > 0 && !r.failed; n-- {
		for k := r.number(); k > 0 && !r.failed; k-- {
			r.number()
		}
	}
}
