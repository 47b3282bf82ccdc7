package planner

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/policy"
)

// describedVersion is the first byte of a description of a measure.
const describedVersion = 1

// known is what the planner keeps of a table of a policy, which never changes.
type known struct {
	fingerprint string // hash of the table's meaning
	names       []string
	exprs       []*expr // its columns
	keys        []key   // its join keys, by each name that they have
}

var knownTables sync.Map // *policy.Table → *known

func knownOf(t *policy.Table) *known {
	if k, ok := knownTables.Load(t); ok {
		return k.(*known)
	}
	hash := sha256.Sum256(t.Fingerprint())
	k := &known{fingerprint: string(hash[:])}
	for i, c := range t.Columns {
		k.names = append(k.names, c.Name)
		k.exprs = append(k.exprs, columnExpr(i, c.Type, c.Typmod, -1))
	}
	for _, c := range t.Keys {
		k.keys = append(k.keys, key{c.Name, c, 0})
	}
	if t.Derived == nil && !t.Opened { // others live as long as their plan
		for _, c := range t.Columns {
			if j := t.Key(c.Name); j != nil && j.Name != c.Name {
				k.keys = append(k.keys, key{c.Name, j, 0})
			}
		}
		knownTables.Store(t, k)
	}
	return k
}

// meaning is the canonical encoding of what a measure counts. Its hash is the measure's digest.
func (s *solved) meaning() []byte {
	b := encodeText(nil, knownOf(s.table).fingerprint)
	b = encodePred(b, s.filter)
	b = binary.AppendUvarint(b, uint64(len(s.counts)))
	for _, p := range s.counts {
		b = encodePred(b, p)
	}
	b = binary.AppendUvarint(b, uint64(len(s.parts)))
	for _, p := range s.parts {
		b = binary.AppendUvarint(b, uint64(len(p.columns)))
		for i, c := range p.columns {
			b = encodeText(b, s.table.Columns[c].Name)
			b = binary.AppendUvarint(b, uint64(p.sizes[i]))
		}
		b = encodeClasses(b, p.class)
		for _, mask := range p.masks {
			b = encodeMask(b, mask)
		}
	}
	for c, sum := range s.summed() {
		if sum != nil && sum.Values > 0 {
			b = s.encodeValues(binary.AppendUvarint(append(b, '#'), uint64(c)), c)
		} else if sum != nil {
			b = encodeSum(binary.AppendUvarint(append(b, '+'), uint64(c)), sum)
			b = s.encodeWeights(b, c)
		}
	}
	if s.marginals != nil {
		b = s.marginals.encode(b)
	}
	return b
}

// encodeClasses writes runs of equal steps: the identity over any number of cells is one run.
func encodeClasses(b []byte, class []int32) []byte {
	if isIdentity(class) {
		return append(b, 'i')
	}
	b = append(b, 'r')
	for at := 0; at < len(class); {
		end := at + 1
		for end < len(class) && class[end] == class[at] {
			end++
		}
		b = binary.AppendUvarint(b, uint64(end-at))
		b = binary.AppendUvarint(b, uint64(class[at]+1))
		at = end
	}
	return b
}

func isIdentity(class []int32) bool {
	for i, c := range class {
		if int(c) != i {
			return false
		}
	}
	return true
}

func encodeMask(b []byte, mask []bool) []byte {
	if mask == nil {
		return append(b, 't')
	}
	b = append(b, 'm')
	packed := make([]byte, (len(mask)+7)/8)
	for i, on := range mask {
		if on {
			packed[i/8] |= 1 << (i % 8)
		}
	}
	return encodeText(b, string(packed))
}

// measure makes the Measure of a solved question, without noise and cost.
func (s *solved) measure(kind, name string) *Measure {
	m := &Measure{Kind: kind, Name: name, Table: s.table, Where: s.filter, Counters: s.counts, Sums: s.summed(), Place: s.placement(), Weigh: s.weighing(), PerGroup: s.perGroup, described: s.meaning()}
	for _, c := range s.grain {
		m.Grain = append(m.Grain, s.table.Columns[c])
	}
	for _, p := range s.parts {
		partly := slices.ContainsFunc(p.masks, func(mask []bool) bool { return mask != nil })
		m.Groups = append(m.Groups, Grouping{len(p.columns), p.class, p.classes, partly})
	}
	m.Digest = sha256.Sum256(m.described)
	return m
}

// Describe is the planner's description of the measure, from which a later plan reads it again.
func (m *Measure) Describe() []byte {
	b := []byte{describedVersion, 0}
	if m.Shared {
		b[1] = 1
	}
	b = encodeText(encodeText(b, m.Kind), m.Name)
	return append(b, m.described...)
}

