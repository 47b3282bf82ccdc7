package planner

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

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
		k.exprs[i].blanks = c.Blanks
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
	b := predicate.EncodeText(nil, knownOf(s.table).fingerprint)
	b = predicate.Encode(b, s.filter)
	b = binary.AppendUvarint(b, uint64(len(s.counts)))
	for _, p := range s.counts {
		b = predicate.Encode(b, p)
	}
	b = binary.AppendUvarint(b, uint64(len(s.parts)))
	for _, p := range s.parts {
		b = binary.AppendUvarint(b, uint64(len(p.columns)))
		for i, c := range p.columns {
			b = predicate.EncodeText(b, s.table.Columns[c].Name)
			if p.told && p.cuts[i] != nil {
				b = encodeCuts(binary.AppendUvarint(b, 0), p.cuts[i], p.ends[i])
			} else {
				b = binary.AppendUvarint(b, uint64(p.end(i)))
			}
		}
		b = p.encodeClasses(b, p.class)
		for _, mask := range p.masks {
			b = p.encodeMask(b, mask)
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
	if s.grows {
		b = append(b, 'g')
	}
	if s.marginals != nil {
		b = s.marginals.encode(b)
	}
	return b
}

// encodeCuts writes the lengths of pieces, in runs of equal ones, behind the number of pieces.
func encodeCuts(b []byte, starts []int, size int) []byte {
	b = binary.AppendUvarint(b, uint64(len(starts)))
	length := func(i int) int {
		if i+1 < len(starts) {
			return starts[i+1] - starts[i]
		}
		return size - starts[i]
	}
	for at := 0; at < len(starts); {
		end := at + 1
		for end < len(starts) && length(end) == length(at) {
			end++
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(end-at)), uint64(length(at)))
		at = end
	}
	return b
}

// measure makes the Measure of a solved question, without noise and cost.
func (s *solved) measure(kind, name string) *Measure {
	m := &Measure{Kind: kind, Name: name, Table: s.table, Where: s.filter, Counters: s.counts, Sums: s.summed(), Place: s.placement(), Weigh: s.weighing(), Rows: s.rows, PerGroup: s.perGroup, described: s.meaning()}
	for _, c := range s.grain {
		m.Grain = append(m.Grain, s.table.Columns[c])
	}
	for _, p := range s.parts {
		if p.told {
			if m.Cuts == nil {
				m.Cuts = make([][]int, len(m.Grain))
			}
			copy(m.Cuts[slices.Index(s.grain, p.columns[0]):], p.cuts)
		}
		partly := slices.ContainsFunc(p.masks, func(mask []bool) bool { return mask != nil })
		group := Grouping{Columns: len(p.columns), Cells: p.combinations(), Classes: p.classes, Partly: partly}
		if s.table.MaxGroups > 0 {
			group.Runs = p.runs()
		}
		m.Groups = append(m.Groups, group)
	}
	m.Digest = sha256.Sum256(m.described)
	return m
}

// identity is the measure over every cell of some columns: what a declared release holds.
func identity(t *policy.Table, columns []*policy.Column) *solved {
	s := &solved{question: &question{table: t}, counts: []predicate.Pred{nil}, sums: []*summand{nil}, values: []*values{nil}, cells: 1}
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