// identity is the measure over every cell of some columns: what a declared release holds.
func identity(t *policy.Table, columns []*policy.Column) *solved {
	s := &solved{question: &question{table: t}, counts: []Pred{nil}, sums: []*summand{nil}, values: []*values{nil}, cells: 1}
	for _, c := range columns {
		at := columnIndex(t, c)
		p := &part{columns: []int{at}, sizes: []int{c.Domain.Size()}, class: make([]int32, c.Domain.Size()), classes: c.Domain.Size(), masks: make([][]bool, 1)}
		for i := range p.class {
			p.class[i] = int32(i)
		}
		s.parts = append(s.parts, p)
		s.cells *= p.classes
	}
	sortParts(t, s.parts)
	for _, p := range s.parts {
		s.grain = append(s.grain, p.columns...)
	}
	return s
}

func columnIndex(t *policy.Table, c *policy.Column) int {
	for i, have := range t.Columns {
		if have == c {
			return i
		}
	}
	return -1
}

// heldMeasure is a measure read back from its description: counts of all rows by the cells of some columns.
type heldMeasure struct {
	*solved
	kind   string
	name   string
	shared bool
}

// describedHead reads what a description says before its meaning. It is not ok when the digest is of another meaning.
func describedHead(h Holding) (shared bool, kind, name string, ok bool) {
	r := reader{b: h.Described}
	version := r.byte()
	shared, kind, name = r.byte() == 1, r.text(), r.text()
	return shared, kind, name, !r.failed && version == describedVersion && Digest(sha256.Sum256(r.b)) == h.Digest
}

// readDescribed rebuilds a measure over t from a holding. It is nil when the holding means something else now: its
// table's meaning has changed, its digest disagrees with its description, or it is not a plain count by cells.
func readDescribed(h Holding, t *policy.Table) *heldMeasure {
	r := reader{b: h.Described}
	if r.byte() != describedVersion {
		return nil
	}
	shared := r.byte() == 1
	kind, name := r.text(), r.text()
	if r.failed || Digest(sha256.Sum256(r.b)) != h.Digest || r.text() != knownOf(t).fingerprint {
		return nil
	}
	// Every row, counted once, in every cell: other measures are found by their digest alone.
	if r.byte() != 't' || r.number() != 1 || r.byte() != 't' {
		return nil
	}
	s := &solved{question: &question{table: t}, counts: []Pred{nil}, sums: []*summand{nil}, values: []*values{nil}, cells: 1}
	for n := r.number(); n > 0 && !r.failed; n-- {
		p := r.part(t)
		if p == nil {
			return nil
		}
		s.parts = append(s.parts, p)
		s.grain = append(s.grain, p.columns...)
		if s.cells *= p.classes; s.cells > maxCells || s.cells == 0 {
			return nil
		}
	}
	if h.Spec.Strategy.IsCube() {
		r.marginals()
	}
	if r.failed || len(r.b) > 0 || s.cells != h.Spec.Cells || h.Spec.Counters != 1 {
		return nil
	}
	return &heldMeasure{s, kind, name, shared}
}

// reader walks a description; after the first fault all it reads is zero.
type reader struct {
	b      []byte
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

// marginals reads over which sets were wanted: the spec says what can be read.
func (r *reader) marginals() {
	if r.byte() != 'm' {
		r.failed = true
	}
	for n := r.number(); n > 0 && !r.failed; n-- {
		for k := r.number(); k > 0 && !r.failed; k-- {
			r.number()
		}
	}
}

// part reads one part without masks.
func (r *reader) part(t *policy.Table) *part {
	p := &part{masks: make([][]bool, 1)}
	combinations := 1
	for n := r.number(); n > 0 && !r.failed; n-- {
		c := t.Column(r.text())
		size := r.number()
		if c == nil || c.Domain == nil || c.Domain.Size() != size {
			return nil
		}
		p.columns, p.sizes = append(p.columns, columnIndex(t, c)), append(p.sizes, size)
		if combinations *= size; combinations > maxCells {
			return nil
		}
	}
	p.class = make([]int32, combinations)
	switch r.byte() {
	case 'i':
		for i := range p.class {
			p.class[i] = int32(i)
		}
		p.classes = combinations
	case 'r':
		for at := 0; at < combinations; {
			n, class := r.number(), int32(r.number())-1
			if r.failed || n == 0 || n > combinations-at {
				return nil
			}
			for ; n > 0; n-- {
				p.class[at] = class
				at++
			}
			p.classes = max(p.classes, int(class)+1)
		}
	default:
		return nil
	}
	if r.byte() != 't' || r.failed {
		return nil
	}
	return p
}

// columnNames lists columns for people.
func columnNames(columns []*policy.Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// span is one cell.
func span(cell int) []mechanisms.Span { return []mechanisms.Span{{From: cell, To: cell + 1}} }
